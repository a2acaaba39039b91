"""Domains: the values one hyperparameter may take, and how they are drawn, spread, checked, moved and written down."""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from workbench.core.checks import is_finite
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Scalar

_SCALARS = (bool, int, float, str)
_EXACT = 2**53
"""Below it floats have every whole number."""


def spaced(n: int, most: int) -> npt.NDArray[np.intp]:
    """Choose at most so many of the places 0 to n - 1, evenly; the first and the last among them, if it is several."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.intp)


@runtime_checkable
class Domain(Protocol):
    """The values one hyperparameter may take."""

    def sample(self, rng: np.random.Generator) -> Scalar:
        """Draw one value."""

    def grid(self, n: int) -> list[Scalar]:
        """Give at most `n` values spread over the domain, ends included."""

    def contains(self, value: object) -> bool:
        """Tell whether `value` may be taken."""

    def perturb(self, value: Scalar, factor: float) -> Scalar:
        """Multiply `value` by `factor` and bring it back into the domain; a choice moves to a neighbour.

        A value with a step moves by one step at least, away from 0 if the factor is above 1 and towards it if below:
        rounded to the nearest step, 2 times 0.8 or 1.2 would stay 2 for ever. The ends of the domain hold it.
        """

    def shift(self, value: Scalar, share: float, *, least: int = 1) -> Scalar:
        """Move `value` by a share of the domain's length, and bring it back into the domain.

        The length is that of the logarithm where the domain is log-uniform; a choice moves by that share of its list,
        rounded. A choice, and a value with a step, move by one step at least unless the share is 0; with `least` 0
        they stay where the share comes to less than half of one.
        """

    def to_json(self) -> dict[str, Any]:
        """Describe the domain so that `domain_from_json` gives it back."""


@dataclass(frozen=True)
class _Range(Domain):
    """What ranges of numbers share."""

    low: float
    high: float
    step: float | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            object.__setattr__(self, name, scalar(getattr(self, name)))
        numbers = [self.low, self.high, *([] if self.step is None else [self.step])]
        if not all(isinstance(v, (int, float)) and is_finite(v) for v in numbers):
            raise InvalidInput(f"{self} needs finite numbers")
        if not self.low < self.high:
            raise InvalidInput(
                f"{self} is {'empty' if self.low == self.high else 'inverted'}: low must be less than high"
            )
        if self.step is not None and not (self.step > 0 and (self.high - self.low) / self.step >= 1 - 1e-9):
            raise InvalidInput(f"{self} needs 0 < step <= high - low")
        if self.step is not None and max(abs(self.low), abs(self.high)) >= _EXACT * min(self.step, 1):
            raise InvalidInput(
                f"{self} goes beyond 2**53, in numbers or in steps, from where on floats miss whole numbers: let it "
                "count from 0 with a step of 1, and multiply and add in your code"
            )
        if not is_finite(self.high - self.low):
            raise InvalidInput(f"{self} is too wide, high - low overflows: narrow it, and multiply in your code")

    def contains(self, value: object) -> bool:
        value = scalar(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        if self.step is None:
            return self.low <= value <= self.high
        if not self.low - self.step <= value <= self.high + self.step:
            return False
        # its last step may lie beyond the end by a rounding: 3 times 0.1 is more than 0.3
        return math.isclose(value, float(self._on_step(value)), rel_tol=1e-12, abs_tol=1e-9 * self.step)

    def perturb(self, value: Scalar, factor: float) -> Scalar:
        return self._moved(float(value), float(value) * factor, (factor - 1) * (-1 if float(value) < 0 else 1))

    @property
    def _n_steps(self) -> int:
        return math.floor((self.high - self.low) / (self.step or 1) + 1e-9)

    def _on_step(self, value: float) -> Scalar:
        """Clip to the range and round to the step."""
        value = min(max(value, self.low), self.high)
        if self.step is None:
            return float(value)
        at = self.low + self.step * min(max(round((value - self.low) / self.step), 0), self._n_steps)
        return int(at) if float(self.low).is_integer() and float(self.step).is_integer() else float(at)

    def _moved(self, value: float, wanted: float, direction: float) -> Scalar:
        """Bring `wanted` into the range; with a step at least one of them from `value`, as `direction` points."""
        at, was = self._on_step(wanted), self._on_step(value)
        if self.step is None or not direction or at != was:
            return at
        return self._on_step(float(was) + math.copysign(self.step, direction))

    def _spread(self, values: Iterable[float]) -> list[Scalar]:
        return list(dict.fromkeys(map(self._on_step, map(float, values))))

    def _json(self, kind: str) -> dict[str, Any]:
        return {kind: [self.low, self.high], **({} if self.step is None else {"step": self.step})}


@dataclass(frozen=True)
class Uniform(_Range):
    """Uniform on [low, high], on multiples of `step` counted from `low` if a step is given.

    With integer `low` and `step` the values are integers.
    """

    def sample(self, rng: np.random.Generator) -> Scalar:
        if self.step is None:
            return float(rng.uniform(self.low, self.high))
        return self._on_step(self.low + self.step * float(rng.integers(self._n_steps + 1)))

    def grid(self, n: int) -> list[Scalar]:
        return self._spread(np.linspace(self.low, self.high, n))

    def shift(self, value: Scalar, share: float, *, least: int = 1) -> Scalar:
        return self._moved(float(value), float(value) + share * (self.high - self.low), least * share)

    def to_json(self) -> dict[str, Any]:
        return self._json("uniform")


@dataclass(frozen=True)
class LogUniform(_Range):
    """Log-uniform on [low, high]; quantised to multiples of `step` counted from `low` if a step is given.

    Quantising draws from the continuous law between `real_ends` and rounds, so that the end values are as likely as
    their neighbours' density says.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low > 0:
            raise InvalidInput(f"LogUniform needs 0 < low, got low={self.low}: use Uniform for ranges that reach 0")
        if not is_finite(self.high / self.low):
            raise InvalidInput(
                f"{self} is too wide, high / low overflows: draw the exponent, Uniform(-300, 300), and take the power "
                "in your code"
            )

    def sample(self, rng: np.random.Generator) -> Scalar:
        low, high = real_ends(self)
        return self._on_step(math.exp(rng.uniform(math.log(low), math.log(high))))

    def grid(self, n: int) -> list[Scalar]:
        return self._spread(np.geomspace(self.low, self.high, n))

    def shift(self, value: Scalar, share: float, *, least: int = 1) -> Scalar:
        return self._moved(float(value), float(value) * (self.high / self.low) ** share, least * share)

    def to_json(self) -> dict[str, Any]:
        return self._json("log_uniform")


@dataclass(frozen=True)
class Choice(Domain):
    """One of a few values, all equally likely; their order counts for `perturb`."""

    values: Sequence[Scalar]

    def __post_init__(self) -> None:
        if isinstance(self.values, (str, bytes, Mapping, Set)) or not isinstance(self.values, Iterable):
            raise InvalidInput(f"Choice takes a list of values, got {self.values!r}: write Choice([…])")
        object.__setattr__(self, "values", tuple(map(scalar, self.values)))
        for value in self.values:
            if not isinstance(value, _SCALARS) or value != value or not written(value):
                raise InvalidInput(
                    f"Choice is between numbers, words and true or false, got {value!r}: name it, as in "
                    "Choice(['small', 'large']), and look up in your code what the name stands for"
                )
        if not self.values or len(set(self.values)) != len(self.values):
            raise InvalidInput(f"Choice needs one or more values, each once, got {list(self.values)}")

    def sample(self, rng: np.random.Generator) -> Scalar:
        return self.values[int(rng.integers(len(self.values)))]

    def grid(self, n: int) -> list[Scalar]:
        return [self.values[int(i)] for i in spaced(len(self.values), n)]

    def contains(self, value: object) -> bool:
        return self.own(value) is not None

    def own(self, value: object) -> Scalar | None:
        """Give the one of the values that `value` is: 1.0 may be its 1."""
        value = scalar(value)
        return next((v for v in self.values if value == v and isinstance(value, bool) == isinstance(v, bool)), None)

    def perturb(self, value: Scalar, factor: float) -> Scalar:
        at = self.values.index(value) + (factor > 1) - (factor < 1)
        return self.values[min(max(at, 0), len(self.values) - 1)]

    def shift(self, value: Scalar, share: float, *, least: int = 1) -> Scalar:
        steps = round(abs(share) * len(self.values))
        at = self.values.index(value) + int(math.copysign(max(steps, least * (share != 0)), share))
        return self.values[min(max(at, 0), len(self.values) - 1)]

    def to_json(self) -> dict[str, Any]:
        return {"choice": list(self.values)}


def written(value: object) -> bool:
    """Tell whether a word can be written down: half a surrogate pair cannot."""
    return not isinstance(value, str) or value.encode("utf-8", "replace").decode() == value


def on_step(domain: Domain, value: Any) -> Any:
    """Give a value as its domain itself writes it: 0.3 may be the 0.30000000000000004 that three steps of 0.1 make."""
    if isinstance(domain, Choice):
        return value if (own := domain.own(value)) is None else own
    if isinstance(domain, _Range) and domain.step is not None and domain.contains(value):
        return domain._on_step(value)
    return value


def is_continuous(domain: Domain) -> bool:
    """Tell whether a domain is a range without a step, of which a draw is hardly ever one value exactly."""
    return isinstance(domain, _Range) and domain.step is None


def real_ends(domain: Domain) -> tuple[float, float]:
    """Return between which ends a number drawn by a range's scale is to be rounded to its step, as `perturb` by 1 does.

    They lie half a step beyond the range's own, which would be drawn half as often as other values otherwise.
    """
    # of a range the same as its grid gives, but every draw of `LogUniform` asks
    ends = (domain.low, domain._on_step(domain.high)) if isinstance(domain, _Range) else domain.grid(2)
    low, high = float(ends[0]), float(ends[-1])
    half = (getattr(domain, "step", None) or 0.0) / 2
    return max(low - half, low / 2) if isinstance(domain, LogUniform) else low - half, high + half


def domain_from_json(name: str, entry: Any) -> Domain:
    """Read ``{"log_uniform": [low, high], "step": 1}`` and its like."""
    allowed = "write {uniform = [low, high]}, {log_uniform = [low, high], step = 1} or {choice = [a, b, …]}"
    if not isinstance(entry, Mapping):
        raise InvalidInput(f"hyperparameter {name!r}: got {entry!r}; {allowed}")
    rest = dict(entry)
    step = rest.pop("step", None)
    if len(rest) != 1:
        raise InvalidInput(f"hyperparameter {name!r}: got {dict(entry)}; {allowed}")
    ((kind, values),) = rest.items()
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise InvalidInput(f"hyperparameter {name!r}: {kind} takes a list, got {values!r}; {allowed}")
    try:
        if kind == "choice" and step is None:
            return Choice(values)
        if kind in ("uniform", "log_uniform") and len(values) == 2:
            return (Uniform if kind == "uniform" else LogUniform)(values[0], values[1], step)
    except (InvalidInput, TypeError) as err:
        raise InvalidInput(f"hyperparameter {name!r}: {err}") from None
    raise InvalidInput(f"hyperparameter {name!r}: got {dict(entry)}; {allowed}")


def meant(given: object) -> str:
    """Say what to write in place of what is no domain."""
    if isinstance(given, type):
        return f"pass an object, such as {given.__name__}(…)"
    values = [*map(scalar, given if isinstance(given, (list, tuple, range, np.ndarray)) else [given])]
    if not values or not all(isinstance(value, _SCALARS) for value in values):
        return "write Uniform(low, high), LogUniform(low, high) or Choice([…])"
    numbers = len(values) == 2 and not any(isinstance(value, (str, bool)) for value in values)
    return (
        f"write Uniform({values[0]}, {values[1]}), LogUniform(…) or Choice({values})"
        if numbers
        else f"write Choice({values})"
    )


def scalar(value: Any) -> Any:
    """Turn a number or word of numpy's into Python's own."""
    return value.item() if isinstance(value, np.generic) else value
