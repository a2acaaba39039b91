"""What Python is told to write, in the words of the shell: the library speaks Python, the commands translate."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.core.errors import WorkbenchError

_PYTHON = r"Study\(.*?\)\.\w+\([^)]*\)"  # said to whoever is sent to Python
_SHELL: dict[str, str | Callable[[re.Match[str]], str]] = {
    r"\b(?:start|run)\(resume=True\)|\bresume=True": "--resume",
    r"\bfail_fast=False": "--no-fail-fast",
    r"\bresults\(\)\.write_schedule\(…\) and Replay": "workbench schedule, and a trainable of kind replay",
    r"\bcolumns=\{'(\w+)': …\}": r"--column \1=NAME",
    r"\bonly=\{'(\w+)': …\}": r"--only \1=VALUE",
    r"from Python, after import (\S+)": lambda found: f"with --import {shlex.quote(found[1])}",
    r"""\b(db|name|trainable|checkpoints)=(?:'([^']*)'|"([^"]*)"|…)""": lambda found: (
        f"--{found[1]} {shlex.quote(found[2] or found[3]) if found[2] or found[3] else '…'}"
    ),
}


def told(err: "WorkbenchError") -> str:
    """Tell an error in the shell's words; what it quotes of an exception that is not ours keeps its own."""
    return in_shell(str(err), *_quoted(err))


def _quoted(err: "WorkbenchError") -> Iterator[str]:
    """Give, in all forms in which errors quote it, the text of the exceptions that one was made of."""
    from workbench.core.errors import FirstTrialsFailed, WorkbenchError, first_line, plain, words_of

    if isinstance(err, FirstTrialsFailed):
        yield plain(err.cause)
    within = err.__context__
    while within is not None:
        if not isinstance(within, WorkbenchError):
            said = words_of(within)
            yield from map(plain, (said, first_line(within), " ".join(said.split())))
        within = within.__context__


def in_shell(text: str, *quoted: str) -> str:
    """Put a message of the library into the shell's words; what it quotes of somebody else's stays as it is.

    >>> in_shell("study 'a' exists: resume it with start(resume=True), or run it with db='b.db'")
    "study 'a' exists: resume it with --resume, or run it with --db b.db"
    >>> in_shell("ValueError: bad name='adam'; go on with fail_fast=False", "bad name='adam'")
    "ValueError: bad name='adam'; go on with --no-fail-fast"
    """
    longest_first = sorted(filter(None, quoted), key=len, reverse=True)
    as_it_is = "|".join([*map(re.escape, longest_first), _PYTHON])
    said, at = "", 0
    for kept in [*re.finditer(as_it_is, text), None]:
        part = text[at : kept.start() if kept else len(text)]
        for python, shell in _SHELL.items():
            part = re.sub(python, shell, part)
        said, at = said + part + (kept[0] if kept else ""), kept.end() if kept else 0
    return said


def typed_again(argv: Sequence[str], *more: str) -> str:
    """Write a command as it was typed, with more options before its own.

    >>> typed_again(["run", "my study.toml", "--db", "kb.db"], "--resume")
    "workbench run --resume 'my study.toml' --db kb.db"
    """
    return shlex.join(["workbench", argv[0], *more, *argv[1:]])


def resume_command(name: str, spec: Mapping[str, Any], where: Mapping[str, Any]) -> str:
    """Write the command that resumes a study; options that are ``None`` are left out.

    Code of one's own that it trains with is named, for a knowledge base alone does not import it. A study with other
    code of one's own goes on with its file.

    Parameters
    ----------
    where : Mapping
        Options that say where it is.
    """
    from workbench.core.imports import code_named
    from workbench.core.record import is_made_by_name, own_classes

    trainable = spec["trainable"]
    if not is_made_by_name(spec):
        return " ".join(["workbench run --resume", *_given({"--name": name, **where}), "FILE"])
    own = {"--trainable": own_classes(trainable), "--import": [*dict.fromkeys(code_named(trainable, ()))]}
    return " ".join(["workbench run --resume", *_given({"--name": name, **own, **where})])


def study_command(command: str, name: str, options: Mapping[str, Any]) -> str:
    """Write a command on one study, such as ``show``; options that are ``None`` are left out."""
    last = [*(["--"] if name.startswith("-") else []), shlex.quote(name)]
    return " ".join([f"workbench {command}", *_given(options), *last])


def _given(options: Mapping[str, Any]) -> list[str]:
    """Write options with their values, or several each; one that begins as options do would be taken for an option."""
    several = {option: value if isinstance(value, list) else [value] for option, value in options.items()}
    values = [(option, str(value)) for option, each in several.items() for value in each if value is not None]
    return [f"{option}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}" for option, value in values]
