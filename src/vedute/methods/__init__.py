"""One file per method. The folder is the registry."""

from __future__ import annotations

from dataclasses import fields
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from vedute.estimators import saving
from vedute.estimators.base import Estimator
from vedute.estimators.settings import before, declared
from vedute.methods._best_pair import BestPair

PAIRS = ("pairs", "_best_pair")  # what BestPair is called in a saved model, then and now


class UnknownSettingError(ValueError):
    """A setting of a saved model that this version does not have."""


def available() -> list[str]:
    return sorted(m.name for m in iter_modules(__path__) if not (m.ispkg or m.name.startswith("_")))


def find(name: str) -> type[Estimator]:
    """The estimator class defined in methods/<name>.py."""
    if name not in available():
        close = get_close_matches(name, available(), 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise KeyError(f"no method {name!r}; choose from {', '.join(available())}{hint}")
    module = import_module(f"{__name__}.{name}")
    classes = [c for c in vars(module).values() if isinstance(c, type)]
    (cls,) = (c for c in classes if issubclass(c, Estimator) and c.__module__ == module.__name__)
    return cls


def written(name: str) -> str:
    """What its author wrote about a method."""
    text: str = vars(find(name))["__doc__"].text
    return text.partition("\n\nExamples\n")[0]


def summary(name: str) -> str:
    """What a method is, on one line."""
    return " ".join(written(name).partition("\n\n")[0].split())


def facts(name: str) -> dict[str, str]:
    """What to know of a method before choosing it."""
    cls = find(name)
    paper, _, year = cls.paper.rpartition(" ")
    abilities = {"imputes": cls.generative, "generates": cls.generates}
    return {
        "method": name,
        "paper": paper,
        "year": year,
        "views": "two; more by pairs" if cls.two_views else "any number",
        "missing views": cls.absent,
        "generative": ", ".join(k for k, able in abilities.items() if able) or "no",
        "unseen rows": cls.unseen,
        "clusters": "its own" if cls.soft else "k-means",
    }


def settings(name: str) -> list[dict[str, str]]:
    """The settings of a method as a table: name, default, meaning, range."""
    return [
        {
            "setting": f.name,
            "default": repr(f.default),
            "meaning": known.meaning,
            "range": known.limits(),
        }
        for f, known in zip(fields(find(name)), declared(find(name)).values(), strict=True)
    ]


def load(folder: str | Path) -> Estimator:
    """The estimator that was saved in `folder`."""
    saved = saving.read(folder)
    try:
        model = _made(saved.method, saved.params, folder)
        model._check_settings()
        model.restore(saved.learned).try_out()
        return model
    except UnknownSettingError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as e:
        raise ValueError(f"the saved model in {folder} is damaged ({e}); save it again") from None


def _made(method: str, params: dict[str, Any], folder: str | Path) -> Estimator:
    """An estimator with these settings, of which one may be an estimator, too."""
    cls = BestPair if method in PAIRS else find(method)
    strange = params.keys() - {f.name for f in fields(cls)}
    if strange:
        raise UnknownSettingError(
            f"{folder} has the setting {min(strange)!r}, unknown to this vedute; "
            "use the version that saved it"
        )
    if cls is BestPair:
        params = params | {"method": _made(**params["method"], folder=folder)}
    return cls(**before(cls) | params)
