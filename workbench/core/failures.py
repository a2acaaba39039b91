"""Why trials fail: where in the user's code, which failures are alike, and when a study need not go on."""

import inspect
import re
import sysconfig
import traceback
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from workbench.core.errors import EndedTooSoon, NoState
from workbench.core.protocols import Event, Kind

_FEWEST = 3  # failures that are alike, before a study stops by itself
_RANK = re.compile(r"^rank \d+ of \d+: ")
_PLACED = re.compile(r"(\w+).* \(([^()]*:\d+ in [^()]*)\)", re.DOTALL)
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?")
_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/]")  # Debian's own are in dist-packages
_NOT_THE_USERS = tuple(
    {str(Path(__file__).parents[1]), *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))}
)


def place_of(err: BaseException) -> str:
    """Name the place in the user's own code that an exception came from: "train.py:12 in build".

    It is the last line of the traceback outside this package, Python's library and installed ones; empty if none is.
    """
    for frame, line in reversed([*traceback.walk_tb(err.__traceback__)]):
        name = frame.f_code.co_filename
        # what a dataclass generates stands in no file: it is its module's
        written = str(frame.f_globals.get("__file__") or name) if name.startswith("<") else name
        if not any(is_not_the_users(file) for file in (name, written)):
            return f"{_file(name)}:{line} in {frame.f_code.co_name}"
    return ""


def is_not_the_users(file: str) -> bool:
    """Tell whether a file is of this package, of Python's library or of an installed package."""
    return file.startswith((*_NOT_THE_USERS, "<frozen")) or bool(_INSTALLED.search(file))


def unwrapped(function: Any) -> Any:
    """Give the function or class that a decorator or a `partial` stands for."""
    inner = inspect.unwrap(function)
    while isinstance(inner, partial):
        inner = inspect.unwrap(inner.func)
    return inner


def named(function: Any) -> str:
    """Name a function or class of the user's with the place of its definition: "train (train.py:12)"."""
    inner = unwrapped(function)
    name = getattr(inner, "__qualname__", type(inner).__qualname__).rpartition("<locals>.")[2]
    code = getattr(inner, "__code__", None)
    return name if code is None else f"{name} ({_file(code.co_filename)}:{code.co_firstlineno})"


def short(value: object, most: int = 80) -> str:
    """Quote a value in one line of an error."""
    shown = " ".join(repr(value).split())
    return shown if len(shown) <= most else f"{shown[:most]} …"


def _file(name: str) -> str:
    return "a cell" if "ipykernel_" in name else Path(name).name


def error_text(data: Mapping[str, Any]) -> str:
    """Write the error of a failure, as the log keeps it, with its place: "ValueError: bad (train.py:12 in build)"."""
    error, place = str(data.get("error") or ""), data.get("place")
    return f"{error} ({place})" if place else error


def error_key(text: str) -> str:
    """Tell which errors, as `error_text` writes them, are one: those of a type and place; numbers may differ.

    Of an error whose place is not known its words must be the same.

    >>> error_key("ValueError: bad 3 (train.py:12 in build)") == error_key("ValueError: no 4 (train.py:12 in build)")
    True
    >>> error_key("no sign of progress for 31 s")
    'no sign of progress for # s'
    """
    text = _RANK.sub("", text)
    match = _PLACED.fullmatch(text)
    return f"{match[1]} at {match[2]}" if match else _NUMBER.sub("#", text)


class Hopeless:
    """Watches whether the first trials of a study all fail alike before any has ended a phase.

    So many as there are slots must, and three at least. Only exceptions of the trials count, not what befalls workers,
    and not training that diverged: that may be the configurations' fault. A trial counts once, when no attempt is left.

    One is enough if it ended by itself where no trial has come further: the best would all end there. So is a copy of a
    trial that saves nothing: none could be copied.

    Attributes
    ----------
    cause : str
        What they failed of, once it is clear; empty before.
    cure : str
        What can be done about it.
    """

    def __init__(self) -> None:
        self.cause, self.cure = "", "correct it"
        self._slots: set[int | None] = set()
        self._armed, self._furthest = True, -1
        self._failed: list[str] = []

    def see(self, event: Event) -> None:
        """Take in one more event."""
        if event.kind is Kind.SLOT_JOINED:
            self._slots.add(event.slot)
        elif event.kind is Kind.PHASE_ENDED:
            self._armed, self._furthest = False, max(self._furthest, event.phase or 0)
        elif event.kind is Kind.TRIAL_FAILED and not self.cause:
            self._see_failure(event, error_text(event.data))

    def _see_failure(self, event: Event, text: str) -> None:
        phase, key = event.phase or 0, error_key(text)
        if phase and phase > self._furthest and key.startswith(EndedTooSoon.__name__):
            self.cause = text
            self.cure = f"begin another with n_phases={phase}, as in tune(…, n_phases={phase}), or correct it"
            return
        if key.startswith(f"{NoState.__name__}:"):  # with a place it is of the trial's own code
            self.cause = text
            return
        if phase or event.data.get("why") != "exception" or key.startswith("FloatingPointError"):
            self._armed = False
        if not self._armed:
            return
        self._armed = all(error_key(other) == key for other in self._failed)
        self._failed.append(text)
        if self._armed and len(self._failed) >= max(_FEWEST, len(self._slots)):
            self.cause = f"the first {len(self._failed)} trials failed alike: {self._failed[0]}"
