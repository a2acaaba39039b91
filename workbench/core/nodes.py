"""The nodes that a slot is on, in one name, as the log keeps it; and the nodes again, from that name."""

import re
from collections.abc import Iterable

_MOST_NAMED = 4
_LARGE_GANG = re.compile(r".+….+ \((\d+)\)")  # its first node, its last, and how many there are


def joined_nodes(nodes: Iterable[str]) -> str:
    """Name the nodes, each once; of many the first and the last, and how many there are."""
    each = list(dict.fromkeys(nodes))
    return "+".join(each) if len(each) <= _MOST_NAMED else f"{each[0]}…{each[-1]} ({len(each)})"


def nodes_of(joined: str) -> list[str]:
    """Give the nodes of a name as of `joined_nodes`; where it does not name them all, by numbers."""
    if large := _LARGE_GANG.fullmatch(joined):
        return [f"{joined}, {number}" for number in range(int(large[1]))]
    return joined.split("+")
