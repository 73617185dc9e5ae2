"""Settings are declared once, beside their field: default, meaning, range or choices.

    latent_dim: int = setting(32, "Numbers in a representation.", at_least=1)

`fit`, the command line, `help`, the docs and tuning read the declaration.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from inspect import cleandoc, isabstract
from math import isfinite
from numbers import Integral, Real
from operator import ge, gt, le, lt
from textwrap import fill, indent
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, dataclass_transform, get_args, get_origin

import numpy as np
from numpy.random import Generator

KEY = "setting"  # in the metadata of a field
UNSAVED = ("callbacks",)
LOOSE = ("device", "verbose", "checkpoint", "checkpoint_minutes", *UNSAVED)  # may change after fit
BOUNDS = {"at_least": ge, "above": gt, "at_most": le, "below": lt}
SINGULAR: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a word",
    bool: "True or False",
    NoneType: "None",
    ModuleType: "numpy.random",
    Callable: "a function",
}
DOCTEST = """
>>> import numpy as np
>>> from vedute import {name}
>>> X = list(np.random.default_rng(0).normal(size=(2, 60, 5)))
>>> X[1][:20] = np.nan  # the second view of 20 samples is missing
>>> model = {name}(n_clusters=3, random_state=0).fit(X)
>>> model.{use}.shape
{size}
"""
T = TypeVar("T")
# The types of the attributes of a class.
hints: Callable[[Any], dict[str, Any]] = cache(typing.get_type_hints)


class Choice(NamedTuple):
    """A search space of `vedute tune`: a choice of one of these ordered values."""

    values: tuple[Any, ...]
    factor: None = None

    def draw(self, rng: Generator) -> Any:
        return self.values[int(rng.integers(len(self.values)))]

    def suggest(self, trial: Any, name: str) -> Any:
        return self.values[trial.suggest_int(name, 0, len(self.values) - 1)]

    def has(self, value: Any) -> bool:
        return value in self.values

    def place(self, value: Any) -> int:
        return self.values.index(value)


class Range(NamedTuple):
    """A search space of numbers from low to high. `factor`: a name; the defaults of all settings
    with the same name are multiplied by the same number."""

    low: float
    high: float
    log: bool = False
    factor: str | None = None

    def draw(self, rng: Generator) -> float:
        ends = np.log([self.low, self.high]) if self.log else [self.low, self.high]
        value = float(rng.uniform(*ends))
        return rounded(np.exp(value) if self.log else value)

    def suggest(self, trial: Any, name: str) -> float:
        return rounded(trial.suggest_float(name, self.low, self.high, log=self.log))

    def has(self, value: float | None) -> bool:
        return value is not None and self.low <= value <= self.high

    def place(self, value: float) -> float:
        return value


def rounded(x: float) -> float:
    """Round to two digits."""
    return float(f"{x:.2g}")


@dataclass(frozen=True)
class Setting:
    """The declaration of a setting beside name, type and default."""

    meaning: str = ""
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    choices: tuple[Any, ...] = ()
    tune: Choice | Range | None = None  # the search space of `vedute tune`
    length: bool = False  # is it a length of training, which short trials reduce?

    def limits(self) -> str:
        """Describe the limits: at least 0 and below 1."""
        if self.choices:
            return f"one of {', '.join(map(str, self.choices))}"
        bounds = {k.replace("_", " "): getattr(self, k) for k in BOUNDS}
        return " and ".join(f"{k} {v:g}" for k, v in bounds.items() if v is not None)


def setting(default: Any, meaning: str, **declared: Any) -> Any:
    """Return a field with this default and a `Setting`; bounds apply to every number of a tuple."""
    return field(default=default, metadata={KEY: Setting(meaning, **declared)})


def choice(choices: tuple[Any, ...], meaning: str) -> Any:
    """Declare a choice; the first one is the default."""
    return setting(choices[0], meaning, choices=choices)


def length(default: int | None, meaning: str) -> Any:
    """Declare a length of training."""
    return setting(default, meaning, at_least=0, length=True)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def estimator(cls: type[T]) -> type[T]:
    """Make a class with settings an estimator: keyword arguments, documented in its docstring.

    A class that gives an inherited setting another default inherits the rest of its declaration.
    """
    inherited: dict[str, Field[Any]] = getattr(cls, "__dataclass_fields__", {})
    members = vars(cls)
    for name in inherited.keys() & members.get("__annotations__", {}).keys() & members.keys():
        if not isinstance(members[name], Field):
            setattr(cls, name, field(default=members[name], metadata=inherited[name].metadata))
    text = cleandoc(cls.__doc__ or "")
    made = dataclass(kw_only=True, eq=False, repr=False)(cls)
    made.__doc__ = Docstring(text)  # type: ignore[assignment]
    return made


def declared(cls: Any) -> dict[str, Setting]:
    """Return the settings of an estimator by name."""
    settings = {}
    for made in fields(cls):
        settings[made.name] = made.metadata.get(KEY, Setting())
    return settings


def problem_with(cls: Any, name: str, value: Any) -> str | None:
    """Say why a setting of the class cannot have this value, or return None."""
    hint, declaration = hints(cls)[name], declared(cls)[name]
    if not fits(value, hint):
        return f"{name} must be {words(hint)}, got {value!r}"
    many, parts = "each of " if isinstance(value, (tuple, list, Mapping)) else "", [value]
    for part in parts:  # those inside are appended
        if isinstance(part, (tuple, list, Mapping)):
            parts += part.values() if isinstance(part, Mapping) else part
        elif not isinstance(part, (bool, np.bool_, NoneType)):
            admitted = not declaration.choices or part in declaration.choices
            for bound, within in BOUNDS.items() if isinstance(part, Real) else ():
                limit = getattr(declaration, bound)
                admitted &= limit is None or within(part, limit)
            if not admitted:
                return f"{many}{name} must be {declaration.limits()}, got {value!r}"
            try:
                finite = not isinstance(part, Real) or isfinite(part)
            except OverflowError:  # a whole number that no float holds
                finite = False
            if not finite:
                return f"{many}{name} must be finite, got {value!r}"
    return None


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value has this type; numbers of numpy are numbers, lists are tuples."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if hasattr(kind, "__value__"):  # a type alias, as NDArray is since numpy 2.5
        return fits(value, kind.__value__)
    if kind in (typing.Union, UnionType):
        return any(map(fits, [value] * len(inner), inner))
    if kind is Literal:
        return isinstance(value, str) and value in inner
    truth = isinstance(value, (bool, np.bool_))
    if kind is bool:
        return truth or (isinstance(value, Integral) and value in (0, 1))
    if kind in (int, float):
        return not truth and isinstance(value, Integral if kind is int else Real)
    if kind is tuple:
        parts = isinstance(value, (tuple, list)) and all(fits(part, inner[0]) for part in value)
        return parts and (inner[-1] is Ellipsis or len(value) == len(inner))
    if kind is Sequence:
        return isinstance(value, Sequence) and all(fits(part, inner[0]) for part in value)
    if kind is dict:
        return isinstance(value, Mapping) and all(fits(part, inner[1]) for part in value.values())
    return kind is Any or isinstance(value, kind)


def words(hint: Any) -> str:
    """Describe a type: int | None -> a whole number or None."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in (typing.Union, UnionType):
        *most, last = (words(h) for h in inner)
        return f"{', '.join(most)} or {last}"
    if kind is Literal:
        return " or ".join(map(repr, inner))
    if kind in (tuple, Sequence):
        one = SINGULAR.get(get_origin(inner[0]) or inner[0], "a value").removeprefix("a ")
        return f"a {kind.__name__.lower()} of {one}s"
    if kind is dict:
        return "a dict by view"
    name = str(getattr(kind, "__name__", kind))
    return SINGULAR.get(kind, f"{'an' if name[0] in 'AEIOU' else 'a'} {name}")


@dataclass
class Docstring:
    """The docstring of an estimator: the text of its author and, from the code, the sections of
    numpydoc."""

    text: str

    def __get__(self, _: object, cls: Any) -> str:
        text, _, example = self.text.partition("\n\nExamples\n--------\n")
        concrete, parameters = not isabstract(cls), []
        if concrete and not example:
            use, size = ("impute(X)[1]", "(60, 5)") if cls.generative else ("predict(X)", "(60,)")
            example = DOCTEST.format(name=cls.__name__, use=use, size=size).strip()
        for f, declaration in zip(fields(cls), declared(cls).values(), strict=True):
            default = "" if f.default is MISSING else f", default {f.default!r}"
            limits = declaration.limits()
            limits = f" {limits[0].upper()}{limits[1:]}." if limits else ""
            meaning = indent(fill(f"{declaration.meaning}{limits}", 80), "    ")
            parameters.append(f"{f.name} : {f.type}{default}\n{meaning}")
        sections = {
            "Parameters": "\n".join(parameters),
            "Attributes": "\n".join(f"{k}\n    {v}" for k, v in attributes(cls).items()),
            "Notes": cleandoc(sys.modules[cls.__module__].__doc__ or "") if concrete else "",
            "References": f"{cls.paper}." if cls.paper else "",
            "Examples": example,
        }
        titled = (f"{k}\n{'-' * len(k)}\n{v}" for k, v in sections.items() if v)
        return "\n\n".join([text, *titled])


def attributes(cls: type[Any]) -> dict[str, str]:
    """Return the learned attributes of a class and its bases: name -> meaning."""
    parts = (vars(base).get("attributes", {}) for base in reversed(cls.__mro__))
    return {name: meaning for part in parts for name, meaning in part.items()}
