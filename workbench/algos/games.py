"""One configuration for several games: a trial that trains an agent a game, judged by the mean of normalised scores."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.algos.function.factory import Asked, as_factory, trying
from workbench.core.describe import build
from workbench.core.errors import InvalidInput, WorkbenchError
from workbench.core.measured import parted
from workbench.core.protocols import Config, Measured, Progress, Trainable, TrainableFactory, ranks_needed
from workbench.core.registry import TRAINABLES
from workbench.core.seeds import trial_seed
from workbench.core.showing import so_many


@dataclass(frozen=True)
class Games:
    """Trials of one configuration on several games, one agent each, trained one after the other in every phase.

    A phase's score is the mean over the games of ``(score - low) / (high - low)``, as scores normalised between random
    play and a reference (a person, another agent) are averaged over games.

    Parameters
    ----------
    agents : Mapping of str to TrainableFactory
        A game's name → what is trained on it: an object, code of your own as `Study` takes it, or a table with its
        ``kind`` and settings.
    between : Mapping of str to (float, float)
        A game's name → (low, high), the scores that count as 0 and 1. Every game needs them.

    Examples
    --------
    >>> Games({"one": {"kind": "quadratic"}, "two": {"kind": "quadratic"}}, {"one": (0, 1.2), "two": (0, 1.2)})
    ... # doctest: +SKIP
    """

    agents: Mapping[str, Any]
    between: Mapping[str, tuple[float, float]]

    def __post_init__(self) -> None:
        if not isinstance(self.agents, Mapping) or not self.agents:
            raise InvalidInput(f"agents says what is trained on which game, {{name: trainable}}; got {self.agents!r}")
        if not isinstance(self.between, Mapping) or set(self.between) != set(self.agents):
            raise InvalidInput(
                f"between gives the scores that count as 0 and 1 for each of {', '.join(map(str, self.agents))}; "
                f"got {self.between!r}"
            )
        agents = {name: _built(name, agent) for name, agent in self.agents.items()}
        object.__setattr__(self, "agents", agents)
        object.__setattr__(self, "between", {name: _bounds(name, self.between[name]) for name in agents})

    @property
    def shapes_weights(self) -> set[str]:
        """Hyperparameters with which an agent's weights have other shapes."""
        return {name for agent in self.agents.values() for name in getattr(agent, "shapes_weights", ())}

    def check(self, config_names: Iterable[str]) -> None:
        """Refuse a hyperparameter that an agent could not take, before a study starts."""
        names = list(config_names)
        for agent in self.agents.values():
            if (check := getattr(agent, "check", None)) is not None:
                check(names)

    @contextmanager
    def trying(self) -> Iterator[Asked]:
        """Give what refuses a configuration that an agent could not begin with, before a study starts."""
        with ExitStack() as made:
            all_asked = [made.enter_context(trying(agent)) for agent in self.agents.values()]
            yield lambda config: [asked(config) for asked in all_asked if asked is not None]

    def __call__(self, config: Config, seed: int) -> "GamesTrial":
        """Build a trial: every game's agent from a seed of its own."""
        self.check(config)
        return GamesTrial(self, config, seed)


class GamesTrial:
    """One trial on several games."""

    def __init__(self, factory: Games, config: Config, seed: int) -> None:
        self._between = factory.between
        self._trials: dict[str, Trainable] = {}
        try:
            for k, (name, agent) in enumerate(factory.agents.items()):
                self._trials[name] = agent(config, trial_seed(seed, k))
        except BaseException:
            self.close()
            raise

    def train_phase(self, progress: Progress) -> Measured:
        """Train every game's agent for a phase.

        Returns
        -------
        dict
            ``score``; every number an agent reports as ``GAME/…``, its score among them; and the sums over the games
            of ``frames``, ``updates`` and ``seconds`` where all report them.
        """
        by_game = {
            name: _measured(name, trial.train_phase(_named(name, progress))) for name, trial in self._trials.items()
        }
        all_metrics = {f"{name}/{key}": value for name, metrics in by_game.items() for key, value in metrics.items()}
        for key in ("frames", "updates", "seconds"):
            if all(key in metrics for metrics in by_game.values()):
                all_metrics[key] = sum(metrics[key] for metrics in by_game.values())
        scores = [self._normalised(name, metrics["score"]) for name, metrics in by_game.items()]
        return {**all_metrics, "score": sum(scores) / len(scores)}

    def _normalised(self, name: str, score: float) -> float:
        low, high = self._between[name]
        return (score - low) / (high - low)

    def save(self, path: Path) -> None:
        """Write every agent into a folder of its own."""
        for k, trial in enumerate(self._trials.values()):
            inner = Path(path) / f"game-{k}"
            inner.mkdir(exist_ok=True)
            trial.save(inner)

    def load(self, path: Path) -> None:
        """Go on from a checkpoint of the same games."""
        folders = sorted(Path(path).glob("game-*"))
        if len(folders) != len(self._trials):
            wanted = so_many(len(self._trials), "game")
            raise InvalidInput(f"there is no checkpoint of {wanted} in {path}: it has {len(folders)}")
        for k, trial in enumerate(self._trials.values()):
            trial.load(Path(path) / f"game-{k}")

    def close(self) -> None:
        """Close every agent, also where one cannot be."""
        with ExitStack() as all_of_them:
            for trial in self._trials.values():
                all_of_them.callback(trial.close)


def _built(name: object, agent: Any) -> TrainableFactory:
    factory: Any = build("trainable", agent, TRAINABLES) if isinstance(agent, Mapping) else agent
    if not isinstance(name, str) or not name or "/" in name:
        raise InvalidInput(f"a game's name is a word without a slash, got {name!r}")
    if not callable(factory):
        raise InvalidInput(f"{name}: pass what is trained, an object or a table with its kind, got {agent!r}")
    if (n_ranks := ranks_needed(factory)) != 1:
        raise InvalidInput(f"{name}: a trial over several games runs on one worker, {agent!r} takes {n_ranks}")
    return as_factory(factory)


def _bounds(name: str, bounds: Any) -> tuple[float, float]:
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(f"between, {name}: two numbers, low < high, got {bounds!r}")
    return low, high


def _named(name: str, progress: Progress) -> Progress:
    return lambda metrics: progress({f"{name}/{key}": value for key, value in metrics.items()})


def _measured(name: str, returned: Measured) -> dict[str, float]:
    try:
        return parted(returned)[0]
    except (WorkbenchError, FloatingPointError) as err:
        raise type(err)(f"{name}: {err}") from None
