"""What a trial computes on, by its name."""

from collections.abc import Callable

import torch

from workbench.core.errors import InvalidInput, unknown

_THERE: dict[str, Callable[[], bool]] = {
    "cpu": lambda: True,
    "cuda": torch.cuda.is_available,
    "mps": torch.backends.mps.is_available,
}


def torch_device(name: str) -> torch.device:
    """Find a device by its name; ``auto`` is CUDA where there is one, else the processor.

    Raises
    ------
    InvalidInput
        There is no device of this name, or not here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError, ValueError):
        raise unknown("device", str(name), ["auto", "cpu", "cuda"]) from None
    if device.type not in _THERE or not _THERE[device.type]():
        raise InvalidInput(f"device {name!r} is not available here: use 'auto' or 'cpu'")
    return device
