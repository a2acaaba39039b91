"""Enumerations whose members are asked for at every event."""

from enum import Enum
from typing import TypeVar

_Enum = TypeVar("_Enum", bound=type[Enum])


def at_hand(kinds: _Enum) -> _Enum:
    """Let ``Kind.RUN`` be a plain attribute, as from Python 3.12 on: 3.11 asks a property, at four times the cost."""
    for member in kinds:
        type.__setattr__(kinds, member.name, member)
    return kinds
