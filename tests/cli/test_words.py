"""The library speaks Python, the command line the shell."""

import ast
import re
import shlex
from argparse import Namespace
from pathlib import Path

import pytest

import workbench
from workbench.cli.main import _parser
from workbench.cli.words import _SHELL, in_shell, resume_command, study_command, told, typed_again
from workbench.core.errors import InvalidInput, WorkbenchError
from workbench.core.imports import imported

TOY = {"trainable": {"kind": "quadratic"}, "scheduler": {"kind": "full"}, "seed": 0}
LIBRARY = [p for p in Path(workbench.__file__).parent.rglob("*.py") if "cli" not in p.parts and "paper" not in p.parts]


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        (
            "resume it with start(resume=True), or choose another name",
            "resume it with --resume, or choose another name",
        ),
        ("start it without resume=True", "start it without --resume"),
        ("let it go on with fail_fast=False", "let it go on with --no-fail-fast"),
        (
            "train its schedule again, results().write_schedule(…) and Replay",
            "train its schedule again, workbench schedule, and a trainable of kind replay",
        ),
        ("run a study with db='a b/x.db'", "run a study with --db 'a b/x.db'"),
        ('resume it with checkpoints="/home/o\'brien/x"', """resume it with --checkpoints '/home/o'"'"'brien/x'"""),
        ("name it, trainable='my:train', or", "name it, --trainable my:train, or"),
        ("or pass name=…", "or pass --name …"),
        ("with its file, or from Python, after import my.own", "with its file, or with --import my.own"),
        ("map one with columns={'step': …}", "map one with --column step=NAME"),
        ("choose one with only={'env': …}", "choose one with --only env=VALUE"),
        (
            "from Python, Study('x', s, t, db=…).run(resume=True)",
            "from Python, Study('x', s, t, db=…).run(resume=True)",
        ),
    ],
)
def test_a_message_of_the_library_in_the_shell(python, shell) -> None:
    assert in_shell(python) == shell


@pytest.mark.parametrize("says", ["bad name='adam'", "two\\n  lines, resume=True", "from Python, after import this"])
def test_the_words_of_one_s_own_exceptions_are_not_translated(tmp_path, monkeypatch, says) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "raises.py").write_text(f'raise ValueError("{says}")')
    with pytest.raises(InvalidInput) as refused:
        imported("raises:train")
    assert told(refused.value) == str(refused.value)
    with pytest.raises(WorkbenchError) as ours:  # noqa: PT012
        try:
            raise InvalidInput("resume=True")
        except InvalidInput as err:
            raise WorkbenchError(f"it is refused: {err}") from None
    assert told(ours.value) == "it is refused: --resume"


MUTE = """
class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")

raise Mute
"""


@pytest.mark.parametrize(
    ("code", "says"),
    [("assert 1 == 2", "AssertionError"), (MUTE, "Mute: it cannot be shown, RuntimeError")],
)
def test_an_exception_of_one_s_own_without_words_is_told_all_the_same(tmp_path, monkeypatch, code, says) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "wordless.py").write_text(code)
    with pytest.raises(InvalidInput) as refused:
        imported("wordless:train")
    assert told(refused.value).startswith(f"wordless cannot be imported: {says} (")


@pytest.mark.parametrize("name", ["my study", "-x", "--db"])
def test_a_command_that_is_suggested_names_the_study_whatever_it_is_called(name) -> None:
    resume = resume_command(name, {"trainable": {"kind": "ga3c"}}, {"--db": "-k.db", "--checkpoints": None})
    confirm = study_command("confirm", name, {"--top": 3, "--nodes": None, "--db": "-k.db"})
    for command in (resume, confirm):
        parsed = _parser().parse_args(shlex.split(command)[1:])
        assert (parsed.name, parsed.db) == (name, "-k.db")


def test_a_command_that_is_suggested_names_modules_of_one_s_own_though_they_are_imported() -> None:
    spec = {"trainable": {"kind": "ga3c", "game": f"{__name__}:Mine-v0", "wrappers": ["-odd:Wrapper", "gymnasium:Env"]}}
    command = resume_command("mine", spec, {})
    assert getattr(_parser().parse_args(shlex.split(command)[1:]), "import") == [__name__, "-odd"]


@pytest.mark.parametrize(
    "parts",
    [
        {"scheduler": {"kind": "mine:Scheduler"}},
        {"scheduler": {"kind": "full", "searcher": {"space": {"constraint": {"kind": "mine:fits"}}}}},
        {"trainable": {"kind": "replay", "trainable": {"kind": "mine:train"}}},
        {"trainable": {"kind": "mine:train", "of": {"kind": "mine:Thing"}}},
    ],
)
def test_a_study_that_its_record_cannot_make_again_is_resumed_with_its_file(parts) -> None:
    command = resume_command("a b", TOY | parts, {"--db": "kb.db", "--nodes": None})
    assert command == "workbench run --resume --name 'a b' --db kb.db FILE"


@pytest.mark.parametrize(
    "typed",
    [
        ["run", "my study.toml", "--name", "x y", "--seed", "3", "--nodes=2", "--target-score=-1", "--no-fail-fast"],
        ["run", "--preset", "cartpole", "--import", "mine", "--import=-odd", "--cluster", "w.json", "--record", "r"],
        ["run", "--db=k.db", "--checkpoints", "it's there", "--weight", "2", "--", "-odd.toml"],
        ["run", "--name", "x", "--resume", "--trials", "9", "--trainable", "mine:train", "--max-h", "2"],
    ],
)
def test_what_was_typed_is_typed_again_to_resume(typed) -> None:
    first = _parser().parse_args(typed)
    command = typed_again(typed, *([] if first.resume else ["--resume"]))
    assert _parser().parse_args(shlex.split(command)[1:]) == Namespace(**vars(first) | {"resume": True})


def test_no_message_of_the_library_speaks_the_shell() -> None:
    """Options are for the command line; what starts processes of its own gives them options too."""
    option = re.compile(r"(?<![\\w-])--[a-z]")
    for path in LIBRARY:
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if option.search(text) else ():  # which few of them have
            if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith(("Input", "Error", "Unfinished")):
                assert not option.search(ast.unparse(node).replace("run --help", "")), f"{path}:{node.lineno}"


def test_every_phrase_that_is_translated_is_said_somewhere() -> None:
    said = "".join(path.read_text() for path in LIBRARY).replace("{{", "{").replace("}}", "}")
    said = re.sub(r"\{[^{}]*!r\}", "'x'", said)
    for python in _SHELL:
        assert re.search(python, said), python
