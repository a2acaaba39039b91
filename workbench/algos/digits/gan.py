"""A small generative adversarial network on images of digits (after PBT, Sec. 4.3: both learning rates are tuned)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Literal

import torch
from torch import nn
from torch.nn import functional

from workbench.algos.digits.classifier import make_classifier
from workbench.algos.digits.data import CLASSES, PIXELS, load
from workbench.algos.digits.trial import TorchSettings, TorchTrial, take_step
from workbench.core.budget import Budget, updates_of
from workbench.core.checks import DECAY, POSITIVE, check, check_named, whole
from workbench.core.protocols import Config

LOSSES = ("non-saturating", "wgan-gp")
_PENALTY = 10.0  # Gulrajani et al., Sec. 4
_JUDGED_IMAGES = 1000
_JUDGE_UPDATES = 400
_WIDTH = 128


@dataclass(frozen=True)
class DigitsGAN(TorchSettings):
    """A batch-normalised generator and a discriminator without, two hidden layers each, and Adam.

    The score is that of `digit_score` on 1000 images from fixed noise: 1 for images of one kind or of none, at most 10.
    Unlike the paper's (a DCGAN by WGAN-GP on CIFAR-10, judged by an Inception score) it trains within seconds.

    Parameters
    ----------
    phase : Budget
        In updates, each `critic_steps` of the discriminator and one of the generator.
    generator_learning_rate, discriminator_learning_rate : float
    beta1 : float
        Adam's decay of the mean gradient, in both.
    batch_size : int
        Real images, and as many generated ones, an update.
    latent : int
        Numbers in the noise an image is made from; not to be tuned, as weights of another size cannot be copied.
    loss : {"non-saturating", "wgan-gp"}
        ``wgan-gp`` is the paper's: the discriminator, then called a critic, estimates the Wasserstein distance, and the
        norm of its gradient by its input is held near 1 (Gulrajani et al., arXiv 1704.00028).
    critic_steps : int
        The discriminator's steps for one of the generator, each on images of its own; the paper takes 5.
    """

    tunable: ClassVar[tuple[str, ...]] = (
        "generator_learning_rate",
        "discriminator_learning_rate",
        "beta1",
        "batch_size",
    )

    phase: Budget = field(default_factory=lambda: Budget(updates=200))
    generator_learning_rate: float = 2e-3
    discriminator_learning_rate: float = 2e-3
    beta1: float = 0.5
    batch_size: int = 64
    latent: int = 16
    loss: Literal["non-saturating", "wgan-gp"] = "non-saturating"
    critic_steps: int = 1

    def __post_init__(self) -> None:
        check(self, POSITIVE, "generator_learning_rate", "discriminator_learning_rate")
        check(self, DECAY, "beta1")
        check(self, whole(2), "batch_size")  # of one image there is no spread to normalise by
        check(self, whole(1), "latent", "critic_steps")
        updates_of(self)  # or refuse the phase
        check_named(self, "loss", LOSSES)

    def __call__(self, config: Config, seed: int) -> "GANTrial":
        """Build a trial from its configuration (names in `tunable`) and its seed."""
        return GANTrial(self.with_config(config), seed)


class GANTrial(TorchTrial):
    """One generator and its discriminator."""

    def __init__(self, settings: DigitsGAN, seed: int) -> None:
        self.settings, self.real = settings, load().train.images
        super().__init__(updates_of(settings), seed)

    def generate(self, n: int) -> torch.Tensor:
        """Make images, always from the same noise; float32 in [0, 1], shape [n, 64]."""
        noise = torch.randn(n, self.settings.latent, generator=torch.Generator().manual_seed(0))
        self.generator.eval()
        with torch.no_grad():
            return self.generator(noise)  # type: ignore[no-any-return]

    def _build(self) -> tuple[dict[str, nn.Module], dict[str, torch.optim.Optimizer]]:
        s = self.settings
        self.generator = nn.Sequential(
            *_normalised(s.latent, _WIDTH), *_normalised(_WIDTH, _WIDTH), nn.Linear(_WIDTH, PIXELS), nn.Sigmoid()
        )
        self.discriminator = nn.Sequential(
            nn.Linear(PIXELS, _WIDTH),
            nn.LeakyReLU(0.2),
            nn.Linear(_WIDTH, _WIDTH),
            nn.LeakyReLU(0.2),
            nn.Linear(_WIDTH, 1),
        )
        betas = (s.beta1, 0.999)
        self._of_generator = torch.optim.Adam(self.generator.parameters(), s.generator_learning_rate, betas)
        self._of_discriminator = torch.optim.Adam(self.discriminator.parameters(), s.discriminator_learning_rate, betas)
        return (
            {"generator": self.generator, "discriminator": self.discriminator},
            {"generator": self._of_generator, "discriminator": self._of_discriminator},
        )

    def _update(self) -> Mapping[str, float]:
        n = self.settings.batch_size
        self.generator.train()
        for _ in range(self.settings.critic_steps):
            real = _centred(self.real[torch.randint(len(self.real), (n,))])
            made = _centred(self.generator(torch.randn(n, self.settings.latent)))
            told_apart = self._told_apart(real, made.detach())
            take_step(self._of_discriminator, told_apart)
        fooled = self._fooled(made)  # by the images that the discriminator saw last
        take_step(self._of_generator, fooled)
        return {"discriminator_loss": told_apart.item(), "generator_loss": fooled.item()}

    def _told_apart(self, real: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
        """Give the discriminator's loss on real and on generated images, each of shape [n, 64]."""
        of_real, of_made = self.discriminator(real), self.discriminator(made)
        loss: torch.Tensor
        if self.settings.loss == "wgan-gp":
            between = torch.lerp(real, made, torch.rand(len(real), 1))
            loss = of_made.mean() - of_real.mean() + _PENALTY * slope_penalty(self.discriminator, between)
        else:  # softplus(-x) is -log sigmoid(x): the discriminator's belief that an image is real, or is not
            loss = functional.softplus(-of_real).mean() + functional.softplus(of_made).mean()
        return loss

    def _fooled(self, made: torch.Tensor) -> torch.Tensor:
        """Give the generator's loss."""
        of_made: torch.Tensor = self.discriminator(made)
        return -of_made.mean() if self.settings.loss == "wgan-gp" else functional.softplus(-of_made).mean()

    def _judge(self) -> Mapping[str, float]:
        return {"score": digit_score(self.generate(_JUDGED_IMAGES))}


def _normalised(inputs: int, outputs: int) -> list[nn.Module]:
    """Build a layer of the generator; without the normalisation it learns several times more slowly."""
    return [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU()]


def _centred(images: torch.Tensor) -> torch.Tensor:
    """Bring pixels, 0.3 on average with a spread near 0.4, to where a network likes its inputs."""
    return 4 * images - 1.2


def slope_penalty(critic: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """Give the mean square of how far the norm of the critic's gradient by an image, shape [n, 64], is from 1."""
    images = images.detach().requires_grad_()
    (slopes,) = torch.autograd.grad(critic(images).sum(), images, create_graph=True)
    penalty: torch.Tensor = (slopes.norm(dim=1) - 1).square().mean()
    return penalty


def digit_score(images: torch.Tensor) -> float:
    """Score images by a fixed classifier of digits, as the Inception score does (Salimans et al., arXiv 1606.03498).

    exp of the mean Kullback-Leibler divergence of the digits' probabilities given an image from those over all images:
    high where every image is clearly one digit, and all digits occur alike. A classifier is sure of some images that
    are no digits, and a digit that always looks the same is not found out.

    Parameters
    ----------
    images : tensor
        Float32 in [0, 1], shape [n, 64].

    Returns
    -------
    float
        From 1 to 10; what the real images come to is in docs/trainables.md.
    """
    with torch.no_grad():
        log_p = functional.log_softmax(_classifier()(images), dim=1)
    p = log_p.exp()
    divergence = (p * (log_p - p.mean(0, keepdim=True).clamp_min(1e-12).log())).sum(1).mean().item()
    return min(math.exp(divergence), float(CLASSES)) if math.isfinite(divergence) else math.nan


@lru_cache(maxsize=1)
def _classifier() -> nn.Module:
    """Train the judge, the same everywhere: it depends on no setting and no trial's seed."""
    train = load().train
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        model = make_classifier(128)
        optimizer = torch.optim.Adam(model.parameters(), 3e-3)
        for _ in range(_JUDGE_UPDATES):
            rows = torch.randint(len(train.labels), (64,))
            take_step(optimizer, functional.cross_entropy(model(train.images[rows]), train.labels[rows]))
    return model.eval()
