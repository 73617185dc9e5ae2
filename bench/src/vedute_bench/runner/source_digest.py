"""Checksum of the code behind a result, in sixteen hex digits.

It does not depend on comments, docstrings, layout or the release of Python.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import vedute
from vedute import methods

ROOT = Path(vedute.__file__).parents[1]
ROOMS = ("data", "metrics", "nn", "training", "estimators", "methods")  # what fits depend on
DEFINED = (ast.Module, ast.ClassDef, ast.FunctionDef)


@cache
def of_method(name: str) -> str:
    """Checksum of a method's module and all its imports, including methods it refers to by name."""
    todo, done = [methods.homes()[name]], set[str]()
    if methods.find(name).two_views:
        todo.append("vedute.methods.best_pair")
    while todo:
        module = todo.pop()
        if module not in done:
            done.add(module)
            todo += _needed(module)
    return _short("".join(dump(_tree(module)) for module in sorted(done)))


def of_function(function: str, file: Path, others: tuple[str, ...]) -> str:
    """Checksum of a function's file without the functions `others`."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    excluded = set(others) - {function}
    tree.body = [s for s in tree.body if getattr(s, "name", None) not in excluded]
    return _short(dump(tree))


def dump(node: Any) -> str:
    """Text of a syntax tree: types and fields, without docstrings and empty fields."""
    if isinstance(node, list):
        return f"[{','.join(map(dump, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = dict(ast.iter_fields(node))
    if isinstance(node, DEFINED) and ast.get_docstring(node, clean=False) is not None:
        parts["body"] = parts["body"][1:]
    if isinstance(node, ast.JoinedStr):  # releases cut its text into different pieces
        return f"JoinedStr({dump(_joined(node.values))})"
    inside = (f"{k}={dump(v)}" for k, v in parts.items() if v is not None and v != [])
    return f"{type(node).__name__}({','.join(inside)})"


def _joined(pieces: list[ast.expr]) -> list[Any]:
    """Pieces of an f-string with adjacent text joined."""
    joined: list[Any] = [""]
    for piece in pieces:
        if isinstance(piece, ast.Constant):
            joined[-1] += piece.value
        else:
            joined += [piece, ""]
    return joined


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_file(module).read_text(encoding="utf-8"))


def _file(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _needed(module: str) -> list[str]:
    """Modules in `ROOMS` that a module imports, at its top or in functions."""
    return [m for m in _named(module) if m.split(".")[1:2] and m.split(".")[1] in ROOMS]


def _named(module: str) -> Iterator[str]:
    homes = methods.homes()
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("vedute."))
        elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "vedute":
            base = str(node.module)
            inner = [f"{base}.{a.name}" for a in node.names]
            yield from (name if _file(name).is_file() else base for name in inner)
        elif module in homes.values() and isinstance(node, ast.Constant) and node.value in homes:
            yield homes[str(node.value)]


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
