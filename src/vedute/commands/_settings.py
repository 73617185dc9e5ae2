"""What a user set, checked against the declarations of an estimator."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from vedute import methods
from vedute.estimators import settings
from vedute.estimators.base import Estimator

Settings = dict[str, Any]
TOML = {"true": True, "false": False}


def method(word: str) -> type[Estimator]:
    """What --method takes: a name that is registered, or MODULE:CLASS, which may be in the working
    folder. Files never name what is imported: this is for what a user types."""
    if ":" not in word:
        return methods.find(word)
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    return methods.imported(EntryPoint("", word, methods.GROUP))


def parse(pairs: Iterable[str]) -> Settings:
    """name=value: a Python literal, true and false as in TOML files, else text."""
    found = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (equals and name.strip()):
            raise ValueError(f"--set takes name=value, got {pair!r}")
        try:
            found[name.strip()] = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            found[name.strip()] = TOML.get(text.strip(), text)
    return found


def check(method: type[Estimator], given: Mapping[str, Any]) -> Settings:
    """The settings, lists made tuples; unknown names and values out of range are refused."""
    known = settings.declared(method)
    inside = {k: v for k, v in given.items() if "__" in k and "expert_settings" in known}
    checked: Settings = {"expert_settings": inside} if inside else {}  # refused by `fit`, if wrong
    for name, value in given.items():
        if name in inside:
            continue
        if name not in known:
            nested = [k for k in method().get_params() if k.partition("__")[2] == name]
            close = nested or get_close_matches(name, known, cutoff=0.5)
            hint = f"did you mean {' or '.join(close)}?" if close else f"it has {', '.join(known)}"
            raise ValueError(f"{method.__name__} has no setting {name!r}; {hint}")
        checked[name] = tuple(value) if isinstance(value, list) else value
        problem = settings.problem_with(method, name, checked[name])
        if problem:
            raise ValueError(problem)
    return checked


def kinds(pairs: Iterable[str]) -> dict[str, str]:
    """What --kind takes: view=kind."""
    found = {}
    for pair in pairs:
        name, equals, word = pair.rpartition("=")
        if not equals:
            raise ValueError(f"--kind takes view=kind, got {pair!r}")
        found[name] = word
    return found


def chosen_clusters(number: int | None, curve: Mapping[str, Any]) -> Iterator[str]:
    """What `--clusters auto` chose, and the curve it was read from; nothing without a curve."""
    if curve:
        tried = zip(curve["n_clusters"], curve["stability"], strict=True)
        yield f"{number} clusters, the most stable number beyond chance; stability by number:"
        yield "  " + ", ".join(f"{k}: {x:.2f}" for k, x in tried)


def clusters(given: str) -> int | str:
    """What --clusters takes."""
    if given != "auto" and not given.isdecimal():
        raise ValueError(f"--clusters takes a whole number or auto, got {given!r}")
    return given if given == "auto" else int(given)
