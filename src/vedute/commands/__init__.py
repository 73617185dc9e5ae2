"""One file per command: `run`, whose docstring is its help, and an EXAMPLE. The folder is the
registry. Files are imported for --help, so large libraries are imported inside `run`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

ORDER = (
    *("demo", "inspect", "fit", "embed", "cluster", "impute", "generate", "report"),
    *("compare", "tune", "ampute", "convert", "bench", "list"),
)


def available() -> list[str]:
    """Names of commands in the order of help; those it does not know come last."""
    names = sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))
    return sorted(names, key=lambda k: ORDER.index(k) if k in ORDER else len(ORDER))


def find(name: str) -> Any:
    """The module commands/<name>.py."""
    return import_module(f"{__name__}.{name}")
