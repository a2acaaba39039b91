"""The classifier and the GAN on digits: they learn, repeat, and go on from checkpoints under other hyperparameters."""

import pickle

import pytest
import torch

from workbench.algos.digits.classifier import DigitsClassifier
from workbench.algos.digits.data import load
from workbench.algos.digits.gan import DigitsGAN, digit_score
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput

SHORT = Budget(updates=20)


def silent(metrics):
    pass


def test_the_split_is_whole_and_always_the_same() -> None:
    digits = load()
    assert [len(part.labels) for part in digits] == [1000, 397, 400]
    pixels = torch.cat([part.images for part in digits])
    assert pixels.shape == (1797, 64)
    assert (pixels.min(), pixels.max()) == (0, 1)
    load.cache_clear()
    assert torch.equal(load().valid.labels, digits.valid.labels)


def test_the_classifier_learns_and_depends_on_its_learning_rate() -> None:
    factory = DigitsClassifier(phase=Budget(updates=300))
    good = factory({"learning_rate": 0.1}, 0).train_phase(silent)
    assert good["score"] > 0.93
    assert good["test_accuracy"] > 0.9
    assert factory({"learning_rate": 1e-4}, 0).train_phase(silent)["score"] < 0.7


def test_the_gan_s_images_become_digits_of_many_kinds() -> None:
    trial = DigitsGAN(phase=Budget(updates=600))({}, 0)
    before = digit_score(trial.generate(500))
    after = trial.train_phase(silent)["score"]
    assert before < 2 < 4 < after <= 10
    images = trial.generate(10)
    assert images.shape == (10, 64)
    assert (images >= 0).all()
    assert (images <= 1).all()


def test_the_digits_score_is_high_for_real_images_and_low_for_one_kind_or_noise() -> None:
    valid = load().valid
    everything = digit_score(valid.images)
    assert everything > 8
    assert digit_score(valid.images[valid.labels == 3]) < 2
    assert digit_score(valid.images[:1].repeat(50, 1)) == pytest.approx(1.0)
    assert digit_score(torch.full((50, 64), 0.5)) == pytest.approx(1.0)


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


def test_a_gan_keeps_both_learning_rates_apart(tmp_path) -> None:
    donor = DigitsGAN(phase=SHORT)({}, 0)
    donor.train_phase(silent)
    donor.save(tmp_path)
    copy = DigitsGAN(phase=SHORT)({"generator_learning_rate": 1e-4, "discriminator_learning_rate": 1e-2}, 1)
    copy.load(tmp_path)
    assert copy._of_generator.param_groups[0]["lr"] == 1e-4
    assert copy._of_discriminator.param_groups[0]["lr"] == 1e-2


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
    ],
)
def test_settings_that_cannot_be_are_refused(kind, settings, says) -> None:
    with pytest.raises(InvalidInput, match=says):
        kind(**settings)


@pytest.mark.parametrize("kind", [DigitsClassifier, DigitsGAN])
def test_what_cannot_be_tuned_is_refused_and_factories_travel(kind) -> None:
    with pytest.raises(InvalidInput, match="hyperparameter of Digits"):
        kind.check(["gamma"])
    factory = kind(phase=SHORT)
    assert pickle.loads(pickle.dumps(factory)) == factory
