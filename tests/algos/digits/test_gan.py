"""The GAN learns, and its score tells real images from others."""

import pytest
import torch
from torch import nn

from tests.support import silent
from workbench.algos.digits.data import load
from workbench.algos.digits.gan import DigitsGAN, digit_score, slope_penalty
from workbench.core.budget import Budget

SHORT = Budget(updates=20)
PAPER = {"loss": "wgan-gp", "critic_steps": 5}


def test_the_gan_s_images_become_digits_of_many_kinds() -> None:
    trial = DigitsGAN(phase=Budget(updates=300))({}, 0)
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


def plane() -> nn.Module:
    """A critic that adds up a pixel, twice the next and twice the third: its gradient is of norm 3 everywhere."""
    critic = nn.Linear(64, 1, bias=False)
    with torch.no_grad():
        critic.weight.zero_()[0, :3] = torch.tensor([1.0, 2.0, 2.0])
    return critic


def test_the_penalty_is_the_squared_distance_of_the_critic_s_slope_from_1() -> None:
    images = torch.rand(5, 64)
    assert slope_penalty(plane(), images).item() == pytest.approx((3 - 1) ** 2)
    assert not images.requires_grad


def test_the_paper_s_loss_is_a_difference_of_means_and_ten_times_the_penalty() -> None:
    trial = DigitsGAN(**PAPER)({}, 0)
    trial.discriminator = plane()
    real, made = torch.ones(4, 64), torch.zeros(4, 64)
    assert trial._told_apart(real, made).item() == pytest.approx(0 - 5 + 10 * 4)
    assert (trial._fooled(real).item(), trial._fooled(made).item()) == (-5, 0)


def test_the_critic_takes_five_steps_for_one_of_the_generator_and_has_no_batch_normalisation() -> None:
    trial = DigitsGAN(phase=Budget(updates=2), **PAPER)({}, 0)
    assert trial.train_phase(silent)["updates"] == 2
    steps = [{int(s["step"]) for s in o.state.values()} for o in (trial._of_generator, trial._of_discriminator)]
    assert steps == [{2}, {10}]
    assert not any(isinstance(part, nn.BatchNorm1d) for part in trial.discriminator)


def test_by_the_paper_s_loss_digits_are_learned_too() -> None:
    assert DigitsGAN(phase=Budget(updates=50), **PAPER)({}, 0).train_phase(silent)["score"] > 4
