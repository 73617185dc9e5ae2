"""Modules of a package that load on first use: `vedute.analysis.informs`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


def submodules(package: str) -> Callable[[str], ModuleType]:
    """Make the `__getattr__` of a package."""

    def load(name: str) -> ModuleType:
        if name.startswith("__") or find_spec(f"{package}.{name}") is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return load
