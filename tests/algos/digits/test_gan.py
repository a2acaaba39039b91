"""The GAN learns, and its score tells real images from others."""

import pytest
import torch

from workbench.algos.digits.data import load
from workbench.algos.digits.gan import DigitsGAN, digit_score
from workbench.core.budget import Budget

SHORT = Budget(updates=20)


def silent(metrics):
    pass


def test_the_gan_s_images_become_digits_of_many_kinds() -> None:
    trial = DigitsGAN(phase=Budget(updates=400))({}, 0)
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


def test_a_gan_keeps_both_learning_rates_apart(tmp_path) -> None:
    donor = DigitsGAN(phase=SHORT)({}, 0)
    donor.train_phase(silent)
    donor.save(tmp_path)
    copy = DigitsGAN(phase=SHORT)({"generator_learning_rate": 1e-4, "discriminator_learning_rate": 1e-2}, 1)
    copy.load(tmp_path)
    assert copy._of_generator.param_groups[0]["lr"] == 1e-4
    assert copy._of_discriminator.param_groups[0]["lr"] == 1e-2
