"""The mark of the code: it follows what the code does, not how it is told."""

import gc
import importlib
import linecache
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import ModuleType

import pytest

from tests.support import SPACE
from workbench.algos.search import FullRuns, ListSearcher, RandomSearcher
from workbench.core.source import _without_docstrings, source_mark

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


@pytest.mark.parametrize("way", ["functools.cache", "functools.lru_cache(maxsize=1)"])
def test_the_mark_follows_what_is_cached(tmp_path, monkeypatch, way) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def mark(rate) -> str | None:
        extra = f"import functools\n@{way}\ndef drawn(x):\n    return {rate}"
        return mark_of_module(tmp_path, monkeypatch, extra=extra, rate="drawn(x)")

    one = mark("1")
    assert mark("2") != one
    assert mark("1") == one


def test_of_several_definitions_of_a_name_the_mark_follows_the_one_in_use(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def mark(rate: str) -> str | None:
        method = "class Net:\n    def rate(self):\n        return 7\n"  # as a network has train()
        names = "    from math import log as rate\n    try:\n        pass\n    except OSError as rate:\n        pass\n"
        return mark_of_module(tmp_path, monkeypatch, rate=rate, extra=f"{method}def aside():\n{names}")

    assert mark("2") != mark("1")


def test_the_mark_follows_the_objects_among_the_settings() -> None:
    searchers = [RandomSearcher(SPACE, seed=0), RandomSearcher(SPACE, seed=1), ListSearcher([{"lr": 0.1}] * 2)]
    random, seeded, listed = (source_mark(FullRuns(searcher, 2, 1)) for searcher in searchers)
    assert random == seeded != listed


def test_the_mark_follows_other_files_of_the_package_and_none_beyond(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "train_package").mkdir()
    begun = (
        "from train_beyond import base\nfrom train_package.rates import rate\ndef train(config, seed):\n    return rate"
    )

    def mark(rate: int = 1, base: int = 1) -> str | None:
        for name in ("train_beyond", "train_package", "train_package.rates", "train_package.begun"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / "train_beyond.py").write_text(f"def base():\n    return {base}")
        (tmp_path / "train_package" / "rates.py").write_text(f"def rate():\n    return {rate}")
        (tmp_path / "train_package" / "begun.py").write_text(f"{begun}(), base()")
        linecache.clearcache()
        importlib.invalidate_caches()
        train = importlib.import_module("train_package.begun").train
        assert source_mark(partial(train, seed=0)) == source_mark(train)
        return source_mark(train)

    one = mark()
    assert one is not None
    assert mark(base=2) == one
    assert mark(rate=2) != one


def test_studies_that_begin_at_once_in_threads_are_marked_as_one_alone_is() -> None:
    scheduler = FullRuns(RandomSearcher(SPACE), 2, 1)
    alone = source_mark(scheduler)
    often, turn = gc.get_threshold(), sys.getswitchinterval()

    def anew(scheduler: FullRuns) -> str | None:
        _without_docstrings.cache_clear()
        return source_mark(scheduler)

    def look_on(*_: object) -> None:
        """Be Python that runs within the parser, as Dask's is at a collection: there another thread gets its turn."""

    gc.callbacks.append(look_on)
    try:
        gc.set_threshold(5, 10**6, 10**6)
        sys.setswitchinterval(1e-6)
        with ThreadPoolExecutor(4) as pool:
            assert {*pool.map(anew, [scheduler] * 40)} == {alone}
    finally:
        gc.callbacks.remove(look_on)
        gc.set_threshold(*often)
        sys.setswitchinterval(turn)


def test_what_has_no_source_has_no_mark() -> None:
    assert source_mark(int) is None
    assert source_mark(eval("lambda config, seed: None")) is None
    made: dict[str, type] = {}
    exec("class Typed: pass", made)
    assert source_mark(made["Typed"]()) is None


def mark_in_cells(monkeypatch, *cells: str, of: str = "train") -> str | None:
    """Run cells as a notebook does: in a module without a file, each with its lines where tracebacks look for them."""
    notebook = ModuleType("notebook_once")
    monkeypatch.setitem(sys.modules, "notebook_once", notebook)
    for n, cell in enumerate(cells):
        name = f"<cell {n}>"
        monkeypatch.setitem(linecache.cache, name, (len(cell), None, cell.splitlines(keepends=True), name))
        exec(compile(cell, name, "exec"), notebook.__dict__)
    return source_mark(getattr(notebook, of))


def test_in_a_notebook_the_mark_follows_classes_and_what_names_them(monkeypatch) -> None:
    net = "class Net:\n    def __init__(self, rate):\n        self.rate = {} * rate\n"
    train = "def train(config):\n    yield Net({}).rate\n"
    marks = [mark_in_cells(monkeypatch, net.format(n), train.format(m)) for n, m in ((1, 1), (2, 1), (1, 2))]
    assert None not in marks
    assert len({*marks}) == 3
    told = net.format(1).replace("class", "x = 3\n\n\nclass")
    assert mark_in_cells(monkeypatch, told, train.format(1)) == marks[0]
    assert mark_in_cells(monkeypatch, net.format(1), of="Net") != mark_in_cells(monkeypatch, net.format(2), of="Net")


_SEARCH = """
from functools import partial
from workbench import FullRuns, RandomSearcher, Space, Uniform
def fits(config):
    return config["x"] < {0}
class Mine:
    def suggest(self, trial):
        return {{"x": {0}}}
    def observe(self, report): ...
def made(config, seed, build, sizes=()):
    return build(config, seed)
def search(constraint):
    return FullRuns(RandomSearcher(Space({{"x": Uniform(0, 1)}}, constraint=constraint)), 2, 1)
thing = {1}
"""


@pytest.mark.parametrize(
    "thing",
    [
        "search(fits)",
        "search(lambda config: config['x'] < {0})",
        "search(partial(fits))",
        "FullRuns(Mine(), 2, 1)",
        "partial(made, build=Mine)",
        "partial(made, sizes=[{{'by': fits}}])",
        "partial(made, Mine)",
        "lambda config, seed: made(config, {0})",
    ],
)
def test_the_mark_follows_one_s_own_code_among_the_settings_and_lambdas(monkeypatch, thing) -> None:
    cell = _SEARCH.replace("{1}", thing)
    marks = [mark_in_cells(monkeypatch, cell.format(n), of="thing") for n in (1, 2)]
    assert None not in marks
    assert marks[0] != marks[1]
    assert mark_in_cells(monkeypatch, f"\n\n{cell}".format(1), of="thing") == marks[0]


def test_the_mark_follows_a_lambda_of_a_file(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))

    def mark(value: int, above: str = "") -> str | None:
        (tmp_path / "train_lambda.py").write_text(f"{above}other = lambda: 7\nmake = lambda config, seed: {value}\n")
        monkeypatch.delitem(sys.modules, "train_lambda", raising=False)
        linecache.clearcache()
        importlib.invalidate_caches()
        return source_mark(importlib.import_module("train_lambda").make)

    one = mark(1)
    assert one is not None
    assert mark(1, above="# said\n\n") == one
    assert mark(2) != one


def test_what_is_installed_among_the_settings_is_no_part_of_the_mark() -> None:
    plain, net = partial(mark_in_cells), partial(mark_in_cells, of=pytest.Item, cells=[ThreadPoolExecutor, len, 3])
    assert source_mark(net) == source_mark(plain)


def test_what_has_no_source_is_left_out_of_the_mark_of_what_names_it(monkeypatch) -> None:
    data = "class Data:\n    size = 3\n"  # no method tells where it stands
    train = "def train(config):\n    yield {} * Data.size\n"
    marks = [mark_in_cells(monkeypatch, data, train.format(n)) for n in (1, 2)]
    assert None not in marks
    assert marks[0] != marks[1]
    assert mark_in_cells(monkeypatch, data, of="Data") is None
