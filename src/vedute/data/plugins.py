"""What is imported on first use: modules of a package (`vedute.analysis.informs`), and methods,
datasets and commands of other distributions: entry points of the groups `vedute.methods`,
`vedute.datasets` and `vedute.commands`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def submodules(package: str) -> Callable[[str], ModuleType]:
    """Make the `__getattr__` of a package."""

    def load(name: str) -> ModuleType:
        if name.startswith("__") or find_spec(f"{package}.{name}") is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return load


@cache
def registered(group: str) -> dict[str, EntryPoint]:
    """Entry points of installed distributions, by name; nothing is imported."""
    return {entry.name: entry for entry in entry_points(group=group)}


def names(group: str, own: list[str]) -> list[str]:
    """Return our own names, and behind them those that other distributions add."""
    return own + sorted(registered(group).keys() - {*own})


def imported(entry: EntryPoint) -> Any:
    """Import the object at `module:name`."""
    try:
        return entry.load()
    except Exception as e:  # third-party code may raise anything
        home = "" if entry.dist is None else f" of the distribution {entry.dist.name}"
        problem = f"{entry.value}{home} cannot be imported ({type(e).__name__}: {e})"
        raise ImportError(f"{problem}; fix that module, or check the name") from e
