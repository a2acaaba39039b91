"""What settings must be: each check names whose they are, what came, and what is allowed."""

import math

from workbench.core.errors import InvalidInput


def check_size(owner: object, **counts: int) -> None:
    """Raise `InvalidInput` unless every count is a whole number of 1 or more."""
    for name, n in counts.items():
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InvalidInput(f"{type(owner).__name__} needs a whole number {name} >= 1, got {n!r}")


def check_share(owner: object, **shares: float) -> None:
    """Raise `InvalidInput` unless every share lies between 0 and 1, ends included."""
    for name, x in shares.items():
        if isinstance(x, bool) or not isinstance(x, (int, float)) or not 0 <= x <= 1:
            raise InvalidInput(f"{type(owner).__name__} needs a share 0 <= {name} <= 1, got {x!r}")


def check_one_of(owner: object, name: str, got: object, allowed: tuple[str, ...]) -> None:
    """Raise `InvalidInput` unless a setting is one of the words allowed."""
    if got not in allowed:
        raise InvalidInput(f"{type(owner).__name__}: {name} is one of {', '.join(allowed)}, got {got!r}")


def check_not_negative(owner: object, **values: float) -> None:
    """Raise `InvalidInput` unless every value is a finite number of 0 or more."""
    for name, x in values.items():
        if isinstance(x, bool) or not isinstance(x, (int, float)) or not 0 <= x < math.inf:
            raise InvalidInput(f"{type(owner).__name__} needs {name} >= 0, and finite, got {x!r}")
