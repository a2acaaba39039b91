"""Numbers, names and decisions in words, and settings as a table for a notebook's cell."""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any

LUCKIEST = {"best_score": "luckiest_phase"}
"""How tables that are shown call the best score of any phase: the configuration to take may have another."""

_LONGEST = 300  # characters of a value
_EXACT = 2**53  # whole numbers up to here are told apart as floats


def settings_html(thing: object) -> str:
    """Write a dataclass as a table: its name, what it is in a line, a row a setting; objects within show themselves.

    Meant to be the ``_repr_html_`` of schedulers, searchers and studies. Every word is escaped.
    """
    summary = (type(thing).__doc__ or "").strip().partition("\n")[0]
    settings = {f.name: getattr(thing, f.name) for f in fields(thing) if f.init}  # type: ignore[arg-type]
    expected = getattr(thing, "expected_phases", None)
    if expected is not None:
        settings["phases expected in all"] = setting(round(float(expected), 1))
    return f"<div><b>{escape(type(thing).__name__)}</b>: {escape(summary)}{_table(settings)}</div>"


def reason_text(reason: Mapping[str, Any]) -> str:
    """Put a decision's reason into words that fit any scheduler: its mode, then what else it says.

    >>> reason_text({"mode": "dropped", "rung": 1, "place": 7})
    'dropped: rung 1, place 7'
    """
    mode = str(reason.get("mode") or "")
    if mode in _OF_EVERY:
        return _OF_EVERY[mode]
    rest = ", ".join(f"{key} {four_digits(v)}" for key, v in reason.items() if key not in ("verdict", "mode"))
    return ": ".join(part for part in (mode, rest) if part)


def titled(name: str, spec: Mapping[str, Any]) -> str:
    """Name a study for people, by what was set out to run: one in which nothing trained is marked.

    >>> titled("monday", {"simulated": True})
    'monday (simulated)'
    """
    return f"{name} (simulated)" if spec.get("simulated") else name


def so_many(n: int, what: str) -> str:
    """Count things in words.

    >>> so_many(1, "checkpoint"), so_many(0, "checkpoint"), so_many(2, "study")
    ('1 checkpoint', '0 checkpoints', '2 studies')
    """
    several = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{n} {what if n == 1 else several}"


def four_digits(value: object) -> str:
    """Write a score or another measure down: a float to four digits, or below a million to all before the point.

    As on a page: a score of 10889 and one of 10894 do not read alike.

    >>> four_digits(0.123456), four_digits(10889.7), four_digits(1.5e6), four_digits(123456), four_digits("relu")
    ('0.1235', '10890', '1.5e+06', '123456', 'relu')
    """
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if 1000 <= abs(value) < 999_999.5 else f"{value:.4g}"


def setting(value: object) -> str:
    """Write a hyperparameter's value: whole numbers in full, also where trials without one made them fractions.

    No other becomes one by being cut to four digits, such as a discount near 1: it has as many more as that takes.

    >>> setting(65540.0), setting(0.123456), setting("relu"), setting(0.99999), setting(126.99203)
    ('65540', '0.1235', 'relu', '0.99999', '126.99')
    """
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    if value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    words = (f"{value:.{digits}g}" for digits in range(4, 18))
    return next((cut for cut in words if not float(cut).is_integer()), four_digits(value))


def config_text(config: Mapping[str, object]) -> str:
    """Write a configuration in a line.

    >>> config_text({"batch": 65540.0, "gamma": 0.99})
    'batch = 65540, gamma = 0.99'
    """
    return ", ".join(f"{name} = {setting(value)}" for name, value in config.items())


def finite_only(value: Any, instead: Callable[[float], Any]) -> Any:
    """Put something in the place of the numbers that JSON has no word for, within tables and lists too.

    >>> finite_only({"rates": [0.5, float("inf")]}, str)
    {'rates': [0.5, 'inf']}
    """
    if isinstance(value, Mapping):
        return {name: finite_only(part, instead) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_only(part, instead) for part in value]
    return instead(value) if isinstance(value, float) and not math.isfinite(value) else value


_OF_EVERY = {"finished": "ran all its phases", "failed": "no attempt left"}


def _table(settings: Mapping[str, object]) -> str:
    left = "style='text-align:left;vertical-align:top'"
    rows = (f"<tr><th {left}>{escape(str(k))}</th><td {left}>{_value(v)}</td></tr>" for k, v in settings.items())
    return f"<table>{''.join(rows)}</table>"


def _value(value: object) -> str:
    if is_dataclass(value) and hasattr(value, "_repr_html_"):
        return settings_html(value)
    if isinstance(value, Mapping):
        return _table(value)
    words = str(value)
    return escape(words if len(words) <= _LONGEST else f"{words[:_LONGEST]} …")
