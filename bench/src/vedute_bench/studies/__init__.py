"""Which methods, datasets, rates and seeds make a table: one <name>.toml each. Data, not code.

    datasets, rates, seeds          every one with every other; a dataset is a name, or a file of
                                    your own, seen from the folder of the study, as "mine.npz"
    protocol, mask_seed             how views are hidden: one mask per dataset and rate
    patterns                        protocols with rates of their own, {chain = [1.0], mar = [0.5]},
                                    in place of protocol and rates; where a dataset has too few
                                    views for one, it is left out
    task = "clustering"             fit and score on the same samples
    task = "generation"             fit on the train split, infer views of the test split from every
                                    subset of them; judges: classifiers that look at the images;
                                    shown_view: from it alone all views are drawn, for a picture
                                    of the methods side by side; drawn: judge images from a draw
                                    of the posterior as well, not only from its mean
    curves = true                   record the terms of the loss by epoch
    [[runs]] label, method          a row of the table
             preset = "paper"       with the published settings of each dataset
             table = "..."          with those of this table of the method's presets
             settings = { ... }     with these
             seeds = [ ... ]        where they are others than the study's
             datasets = [ ... ]     where they are fewer than the study's
             pair                   how a method for two views takes more of them:
                 ""                 as its estimator does, every run looks for the best pair
                 "restrict"         with the mask of all, on the pair that is chosen without labels
                 "redraw"           as papers do: a mask for each pair, the pair chosen by labels

The last two choose a pair once per dataset and rate: there is a run for every pair with the seed
`pair_seed`, and other seeds go on with the best. paper.toml and references.toml are no studies:
they have the numbers that were published, on clusters and on images.
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
    """A row of a table: a method with its published settings, with some settings, or as it is."""

    label: str
    method: str
    preset: str | None = None
    table: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: Sequence[int] = ()  # none: the study's
    datasets: Sequence[str] = ()  # none: the study's
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
    """Every entry on every dataset at every rate with every seed."""

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
    files: Mapping[str, str] = field(default_factory=dict)  # by dataset, of the user's own ones

    def hidden(self) -> list[tuple[str, float]]:
        """How views are hidden: protocols with their rates."""
        given = self.patterns or {self.protocol: self.rates}
        return [(protocol, float(rate)) for protocol, rates in given.items() for rate in rates]


def available() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml") if path.stem not in NUMBERS)


def load(name: str) -> Study:
    """A study by its name, or from a .toml file of your own."""
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
    """What the paper reports of a method: (dataset, score, rate) -> mean and std, in percent."""
    tables = _numbers(PAPER)
    return {
        (dataset, score, rate): (value[0], value[1]) if isinstance(value, list) else (value, None)
        for dataset, scores in tables.get(source, {}).items()
        for score, values in scores.items()
        for rate, value in zip(tables["rates"], values, strict=True)
    }


def sources(method: str) -> list[str]:
    """Where `published` has numbers of a method: as printed, then as they are to be read."""
    return [name for name in _numbers(PAPER) if name.partition(",")[0] == method]


def references(label: str, dataset: str, rate: float, score: str) -> References:
    """What others report of a label of a generation study: source -> by number of given views."""
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
    """With files of the user's own in place of their paths: mine.npz is the dataset `mine`."""
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
