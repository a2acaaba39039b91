"""What a widget says to its views, in order and numbered, so that a view can tell when something was lost."""

import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from workbench.core.showing import finite_only
from workbench.viz.dashboard.board import Message


class Wire:
    """Says things to all views of a widget.

    Parameters
    ----------
    send : callable
        Takes content and buffers, as a widget's ``send``.

    Attributes
    ----------
    number : int
        Of the last snapshot or delta; a viewer that misses one asks for a snapshot.
    """

    def __init__(self, send: Callable[[dict[str, Any], list[bytes] | None], None]) -> None:
        self._send = send
        self.number = 0

    def snapshot(self, message: Message) -> None:
        """Tell everything."""
        self._tell("snapshot", message)

    def delta(self, message: Message | None) -> None:
        """Tell what has changed; ``None``: that nothing has."""
        if message is None:
            self.say({"type": "beat", "number": self.number})
            return
        self._tell("delta", message)

    def lose(self) -> None:
        """Leave out a number, so that viewers notice that something could not be told, and ask for a snapshot."""
        self.number += 1

    def say(self, content: dict[str, Any], tables: list[bytes] | None = None) -> None:
        """Say something that is not numbered."""
        with contextlib.suppress(Exception):  # a kernel that shuts down closes the channel under us
            self._send(content, tables)

    def _tell(self, kind: str, message: Message) -> None:
        self.number += 1
        content, tables = message
        head = {"type": kind, "number": self.number}
        if tables:
            self.say(head, [*tables, packed(content)])
        else:
            self.say({**head, **content})


def packed(content: Mapping[str, Any]) -> bytes:
    """Write content as JSON, to travel beside the tables: a kernel looks at every value sent in the open.

    Numbers that JSON cannot hold become words.
    """
    try:
        return json.dumps(content, allow_nan=False).encode()
    except ValueError:
        return json.dumps(finite_only(content, str)).encode()
