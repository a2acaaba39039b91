"""What else hears of a study's events while it is driven: callbacks, in the driver's thread."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from workbench.core.protocols import Event

if TYPE_CHECKING:
    from workbench.study.study import Study

Callback = Callable[[Sequence[Event]], None]
"""Called with the events of every append to the log, in order, once they are written; progress inside phases is among
them. It may have ``begin(study, past)``, called first, with the events of earlier drivers, and ``close()``."""


class Callbacks:
    """A study's callbacks. One that raises is told of in a warning and called no more: the study goes on."""

    def __init__(self, study: "Study") -> None:
        self._name = study.name
        self._called: list[Any] = list(study.callbacks)

    def begin(self, study: "Study", past: Sequence[Event]) -> None:
        """Tell what is to be driven, and what earlier drivers have logged."""
        self._each("begin", study, past)

    def __call__(self, events: Sequence[Event]) -> None:
        """Hand events on."""
        self._each("__call__", events)

    def close(self) -> None:
        """Tell that no more events come from this driver."""
        self._each("close")

    def _each(self, method: str, *args: Any) -> None:
        for callback in list(self._called):
            try:
                getattr(callback, method, lambda *_: None)(*args)
            except (Exception, SystemExit) as err:  # noqa: BLE001  whatever somebody's callback does, the study goes on
                self._called.remove(callback)
                what = getattr(callback, "__name__", type(callback).__name__)
                said = f"study {self._name!r}: the callback {what} raised {err!r} and is called no more"
                with suppress(Exception):  # where warnings are errors
                    warnings.warn(said, stacklevel=2)
