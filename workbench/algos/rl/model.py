"""Networks with two outputs, a policy and a value (GA3C, Sec. 3.2 and Table 2; Distributed BA3C)."""

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from workbench.algos.rl.games import Game
from workbench.algos.rl.playable import SMALLEST_PICTURE
from workbench.core.errors import InvalidInput, unknown

Init = Literal["uniform", "orthogonal"]

# name → convolutions as (filters, side, stride), then the width of the fully connected layer
CONVOLUTIONAL: dict[str, list[tuple[int, int, int]]] = {
    "tiny": [(16, 3, 1), (32, 3, 1)],  # of grids, whose every cell counts
    "small": [(16, 8, 4), (32, 4, 2)],
    **{f"large-{stride}": [(32, 8, stride), (32, 4, 2), (64, 4, 2)] for stride in (4, 3, 2, 1)},
}
BA3C_FC_WIDTHS = {f"ba3c-{width}": width for width in (256, 128, 64, 32, 16)}  # Distributed BA3C, Sec. 2.5.1
BA3C_CHANNELS = 16  # 4 frames in colour are 12 planes; the authors fill them up with empty ones
VECTOR_NETWORKS = ("mlp-separate", "mlp")  # the others read pixels
NETWORKS = (*VECTOR_NETWORKS, *CONVOLUTIONAL, *BA3C_FC_WIDTHS)
CONV_FC_WIDTH = 256
MLP_WIDTH = 64
CRITIC_SCALE = (
    5.0  # an update moves a weight by about the learning rate: unscaled, 64 of them take thousands to reach 100
)


class ActorCritic(nn.Module):
    """Policy logits and state values from observations.

    The policy's and the value's layers are the rows of one matrix (`head`): on a shared trunk one product serves both.

    Parameters
    ----------
    trunk : Sequential
        Gives the features, (B, width), of policy and value, or of the policy alone if there is a `critic`.
    width, n_actions : int
    scale : float
        What observations are multiplied with.
    critic : Sequential, optional
        The value's own trunk, from the same observations to as many features: the value's gradient does not reach
        the policy's weights then.
    """

    def __init__(
        self, trunk: nn.Sequential, width: int, n_actions: int, scale: float, critic: nn.Sequential | None = None
    ) -> None:
        super().__init__()
        self.trunk = trunk
        self.head = nn.Linear(width, n_actions + 1)
        self.critic = critic
        self.scale = scale

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Map observations to logits and values.

        Parameters
        ----------
        obs : Tensor, (B, *obs_shape)
            uint8 pixels are scaled to [0, 1] here, so that they travel as bytes.

        Returns
        -------
        logits : Tensor, (B, n_actions)
        values : Tensor, (B,)
        """
        kind = obs.device.type
        lowered = torch.is_autocast_enabled(kind)
        if obs.dim() == 4:  # they mostly lie so in memory (`Game.room`)
            obs = obs.contiguous(memory_format=torch.channels_last)
        x = obs.to(torch.get_autocast_dtype(kind) if lowered else torch.float32)
        if self.critic is not None:
            weight, bias = self.head.weight, self.head.bias
            logits = nn.functional.linear(self.trunk(x), weight[:-1], bias[:-1])
            values = nn.functional.linear(self.critic(x), weight[-1:], bias[-1:])
            return logits.float(), CRITIC_SCALE * values.float()[:, 0]
        scaled = self.scale == 1
        for layer in self.trunk:
            if not scaled and isinstance(layer, nn.Conv2d):
                # scaling the first layer's few weights is scaling all pixels, and a pass less
                by_rows = lowered and kind == "cpu" and torch.is_grad_enabled()
                x = _first(layer, x, layer.weight * self.scale, by_rows)
                scaled = True
            else:
                x = layer(x)
        out = self.head(x).float()
        return out[:, :-1], out[:, -1]


def _first(layer: nn.Conv2d, x: Tensor, weight: Tensor, by_rows: bool) -> Tensor:
    """Convolve pictures, (B, C, H, W) with channels last in memory, with a layer's weights.

    By rows as many neighbours as the stride are one pixel of so many times the channels, where they lie anyway: of 4
    channels matrix units make poor use for the weights' gradient.
    """
    side, stride = layer.kernel_size[0], layer.stride[0]
    pictures, channels, height, width = x.shape
    if not by_rows or side % stride or width % stride:
        return nn.functional.conv2d(x, weight, layer.bias, layer.stride)
    merged = stride * channels
    x = x.permute(0, 2, 3, 1).reshape(pictures, height, width // stride, merged).permute(0, 3, 1, 2)
    parts = weight.reshape(-1, channels, side, side // stride, stride).permute(0, 4, 1, 2, 3)
    return nn.functional.conv2d(x, parts.reshape(-1, merged, side, side // stride), layer.bias, (stride, 1))


def make_model(game: Game, network: str = "auto", init: Init = "orthogonal", seed: int = 0) -> ActorCritic:
    """Build the network of that name for a game.

    Parameters
    ----------
    game : Game
    network : str
        ``tiny`` (two convolutions of 3 × 3, for grids of a few cells, whose numbers are taken as they are), ``small``
        (GA3C, Sec. 3.2), ``large-4`` … ``large-1`` (Table 2: 32 filters in the first layer with that stride, one more
        convolution), ``ba3c-256`` … ``ba3c-16`` (Distributed BA3C, on Atari's frames in colour: four convolutions
        without biases, three of them pooled, and a fully connected layer of that width), ``mlp-separate`` (two tanh
        layers of 64 for the policy, two more for the value, whose output counts `CRITIC_SCALE` times), ``mlp`` (two for
        both: the value's gradient drowns the policy's) or ``auto``: small for pixels, tiny for grids, else
        mlp-separate. Convolutions are not padded.
    init : {"orthogonal", "uniform"}
        ``orthogonal``: gain sqrt(2) in the trunk, 0.01 for the policy, 1 for the value, biases 0; learns faster with
        few steps. ``uniform``: weights and biases in ±1/sqrt(fan_in), as the authors' code.
    seed : int
        Of the weights; torch's global generator is not touched.

    Raises
    ------
    InvalidInput
        Unknown network, or one that does not fit the game's observations.
    """
    check_network(game, network)
    network = network_name(game, network)
    critic = None
    with torch.device("meta"):  # layers would draw their weights from the global generator
        if network in VECTOR_NETWORKS:
            trunk, width = _mlp(game.obs_shape[0]), MLP_WIDTH
            critic = _mlp(game.obs_shape[0]) if network == "mlp-separate" else None
        elif network in BA3C_FC_WIDTHS:
            trunk, width = _ba3c(game.obs_shape, BA3C_FC_WIDTHS[network]), BA3C_FC_WIDTHS[network]
        else:
            trunk, width = _convolutional(game.obs_shape, CONVOLUTIONAL[network]), CONV_FC_WIDTH
        model = ActorCritic(trunk, width, game.n_actions, 1 / 255 if _has_pixels(game) else 1.0, critic)
    # as `to_empty` does, but for half a thousand modules of algebra, which it imports
    model.load_state_dict({name: torch.empty(part.shape) for name, part in model.state_dict().items()}, assign=True)
    generator = torch.Generator().manual_seed(seed)
    if init == "uniform":
        _init_uniform(model, generator)
    elif init == "orthogonal":
        _init_orthogonal(model, generator)
    else:
        raise unknown("init", init, ["uniform", "orthogonal"])
    return model


def network_name(game: Game, network: str) -> str:
    """Resolve ``auto``: small for pixels, tiny for grids, else mlp-separate."""
    if network != "auto":
        return network
    if len(game.obs_shape) != 3:
        return "mlp-separate"
    return "tiny" if _is_grid(game) else "small"


def _is_grid(game: Game) -> bool:
    """Tell whether an observation is a grid of things rather than a picture: it has few cells."""
    return len(game.obs_shape) == 3 and min(game.obs_shape[1:]) < SMALLEST_PICTURE


def _has_pixels(game: Game) -> bool:
    return len(game.obs_shape) == 3 and not _is_grid(game) and game.obs_dtype == np.uint8


def reads_rgb(network: str) -> bool:
    """Tell whether a network was made for frames in colour."""
    return network in BA3C_FC_WIDTHS


def networks_of(game: Game) -> list[str]:
    """Return the networks that read a game's kind of observations."""
    if len(game.obs_shape) != 3:
        return list(VECTOR_NETWORKS)
    if _is_grid(game):
        return ["tiny"]
    fit = [n for n, parts in CONVOLUTIONAL.items() if n != "tiny" and min(_size(game.obs_shape[1:], parts)) > 0]
    return fit + (list(BA3C_FC_WIDTHS) if game.atari else [])


def check_network(game: Game, network: str) -> None:
    """Refuse an unknown network, and one that does not fit the game's observations."""
    if network != "auto" and network not in NETWORKS:
        raise unknown("network", network, ["auto", *NETWORKS])
    if network != "auto" and network not in networks_of(game):
        raise InvalidInput(f"network {network!r} cannot read {game.name}'s {game.obs_shape} observations: use 'auto'")


def _size(size: tuple[int, ...], convolutions: list[tuple[int, int, int]]) -> tuple[int, ...]:
    """Give the height and width that a picture of this height and width comes to."""
    for _, kernel, stride in convolutions:
        size = tuple((side - kernel) // stride + 1 for side in size)
    return size


def _mlp(n_features: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(n_features, MLP_WIDTH), nn.Tanh(), nn.Linear(MLP_WIDTH, MLP_WIDTH), nn.Tanh())


def _convolutional(shape: tuple[int, ...], convolutions: list[tuple[int, int, int]]) -> nn.Sequential:
    layers: list[nn.Module] = []
    channels = shape[0]
    for filters, kernel, stride in convolutions:
        layers += [nn.Conv2d(channels, filters, kernel, stride), nn.ReLU(inplace=True)]
        channels = filters
    features = channels * math.prod(_size(shape[1:], convolutions))
    fully_connected = nn.Linear(features, CONV_FC_WIDTH)
    return nn.Sequential(*layers, _AsInMemory(), nn.Flatten(), fully_connected, nn.ReLU(inplace=True))


class _AsInMemory(nn.Module):
    """Name the channels last, (B, H, W, C), which they are in memory: to flatten that is to copy nothing."""

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, 2, 3, 1)


class _FillChannels(nn.Module):
    """Add empty planes, up to `BA3C_CHANNELS`."""

    def forward(self, obs: Tensor) -> Tensor:
        return nn.functional.pad(obs, (0, 0, 0, 0, 0, BA3C_CHANNELS - obs.shape[1]))


def _ba3c(shape: tuple[int, ...], width: int) -> nn.Sequential:
    """Build the trunk that the published parameter counts belong to (see `tests/algos/rl/ba3c/test_trial.py`)."""
    if shape[0] > BA3C_CHANNELS:
        raise InvalidInput(f"a BA3C network reads at most {BA3C_CHANNELS} planes, got observations {shape}")
    layers: list[nn.Module] = [_FillChannels()]
    channels, side = BA3C_CHANNELS, shape[-1]
    for filters, kernel, pool in ((32, 5, 2), (32, 5, 2), (64, 5, 2), (64, 3, 1)):
        layers += [nn.Conv2d(channels, filters, kernel, bias=False), nn.ReLU(inplace=True)]
        if pool > 1:
            layers.append(nn.MaxPool2d(pool))
        channels, side = filters, (side - kernel + 1) // pool
    fully_connected = nn.Linear(channels * side * side, width)
    return nn.Sequential(*layers, _AsInMemory(), nn.Flatten(), fully_connected, nn.ReLU(inplace=True))


@torch.no_grad()
def _init_uniform(model: ActorCritic, generator: torch.Generator) -> None:
    for layer in model.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            bound = 1 / math.sqrt(layer.weight[0].numel())
            layer.weight.uniform_(-bound, bound, generator=generator)
            if layer.bias is not None:
                layer.bias.uniform_(-bound, bound, generator=generator)


@torch.no_grad()
def _init_orthogonal(model: ActorCritic, generator: torch.Generator) -> None:
    for layer in model.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            nn.init.orthogonal_(layer.weight, math.sqrt(2), generator=generator)
            if layer.bias is not None:
                layer.bias.zero_()
    policy, value = model.head.weight[:-1], model.head.weight[-1:]
    nn.init.orthogonal_(policy, 0.01, generator=generator)
    nn.init.orthogonal_(value, 1.0, generator=generator)
