"""Errors a user can meet. Each is one readable line: what was asked, what came, what is allowed, what to do."""

import difflib
import errno
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Numbers of the errors of a disk, or of a share of it, that is full."""

_MAY_PASS = frozenset({errno.EROFS, errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTDOWN})


def plain(text: str) -> str:
    """Give text that a terminal shows as it is: one line, control and formatting characters escaped.

    >>> plain("two\\nlines, \\x1b[31mred")
    'two lines, \\\\x1b[31mred'
    """
    line = " ".join(text.splitlines())
    return line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


class WorkbenchError(Exception):
    """Base of every error this package raises on purpose."""

    def __str__(self) -> str:
        return plain(super().__str__())  # whatever the input that it quotes


class InvalidInput(WorkbenchError, ValueError):
    """A setting, a study file, a table or a command line that cannot be carried out."""


class StudyError(WorkbenchError):
    """A study cannot start, go on or be read: it exists already, is driven elsewhere, or is not there."""


class FirstTrialsFailed(StudyError):
    """A study has stopped by itself: its first trials all failed of the same error, or the first to come so far ended.

    Attributes
    ----------
    cause : str
        What they failed of, in the words of whatever raised it.
    """

    def __init__(self, said: str, cause: str = "") -> None:
        super().__init__(said)
        self.cause = cause


class EndedTooSoon(InvalidInput):
    """What is trained has ended, and another phase was due."""


class DatabaseError(WorkbenchError):
    """The knowledge base cannot be opened: corrupt, foreign, or of another version."""


class CheckpointError(WorkbenchError):
    """A checkpoint is missing, truncated, foreign or empty: the trial goes on from an older one, or runs again."""


class NoState(CheckpointError):
    """What is trained saves nothing that it, or another, could go on from."""


class SchedulerError(WorkbenchError):
    """A scheduler broke its contract: a deadlock, a verdict for an unknown trial, a replay that differs."""


class PlaceAway(OSError):
    """A disk or a network file system fails by itself: it may come back, and nobody's code can be corrected for it."""


class PeerLost(Exception):
    """A process of a trial has lost another one of the same trial: the cause lies there, not here."""


def words_of(err: BaseException) -> str:
    """Give what an exception says, or that it cannot be shown: its words are anybody's code."""
    try:
        return str(err)
    except Exception as unshown:  # noqa: BLE001
        return f"it cannot be shown, {type(unshown).__name__}"


def first_line(err: BaseException) -> str:
    """Give the first line of what an error says, or its kind where it says nothing.

    >>> first_line(ValueError("bad file\\nat byte 3")), first_line(EOFError())
    ('bad file', 'EOFError')
    """
    said = words_of(err).strip()
    return said.splitlines()[0] if said else type(err).__name__


@contextmanager
def may_pass() -> Iterator[None]:
    """Raise `PlaceAway` for errors that come of the disk or the network alone; not for code of a user's."""
    try:
        yield
    except OSError as err:
        if err.errno in _MAY_PASS:
            raise PlaceAway(err.errno, err.strerror, err.filename) from err
        raise


@contextmanager
def file_errors(what: str) -> Iterator[None]:
    """Tell in one line, beginning with `what`, of a file that cannot be read or written.

    A hidden ``.part``, which takes the place of the file asked for once it is whole, is not named.
    """
    try:
        yield
    except OSError as err:
        where = f" at {err.filename}" if err.filename and not str(err.filename).endswith(".part") else ""
        do = ": make space" if err.errno in DISK_FULL else ""
        raise InvalidInput(f"{what}: {err.strerror or err}{where}{do}") from None


def refuse_unknown(what: str, given: Iterable[str], allowed: Collection[str], most: int = 8) -> None:
    """Raise the error of `unknown` for the first of the names given that is not allowed."""
    for name in given:
        if name not in allowed:
            raise unknown(what, name, allowed, most)


def unknown(what: str, got: object, allowed: Iterable[str], most: int = 8) -> InvalidInput:
    """Make the error for a name that is not one of `allowed`, naming near matches first and at most so many in all.

    >>> str(unknown("game", "pogn", ["pong", "boxing"]))
    "unknown game 'pogn': did you mean 'pong'? (known: boxing, pong)"
    """
    names = sorted(set(allowed))
    folded = {name.lower(): name for name in names}
    near = [repr(folded[m]) for m in difflib.get_close_matches(str(got).lower(), folded, n=3, cutoff=0.5)]
    listed = ", ".join(names[:most])
    known = f"{len(names)} known, among them {listed}, …" if len(names) > most else f"known: {listed or 'none'}"
    rest = f": did you mean {' or '.join(near)}? ({known})" if near else f"; {known}"
    return InvalidInput(f"unknown {what} {got!r}{rest}")
