"""What a phase returned, made ready for the log: numbers apart from episode returns."""

import math
from collections.abc import Mapping
from typing import Any

from workbench.core.errors import WorkbenchError
from workbench.core.protocols import MOST_RETURNS, RETURNS


def numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Turn metrics into Python's own numbers, whatever library they come from."""
    try:
        return {str(name): value if type(value) is int else float(value) for name, value in metrics.items()}
    except (TypeError, ValueError) as err:
        raise WorkbenchError(f"every metric is one number, got {metrics!r}: {err}") from None


def parted(metrics: Mapping[str, Any]) -> tuple[dict[str, float], list[float]]:
    """Part what `train_phase` returned into metrics and episode returns, of these the last few that are finite.

    Raises
    ------
    WorkbenchError
        A metric is not one number, or the returns are not a sequence of numbers.
    """
    scalars = numbers({name: value for name, value in metrics.items() if name != RETURNS})
    returns = metrics.get(RETURNS, ())
    try:
        if isinstance(returns, (str, bytes, Mapping)):
            raise TypeError("it is not a sequence of numbers")
        found = [float(value) for value in returns]
    except (TypeError, ValueError) as err:
        shown = repr(returns)
        raise WorkbenchError(
            f"metrics[{RETURNS!r}] holds the returns of a phase's last episodes, a sequence of numbers, "
            f"got {shown if len(shown) < 100 else shown[:100] + ' …'}: {err}"
        ) from None
    return scalars, [value for value in found if math.isfinite(value)][-MOST_RETURNS:]
