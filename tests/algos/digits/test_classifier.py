"""The classifier learns."""

from tests.support import silent
from workbench.algos.digits.classifier import DigitsClassifier
from workbench.core.budget import Budget


def test_the_classifier_learns_and_depends_on_its_learning_rate() -> None:
    factory = DigitsClassifier(phase=Budget(updates=300))
    good = factory({"learning_rate": 0.1}, 0).train_phase(silent)
    assert good["score"] > 0.93
    assert good["test_accuracy"] > 0.9
    assert factory({"learning_rate": 1e-4}, 0).train_phase(silent)["score"] < 0.7
