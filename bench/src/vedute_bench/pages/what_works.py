"""What makes MVP work: docs/what-makes-mvp-work.md with its figures and tables, from records.

    python -m vedute_bench.pages.what_works        writes again what there are records of

The words are in what_works.toml, a section per study, which is left out while it has no records.
For each study there are paired differences (see `paired`) to its reference, and, where it has
factors, their effects: bench/results/<study>/effects.md and .csv, and
docs/images/what-works-<study>-*.png. At other rates than .5 the page has what is over all datasets;
effects.csv has each of them. Sections on images have scores by the number of given views.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from vedute_bench import studies
from vedute_bench.experiments import correspondence, spread
from vedute_bench.figures import files
from vedute_bench.pages import given_views
from vedute_bench.pages.forest_plot import forest
from vedute_bench.pages.paired import (
    ALL,
    Estimate,
    Record,
    Weights,
    against,
    cells,
    effects,
    estimates,
)
from vedute_bench.places import DOCS, RESULTS
from vedute_bench.runner import lines, records

WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TITLES = {
    "error": "error at hidden views, ratio",
    "acc": "ACC, difference",
    "nmi": "NMI, difference",
}
DRAWN, DRAWN_OF_IMAGES = ("error", "acc"), ("ssim_given", "ssim_missing")
FIRST = 0.5  # rate
FORMED = "what-works-correspondence.png"
RULES = "own", "fused"  # how MVP decodes given views
Words = dict[str, Any]
Found = dict[str, dict[str, dict[str, Estimate]]]  # score -> contrast -> dataset


@dataclass(frozen=True)
class Section:
    """A study, and what is said of it. references: what the other labels are compared with; where
    labels begin with a method and a colon, those of the same method."""

    study: str
    title: str
    about: str
    references: Sequence[str]
    finding: str = ""
    factors: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def contrasts(self) -> dict[str, dict[str, Weights]]:
        """The effects of factors, if there are any, and all labels against their reference."""
        labels = [entry.label for entry in studies.load(self.study).entries]
        alone: dict[str, Weights] = {}
        for reference in self.references:
            alone |= against(reference, [k for k in labels if _method(k) == _method(reference)])
        return ({"effects": effects(self.factors)} if self.factors else {}) | {"all": alone}


@dataclass(frozen=True)
class Table:
    """What the records of a study say at one rate; or at all, which then stand for datasets."""

    kind: str  # of contrasts
    rate: float | None
    found: Found

    def picture(self, study: str) -> str:
        rate = "rates" if self.rate is None else f"{self.rate:g}"
        return f"what-works-{study}-{self.kind}-{rate}.png"

    def title(self, score: str) -> str:
        rate = "Over all datasets" if self.rate is None else f"Missing rate {self.rate:g}"
        return f"{rate}: {TITLES[score]}"


def sections() -> list[Section]:
    return [Section(**each) for each in WORDS["sections"]]


def tables(section: Section, known: Sequence[Record]) -> Iterator[Table]:
    """The rate .5 first; of others the effects only, where there are factors."""
    for rate in sorted({r["rate"] for r in known}, key=lambda rate: (rate != FIRST, rate)):
        for kind, contrasts in section.contrasts().items():
            if kind == "effects" or rate == FIRST or not section.factors:
                yield Table(kind, rate, differences(known, contrasts, rate))


def shown(found: Sequence[Table]) -> list[Table]:
    """All of the rate .5; of several rates one table, of what is over all datasets."""
    first, others = ([t for t in found if (t.rate == FIRST) == is_it] for is_it in (True, False))
    return [*first, by_rate([t for t in found if t.kind == others[0].kind])] if others else first


def by_rate(found: Sequence[Table]) -> Table:
    """Tables of a kind as one: a column per rate, of what is over all datasets."""
    every: Found = {}
    for table in sorted(found, key=lambda t: t.rate or 0.0):
        for score, rows in table.found.items():
            for name, row in rows.items():
                columns = every.setdefault(score, {}).setdefault(name, {})
                columns[f"at {table.rate:g}"] = row.get(ALL) or next(iter(row.values()))
    return Table(found[0].kind, None, every)


def differences(known: Sequence[Record], contrasts: Mapping[str, Weights], rate: float) -> Found:
    """Every contrast that there are runs of."""
    every: Found = {}
    for score in TITLES:
        here = cells(known, rate, score)
        rows = {name: estimates(here, weights, score) for name, weights in contrasts.items()}
        every[score] = {name: row for name, row in rows.items() if row}
    return {score: rows for score, rows in every.items() if rows}


def markdown(found: Sequence[Table]) -> str:
    """A table per score; bold where the interval leaves 1, or 0, out."""
    parts = []
    for table in found:
        for score, rows in table.found.items():
            names = dict.fromkeys(k for row in rows.values() for k in row if k != ALL)
            total = [ALL] if any(ALL in row for row in rows.values()) else []
            columns = [*names, *total]
            lines = [f"**{table.title(score)}**", ""]
            lines += [f"| | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
            for name, row in rows.items():
                lines.append(
                    f"| {name} | {' | '.join(_cell(row.get(k), score) for k in columns)} |"
                )
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def comma_separated(found: Sequence[Table]) -> str:
    """One line per rate, score, contrast and dataset."""
    out = StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(["rate", "score", "contrast", "dataset", *Estimate._fields])
    for table in found:
        for score, rows in table.found.items():
            for name, row in rows.items():
                for dataset, e in row.items():
                    values = (f"{v:.5f}" for v in e[:3])
                    lines.writerow([table.rate, score, name, dataset, *values, e.runs])
    return out.getvalue()


def page(results: Path) -> str:
    """The sections that there are records of in the folder `results`."""
    made = [_section(section, results) for section in sections()]
    made += [_images(words, results) for words in WORDS["images"]]
    made += [_correspondence(results), _spread(results)]
    there = [text for text in made if text]
    empty = [] if there else ["No study of this page has records yet."]
    return "\n\n".join([f"# {WORDS['title']}", WORDS["intro"].strip(), *there, *empty]) + "\n"


def _section(section: Section, results: Path) -> str:
    """Figures first, then words, then tables."""
    file = results / section.study / "records.jsonl"
    if not lines.exist(file):
        return ""
    every = records.read_all(file)
    known = records.finished(every)
    words = [f"{section.about.strip()} {_runs(every, known)}", section.finding.strip()]
    first, others = [], []
    for table in shown(list(tables(section, known))):
        picture = f"![{section.title}](images/{table.picture(section.study)})"
        (others if table.rate is None else first).append(picture)
    included = f'--8<-- "results/{section.study}/effects.md"'
    parts = [f"## {section.title}", *first, *filter(None, words), *others, included]
    return "\n\n".join(parts)


def _images(words: Words, results: Path) -> str:
    """Of a dataset of images, where its studies have records."""
    known = inferred(words, results)
    if not known:
        return ""
    shown = f"![{words['title']}](images/{_picture(words)})"
    made_of = [r for found in known.values() for r in found]
    about = f"{words['about'].strip()} {_runs(made_of, made_of)}"
    parts = [f"## {words['title']}", shown, about, words["finding"].strip()]
    parts += [given_views.markdown(known, k, title) for k, title in words["scores"].items()]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def inferred(words: Words, results: Path) -> dict[str, list[Record]]:
    """Records by the rule that given views are decoded by: their own, and, where it was scored on
    the same weights, the other."""
    file, found = results / words["study"] / "records.jsonl", {rule: [] for rule in RULES}
    for r in records.finished(lines.read(file)):
        found[r["settings"]["observed"]].append(r)
        for rule in RULES:
            scored = {k: v for k, v in r["scores"].items() if k.startswith(f"{rule}_ssim_given_")}
            if scored:
                plain = {k.removeprefix(f"{rule}_"): v for k, v in scored.items()}
                found[rule].append(r | {"scores": plain})
    return {rule: known for rule, known in found.items() if known}


def _picture(words: Words) -> str:
    return f"what-works-decoding-{words['dataset']}.png"


def _correspondence(results: Path) -> str:
    known, words = correspondence.recorded(_formed(results)), WORDS["correspondence"]
    if not known:
        return ""
    shown, about = f"![{words['title']}](images/{FORMED})", words["about"].strip()
    about = f"{about} {_runs(known, known)}"
    parts = [f"## {words['title']}", shown, about, words["finding"], correspondence.table(known)]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _formed(results: Path) -> Path:
    return results / "correspondence" / "records.jsonl"


def _spread(results: Path) -> str:
    known, words = spread.recorded(results / "spread" / "records.jsonl"), WORDS["spread"]
    if not known:
        return ""
    parts = [f"## {words['title']}", spread.table(known), words["about"], words["finding"]]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _runs(every: Sequence[Record], known: Sequence[Record]) -> str:
    """How many, where, and how many have no result."""
    done = {_place(r) for r in known}
    failed = {_place(r) for r in every} - done
    seeds = len({r["seed"] for r in known})
    many = "one seed" if seeds == 1 else f"{seeds} seeds"
    text = f"{len(done)} runs, {many}, on {_devices(known)}."
    return f"{text} {len(failed)} more failed." if failed else text


def _devices(known: Sequence[Record]) -> str:
    """Where there are several, with the seeds of each."""
    seeds: dict[str, set[int]] = {}
    for r in known:
        seeds.setdefault(r["device"], set()).add(r["seed"])
    named = sorted(seeds, key=lambda device: (min(seeds[device]), device))
    if len(named) == 1:
        return named[0]
    return " and ".join(f"{device} ({_span(seeds[device])})" for device in named)


def _span(seeds: set[int]) -> str:
    first, last = min(seeds), max(seeds)
    if first == last:
        return f"seed {first}"
    whole = len(seeds) == last - first + 1
    return f"seeds {first} to {last}" if whole else f"seeds {', '.join(map(str, sorted(seeds)))}"


def _place(r: Record) -> tuple[object, ...]:
    return tuple(r[k] for k in ("study", "label", "dataset", "rate", "seed"))


def _method(label: str) -> str:
    """Of a label "method: what it has"."""
    return label.partition(":")[0] if ":" in label else ""


def _cell(e: Estimate | None, score: str) -> str:
    if e is None:
        return "–"
    shown, none = ("{:.3f}", 1.0) if score == "error" else ("{:+.1f}", 0.0)
    value, low, high = (shown.format(v).replace("-", "−") for v in e[:3])
    text = f"{value} ({low} to {high})" if e.runs > 1 else value
    return f"**{text}**" if e.low > none or e.high < none else text


def write(results: Path, docs: Path) -> None:
    for section in sections():
        file = results / section.study / "records.jsonl"
        if lines.exist(file):
            found = list(tables(section, records.read(file)))
            file.with_name("effects.md").write_text(markdown(shown(found)), encoding="utf-8")
            file.with_name("effects.csv").write_text(comma_separated(found), encoding="utf-8")
            for table in shown(found):
                drawn = {k: rows for k, rows in table.found.items() if k in DRAWN}
                path = docs / "images" / table.picture(section.study)
                files.save(forest(drawn, TITLES), path, 150)
    for words in WORDS["images"]:
        known = inferred(words, results)
        if known:
            drawn = {k: t for k, t in words["scores"].items() if k in DRAWN_OF_IMAGES}
            path = docs / "images" / _picture(words)
            files.save(given_views.figure(known, drawn), path, 150)
    formed = correspondence.recorded(_formed(results))
    if formed:
        files.save(correspondence.figure(formed), docs / "images" / FORMED, 150)
    (docs / "what-makes-mvp-work.md").write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    write(RESULTS, DOCS)
