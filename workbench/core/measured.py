"""What a phase returned or failed of, made ready for the wire and the log: numbers, episode returns, and words."""

import math
import traceback
from collections.abc import Mapping
from typing import Any

from workbench.core.errors import WorkbenchError, words_of
from workbench.core.failures import short
from workbench.core.protocols import MOST_RETURNS, RESERVED_METRICS, RETURNS

MOST_ERROR, _MOST_TRACEBACK = 2_000, 20_000  # characters
_MOST_METRICS, _LONGEST_NAME = 1000, 200
_WHOLE = range(-(2**63), 2**63)  # what messages and SQLite hold


def numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Turn metrics into Python's own numbers, whatever library they come from.

    Raises
    ------
    WorkbenchError
        They are no dict, a value is not one number, a name cannot be one, or there are too many.
    """
    if not isinstance(metrics, Mapping):  # of progress(0.5)
        raise WorkbenchError(f"metrics are a dict, {{'loss': …}}, got {carried(repr(metrics), 200)}")
    if len(metrics) > _MOST_METRICS:
        raise WorkbenchError(f"a phase has at most {_MOST_METRICS:,} metrics, got {len(metrics):,}: report fewer")
    try:
        found = {str(name): number(value) for name, value in metrics.items()}
    except TypeError as err:
        shown = carried(repr(dict(metrics)), 200)
        raise WorkbenchError(f"every metric is one number, got {shown}: {err}") from None
    for name in found:
        if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
            raise WorkbenchError(
                f"a metric's name is 1 to {_LONGEST_NAME} printable characters, got {carried(ascii(name), 100)}"
            )
        if name in RESERVED_METRICS:
            raise WorkbenchError(
                f"a metric cannot be called {name!r}: the table of phases uses this name, choose another"
            )
    return found


def number(value: Any) -> int | float:
    """Turn one number of any library into Python's own: a whole one stays whole, as far as a message holds it.

    Raises
    ------
    TypeError
        It is no number, or several; in the words of the library that it comes from.
    """
    try:
        plain = value.item() if hasattr(value, "item") else value  # float(loss) warns where PyTorch keeps its gradient
        if isinstance(plain, (str, bytes, bytearray)):  # which float() would read
            raise TypeError(f"{short(plain)} is text, not a number")
        return plain if type(plain) is int and plain in _WHOLE else float(plain)
    except (ValueError, RuntimeError, OverflowError) as err:
        raise TypeError(*err.args) from None


def carried(text: str, most: int) -> str:
    """Give text that a message, the log and a page can carry: what is no character escaped, the middle cut out."""
    text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) <= most:
        return text
    return f"{text[: most // 2]} … ({len(text):,} characters) … {text[-(most // 2) :]}"


def parted(metrics: Mapping[str, Any]) -> tuple[dict[str, float], list[float]]:
    """Part what `train_phase` returned into metrics and episode returns, of these the last few that are finite.

    Raises
    ------
    WorkbenchError
        A metric is not one number, there is no score, or the returns are not a sequence of numbers.
    FloatingPointError
        The score is not finite.
    """
    if not isinstance(metrics, Mapping):
        raise WorkbenchError(
            f"train_phase returns a dict of metrics, {{'score': …}} at least, got {carried(repr(metrics), 200)}"
        )
    scalars = numbers({name: value for name, value in metrics.items() if name != RETURNS})
    if "score" not in scalars:
        raise WorkbenchError(f"train_phase returned no score, only {sorted(scalars)}: add metrics['score']")
    if not math.isfinite(scalars["score"]):
        raise FloatingPointError(f"the score is {scalars['score']}: training has diverged")
    returns = metrics.get(RETURNS, ())
    try:
        if isinstance(returns, (str, bytes, Mapping)):
            raise TypeError("it is not a sequence of numbers")
        finite = [float(number(value)) for value in returns]
    except TypeError as err:
        raise WorkbenchError(
            f"metrics[{RETURNS!r}] holds the returns of a phase's last episodes, a sequence of numbers, "
            f"got {short(returns, 100)}: {err}"
        ) from None
    return scalars, [value for value in finite if math.isfinite(value)][-MOST_RETURNS:]


def one_line(err: BaseException) -> str:
    """Give an exception's type and words, whatever its words do.

    >>> one_line(ValueError("bad file\\nat byte 3")), one_line(AssertionError())
    ('ValueError: bad file at byte 3', 'AssertionError')
    """
    name, text = carried(type(err).__name__, MOST_ERROR), " ".join(carried(words_of(err), MOST_ERROR).split())
    return f"{name}: {text}" if text else name


def traceback_now() -> str:
    """Give the traceback of the exception that is being handled."""
    try:
        return carried(traceback.format_exc(), _MOST_TRACEBACK)
    except Exception:  # noqa: BLE001  it asks the exception for its words
        return ""
