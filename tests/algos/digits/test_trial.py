"""What the trials on digits share: they repeat, and go on from checkpoints under other hyperparameters."""

import pytest
import torch

from tests.support import silent
from workbench.algos.digits.classifier import DigitsClassifier
from workbench.algos.digits.gan import DigitsGAN
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput

SHORT = Budget(updates=20)


@pytest.mark.parametrize("kind", [DigitsClassifier, DigitsGAN])
def test_the_same_seed_repeats_whatever_else_draws_and_another_does_not(kind) -> None:
    def run(seed):
        trial = kind(phase=SHORT)({}, seed)
        first = trial.train_phase(silent)
        torch.rand(7)
        return first, trial.train_phase(silent)

    state = torch.get_rng_state()
    first = run(1)
    assert first == run(1)
    assert first != run(2)
    torch.set_rng_state(state)


@pytest.mark.parametrize("kind", [DigitsClassifier, DigitsGAN])
def test_a_phase_of_part_of_an_update_is_of_a_whole_one(kind) -> None:
    assert kind(phase=Budget(updates=0.5))({}, 0).train_phase(silent)["updates"] == 1


@pytest.mark.parametrize("kind", [DigitsClassifier, DigitsGAN])
def test_the_process_s_own_draws_are_left_alone(kind) -> None:
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    kind(phase=SHORT)({}, 0).train_phase(silent)
    assert torch.equal(torch.rand(3), wanted)


def test_a_checkpoint_brings_weights_but_not_hyperparameters(tmp_path) -> None:
    donor = DigitsClassifier(phase=SHORT, momentum=0.5)({"learning_rate": 0.2}, 0)
    donor.train_phase(silent)
    donor.save(tmp_path)
    copy = DigitsClassifier(phase=SHORT)({"learning_rate": 0.05, "momentum": 0.9}, 1)
    copy.load(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(donor.model.parameters(), copy.model.parameters(), strict=True))
    group = copy.optimizer.param_groups[0]
    assert (group["lr"], group["momentum"]) == (0.05, 0.9)
    assert copy.updates == 20
    buffers = [s["momentum_buffer"] for s in copy.optimizer.state.values()]
    assert len(buffers) == 4


def test_a_checkpoint_of_another_size_or_kind_is_refused(tmp_path) -> None:
    DigitsClassifier(phase=SHORT, hidden=8)({}, 0).save(tmp_path)
    for other in (DigitsClassifier(phase=SHORT)({}, 0), DigitsGAN(phase=SHORT)({}, 0)):
        with pytest.raises(InvalidInput, match="no checkpoint of a"):
            other.load(tmp_path)
    with pytest.raises(InvalidInput, match="no checkpoint of a ClassifierTrial can be read"):
        DigitsClassifier(phase=SHORT)({}, 0).load(tmp_path / "nowhere")


def test_training_that_diverges_says_so() -> None:
    trial = DigitsClassifier(phase=Budget(updates=300))({"learning_rate": 10.0, "weight_decay": 10.0}, 0)
    with pytest.raises(FloatingPointError, match="training diverged at update"):
        trial.train_phase(silent)
    with pytest.raises(RuntimeError, match="has failed"):
        trial.train_phase(silent)


@pytest.mark.parametrize(
    ("kind", "settings", "says"),
    [
        (DigitsClassifier, {"learning_rate": 0}, "learning_rate a number above 0, got 0"),
        (DigitsClassifier, {"dropout": 1.0}, r"dropout in \[0, 1\), got 1.0"),
        (DigitsClassifier, {"batch_size": 1.5}, "batch_size a whole number from 1"),
        (DigitsClassifier, {"phase": Budget(frames=10)}, "counts its phases in updates"),
        (DigitsGAN, {"beta1": -0.1}, r"beta1 in \[0, 1\)"),
        (DigitsGAN, {"batch_size": 1}, "batch_size a whole number from 2"),
        (DigitsGAN, {"latent": 0}, "latent a whole number"),
        (DigitsGAN, {"critic_steps": 0}, "critic_steps a whole number from 1"),
        (DigitsGAN, {"loss": "hinge"}, "unknown loss 'hinge'; known: non-saturating, wgan-gp"),
    ],
)
def test_settings_that_cannot_be_are_refused(kind, settings, says) -> None:
    with pytest.raises(InvalidInput, match=says):
        kind(**settings)
