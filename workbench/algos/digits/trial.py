"""What the trials on digits share: parts with a state, draws of their own, phases counted in updates, a checkpoint."""

import math
import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

import torch
from torch import nn

from workbench.core.errors import InvalidInput, first_line, refuse_unknown
from workbench.core.protocols import Config, Metrics, Progress

CHECKPOINT = "trial.pt"
PROGRESS_S = 0.5  # seconds between two calls of progress


class TorchSettings:
    """What the settings of such trials have: a dataclass that says which of them a trial's configuration may give."""

    tunable: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def check(cls, config_names: Iterable[str]) -> None:
        """Refuse a hyperparameter that no trial could take, before a study starts."""
        refuse_unknown(f"hyperparameter of {cls.__name__}", config_names, cls.tunable)

    def with_config(self, config: Config) -> Self:
        """Return the settings of one trial: these, overridden by its configuration."""
        self.check(config)
        return replace(self, **config)  # type: ignore[type-var]


class TorchTrial(ABC):
    """Modules and optimisers, driven phase by phase; a `Trainable`.

    All chance, in weights, batches, dropout and noise, comes from the trial's seed, whatever else runs in the process.
    """

    def __init__(self, updates_per_phase: int, seed: int) -> None:
        self.seed, self.updates = seed, 0
        self._per_phase = updates_per_phase
        self._failure: FloatingPointError | None = None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.modules, self.optimizers = self._build()
            self._draws = torch.get_rng_state()

    @abstractmethod
    def _build(self) -> tuple[dict[str, nn.Module], dict[str, torch.optim.Optimizer]]:
        """Make the parts that a checkpoint holds, by name."""

    @abstractmethod
    def _update(self) -> Mapping[str, float]:
        """Draw a batch and take one step; return losses by name."""

    @abstractmethod
    def _judge(self) -> Mapping[str, float]:
        """Measure ``score`` and whatever else; nothing is trained or drawn."""

    def train_phase(self, progress: Progress) -> Metrics:
        """Take a phase's updates.

        Parameters
        ----------
        progress : callable
            Called at the first update and then about twice a second with the losses; what it raises ends the phase.

        Returns
        -------
        dict
            ``score``, the losses (means over the phase) and ``updates`` since the weights began; the rest is said by
            the kind of trial.

        Raises
        ------
        FloatingPointError
            A loss is no longer a number.
        """
        if self._failure is not None:
            raise RuntimeError("this trial has failed; start a new one from its last checkpoint") from self._failure
        torch.set_num_threads(1)
        sums: dict[str, float] = {}
        last = -math.inf
        with self._drawing():
            for n in range(1, self._per_phase + 1):
                losses = self._update()
                self.updates += 1
                self._refuse_nonsense(losses)
                for name, loss in losses.items():
                    sums[name] = sums.get(name, 0.0) + loss
                if time.monotonic() - last >= PROGRESS_S:
                    last = time.monotonic()
                    progress({name: total / n for name, total in sums.items()} | {"updates": self.updates})
        means = {name: total / self._per_phase for name, total in sums.items()}
        return {**means, **self._judge(), "updates": self.updates}

    def save(self, path: Path) -> None:
        """Write weights, optimiser statistics, the counter and the state of the draws into the directory `path`."""
        state = {
            "modules": {name: part.state_dict() for name, part in self.modules.items()},
            "optimizers": {name: part.state_dict() for name, part in self.optimizers.items()},
            "draws": self._draws,
            "seed": self.seed,
            "updates": self.updates,
        }
        torch.save(state, Path(path) / CHECKPOINT)

    def load(self, path: Path) -> None:
        """Go on from a directory written by `save`, with this trial's own hyperparameters.

        Its draws go on, too, if the checkpoint is of the same seed; else they stay its own.

        Raises
        ------
        InvalidInput
            There is no checkpoint, or it is of another kind or size.
        """
        try:
            state = torch.load(Path(path) / CHECKPOINT, weights_only=True)
            for name, module in self.modules.items():
                module.load_state_dict(state["modules"][name])
            for name, optimizer in self.optimizers.items():
                own = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
                optimizer.load_state_dict(state["optimizers"][name])
                for group, settings in zip(optimizer.param_groups, own, strict=True):
                    group.update(settings)
            self.updates = int(state["updates"])
            if state["seed"] == self.seed:
                self._draws = state["draws"]
        except (OSError, RuntimeError, KeyError, ValueError, EOFError, pickle.UnpicklingError) as err:
            kind = type(self).__name__
            raise InvalidInput(f"no checkpoint of a {kind} can be read in {path}: {first_line(err)}") from None

    def close(self) -> None:  # noqa: B027  part of the contract
        """Nothing to release."""

    @contextmanager
    def _drawing(self) -> Generator[None, None, None]:
        """Let torch draw from this trial's own stream, and leave the process's as it was."""
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self._draws)
            yield
            self._draws = torch.get_rng_state()

    def _refuse_nonsense(self, losses: Mapping[str, float]) -> None:
        for name, loss in losses.items():
            if not math.isfinite(loss):
                self._failure = FloatingPointError(
                    f"training diverged at update {self.updates}: {name} is {loss}; try a smaller learning rate"
                )
                raise self._failure


def take_step(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """Follow a loss's gradient by one step."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
