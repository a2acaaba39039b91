"""The code an object runs, as a short mark: two marks differ if what the code does may differ."""

import ast
import hashlib
import inspect
import linecache
import sys
import textwrap
import threading
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial
from typing import Any

from workbench.core.failures import is_not_the_users
from workbench.core.space import Space

_DIGITS = 12
_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_HOLD_DEFINITIONS = (ast.stmt, ast.excepthandler, ast.match_case)
_PARSING = threading.Lock()  # where two threads parse at once Python 3.11's parser may fail, with a SystemError


def source_mark(thing: Any) -> str | None:
    """Mark the code of an object: of its class, of what that names beside it, and of the objects among its settings.

    Comments, docstrings and layout do not count. What is named counts if it stands in the same module, or in another of
    the same package. Functions and classes among the settings, such as a space's constraint, count if they are the
    user's own; so do those in its `named_code`, if it has that, which settings stand for, as an environment's id does.

    Returns
    -------
    str or None
        The first hexadecimal digits of a SHA-256. What has no source to be had, such as a class typed at a prompt, is
        left out; ``None`` where that is all.
    """
    waiting, sources = list(_roots(thing)), dict[int, tuple[str, str]]()
    modules: dict[str, ast.Module | None] = {}
    while waiting:
        one = waiting.pop()
        if id(one) not in sources:
            tree = _tree(one, modules)
            source, names = ("", frozenset[str]()) if tree is None else _text_and_names(tree)
            sources[id(one)] = (f"{one.__module__}:{one.__qualname__}", source)  # which all lambdas of a module share
            waiting += _named_beside(one, names)
    text = "\n".join(source for _, source in sorted({*sources.values()}) if source)
    return None if not text else hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _roots(thing: Any) -> Iterator[Any]:
    thing = inspect.unwrap(thing)
    while isinstance(thing, partial):
        yield from filter(_is_the_users, _among([*thing.args, *thing.keywords.values()]))
        thing = thing.func
    thing = getattr(thing, "__func__", thing)
    yield thing if inspect.isclass(thing) or inspect.isfunction(thing) else type(thing)
    if is_dataclass(thing) and not isinstance(thing, type):
        yield from filter(_is_the_users, _among(getattr(thing, "named_code", None)))
        for inner in (getattr(thing, setting.name, None) for setting in fields(thing) if setting.init):
            of_settings = is_dataclass(inner) and not isinstance(inner, type)
            yield from _roots(inner) if of_settings else filter(_is_the_users, _among(inner))


def _among(setting: Any) -> Iterator[Any]:
    """Give the code in a setting: a function, class or object, also in a list or a dict, or a space's constraint."""
    if isinstance(setting, Space):
        setting = [setting.constraint]
    if isinstance(setting, Mapping):
        setting = [*setting.values()]
    if isinstance(setting, (list, tuple)):
        for item in setting:
            yield from _among(item)
    elif not isinstance(setting, (bool, int, float, str, type(None))):
        yield from _roots(setting)


def _is_the_users(code: Any) -> bool:
    return not is_not_the_users(getattr(sys.modules.get(code.__module__), "__file__", None) or "")


def _tree(one: Any, modules: dict[str, ast.Module | None]) -> ast.AST | None:
    """Parse the definition of a class or function; `modules` keeps what has been parsed, by name."""
    if one.__name__ == "<lambda>":
        return _of_its_line(one)
    if one.__module__ not in modules:
        modules[one.__module__] = _parsed(sys.modules.get(one.__module__))
    whole = modules[one.__module__]
    if whole is None:  # a notebook's cells are no module's file
        return _in_its_cell(one) if inspect.isclass(one) else _parsed(one)
    return _within(whole, one)


def _of_its_line(one: Any) -> ast.AST | None:
    """Find a lambda in its file or cell: those that begin in its line, for it has no name to tell it by."""
    whole, line = _parsed("".join(linecache.getlines(one.__code__.co_filename))), one.__code__.co_firstlineno
    nodes = [] if whole is None else ast.walk(whole)
    found: list[ast.expr] = [node for node in nodes if isinstance(node, ast.Lambda) and node.lineno == line]
    return ast.Tuple(found, ast.Load()) if found else None


def _within(whole: ast.AST | None, one: Any) -> ast.AST | None:
    """Find the definition of a class or function in code that has it, the last one of its name."""
    for name in one.__qualname__.split("."):
        if name != "<locals>" and whole is not None:
            whole = next((node for node in reversed([*_defined_in(whole)]) if node.name == name), None)
    return whole


def _defined_in(scope: ast.AST) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Give the classes and functions of a scope, those under an ``if`` among them, those of scopes within it not."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, _DEFINITIONS):
            yield node
        elif isinstance(node, _HOLD_DEFINITIONS):
            yield from _defined_in(node)


def _in_its_cell(cls: type) -> ast.AST | None:
    """Find the definition of a class in the cell that any of its methods came from; a class itself tells of none."""
    for attribute in vars(cls).values():
        method = inspect.unwrap(getattr(attribute, "__func__", getattr(attribute, "fget", attribute)))
        if inspect.isfunction(method) and method.__qualname__.startswith(f"{cls.__qualname__}."):
            cell = "".join(linecache.getlines(method.__code__.co_filename))
            if found := _within(_parsed(cell), cls):
                return found
    return None


def _parsed(one: Any) -> ast.Module | None:
    """Parse a module, a function or the text of a cell; ``None`` where it has no source."""
    try:
        return _without_docstrings(textwrap.dedent(one if isinstance(one, str) else inspect.getsource(one)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None


@lru_cache(maxsize=100)
def _without_docstrings(source: str) -> ast.Module:
    """Parse code, which studies of a process mostly share, but for docstrings; the tree is nobody's to change."""
    with _PARSING:
        tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS) and ast.get_docstring(node, False):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


@lru_cache(maxsize=1000)
def _text_and_names(tree: ast.AST) -> tuple[str, frozenset[str]]:
    return ast.unparse(tree), frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _named_beside(one: Any, names: frozenset[str]) -> Iterator[Any]:
    """Give the classes and functions that the code names, of its own module or another of the same package."""
    here = one.__module__
    package, known = here.rpartition(".")[0], getattr(sys.modules.get(here), "__dict__", {})
    for name in names:
        thing = known.get(name)
        thing = getattr(thing, "__dict__", {}).get("__wrapped__", thing)  # what functools.cache makes is no function
        if inspect.isclass(thing) or inspect.isfunction(thing):
            where = thing.__module__
            if where == here or (package and where.rpartition(".")[0] == package):
                yield thing
