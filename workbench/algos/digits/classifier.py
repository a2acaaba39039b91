"""A small classifier of digits: supervised learning as a trial."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional

from workbench.algos.digits.data import CLASSES, PIXELS, Part, load
from workbench.algos.digits.trial import TorchSettings, TorchTrial, take_step
from workbench.core.budget import Budget, updates_of
from workbench.core.checks import DECAY, FROM_ZERO, POSITIVE, check, whole
from workbench.core.protocols import Config


@dataclass(frozen=True)
class DigitsClassifier(TorchSettings):
    """A network with one hidden layer, trained by stochastic gradient descent with Nesterov momentum.

    The score is the share of the 397 validation images that it names right, 0 to 1. ``test_accuracy`` is of 400 others;
    no scheduler sees it.

    Parameters
    ----------
    phase : Budget
        In updates.
    learning_rate, momentum, weight_decay, dropout : float
    batch_size : int
        Images an update, drawn with replacement.
    hidden : int
        Width of the hidden layer; not to be tuned, since weights of another width cannot be copied.
    """

    tunable: ClassVar[tuple[str, ...]] = ("learning_rate", "momentum", "weight_decay", "dropout", "batch_size")

    phase: Budget = field(default_factory=lambda: Budget(updates=50))
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0
    dropout: float = 0.0
    batch_size: int = 32
    hidden: int = 64

    def __post_init__(self) -> None:
        check(self, POSITIVE, "learning_rate")
        check(self, FROM_ZERO, "weight_decay")
        check(self, DECAY, "momentum", "dropout")
        check(self, whole(1), "batch_size", "hidden")
        updates_of(self)  # or refuse the phase

    def __call__(self, config: Config, seed: int) -> "ClassifierTrial":
        """Build a trial from its configuration (names in `tunable`) and its seed."""
        return ClassifierTrial(self.with_config(config), seed)


class ClassifierTrial(TorchTrial):
    """One classifier."""

    def __init__(self, settings: DigitsClassifier, seed: int) -> None:
        self.settings, self.digits = settings, load()
        super().__init__(updates_of(settings), seed)

    def _build(self) -> tuple[dict[str, nn.Module], dict[str, torch.optim.Optimizer]]:
        s = self.settings
        self.model = make_classifier(s.hidden, s.dropout)
        self.optimizer = torch.optim.SGD(
            self.model.parameters(),
            s.learning_rate,
            momentum=s.momentum,
            weight_decay=s.weight_decay,
            nesterov=s.momentum > 0,
        )
        return {"model": self.model}, {"optimizer": self.optimizer}

    def _update(self) -> Mapping[str, float]:
        train = self.digits.train
        rows = torch.randint(len(train.labels), (self.settings.batch_size,))
        self.model.train()
        loss = functional.cross_entropy(self.model(train.images[rows]), train.labels[rows])
        take_step(self.optimizer, loss)
        return {"train_loss": loss.item()}

    def _judge(self) -> Mapping[str, float]:
        accuracy, loss = judged(self.model, self.digits.valid)
        return {"score": accuracy, "valid_loss": loss, "test_accuracy": judged(self.model, self.digits.test)[0]}


def make_classifier(hidden: int, dropout: float = 0.0) -> nn.Sequential:
    """Build the network: images [n, 64] → logits [n, 10]."""
    return nn.Sequential(nn.Linear(PIXELS, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, CLASSES))


def judged(model: nn.Module, part: Part) -> tuple[float, float]:
    """Give the share named right, and the mean cross-entropy in nats."""
    model.eval()
    with torch.no_grad():
        logits = model(part.images)
        accuracy = (logits.argmax(1) == part.labels).float().mean().item()
        return accuracy, functional.cross_entropy(logits, part.labels).item()
