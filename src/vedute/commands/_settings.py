"""Settings given by the user, checked against the declarations of an estimator."""

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
    """The class that --method names: a registered name, or MODULE:CLASS, which may be in the
    working folder. Only for typed input: files must not choose what is imported."""
    if ":" not in word:
        return methods.find(word)
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    return methods.imported(EntryPoint("", word, methods.GROUP))


def parse(pairs: Iterable[str]) -> Settings:
    """Parse name=value: a Python literal, true and false as in TOML, else text."""
    parsed = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (equals and name.strip()):
            raise ValueError(f"--set takes name=value, got {pair!r}")
        try:
            parsed[name.strip()] = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            parsed[name.strip()] = TOML.get(text.strip(), text)
    return parsed


def check(method: type[Estimator], given: Mapping[str, Any]) -> Settings:
    """The settings with lists as tuples; unknown names and values out of range raise."""
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
    """Parse view=kind of --kind."""
    parsed = {}
    for pair in pairs:
        name, equals, word = pair.rpartition("=")
        if not equals:
            raise ValueError(f"--kind takes view=kind, got {pair!r}")
        parsed[name] = word
    return parsed


def chosen_clusters(number: int | None, curve: Mapping[str, Any]) -> Iterator[str]:
    """Lines on the number that `--clusters auto` chose and its stability curve, if any."""
    if curve:
        tried = zip(curve["n_clusters"], curve["stability"], strict=True)
        yield f"{number} clusters, the most stable number beyond chance; stability by number:"
        yield "  " + ", ".join(f"{k}: {x:.2f}" for k, x in tried)


def clusters(given: str | None) -> int | str | None:
    """Parse the value of --clusters."""
    if given is None:
        return None
    if given != "auto" and not given.isdecimal():
        raise ValueError(f"--clusters takes a whole number or auto, got {given!r}")
    return given if given == "auto" else int(given)
