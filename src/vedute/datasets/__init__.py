"""One file per dataset, each with a `load() -> Views`. The folder is the registry."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from vedute.views import Views


def available() -> list[str]:
    return sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))


def load(name: str) -> Views:
    """The complete dataset with its labels; hide views with `missing.drop_views`."""
    if name not in available():
        raise KeyError(f"no dataset {name!r}; choose from {', '.join(available())}")
    data: Views = import_module(f"{__name__}.{name}").load()
    return data
