"""What a step of RMSProp costs once features of the small network have long been silent, beside torch's own RMSprop.

A feature is silent when its unit answers to nothing: the gradient of its weights is 0. Prints one JSON object:
milliseconds of processor time a step, by optimiser and by the share of silent features, in turn; medians over the
repeats with their range, and ``ratio``, torch's over ours.

Run with ``python benchmarks/silent_features.py``: a minute on an idle machine. Of checkpoints, instead: which share of
the fully connected layer's weights has been so for so long that its mean of squares has decayed to nothing,
``--checkpoints FOLDER …``.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from workbench.algos.rl.games import find_game
from workbench.algos.rl.model import make_model
from workbench.algos.rl.optim import SharedRMSProp

SHARES = (0.0, 0.1, 0.35, 0.65)
DECAYED = 2e-30  # below it nothing has come in for some thousand steps, be it kept from falling further or not
UNTIL_DECAYED = 20_000  # steps
Stepping = tuple[Callable[[list[Tensor]], object], list[Tensor]]  # what takes a step along gradients; means of squares


def ours(weights: list[Tensor]) -> Stepping:
    """Give this project's, as agents on Atari are trained by it."""
    optimizer = SharedRMSProp(weights, 1e-4, eps=1e-5, eps_inside_root=False, initial_square=1.0)
    return optimizer.step, optimizer.square_avg


def torchs(weights: list[Tensor]) -> Stepping:
    """Give torch's, which takes its steps tensor by tensor together, as ours does."""
    optimizer = torch.optim.RMSprop(weights, 1e-4, alpha=0.99, eps=1e-5, foreach=True)

    def step(grads: list[Tensor]) -> None:
        for weight, grad in zip(weights, grads, strict=True):
            weight.grad = grad
        optimizer.step()

    step([torch.zeros_like(weight) for weight in weights])
    squares = [optimizer.state[weight]["square_avg"] for weight in weights]
    for square in squares:
        square.fill_(1.0)
    return step, squares


def step_ms(made: Callable[[list[Tensor]], Stepping], share: float) -> float:
    """Measure a step: a share of the fully connected layer's units has been silent for `UNTIL_DECAYED` steps."""
    torch.manual_seed(0)
    model = make_model(find_game("Pong"), "small")
    weights: list[Tensor] = list(model.parameters())
    dense = max(range(len(weights)), key=lambda n: weights[n].numel())
    grads = [torch.randn_like(weight) * 1e-3 for weight in weights]
    silent = torch.rand(len(weights[dense])) < share
    grads[dense][silent] = 0
    step, squares = made(weights)
    alone = torch.tensor(1.0)
    for _ in range(UNTIL_DECAYED):  # as float32 decays
        alone *= 0.99
    squares[dense][silent] = alone
    times = []
    for _ in range(100):
        began = time.process_time()
        step(grads)
        times.append(time.process_time() - began)
    return 1e3 * statistics.median(times[10:])


def decayed(checkpoint: Path) -> float:
    """Give the share of the largest layer's weights whose mean of squares has decayed to nothing."""
    saved = torch.load(checkpoint / "trial.pt", weights_only=False, map_location="cpu")
    largest = max(saved["optimizer"]["square_avg"], key=Tensor.numel)
    return float((largest < DECAYED).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--checkpoints", type=Path, nargs="+", help="folders that hold trial.pt")
    given = parser.parse_args()
    if given.checkpoints:
        print(json.dumps({str(folder): round(decayed(folder), 3) for folder in given.checkpoints}))
        return
    torch.set_num_threads(1)
    found = {}
    for share in SHARES:
        pairs = [(step_ms(ours, share), step_ms(torchs, share)) for _ in range(given.repeats)]
        both = {name: sorted(round(pair[n], 3) for pair in pairs) for n, name in enumerate(("ours", "torch"))}
        row = {name: {"ms": statistics.median(ms), "low": ms[0], "high": ms[-1]} for name, ms in both.items()}
        found[f"{share:.0%}"] = {**row, "ratio": round(statistics.median(b / a for a, b in pairs), 2)}
    print(json.dumps({"repeats": given.repeats, "silent": found}))


if __name__ == "__main__":
    main()
