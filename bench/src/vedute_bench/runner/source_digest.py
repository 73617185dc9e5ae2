"""Which code a result comes from, in sixteen hex digits. Comments, docstrings and layout do not
count, nor does the release of Python."""

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
ROOMS = ("data", "metrics", "nn", "training", "estimators", "methods")  # what learning depends on
DEFINED = (ast.Module, ast.ClassDef, ast.FunctionDef)


@cache
def of_method(name: str) -> str:
    """Of a method's file and all that it imports; a method named in it counts as imported."""
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
    """Of a file without the functions `others`, its own excepted."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    apart = set(others) - {function}
    tree.body = [s for s in tree.body if getattr(s, "name", None) not in apart]
    return _short(dump(tree))


def dump(node: Any) -> str:
    """A syntax tree as text: types and fields, without docstrings and empty fields."""
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
    """The text of an f-string in as few pieces as there are."""
    found: list[Any] = [""]
    for piece in pieces:
        if isinstance(piece, ast.Constant):
            found[-1] += piece.value
        else:
            found += [piece, ""]
    return found


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_file(module).read_text(encoding="utf-8"))


def _file(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _needed(module: str) -> list[str]:
    """The modules of these rooms that a module imports, wherever it does."""
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
