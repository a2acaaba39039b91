"""What a trial of Stable-Baselines3 draws: from generators that its whole process shares, and yet alone."""

import random
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


class Draws:
    """A trial's own states of the generators that a whole process shares.

    Parameters
    ----------
    generators : Mapping of str to torch.Generator
        PyTorch's, by the names that they have in a checkpoint.
    """

    def __init__(self, generators: Mapping[str, torch.Generator]) -> None:
        self._generators = generators
        self._state = self._now()

    @contextmanager
    def lent(self) -> Generator[None, None, None]:
        """Let the process draw from this trial's streams, and leave its own as they were."""
        before = self._now()
        self._set(self._state)
        try:
            yield
        finally:
            self._state = self._now()
            self._set(before)

    def state(self) -> dict[str, Any]:
        """Give the states, of plain numbers and tensors."""
        python, (_, keys, *rest), own = self._state
        return {"python": list(python[1]), "numpy": [keys.tolist(), *map(float, rest)], **own}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave; a generator that it does not have, of another device, stays as it is."""
        keys, position, has_gauss, gauss = state["numpy"]
        numpy = ("MT19937", np.array(keys, np.uint32), int(position), int(has_gauss), gauss)
        own = {name: state.get(name, now) for name, now in self._state[2].items()}
        self._state = ((3, tuple(state["python"]), None), numpy, own)

    def _now(self) -> tuple[Any, Any, dict[str, torch.Tensor]]:
        own = {name: generator.get_state() for name, generator in self._generators.items()}
        return random.getstate(), np.random.get_state(), own

    def _set(self, state: tuple[Any, Any, Mapping[str, torch.Tensor]]) -> None:
        random.setstate(state[0])
        np.random.set_state(state[1])
        for name, generator in self._generators.items():
            generator.set_state(state[2][name])


def generators_of(device: torch.device) -> dict[str, torch.Generator]:
    """Give the generators of PyTorch's that what runs on a device draws from."""
    generators = {"torch": torch.default_generator}
    if device.type == "cuda":
        current = torch.cuda.current_device()  # there are none before CUDA is begun, as it is for this answer
        generators["cuda"] = torch.cuda.default_generators[current if device.index is None else device.index]
    return generators
