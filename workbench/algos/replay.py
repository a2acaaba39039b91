"""A recorded schedule of hyperparameters, replayed over the phases of one trial of any kind (PBT, Sec. 4)."""

import json
import os
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.algos.function.factory import Asked, as_factory, trying
from workbench.core.describe import build
from workbench.core.errors import InvalidInput
from workbench.core.measured import one_line, parted
from workbench.core.protocols import RETURNS, Config, Measured, Progress, Trainable, TrainableFactory
from workbench.core.record import own_classes
from workbench.core.registry import TRAINABLES

_STATE = "replay.json"
_INNER = "trial"
_MOST_BYTES = 16 << 20  # of a schedule's file


@dataclass(frozen=True)
class Replay:
    """Trials that change their hyperparameters from phase to phase, as a schedule says.

    Where the hyperparameters change, the trial within is saved, built again with the same seed and the new ones, and
    loaded. After the last entry of the schedule they stay as they are.

    Parameters
    ----------
    schedule : path, or sequence of Mapping
        A file that `Results.write_schedule` wrote, or one configuration a phase. They name the same hyperparameters,
        unless another has changed on which one depends.
    trainable : TrainableFactory, function, class or Mapping, optional
        What is trained: an object, code of your own as `Study` takes it, or a table with its ``kind`` and settings; by
        default what the file's study trained, unless that was code of your own.

    Examples
    --------
    >>> Replay([{"h0": 1.0, "h1": 0.0}, {"h0": 0.0, "h1": 1.0}], {"kind": "quadratic"})  # doctest: +SKIP
    """

    schedule: str | Path | Sequence[Config]
    trainable: TrainableFactory | Callable[..., Iterator[Any]] | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        schedule, trainable = self.schedule, self.trainable
        if isinstance(schedule, str | Path):
            path = schedule
            schedule, recorded = read_schedule(path)
            if trainable is None and recorded and (mine := own_classes(recorded)):
                raise InvalidInput(
                    f"{path} is of {mine[0]}, code of your own, which a schedule alone makes none import: pass it, "
                    f'Replay({str(path)!r}, trainable), or name it in a study file, trainable = {{kind = "{mine[0]}"}}'
                )
            trainable = recorded if trainable is None else trainable
        if isinstance(trainable, Mapping):
            trainable = build("trainable", trainable, TRAINABLES)
        if not callable(trainable):
            raise InvalidInput(
                f"a replay needs to know what to train, got trainable={trainable!r}: pass an object, or a table with "
                "its kind, or a schedule's file, which says it"
            )
        listed = isinstance(schedule, Sequence) and not isinstance(schedule, bytes)
        if not listed or not schedule or not all(isinstance(config, Mapping) for config in schedule):
            raise InvalidInput(f"a schedule is one configuration a phase, and one at least, got {schedule!r}")
        first = schedule[0]
        for phase, config in enumerate(schedule):
            same = all(config[name] == first[name] for name in set(config) & set(first))
            if same and set(config) != set(first):  # else one may apply under the other value of another
                raise InvalidInput(f"phase {phase} of the schedule names {sorted(config)}, phase 0 {sorted(first)}")
        object.__setattr__(self, "schedule", tuple(dict(config) for config in schedule))
        object.__setattr__(self, "trainable", as_factory(trainable))
        self._check_inner(self._names)
        self._check_shapes()
        with self.trying() as asked:
            asked({})

    def check(self, config_names: Iterable[str]) -> None:
        """Refuse a hyperparameter that the schedule sets, or that no trial could take, before a study starts."""
        names = list(config_names)
        if both := sorted(set(names) & self._names):
            raise InvalidInput(f"the schedule to replay sets {', '.join(both)}: leave it out of the search space")
        self._check_inner(names)

    def __call__(self, config: Config, seed: int) -> "ReplayTrial":
        """Build a trial; `config` holds what the schedule leaves open, usually nothing."""
        self.check(config)
        return ReplayTrial(self.factory, [{**config, **step} for step in self.configs], seed)

    @property
    def shapes_weights(self) -> Collection[str]:
        """Hyperparameters with which the weights of the trial within have other shapes."""
        return getattr(self.factory, "shapes_weights", ())

    @contextmanager
    def trying(self) -> Iterator[Asked]:
        """Give what refuses a configuration with which some phase could not begin, before a study starts."""
        with trying(self.factory) as asked:
            yield lambda config: [asked({**config, **step}) for step in self.configs if asked is not None]

    @property
    def configs(self) -> tuple[Config, ...]:
        """The schedule, read."""
        return self.schedule  # type: ignore[return-value]

    @property
    def _names(self) -> set[str]:
        """The hyperparameters that any phase has."""
        return {name for config in self.configs for name in config}

    @property
    def factory(self) -> TrainableFactory:
        """What is trained, built."""
        return self.trainable  # type: ignore[return-value]

    def _check_shapes(self) -> None:
        for name in self._names.intersection(self.shapes_weights):
            if len(found := list(dict.fromkeys(repr(config.get(name)) for config in self.configs))) > 1:
                raise InvalidInput(
                    f"the schedule changes {name} from {found[0]} to {found[1]}, and with it the shapes of "
                    "weights, which go on from phase to phase: replay one that leaves it as it is"
                )

    def _check_inner(self, names: Iterable[str]) -> None:
        check = getattr(self.factory, "check", None)
        if check is not None:
            check(list(names))


class ReplayTrial:
    """One trial under a schedule.

    Attributes
    ----------
    phase : int
        Phases done.
    config : Config
        What the trial within was built with.
    """

    def __init__(self, factory: TrainableFactory, configs: Sequence[Config], seed: int) -> None:
        self._factory, self._configs, self._seed = factory, configs, seed
        self.phase = 0
        self.config = configs[0]
        self._trial: Trainable = factory(self.config, seed)

    def train_phase(self, progress: Progress) -> Measured:
        """Run the next phase with the schedule's hyperparameters for it.

        Returns
        -------
        dict
            The metrics of the trial within, and every hyperparameter that is a number as ``replayed_…``.
        """
        wanted = self._due()
        if wanted != self.config:
            with tempfile.TemporaryDirectory() as scratch:
                self._trial.save(Path(scratch))
                self._rebuild(wanted, Path(scratch))
        metrics, returns = parted(self._trial.train_phase(progress))
        self.phase += 1
        replayed = {f"replayed_{k}": float(v) for k, v in wanted.items() if isinstance(v, int | float)}
        return {**metrics, RETURNS: returns, **replayed}

    def save(self, path: Path) -> None:
        """Write the trial within, and how far the schedule has come."""
        inner = Path(path) / _INNER
        inner.mkdir(exist_ok=True)
        self._trial.save(inner)
        (Path(path) / _STATE).write_text(json.dumps({"phase": self.phase}))

    def load(self, path: Path) -> None:
        """Go on from a replay's checkpoint, with what the schedule says for the phase to come."""
        try:
            self.phase = int(json.loads((Path(path) / _STATE).read_text())["phase"])
        except (OSError, ValueError, KeyError, TypeError):
            raise InvalidInput(f"there is no checkpoint of a replay in {path}: expected a file {_STATE}") from None
        self._rebuild(self._due(), Path(path) / _INNER)

    def close(self) -> None:
        """Close the trial within."""
        self._trial.close()

    def _due(self) -> Config:
        return self._configs[min(self.phase, len(self._configs) - 1)]

    def _rebuild(self, config: Config, checkpoint: Path) -> None:
        with suppress(Exception):  # it is given up in any case
            self._trial.close()
        self._trial = self._factory(config, self._seed)
        self._trial.load(checkpoint)
        self.config = config


def read_schedule(path: str | Path) -> tuple[list[Config], Mapping[str, Any] | None]:
    """Read a schedule's file: one configuration a phase, and what was trained.

    Raises
    ------
    InvalidInput
        The file is not there, or it holds something else.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode) or os.path.getsize(path) > _MOST_BYTES:
            raise InvalidInput(f"cannot read the schedule {path}: it is no file of {_MOST_BYTES >> 20} MiB at most")
        schedule = json.loads(Path(path).read_text())
        return [dict(phase["config"]) for phase in schedule["phases"]], schedule.get("trainable")
    except OSError as err:
        raise InvalidInput(f"cannot read the schedule {path}: {err.strerror or err}") from None
    except InvalidInput:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        raise InvalidInput(
            f"{path} is no schedule: expected JSON with phases, each with a config, as `workbench schedule` writes it "
            f"({one_line(err)})"
        ) from None
