"""Settings given by the user, checked against the declarations of an estimator."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from vedute import methods
from vedute.data.limits import plain_file
from vedute.estimators import settings
from vedute.estimators.base import Estimator
from vedute.methods import best_pair, presets

Settings = dict[str, Any]


def method(word: str) -> type[Estimator]:
    """The class that --method names: a registered name, or MODULE:CLASS, which may be in the
    working folder. Only for typed input: files must not choose what is imported."""
    if ":" not in word:
        return methods.find(word)
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    return methods.imported(EntryPoint("", word, methods.GROUP))


def parse(pairs: Iterable[str] | None) -> Settings:
    """Parse name=value: a Python literal, true and false as in TOML, else text."""
    parsed = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        if not (equals and name.strip()):
            raise ValueError(f"--set takes name=value, got {pair!r}")
        try:
            parsed[name.strip()] = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            parsed[name.strip()] = {"true": True, "false": False}.get(text.strip(), text)
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
    split = {pair: pair.rpartition("=") for pair in pairs}
    for pair in (pair for pair in split if "=" not in pair):
        raise ValueError(f"--kind takes view=kind, got {pair!r}")
    return {name: word for name, _, word in split.values()}


def chosen_clusters(number: int | None, curve: Mapping[str, Any]) -> Iterator[str]:
    """Lines on the number that `--clusters auto` chose and its stability curve, if any."""
    if curve:
        tried = zip(curve["n_clusters"], curve["stability"], strict=True)
        yield f"{number} clusters, the most stable number beyond chance; stability by number:"
        yield "  " + ", ".join(f"{k}: {x:.2f}" for k, x in tried)


def clusters(given: str | None) -> int | str | None:
    """Parse the value of --clusters."""
    if given is None or given == "auto":
        return given
    if not given.isdecimal():
        raise ValueError(f"--clusters takes a whole number or auto, got {given!r}")
    return int(given)


def estimator(
    method_name: str | None,
    preset: str | None,
    config: Path | None,
    typed: Iterable[str] | None,
    given: Settings,
    values: bool,
) -> tuple[Estimator, str, str | None]:
    """An unfitted estimator, its method and preset; --set overrides a file, both a preset."""
    file = {"method": None, "preset": None} | ({} if config is None else _read_config(config))
    named = file.pop("method"), file.pop("preset")
    preset = preset or named[1]
    name = method_name or named[0] or ("blend" if preset is None else "mvp")
    if not method_name and ":" in name:
        raise ValueError(f"a file cannot name code; say --method {name} as well")
    cls = method(name)
    wanted: Settings = {} if preset is None else presets.find(name, preset)
    wanted = {"random_state": 0} | wanted | file | parse(typed)
    wanted |= {k: value for k, value in given.items() if value is not None}
    if cls.soft and wanted.get("n_clusters") is None:
        raise ValueError(f"{name} learns clusters while it trains; say how many: --clusters K")
    made = cls(**check(cls, wanted))
    made.check_settings()
    known = methods.of_this_package()
    for inside in () if values else (name, *made.get_params(deep=False).get("experts", ())):
        if inside not in known or methods.find(inside).keeps_samples:
            what = f"{inside} {'keeps' if inside in known else 'may keep'} samples in its model"
            fix = "with --no-values choose another method, such as --method mvp"
            raise ValueError(f"{what}; {fix}")
    return made, name, preset


def estimators(
    names: str, common: Settings, typed: Iterable[str] | None, n_views: int
) -> dict[str, Estimator]:
    """An estimator per method, the simple fills last; each gets the settings that it has."""
    asked = methods.available() if names == "all" else [k.strip() for k in names.split(",")]
    wanted, models, used = parse(typed), {}, set()
    for name in dict.fromkeys([*asked, *methods.baselines()]):
        cls = method(name)
        known = settings.declared(cls)  # mvp__latent_dim is one of methods with experts
        nested = "expert_settings" in known
        mine = {k: v for k, v in wanted.items() if k in known or ("__" in k and nested)}
        used |= set(mine)
        models[name] = best_pair.for_views(cls(**common | check(cls, mine)), n_views)
    unknown = {k: v for k, v in wanted.items() if k not in used}
    check(method(next(iter(models))), unknown)  # raises if any is unknown
    return models


def _read_config(path: Path) -> Settings:
    """Settings from the top of a file or its table [settings], with method and preset."""
    plain_file(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeError, RecursionError) as e:
        raise ValueError(f"{path} is not TOML ({e}); write lines like latent_dim = 32") from None
    content.pop("used", None)  # of a run: what its data decided
    inside = content.pop("settings", {})
    if not isinstance(inside, dict):
        raise ValueError(f"{path}: settings is a table; write [settings] above its lines")
    for name in ("method", "preset"):
        if not isinstance(content.get(name, ""), str):
            raise ValueError(f"{path}: {name} is a name in quotes, got {content[name]!r}")
    return content | inside
