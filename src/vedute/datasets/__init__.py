"""One file per dataset, each with a `load() -> Views`. The folder is the registry."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules

from vedute.data.views import Views


def available() -> list[str]:
    return sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))


def has(source: str) -> bool:
    """Whether `source` is the name of a dataset, and not a file that is called like one."""
    return not Path(source).is_file() and source in available()


def load(name: str, split: str | None = None) -> Views:
    """The complete dataset with its labels; hide views with `missing.drop_views`.

    split: "train" or "test", of the datasets that have such parts.
    """
    if name not in available():
        raise KeyError(f"no dataset {name!r}; choose from {', '.join(available())}")
    loader = import_module(f"{__name__}.{name}").load
    if split is not None and "split" not in signature(loader).parameters:
        raise ValueError(f"{name} has no parts to train and to test; load it whole")
    data: Views = loader() if split is None else loader(split=split)
    return data
