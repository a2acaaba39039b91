"""The digits, split once and for all."""

import subprocess
import sys

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


def test_the_digits_are_those_of_scikit_learn_which_is_not_imported_for_them() -> None:
    from sklearn.datasets import load_digits  # a second, which no other process of the tests need take

    load.cache_clear()
    pixels = torch.cat([part.images for part in load()]).sort(0).values
    theirs = torch.tensor(load_digits().data / 16, dtype=torch.float32)
    assert torch.equal(pixels, theirs.sort(0).values)
    alone = "import sys; from workbench.algos.digits.data import load; load(); assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", alone], check=True)
