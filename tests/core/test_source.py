"""The mark of the code: it follows what the code does, not how it is told."""

import sys

from workbench.core.source import source_mark

_CODE = """
from dataclasses import dataclass
{extra}
def rate(x):
    return {rate}
@dataclass(frozen=True)
class Factory:
    {doc}
    size: int = 1
    def __call__(self, config, seed):
        return Trial(config){comment}
class Trial:
    def __init__(self, config):
        self.rate = rate(config)
"""


def mark_of_module(folder, monkeypatch, **parts) -> str | None:
    told = {"extra": "", "rate": "1", "doc": "", "comment": "", **parts}
    (folder / "train_once.py").write_text(_CODE.format(**told))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "train_once", raising=False)
    import linecache

    linecache.clearcache()
    sys.dont_write_bytecode = True
    import train_once

    return source_mark(train_once.Factory())


def test_the_mark_follows_what_the_code_does_and_not_how_it_is_told(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def mark(**parts) -> str | None:
        return mark_of_module(tmp_path, monkeypatch, **parts)

    one = mark()
    assert one is not None
    assert mark(doc='"""Told."""', comment="  # why") == one
    assert mark(extra="def unused():\n    return 7") == one
    assert mark(rate="2") != one  # two steps away: the factory names the trial, the trial the rate


def test_what_has_no_source_has_no_mark() -> None:
    assert source_mark(int) is None
    assert source_mark(eval("lambda config, seed: None")) is None
    made: dict[str, type] = {}
    exec("class Typed: pass", made)
    assert source_mark(made["Typed"]()) is None
