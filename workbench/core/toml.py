"""Settings written as TOML; the standard library reads it, but writes none."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any


def toml_lines(table: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Write values first, then tables; what is ``None`` is left out, of lists too, since TOML has no word for it.

    Parameters
    ----------
    table : Mapping
        Of JSON's types.
    path : str
        Where it stands in a larger one, ending in a dot.
    """
    known = {key: value for key, value in table.items() if value is not None}
    plain = {key: value for key, value in known.items() if not _is_table(value)}
    yield from (f"{_key(key)} = {_value(value)}" for key, value in plain.items())
    for key in (key for key in known if key not in plain):
        inner, name = known[key], f"{path}{_key(key)}"
        for part in inner if isinstance(inner, list) else [inner]:
            yield f"\n[[{name}]]" if isinstance(inner, list) else f"\n[{name}]"
            yield from toml_lines(part, f"{name}.")


def _is_table(value: Any) -> bool:
    tables = value if isinstance(value, list) else [value]
    return bool(tables) and all(isinstance(part, Mapping) for part in tables)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_value(part) for part in value if part is not None)}]"
    if isinstance(value, Mapping):  # in a list of several kinds
        return f"{{{', '.join(f'{_key(key)} = {_value(part)}' for key, part in value.items() if part is not None)}}}"
    if isinstance(value, float):
        return repr(value)  # nan and inf are TOML's words too
    return _quoted(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else _quoted(name)


def _quoted(value: Any) -> str:
    """Write as JSON does, but for the one character that it leaves and TOML forbids."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
