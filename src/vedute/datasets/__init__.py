"""One file per dataset, each with a `load() -> Views`. The folder is the registry, which modules of
other distributions join by entry points of the group `vedute.datasets`."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from vedute.data import plugins
from vedute.data.views import Views
from vedute.datasets import _files

GROUP = "vedute.datasets"  # of the entry points of other distributions


def of_this_package() -> list[str]:
    return sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))


def available() -> list[str]:
    """Names of datasets, those of other distributions last."""
    return plugins.names(GROUP, of_this_package())


def find(name: str) -> Any:
    """The module datasets/<name>.py, or the one that is an entry point of this name."""
    if name in of_this_package():
        return import_module(f"{__name__}.{name}")
    return plugins.imported(plugins.registered(GROUP)[name])


def has(source: str) -> bool:
    """Whether `source` names a dataset, and not an existing file."""
    return not Path(source).is_file() and source in available()


def load(name: str, split: str | None = None) -> Views:
    """The complete dataset with its labels; hide views with `missing.drop_views`.

    name: one of `available()`, or of a file <name>.npz in the folder VEDUTE_DATA with view0,
    view1, ..., their view_names, and y. split: "train" or "test", if the dataset has such parts.
    """
    if name not in available():
        stored = None if split is not None else _files.from_folder(name)
        if stored is None:
            raise KeyError(f"no dataset {name!r}; choose from {', '.join(available())}")
        return stored
    loader = find(name).load
    if split is not None and "split" not in signature(loader).parameters:
        raise ValueError(f"{name} has no parts to train and to test; load it whole")
    data: Views = loader() if split is None else loader(split=split)
    return data
