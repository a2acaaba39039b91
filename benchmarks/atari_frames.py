"""Core microseconds of an emulator step, by who makes the 84 × 84 × 4 frames: `ale_py` itself, or code of our own.

Prints one JSON object. The library's environments come in two forms, side by side on the same seeds and actions: with
its own frames (OpenCV's area average), and with whole screens that are averaged and stacked here, by one of

- ``product``: as trials have it, one product of 8-bit matrices (`workbench.algos.rl.frames`); skipped with a word where
  the processor has no instructions for it
- ``numpy``: down the columns with whole numbers, along the rows by one small matrix product (torch); exact
- ``numba``: two loops compiled without the interpreter's lock, where numba is installed; skipped with a word otherwise

Each key holds the median, lowest and highest ratio to the library over the repeats, the microseconds, the largest
difference of a pixel, and by how many MiB the process grew. Run with ``python benchmarks/atari_frames.py``.
"""

import argparse
import importlib.util
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from ale_py.vector_env import AtariVectorEnv

from workbench.algos.rl.frames import area_product, own_frames_pay

Resize = Callable[[np.ndarray, np.ndarray], None]  # screens (B, 210, 160) → into frames (B, 84, 84)
N_ENVS, SIDE, ACTIONS = 32, 84, 6  # Pong's


def shares(n_in: int, n_out: int) -> np.ndarray:
    """Return which part of each output's mean every input has, (n_in, n_out)."""
    inputs, outputs = np.arange(n_in + 1)[:, None] * n_out, np.arange(n_out + 1) * n_in
    overlap = np.minimum(inputs[1:], outputs[1:]) - np.maximum(inputs[:-1], outputs[:-1])
    return np.maximum(overlap, 0) / n_in


def with_numpy() -> Resize:
    """210 : 84 is 5 : 2, and 160 : 84 is 40 : 21."""
    columns = torch.from_numpy(shares(40, 21) / 5).float()

    def resize(screens: np.ndarray, frames: np.ndarray) -> None:
        fives = screens.reshape(len(screens), 42, 5, 160)
        rows = np.empty((len(screens), 42, 2, 160), np.uint16)
        for row, (one, two, half) in enumerate(((0, 1, 2), (4, 3, 2))):
            both = np.add(fives[:, :, one], fives[:, :, two], dtype=np.uint16)
            np.left_shift(both, 1, out=both)
            np.add(both, fives[:, :, half], out=rows[:, :, row])
        product = torch.mm(torch.from_numpy(rows.view(np.int16)).float().view(-1, 40), columns).add_(0.5)
        torch.from_numpy(frames).copy_(product.view(len(screens), SIDE, SIDE))

    return resize


def with_numba() -> Resize:
    """Every output has at most three inputs with a part in it, in a row as in a column."""
    import numba

    def parts(n_in: int) -> tuple[np.ndarray, np.ndarray]:
        whole = shares(n_in, SIDE)
        first = np.minimum((whole > 0).argmax(0), n_in - 3)
        return first, np.stack([whole[first + k, np.arange(SIDE)] for k in range(3)], 1).astype(np.float32)

    row, row_share, column, column_share = *parts(210), *parts(160)

    @numba.njit(nogil=True, fastmath=True)  # type: ignore[misc, unused-ignore]
    def resize(screens: np.ndarray, frames: np.ndarray) -> None:
        line = np.empty(160, np.float32)
        for b in range(len(screens)):
            for y in range(SIDE):
                above, middle, below = screens[b, row[y]], screens[b, row[y] + 1], screens[b, row[y] + 2]
                for x in range(160):
                    part = row_share[y, 0] * above[x] + row_share[y, 1] * middle[x]
                    line[x] = part + row_share[y, 2] * below[x]
                for x in range(SIDE):
                    c, part = column[x], column_share[x]
                    frames[b, y, x] = part[0] * line[c] + part[1] * line[c + 1] + part[2] * line[c + 2] + 0.5

    return resize  # type: ignore[no-any-return, unused-ignore]


def with_product() -> Resize:
    """As a trial has it."""
    product = area_product()

    def resize(screens: np.ndarray, frames: np.ndarray) -> None:
        frames[:] = product(screens)

    return resize


class Stacked:
    """The library's environments, with whole screens or its own frames."""

    def __init__(self, threads: int, resize: Resize | None = None) -> None:
        size = {"img_height": 210, "img_width": 160, "stack_num": 1} if resize else {}
        self.env: Any = AtariVectorEnv(
            "pong", N_ENVS, num_threads=threads, use_fire_reset=False, reward_clipping=False, **size
        )
        self.resize, self.frames = resize, np.zeros((N_ENVS, 4, SIDE, SIDE), np.uint8)
        self.take(self.env.reset(seed=np.arange(N_ENVS))[0])

    def take(self, obs: np.ndarray) -> None:
        """Put the newest frame behind the others, in an array of its own, as a trial needs it."""
        if self.resize is None:
            self.frames = obs
            return
        newest = np.empty_like(self.frames)
        newest[:, :-1] = self.frames[:, 1:]
        self.resize(obs[:, 0], newest[:, -1])
        self.frames = newest

    def step(self, actions: np.ndarray) -> None:
        """Step all."""
        self.env.send(actions)
        self.take(self.env.recv()[0])

    def cpu_us(self, seconds: float, actions: np.ndarray) -> float:
        """Step for so many seconds of processor time."""
        began, steps = time.process_time(), 0
        while time.process_time() - began < seconds:
            self.step(actions[steps % len(actions)])
            steps += 1
        return (time.process_time() - began) / steps / N_ENVS * 1e6


def rss_mib() -> int:
    """Return what the process holds now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 >> 20


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="of processor time, each form, each repeat")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="of the emulators")
    given = parser.parse_args()
    torch.set_num_threads(1)
    actions = np.random.default_rng(0).integers(0, ACTIONS, (512, N_ENVS))
    result: dict[str, Any] = {}
    library = Stacked(given.threads)
    for name, make in (("product", with_product), ("numpy", with_numpy), ("numba", with_numba)):
        if name == "product" and not own_frames_pay():
            result[name] = "skipped: this processor has no 8-bit dot products"
            continue
        if name == "numba" and not importlib.util.find_spec("numba"):
            result[name] = "skipped: numba is not installed"
            continue
        held = rss_mib()
        own = Stacked(given.threads, make())
        library.take(library.env.reset(seed=np.arange(N_ENVS))[0])
        most = 0
        for step in actions[:60]:  # before any game ends: frames are black behind its first
            library.step(step)
            own.step(step)
            most = max(most, int(np.abs(library.frames.astype(int) - own.frames).max()))
        rows = [
            (library.cpu_us(given.seconds, actions), own.cpu_us(given.seconds, actions)) for _ in range(given.repeats)
        ]
        ratios = [mine / theirs for theirs, mine in rows]
        result[name] = {
            "ratio": [round(pick(ratios), 3) for pick in (statistics.median, min, max)],
            "library_us": round(statistics.median(row[0] for row in rows)),
            "own_us": round(statistics.median(row[1] for row in rows)),
            "largest_difference": most,
            "grew_mib": rss_mib() - held,
        }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
