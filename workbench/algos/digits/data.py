"""The 1797 images of handwritten digits that come with scikit-learn, always split the same way."""

from functools import lru_cache
from importlib.metadata import distribution
from typing import NamedTuple

import numpy as np
import torch

PIXELS = 64  # 8 × 8
CLASSES = 10
_TRAIN, _VALID = 1000, 397  # the other 400 are for testing
_SPLIT_SEED = 0


class Part(NamedTuple):
    """Images, float32 in [0, 1], shape [n, 64], and their digits, int64, shape [n]."""

    images: torch.Tensor
    labels: torch.Tensor


class Digits(NamedTuple):
    """What is trained on, what trials are judged by, and what nobody looks at before the end."""

    train: Part
    valid: Part
    test: Part


@lru_cache(maxsize=1)
def load() -> Digits:
    """Read the images, and split them by a permutation that does not depend on any trial's seed."""
    # as `sklearn.datasets.load_digits` does, whose import takes each worker longer, and more memory, than the images
    file = distribution("scikit-learn").locate_file("sklearn/datasets/data/digits.csv.gz")
    rows = np.loadtxt(str(file), delimiter=",")
    images = torch.tensor(rows[:, :-1] / 16, dtype=torch.float32)
    labels = torch.tensor(rows[:, -1], dtype=torch.int64)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(_SPLIT_SEED))
    parts = torch.tensor_split(order, [_TRAIN, _TRAIN + _VALID])
    return Digits(*(Part(images[rows], labels[rows]) for rows in parts))
