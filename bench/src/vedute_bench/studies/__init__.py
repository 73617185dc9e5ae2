"""Studies, one <name>.toml each: the methods, datasets, rates and seeds of a table.

Keys of a study:

    datasets, rates, seeds  All combinations are run. A dataset is a name, or the path of your own
                            file relative to the study, such as "mine.npz".

    protocol, mask_seed     How views are hidden, with one mask per dataset and rate.

    patterns                Protocols with their own rates, {chain = [1.0], mar = [0.5]}, instead of
                            protocol and rates. Datasets with too few views for one are skipped.

    task                    "clustering": fit and score on the same samples. "generation": fit on
                            the train split, infer views of the test split from all their subsets.

    judges                  Generation: classifiers that score the inferred images.

    shown_view              Generation: the given view in the picture of all methods side by side.

    drawn                   Generation: score images from a posterior draw, too, besides its mean.

    curves = true           Record the terms of the loss by epoch.

Keys of a row of the table, in [[runs]]:

    label, method           Name of the row, and the method.

    preset = "paper"        The published settings of each dataset.

    table = "..."           The settings in this table of the method's presets.

    settings = { ... }      Further settings.

    seeds, datasets         A list instead of the study's; datasets: a subset.

    pair                    How a method for two views takes more of them, see below.

Values of pair:

    ""                      The estimator looks for the best pair in every run.

    "restrict"              The pair is chosen without labels, on the mask of all views.

    "redraw"                The pair is chosen by labels, with a mask per pair, as in papers.

The last two choose a pair once per dataset and rate: every pair is run with the seed `pair_seed`,
and other seeds are run with the best pair.

The files paper.toml and references.toml are not studies. They have the published numbers for
clusters and images.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PAPER, REFERENCES = NUMBERS = ("paper", "references")
TASKS = ("clustering", "generation")
REDRAW = "redraw"
PAIR = ("", "restrict", REDRAW)
Published = dict[tuple[str, str, float], tuple[float, float | None]]
References = dict[str, list[float]]


@dataclass(frozen=True)
class Entry:
    """Row of a table: a method with its published settings, other settings, or its defaults."""

    label: str
    method: str
    preset: str | None = None
    table: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: Sequence[int] = ()  # empty: the study's
    datasets: Sequence[str] = ()  # empty: the study's
    pair: str = ""

    def __post_init__(self) -> None:
        if self.preset is not None and self.table is not None:
            raise ValueError(f"{self.label!r} has a preset and a table; give one of them")
        if self.preset not in (None, PAPER):
            raise ValueError(f"preset of {self.label!r} must be 'paper', got {self.preset!r}")
        if self.pair not in PAIR:
            known = ", ".join(map(repr, PAIR))
            raise ValueError(f"pair of {self.label!r} must be one of {known}, got {self.pair!r}")


@dataclass(frozen=True)
class Study:
    """All combinations of entries, datasets, rates and seeds."""

    name: str
    datasets: Sequence[str]
    seeds: Sequence[int]
    entries: Sequence[Entry]
    rates: Sequence[float] = ()
    protocol: str = "bernoulli"
    patterns: Mapping[str, Sequence[float]] = field(default_factory=dict)
    mask_seed: int = 42
    pair_seed: int = 42
    task: str = "clustering"
    judges: Sequence[str] = ()
    shown_view: str = ""
    drawn: bool = False
    curves: bool = False
    files: Mapping[str, str] = field(default_factory=dict)  # paths of the user's own datasets

    def hidden(self) -> list[tuple[str, float]]:
        """Pairs of a protocol that hides views and a rate."""
        patterns = self.patterns or {self.protocol: self.rates}
        return [(protocol, float(rate)) for protocol, rates in patterns.items() for rate in rates]


def available() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml") if path.stem not in NUMBERS)


def load(name: str) -> Study:
    """Load a study by its name, or from your own .toml file."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if not path.is_file() or (path.parent == FOLDER and path.stem in NUMBERS):
        known = ", ".join(available())
        raise FileNotFoundError(f"no study {name!r}; choose from {known}, or name a .toml file")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise ValueError(f"{path} is not TOML: {e}") from None
    entries = [_make(Entry, run, path) for run in content.pop("runs", [])]
    study: Study = _make(Study, {**content, "name": path.stem, "entries": entries}, path)
    study = _with_files(study, path)
    _check(study, path)
    return study


@cache
def published(source: str = "mvp") -> Published:
    """Numbers of a method in the paper: (dataset, score, rate) -> mean and std, in percent."""
    tables = _numbers(PAPER)
    return {
        (dataset, score, rate): (value[0], value[1]) if isinstance(value, list) else (value, None)
        for dataset, scores in tables.get(source, {}).items()
        for score, values in scores.items()
        for rate, value in zip(tables["rates"], values, strict=True)
    }


def sources(method: str) -> list[str]:
    """Sources of a method in `published`: the numbers as printed, then the corrected ones."""
    return [name for name in _numbers(PAPER) if name.partition(",")[0] == method]


def references(label: str, dataset: str, rate: float, score: str) -> References:
    """Numbers of others for a label of a generation study, by source and number of given views."""
    return {
        table["source"]: table[label]
        for table in _numbers(REFERENCES)["references"]
        if label in table
        and (table["dataset"], table["rate"], table["score"]) == (dataset, rate, score)
    }


@cache
def _numbers(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def _make(kind: type[Any], given: Mapping[str, Any], path: Path) -> Any:
    known = [f.name for f in fields(kind)]
    unknown = [key for key in given if key not in known]
    if unknown:
        raise ValueError(f"{path} has {unknown[0]!r}; it may have {', '.join(known)}")
    try:
        return kind(**given)
    except TypeError as e:
        problem = str(e).partition(")")[2]
        raise ValueError(f"{path}: a {kind.__name__.lower()} is{problem}") from None


def _with_files(study: Study, path: Path) -> Study:
    """Name the user's own files like datasets: mine.npz becomes the dataset `mine`."""
    files = {Path(d).stem: str((path.parent / d).resolve()) for d in study.datasets if "." in d}
    for name, file in files.items():
        if not Path(file).exists():
            raise FileNotFoundError(f"{path} names the dataset {name}, but there is no {file}")
    return replace(study, datasets=[Path(d).stem for d in study.datasets], files=files)


def _check(study: Study, path: Path) -> None:
    if study.rates and study.patterns:
        raise ValueError(f"{path} has rates and patterns; give one of them")
    if study.patterns and study.task == "generation":
        raise ValueError(f"{path}: a study of generation has rates, not patterns")
    for name in ("datasets", "rates", "seeds", "entries"):
        if not (getattr(study, name) or (name == "rates" and study.patterns)):
            lacking = "runs" if name == "entries" else name
            raise ValueError(f"{path} has no {lacking}; give at least one")
    for name in ("drawn", "curves"):
        if not isinstance(value := getattr(study, name), bool):
            raise ValueError(f"{path}: {name} must be true or false, got {value!r}")
    if study.task not in TASKS:
        raise ValueError(f"{path}: task must be one of {', '.join(TASKS)}, got {study.task!r}")
    labels = [entry.label for entry in study.entries]
    twice = [label for label in labels if labels.count(label) > 1]
    if twice:
        raise ValueError(f"{path} has two runs labelled {twice[0]!r}; give each its own label")
