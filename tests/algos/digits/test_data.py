"""The digits, split once and for all."""

import torch

from workbench.algos.digits.data import load


def test_the_split_is_whole_and_always_the_same() -> None:
    digits = load()
    assert [len(part.labels) for part in digits] == [1000, 397, 400]
    pixels = torch.cat([part.images for part in digits])
    assert pixels.shape == (1797, 64)
    assert (pixels.min(), pixels.max()) == (0, 1)
    load.cache_clear()
    assert torch.equal(load().valid.labels, digits.valid.labels)
