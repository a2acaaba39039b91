"""Settings as TOML: files of them read, and tables written, which the standard library does not."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.core.errors import InvalidInput


def read_toml(path: str | Path, what: str) -> dict[str, Any]:
    """Read a file; `what` says for the error what it was to be, as in "study file".

    Raises
    ------
    InvalidInput
        It is not there, or is no TOML.
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as err:
        raise InvalidInput(f"cannot read the {what} {path}: {err.strerror or err}") from None
    return parsed(raw, str(path))


def parsed(raw: bytes, source: str) -> dict[str, Any]:
    """Read TOML; `source` names it in errors."""
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise InvalidInput(f"{source} is not a valid TOML file: {err}") from None


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
