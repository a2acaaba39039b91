"""Atari's frames made here, of whole screens: averaged over areas and stacked, where the processor is quick at it.

The library averages with floats. Averages of 8-bit pixels are a product of 8-bit matrices, for which processors have
instructions (VNNI, AMX), and rounding to 8 bits is part of oneDNN's product.
"""

from functools import cache

import numpy as np
import torch

SCREEN = (210, 160)  # pixels of nearly all Atari games, height and width
SIDE, STACK = 84, 4  # of what a network sees, as `ale_py` and DQN have it
ROWS_IN, ROWS_OUT = 5, 2  # 210 : 84
COLUMNS_IN, COLUMNS_OUT = 40, 21  # 160 : 84
_PIXEL = np.dtype("<u4")  # a pixel of the four frames, a byte each, the newest the highest


class Frames:
    """The last frames of `n_envs` games, made of their screens. They are the library's, within one grey level."""

    def __init__(self, n_envs: int) -> None:
        self._product = area_product()
        self._last: np.ndarray = np.zeros((n_envs, SIDE, SIDE), _PIXEL)
        self._all = np.arange(n_envs)

    def show(self, screens: np.ndarray, env_ids: np.ndarray, started: np.ndarray) -> np.ndarray:
        """Put the newest frames behind those shown before; a new game's first has black ones before it.

        Parameters
        ----------
        screens : ndarray of uint8, (B, 210, 160)
        env_ids : ndarray of int, (B,)
        started : ndarray of bool, (B,)

        Returns
        -------
        ndarray of uint8, (B, 4, 84, 84)
            To be read; never written again. Channels last in memory.
        """
        everybody = np.array_equal(env_ids, self._all)
        before: np.ndarray = self._last if everybody else self._last[env_ids]
        if started.any():
            before = np.where(started[:, None, None], _PIXEL.type(0), before)
        shown = before >> 8  # the oldest falls out
        newest = shown.view(np.uint8)[..., STACK - 1 :: STACK]
        newest.reshape(len(shown), -1, ROWS_OUT, SIDE // COLUMNS_OUT, COLUMNS_OUT)[...] = self._product.pieces(screens)
        if everybody:
            self._last = shown  # which is read from now on
        else:
            self._last = self._last.copy()
            self._last[env_ids] = shown
        return shown.view(np.uint8).reshape(len(shown), SIDE, SIDE, STACK).transpose(0, 3, 1, 2)


class AreaProduct:
    """Averages screens over areas: a piece of 5 × 40 pixels, times a matrix, is a piece of 2 × 21 of the frame."""

    def __init__(self) -> None:
        rows, columns = overlaps(ROWS_IN, ROWS_OUT), overlaps(COLUMNS_IN, COLUMNS_OUT)  # (5, 2), (40, 21)
        n_in, n_out = ROWS_IN * COLUMNS_IN, ROWS_OUT * COLUMNS_OUT
        weights = (rows[:, None, :, None] * columns[None, :, None, :]).reshape(n_in, n_out)
        self._weights = torch.ops.onednn.qlinear_prepack(torch.from_numpy(weights.T.astype(np.int8, order="C")), None)
        self._scales = torch.full((n_out,), float(1 / weights[:, 0].sum()))
        self._zeros = torch.zeros(n_out, dtype=torch.int64)

    def __call__(self, screens: np.ndarray) -> np.ndarray:
        """Return the frames, (B, 84, 84), of screens (B, 210, 160), both uint8; sums are exact and then rounded."""
        return self.pieces(screens).reshape(-1, SIDE, SIDE)

    def pieces(self, screens: np.ndarray) -> np.ndarray:
        """Return the same, (B, 42, 2, 4, 21), as they lie: there are few steps here, and threads meet at each.

        Between any two the interpreter's lock changes hands, which on many cores takes longer than the product.
        """
        side_by_side, eights = SCREEN[1] // COLUMNS_IN, COLUMNS_IN // 8  # bytes go eight at a time
        pieces = screens.view(np.int64).reshape(-1, ROWS_IN, side_by_side, eights).transpose(0, 2, 1, 3)
        rows = torch.from_numpy(pieces.reshape(-1, ROWS_IN * eights).view(np.uint8))
        given = rows, 1.0, 0, self._weights, self._scales, self._zeros
        made = torch.ops.onednn.qlinear_pointwise(*given, None, 1.0, 0, torch.uint8, "none", [], "").numpy()
        made = made.reshape(len(screens), -1, side_by_side, ROWS_OUT, COLUMNS_OUT)
        return made.swapaxes(2, 3)  # type: ignore[no-any-return]


@cache
def area_product() -> AreaProduct:
    """Make the matrix once a process."""
    return AreaProduct()


@cache
def own_frames_pay() -> bool:
    """Tell whether this processor multiplies 8-bit matrices by instructions of its own, and this torch can use them.

    The operators are not torch's public ones: what they make of a screen is looked at once before they are trusted.
    """
    if not torch.cpu._is_vnni_supported():
        return False
    screen = np.random.default_rng(0).integers(0, 256, SCREEN, np.uint8)
    rows, columns = overlaps(SCREEN[0], SIDE), overlaps(SCREEN[1], SIDE)
    expected = rows.T @ screen.astype(int) @ columns / (rows[:, 0].sum() * columns[:, 0].sum())
    try:
        made = area_product()(screen[None])[0]
    except (AttributeError, RuntimeError, TypeError):
        return False
    return bool(np.abs(made - expected).max() <= 1)


def overlaps(n_in: int, n_out: int) -> np.ndarray:
    """Count what every input pixel covers of every output pixel, in the smallest whole parts, (n_in, n_out)."""
    inputs, outputs = np.arange(n_in + 1)[:, None] * n_out, np.arange(n_out + 1) * n_in
    shared = np.minimum(inputs[1:], outputs[1:]) - np.maximum(inputs[:-1], outputs[:-1])
    parts: np.ndarray = np.maximum(shared, 0) // np.gcd(n_in, n_out)
    return parts
