"""One file per command: `run`, whose docstring is its help, and an EXAMPLE. The folder is the
registry, which modules of other distributions join by entry points of the group
`vedute.commands`. Files are imported for --help, so large libraries are imported inside `run`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from vedute.data import plugins

GROUP = "vedute.commands"  # of the entry points of other distributions
ORDER = (
    *("demo", "inspect", "fit", "embed", "cluster", "impute", "generate", "report"),
    *("compare", "tune", "ampute", "convert", "list"),
)


def of_this_package() -> list[str]:
    """Names of the commands in this folder, in the order of help; new ones come last."""
    names = sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))
    return sorted(names, key=lambda k: ORDER.index(k) if k in ORDER else len(ORDER))


def available() -> list[str]:
    """Names of commands in the order of help, those of other distributions last."""
    return plugins.names(GROUP, of_this_package())


def find(name: str) -> Any:
    """The module commands/<name>.py, or the one that is an entry point of this name."""
    if name in of_this_package():
        return import_module(f"{__name__}.{name}")
    return plugins.imported(plugins.registered(GROUP)[name])
