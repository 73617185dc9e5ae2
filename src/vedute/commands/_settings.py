"""What a user set, checked against the fields of an estimator."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from vedute.estimators.base import Estimator

Settings = dict[str, Any]
TOML = {"true": True, "false": False}


def parse(pairs: Iterable[str]) -> Settings:
    """name=value: a Python literal, true and false as in TOML files, else text."""
    found = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"--set takes name=value, got {pair!r}")
        try:
            found[name.strip()] = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            found[name.strip()] = TOML.get(text.strip(), text)
    return found


def check(method: type[Estimator], settings: Mapping[str, Any]) -> Settings:
    """The settings, lists made tuples; unknown names and values of another type are refused."""
    hints = get_type_hints(method)
    known = [f.name for f in fields(method) if f.init]
    checked = {}
    for name, value in settings.items():
        if name not in known:
            close = get_close_matches(name, known, cutoff=0.5)
            told = f"did you mean {' or '.join(close)}?" if close else f"it has {', '.join(known)}"
            raise ValueError(f"{method.__name__} has no setting {name!r}; {told}")
        value = tuple(value) if isinstance(value, list) else value
        if not _fits(value, hints[name]):
            raise ValueError(f"{name} takes {_told(hints[name])}, got {value!r}")
        checked[name] = value
    return checked


def _fits(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, h) for h in get_args(hint))
    kind = get_origin(hint) or hint
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _told(hint: Any) -> str:
    """int | None -> a whole number or None"""
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_told(h) for h in get_args(hint))
    words = {
        int: "a whole number",
        float: "a number",
        str: "a word",
        bool: "True or False",
        tuple: "a tuple",
        dict: "a dict",
        type(None): "None",
    }
    return words.get(get_origin(hint) or hint, str(hint))


def clusters(given: str) -> int | str:
    """What --clusters takes."""
    if given != "auto" and not given.isdecimal():
        raise ValueError(f"--clusters takes a whole number or auto, got {given!r}")
    return given if given == "auto" else int(given)
