"""The form of a clone: a field for each hyperparameter, and typed values out of what a page sends."""

from collections.abc import Mapping
from typing import Any

from workbench.core.domains import Choice, Domain, on_step
from workbench.core.errors import InvalidInput, unknown
from workbench.core.protocols import Config, Scalar
from workbench.core.space import Space


def fields(space: Space | None) -> list[dict[str, Any]]:
    """Say what a form has to ask for, in order; nothing where the space is not known.

    Returns
    -------
    list of dict
        ``name``; ``choices``, or ``range`` in words; ``only_if``: name → the values of another under which it applies.
    """
    if space is None:
        return []
    return [
        {
            "name": name,
            **_values(domain),
            "only_if": {of: list(values) for of, values in space.conditions(name).items()},
        }
        for name, domain in space.items()
    ]


def changed(config: Config, changes: object, space: Space | None = None) -> dict[str, Scalar]:
    """Give typed values to the changes a form sends: after the space, or, where it is not known, what they replace.

    Raises
    ------
    InvalidInput
        A name that is not in the space or the configuration, a value outside its domain, or of another type.
    """
    if not isinstance(changes, Mapping):
        raise InvalidInput(f"changes are values by hyperparameter, got {changes!r}")
    typed: dict[str, Scalar] = {}
    for name, value in changes.items():
        if name not in (known := config if space is None else space):
            raise unknown("hyperparameter", str(name), known)
        typed[name] = _like(config[name], str(value).strip(), name) if space is None else _of(space[name], value, name)
    return typed


def _values(domain: Domain) -> dict[str, Any]:
    if isinstance(domain, Choice):
        return {"choices": list(domain.values)}
    ends, step = domain.grid(2), getattr(domain, "step", None)
    return {"range": f"{ends[0]:g} to {ends[-1]:g}{'' if step is None else f' by {step:g}'}"}


def _of(domain: Domain, value: Any, name: str) -> Scalar:
    """Give the value of a domain that a form's value means: one of its choices, or a number in words."""
    meant = value
    if isinstance(value, str) and not isinstance(domain, Choice):
        try:
            meant = float(value)
        except ValueError:
            raise InvalidInput(f"{name} is a number, got {value.strip()!r}") from None
    if not domain.contains(meant):
        among = f"one of {list(domain.values)}" if isinstance(domain, Choice) else _values(domain)["range"]
        raise InvalidInput(f"{name} is {among}, got {value!r}: a clone stays within its study's space")
    own: Scalar = on_step(domain, meant)
    return own


def _like(old: Scalar, words: str, name: str) -> Scalar:
    if isinstance(old, bool):
        if words.lower() not in ("true", "false"):
            raise InvalidInput(f"{name} is true or false, got {words!r}")
        return words.lower() == "true"
    if isinstance(old, str):
        return words
    try:
        return int(words) if isinstance(old, int) else float(words)
    except ValueError:
        kind = "a whole number" if isinstance(old, int) else "a number"
        raise InvalidInput(f"{name} is {kind}, got {words!r}") from None
