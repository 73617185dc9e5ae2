"""One file per method. The folder is the registry."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from vedute import saving
from vedute.estimator import Estimator


def available() -> list[str]:
    return sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))


def find(name: str) -> type[Estimator]:
    """The estimator class defined in methods/<name>.py."""
    if name not in available():
        raise KeyError(f"no method {name!r}; choose from {', '.join(available())}")
    module = import_module(f"{__name__}.{name}")
    (cls,) = (
        c
        for c in vars(module).values()
        if isinstance(c, type) and issubclass(c, Estimator) and c.__module__ == module.__name__
    )
    return cls


def load(folder: str | Path) -> Estimator:
    """The estimator that was saved in `folder`."""
    saved = saving.read(folder)
    known = find(saved.method)().get_params()
    strange = [k for k in saved.params if k not in known]
    if strange:
        raise ValueError(
            f"{folder} has the setting {strange[0]!r}, unknown to this vedute; "
            "use the version that saved it"
        )
    return find(saved.method)(**saved.params).restore(saved.learned)
