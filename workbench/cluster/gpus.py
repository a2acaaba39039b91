"""Which GPUs the workers of a local cluster see: so many a slot, or several slots to one."""

import math
import os
import shutil
import subprocess
from collections import Counter
from itertools import takewhile
from typing import Any

from distributed import LocalCluster

from workbench.core.checks import is_number
from workbench.core.errors import InvalidInput
from workbench.core.rounding import floored
from workbench.core.showing import so_many

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def gpus_for(nodes: int, per_slot: float | None) -> list[str]:
    """Name the GPUs that so many workers may use: those of CUDA_VISIBLE_DEVICES, or all that the driver lists.

    Raises
    ------
    InvalidInput
        There are not enough.
    """
    if per_slot is None:
        return []
    check_share(per_slot)
    given = os.environ.get(_VISIBLE)
    devices = _listed() if given is None else _visible(given)
    if not devices:
        raise InvalidInput(
            f"gpus_per_slot is {per_slot:g}, but no GPU can be seen here: leave it out, or make it 0 where a study has "
            "it from its last driver, and trials use the processor"
        )
    if _most_nodes(len(devices), per_slot) < nodes:
        raise InvalidInput(
            f"only {so_many(len(devices), 'GPU')} can be seen here, too few for {so_many(nodes, 'node')} with "
            f"{per_slot:g} each: lower nodes or gpus_per_slot (0.5: two to a GPU)"
        )
    return devices


def _visible(given: str) -> list[str]:
    """Read the variable as CUDA does, which sees nothing from the first number below 0 on: -1 hides all."""
    names = [name.strip() for name in given.split(",") if name.strip()]
    return list(takewhile(lambda name: not name.startswith("-"), names))


def check_share(per_slot: object) -> None:
    """Refuse what is no number of GPUs that a slot can have."""
    if not is_number(per_slot) or not (0 < per_slot < 1 or (per_slot >= 1 and per_slot % 1 == 0)):
        raise InvalidInput(f"gpus_per_slot is a whole number >= 1, or a share of one GPU below 1, got {per_slot!r}")


def most_nodes(per_slot: float) -> int:
    """Count the workers that the GPUs here suffice for."""
    return _most_nodes(len(gpus_for(1, per_slot)), per_slot)


def _most_nodes(n_gpus: int, per_slot: float) -> int:
    return int(n_gpus // per_slot) if per_slot >= 1 else n_gpus * floored(1 / per_slot)


def _listed() -> list[str]:
    """Number the GPUs that the driver lists; asking torch would take a place on one of them."""
    if shutil.which("nvidia-smi") is None:
        return []
    listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False).stdout
    return [str(k) for k, line in enumerate(listed.splitlines()) if line.startswith("GPU ")]


class LocalWithGPUs(LocalCluster):  # type: ignore[misc]  # Dask has no types
    """A local cluster whose workers, if GPUs are handed out, each see their own: those that fewest others see."""

    def __init__(self, gpus: list[str], per_slot: float | None, **settings: Any) -> None:
        self._gpus, self._per_slot = gpus, per_slot
        super().__init__(**settings)

    def new_worker_spec(self) -> dict[Any, Any]:
        ((name, spec),) = super().new_worker_spec().items()
        if self._per_slot is None:
            return {name: spec}
        seen = Counter(gpu for one in self.worker_spec.values() for gpu in one["options"]["env"][_VISIBLE].split(","))
        free = sorted(self._gpus, key=lambda gpu: seen[gpu])  # of equals in their order
        env = {**(spec["options"].get("env") or {}), _VISIBLE: ",".join(free[: math.ceil(self._per_slot)])}
        return {name: {**spec, "options": {**spec["options"], "env": env}}}

    def scale(self, n: int = 0, **how: Any) -> Any:
        if self._per_slot is not None and n > (most := _most_nodes(len(self._gpus), self._per_slot)):
            raise InvalidInput(
                f"with gpus_per_slot = {self._per_slot:g} there can be {so_many(most, 'node')} here, not {n}"
            )
        return super().scale(n, **how)
