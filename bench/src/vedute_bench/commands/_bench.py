"""Selection of a study's runs, and their progress on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple, TypeVar

from vedute import datasets, methods
from vedute.commands import _settings
from vedute.commands._command import say
from vedute.datasets._files import find_npz
from vedute.estimators import progress
from vedute_bench import studies
from vedute_bench.runner import lines, plan, records
from vedute_bench.runner.records import RunRecord
from vedute_bench.runner.run import Run
from vedute_bench.runner.workers import Lane
from vedute_bench.studies import Entry, Study

T = TypeVar("T")
PATIENCE = 2.0  # seconds between two checks of what other processes do
SHOWN = {
    "acc": "ACC",
    "error": "error",
    "coverage": "coverage",
    "crps": "CRPS",
    "nmi_1": "from one view: NMI",
    "coherence_all_1": "coherence",
    "angle_all_1": "angle",
    "ssim_missing_1": "SSIM",
}


def choose(
    name: str,
    labels: str | None,
    data: str | None,
    rates: str | None,
    seeds: str | None,
    protocols: str | None = None,
) -> Study:
    """Load a study or a part of it; datasets, rates, protocols and seeds may be overridden."""
    study = studies.load(name)
    entries = _entries(study, _words("--methods", labels, str))
    names = _words("--datasets", data, str) or study.datasets
    chosen = replace(
        study,
        entries=[_without_own_choices(e, seeds, data) for e in entries],
        datasets=names,
        shown_view=study.shown_view if set(names) <= set(study.datasets) else "",
        rates=_words("--rates", rates, float) or study.rates,
        patterns=_patterns(study, protocols, rates),
        seeds=_words("--seeds", seeds, int) or study.seeds,
    )
    for dataset in chosen.datasets:
        known = [*study.files, *datasets.available()]
        if dataset not in known and find_npz(dataset) is None:
            raise KeyError(f"no dataset {dataset!r}; choose from {', '.join(datasets.available())}")
    return chosen


def _without_own_choices(entry: Entry, seeds: str | None, data: str | None) -> Entry:
    """Drop the seeds and datasets of an entry where the command line gives others."""
    return replace(
        entry,
        seeds=entry.seeds if seeds is None else (),
        datasets=entry.datasets if data is None else (),
    )


def check(study: Study, overrides: Mapping[str, Any]) -> tuple[Study, dict[str, Any]]:
    """Convert the values of a study and of the overrides to the types that the methods expect."""
    checked: dict[str, Any] = {}
    entries = []
    for entry in study.entries:
        cls = methods.find(entry.method)
        checked |= _settings.check(cls, plan.applicable(entry, overrides))
        entries.append(replace(entry, settings=_settings.check(cls, entry.settings)))
    unknown = {k: v for k, v in overrides.items() if k not in checked}
    _settings.check(methods.find(study.entries[0].method), unknown)  # raises unless it is empty
    return replace(study, entries=entries), checked


class Standing(NamedTuple):
    """Progress of a study: all runs, those without scores, those to do, records with scores."""

    runs: list[Run]
    missing: list[Run]
    todo: list[Run]
    known: list[RunRecord]


class Work:
    """A study and its file of records, which other processes may write to at the same time."""

    def __init__(
        self, study: Study, overrides: Mapping[str, Any], out: Path, retry: bool = False
    ) -> None:
        self.study, self.overrides, self.out = study, overrides, out
        self.masks = out.parent / "masks"
        self.since = len(self._read()) if retry else 0  # earlier failures do not count

    def look(self, lost: Sequence[Run] = ()) -> Standing:
        """Read the progress; `lost` runs ended without a record and are not retried."""
        read = self._read()
        known = records.finished(read)
        runs = plan.plan(self.study, self.masks, self.overrides, known)
        todo = [run for run in plan.unfinished(runs, read, self.since) if run not in lost]
        return Standing(runs, plan.unfinished(runs, known), todo, known)

    def free(self, todo: list[Run]) -> list[Run]:
        """Return unclaimed runs; if others have claimed all, wait until some are free or done."""
        unclaimed = plan.unclaimed(todo, self.out)
        if not unclaimed:
            say(f"waiting for {len(todo)} runs of another `vedute bench`")
        while todo and not unclaimed:
            sleep(PATIENCE)
            todo = plan.unfinished(todo, self._read(), self.since)
            unclaimed = plan.unclaimed(todo, self.out)
        return unclaimed

    def _read(self) -> list[RunRecord]:
        return records.read_all(self.out) if lines.exist(self.out) else []


class Tally(NamedTuple):
    """Number of runs with new scores, and the runs without a record."""

    new: int
    lost: list[Run]


def follow(
    outcomes: Iterable[tuple[Run, RunRecord | BaseException | None]],
    lanes: Sequence[Lane[Run]],
    known: Iterable[RunRecord],
) -> Tally:
    """Print one line per finished run, except for runs of other processes."""
    waiting, done, lost = [list(lane.tasks) for lane in lanes], list(known), list[Run]()
    total, before = sum(map(len, waiting)), len(done)
    with progress.shown(), progress.task("bench", total, "run"):
        for number, (run, outcome) in enumerate(outcomes, start=1):
            for tasks in waiting:
                tasks[:] = [t for t in tasks if t is not run]
            if isinstance(outcome, BaseException):
                lost.append(run)
            elif outcome is not None:
                done += records.finished([outcome])
            rest = [lane._replace(tasks=t) for lane, t in zip(lanes, waiting, strict=True)]
            left = plan.time_left(rest, done)
            progress.advance(1, "run", left)
            if outcome is not None:
                line = f"{number}/{total} {run}: {_result(outcome)}"
                line += "" if number == total else f"; about {progress.duration(left)} left"
                say(line, file=sys.stderr)
    return Tally(len(done) - before, lost)


def _patterns(
    study: Study, protocols: str | None, rates: str | None
) -> Mapping[str, Sequence[float]]:
    """Protocols with their rates; empty if the study has one protocol and no other is requested."""
    names = _words("--protocols", protocols, str) or list(study.patterns)
    requested = _words("--rates", rates, float)
    defaults = {k: study.patterns.get(k) or study.rates for k in names}
    lacking = [k for k, v in defaults.items() if not (requested or v)]
    if lacking:
        raise ValueError(f"{study.name} has no rate for {lacking[0]!r}; give it with --rates")
    return {k: requested or v for k, v in defaults.items()}


def _entries(study: Study, requested: Sequence[str]) -> Sequence[Entry]:
    """Find the study's entries by label or method; other methods run with their defaults."""
    chosen: list[Entry] = []
    for word in requested:
        of_label = [e for e in study.entries if e.label == word]
        of_method = [e for e in study.entries if e.method == word]
        if word == "all":
            known = {e.method for e in study.entries}
            others = [Entry(m, m) for m in methods.available() if m not in known]
            chosen += [*study.entries, *others]
        elif of_label or of_method:
            chosen += of_label or of_method
        else:
            methods.find(word)
            chosen.append(Entry(word, word))
    return list({e.label: e for e in chosen}.values()) or study.entries


def _words(option: str, text: str | None, kind: Callable[[str], T]) -> list[T]:
    """Parse comma-separated values without repetitions: a,b -> [a, b]."""
    try:
        words = [kind(word.strip()) for word in text.split(",")] if text is not None else []
    except ValueError as e:
        raise ValueError(f"{option} takes values separated by commas, got {text!r}: {e}") from None
    return list(dict.fromkeys(words))


def _result(outcome: RunRecord | BaseException) -> str:
    if isinstance(outcome, BaseException):
        return f"failed: {' '.join(str(outcome).split()) or type(outcome).__name__}"
    if "failed" in outcome:
        return f"failed: {outcome['failed']}"
    scores = [f"{SHOWN[k]} {v:.4g}" for k, v in outcome["scores"].items() if k in SHOWN]
    return ", ".join([*scores, f"{outcome['seconds']:.1f} s"])
