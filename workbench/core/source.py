"""The code an object runs, as a short mark: two marks differ if what the code does may differ."""

import ast
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

_DIGITS = 12


def source_mark(thing: Any) -> str | None:
    """Mark the code of an object: of its class, of what that names beside it, and of the objects among its settings.

    Comments, docstrings and layout do not count. What is named counts if it stands in the same module, or in another of
    the same package.

    Returns
    -------
    str or None
        The first hexadecimal digits of a SHA-256; ``None`` where the source is not to be had, as of a class typed at a
        prompt.
    """
    waiting, sources = list(_roots(thing)), dict[str, str]()
    modules: dict[str, ast.Module | None] = {}
    while waiting:
        one = waiting.pop()
        key = f"{one.__module__}:{one.__qualname__}"
        if key not in sources:
            tree = _tree(one, modules)
            if tree is None:
                return None
            sources[key] = ast.unparse(_without_docstrings(tree))
            waiting += _named_beside(one, tree)
    text = "\n".join(sources[key] for key in sorted(sources))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _roots(thing: Any) -> Iterator[Any]:
    thing = inspect.unwrap(thing)
    while isinstance(thing, partial):
        thing = thing.func
    thing = getattr(thing, "__func__", thing)
    yield thing if inspect.isclass(thing) or inspect.isfunction(thing) else type(thing)
    if is_dataclass(thing) and not isinstance(thing, type):
        for setting in fields(thing):
            inner = getattr(thing, setting.name, None)
            if setting.init and is_dataclass(inner) and not isinstance(inner, type):
                yield from _roots(inner)


def _tree(one: Any, modules: dict[str, ast.Module | None]) -> ast.AST | None:
    """Parse the definition of a class or function; `modules` keeps what has been parsed, by name."""
    if one.__module__ not in modules:
        modules[one.__module__] = _parsed(sys.modules.get(one.__module__))
    whole = modules[one.__module__]
    if whole is None:  # a notebook's cells are no module's file
        return _parsed(one)
    node_of_name: ast.AST | None = whole
    for name in one.__qualname__.split("."):
        if name != "<locals>" and node_of_name is not None:
            node_of_name = next(
                (node for node in reversed([*ast.walk(node_of_name)]) if getattr(node, "name", None) == name), None
            )
    return node_of_name


def _parsed(one: Any) -> ast.Module | None:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(one)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None


def _without_docstrings(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node, False):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _named_beside(one: Any, tree: ast.AST) -> Iterator[Any]:
    """Give the classes and functions that the code names, of its own module or another of the same package."""
    here = one.__module__
    package, known = here.rpartition(".")[0], getattr(sys.modules.get(here), "__dict__", {})
    for node in ast.walk(tree):
        thing = known.get(node.id) if isinstance(node, ast.Name) else None
        if inspect.isclass(thing) or inspect.isfunction(thing):
            where = thing.__module__
            if where == here or (package and where.rpartition(".")[0] == package):
                yield thing
