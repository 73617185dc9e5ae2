"""The registry of methods: one file each, plus entry points of other distributions.

mvp, blend   the methods to start with
best_pair    any two-view method, on the best two of many views
deep         methods with networks
fills        baselines without networks
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint
from inspect import getattr_static, getmembers, isclass
from itertools import product
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from vedute.data import plugins
from vedute.estimators import saving
from vedute.estimators.base import Estimator
from vedute.estimators.settings import Docstring, declared
from vedute.methods.best_pair import BestPair

GROUP = "vedute.methods"  # entry points of other distributions
PAIR = "best_pair"  # wraps a method, so it is not listed as one
ROOMS = ("", "deep", "fills")


class UnknownMethodError(KeyError):
    """A method that neither this package nor an installed distribution has."""


class UnknownModelError(ValueError):
    """A saved model that is intact but unreadable with what is installed."""


__getattr__ = plugins.submodules(__name__)


def homes() -> dict[str, str]:
    """The modules of this package's methods, by name."""
    modules = {}
    for folder, room in product(__path__, ROOMS):
        for module in iter_modules([str(Path(folder, room))]):
            if not (module.ispkg or module.name.startswith("_") or module.name == PAIR):
                modules[module.name] = ".".join(filter(None, (__name__, room, module.name)))
    return modules


def of_this_package() -> list[str]:
    """The names of this package's methods, sorted."""
    return sorted(homes())


def available() -> list[str]:
    """The names of all methods, those of other distributions last."""
    return plugins.names(GROUP, of_this_package())


def find(name: str) -> type[Estimator]:
    """Return the estimator class defined in <name>.py or registered as an entry point."""
    if home := homes().get(name):
        for _, cls in getmembers(import_module(home), isclass):
            if cls.__module__ == home and issubclass(cls, Estimator):
                return cls
    if name in plugins.registered(GROUP):
        return imported(plugins.registered(GROUP)[name])
    close = get_close_matches(name, available(), 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise UnknownMethodError(f"no method {name!r}; choose from {', '.join(available())}{hint}")


@cache
def baselines() -> dict[str, str]:
    """Display names of the simple baselines, by method; most recently published first."""
    classes = {name: find(name) for name in of_this_package()}
    names = [name for name, cls in classes.items() if cls.baseline]
    names.sort(key=lambda name: classes[name].paper.rpartition(" ")[2], reverse=True)
    return {name: classes[name].baseline for name in names}


def imported(entry: EntryPoint) -> type[Estimator]:
    """Import the estimator class of an entry point, `module:Class`."""
    cls = plugins.imported(entry)
    if not (isinstance(cls, type) and issubclass(cls, Estimator)):
        raise TypeError(f"{entry.value} is not an estimator; derive a class from Estimator")
    if not isinstance(getattr_static(cls, "__doc__"), Docstring):
        raise TypeError(f"{entry.value} lacks its decorator; write @estimator above the class")
    return cls


def written(name: str) -> list[str]:
    """The paragraphs of a method's docstring, a summary first, as its author wrote them."""
    text: str = getattr_static(find(name), "__doc__").text
    paragraphs = text.partition("\n\nExamples\n")[0].split("\n\n")
    return [" ".join(paragraph.split()) for paragraph in paragraphs]


def facts(name: str) -> dict[str, str]:
    """Key properties of a method, to choose by."""
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
    """A method's settings as a table: name, default, meaning, range."""
    cls = find(name)
    return [
        {"setting": f.name, "default": repr(f.default), "meaning": d.meaning, "range": d.limits()}
        for f, d in zip(fields(cls), declared(cls).values(), strict=True)
    ]


def load(folder: str | Path, cls: type[Estimator] | None = None) -> Estimator:
    """Load the estimator saved in `folder`.

    cls: the class that saved it; required if it is neither in this package nor an entry point of
    the group `vedute.methods`. A file never causes code to be imported.
    """
    saved = saving.read(folder)
    try:
        model = _create(saved.method, saved.params, folder, cls)
        model.check_settings()
        model.restore(saved.learned).learner.smoke_test()
        return model
    except UnknownModelError:
        raise
    except UnknownMethodError as e:  # an expert
        raise UnknownModelError(f"{folder} has an expert that is not installed: {e.args[0]}") from e
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as e:
        raise ValueError(f"the saved model in {folder} is damaged ({e}); save it again") from None


def _create(
    method: str, params: dict[str, Any], folder: str | Path, requested: type[Estimator] | None
) -> Estimator:
    """Create an estimator with these settings, one of which may be another estimator."""
    cls = BestPair if method == PAIR else _class_of(method, folder, requested)
    unknown = params.keys() - {f.name for f in fields(cls)}
    if unknown:
        raise UnknownModelError(
            f"{folder} has the setting {min(unknown)!r}, unknown to this vedute; "
            "use the version that saved it"
        )
    if cls is BestPair:
        inside = _create(**params["method"], folder=folder, requested=requested)
        params = params | {"method": inside}
    return cls(**params)


def _class_of(
    method: str, folder: str | Path, requested: type[Estimator] | None
) -> type[Estimator]:
    """The class that saved a model: the requested one, or a registered one."""
    if requested is not None:
        if not saving.is_name_of(requested, method):
            raise UnknownModelError(
                f"the model in {folder} was saved by {method}, not by {saving.name_of(requested)}; "
                "pass the class that saved it"
            )
        return requested
    if ":" not in method and method in available():
        return find(method)
    for name in plugins.registered(GROUP):
        with suppress(ImportError, TypeError):
            if saving.name_of(find(name)) == method:
                return find(name)
    raise UnknownModelError(
        f"the model in {folder} was saved by {method}, which is not installed; install the "
        "distribution that has it, or pass the class: vedute.load(folder, cls=...), on the command "
        "line --method MODULE:CLASS"
    )
