"""What makes MVP work: docs/what-makes-mvp-work.md with its figures and tables, from records.

    python -m vedute_bench.pages.what_works        writes all sections with records

The text is in what_works.toml, with a section per study. For each study there are paired
differences (see `paired`) to its reference, and the effects of its factors, if it has any. They are
written to bench/results/<study>/effects.md and .csv, and to docs/images/what-works-<study>-*.png.
For other rates than .5 the page has only estimates over all datasets; effects.csv has all of them.
Sections on images have scores by the number of given views.
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
CORRESPONDENCE = "what-works-correspondence.png"
RULES = "own", "fused"  # how MVP decodes given views
Words = dict[str, Any]
Estimates = dict[str, dict[str, dict[str, Estimate]]]  # score -> contrast -> dataset


@dataclass(frozen=True)
class Section:
    """Study, with the text about it.

    references: labels that the others are compared with. If labels begin with a method and a colon,
    only labels of the same method are compared.
    """

    study: str
    title: str
    about: str
    references: Sequence[str]
    finding: str = ""
    factors: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def contrasts(self) -> dict[str, dict[str, Weights]]:
        """Contrasts for the effects of factors, if any, and of all labels with their reference."""
        labels = [entry.label for entry in studies.load(self.study).entries]
        alone: dict[str, Weights] = {}
        for reference in self.references:
            alone |= against(reference, [k for k in labels if _method(k) == _method(reference)])
        return ({"effects": effects(self.factors)} if self.factors else {}) | {"all": alone}


@dataclass(frozen=True)
class Table:
    """Estimates of a study at one rate, or by rate instead of by dataset if `rate` is None."""

    kind: str  # of contrasts
    rate: float | None
    estimates: Estimates

    def picture(self, study: str) -> str:
        rate = "rates" if self.rate is None else f"{self.rate:g}"
        return f"what-works-{study}-{self.kind}-{rate}.png"

    def title(self, score: str) -> str:
        rate = "Over all datasets" if self.rate is None else f"Missing rate {self.rate:g}"
        return f"{rate}: {TITLES[score]}"


def sections() -> list[Section]:
    return [Section(**fields) for fields in WORDS["sections"]]


def tables(section: Section, known: Sequence[Record]) -> Iterator[Table]:
    """Tables by rate, .5 first; for other rates only the effects, if there are factors."""
    for rate in sorted({r["rate"] for r in known}, key=lambda rate: (rate != FIRST, rate)):
        for kind, contrasts in section.contrasts().items():
            if kind == "effects" or rate == FIRST or not section.factors:
                yield Table(kind, rate, differences(known, contrasts, rate))


def shown(made: Sequence[Table]) -> list[Table]:
    """Tables for the page: all of the rate .5, and one over all datasets for several rates."""
    first = [t for t in made if t.rate == FIRST]
    others = [t for t in made if t.rate != FIRST]
    return [*first, by_rate([t for t in made if t.kind == others[0].kind])] if others else first


def by_rate(made: Sequence[Table]) -> Table:
    """Merge tables of a kind into one with a column per rate, over all datasets."""
    merged: Estimates = {}
    for table in sorted(made, key=lambda t: t.rate or 0.0):
        for score, rows in table.estimates.items():
            for name, row in rows.items():
                columns = merged.setdefault(score, {}).setdefault(name, {})
                columns[f"at {table.rate:g}"] = row.get(ALL) or next(iter(row.values()))
    return Table(made[0].kind, None, merged)


def differences(
    known: Sequence[Record], contrasts: Mapping[str, Weights], rate: float
) -> Estimates:
    """Estimates of all contrasts with runs."""
    by_score: Estimates = {}
    for score in TITLES:
        scores = cells(known, rate, score)
        rows = {name: estimates(scores, weights, score) for name, weights in contrasts.items()}
        by_score[score] = {name: row for name, row in rows.items() if row}
    return {score: rows for score, rows in by_score.items() if rows}


def markdown(made: Sequence[Table]) -> str:
    """Tables per score; significant estimates are bold."""
    parts = []
    for table in made:
        for score, rows in table.estimates.items():
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


def comma_separated(made: Sequence[Table]) -> str:
    """CSV with a line per rate, score, contrast and dataset."""
    out = StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(["rate", "score", "contrast", "dataset", *Estimate._fields])
    for table in made:
        for score, rows in table.estimates.items():
            for name, row in rows.items():
                for dataset, e in row.items():
                    values = (f"{v:.5f}" for v in e[:3])
                    lines.writerow([table.rate, score, name, dataset, *values, e.runs])
    return out.getvalue()


def page(results: Path) -> str:
    """Text of all sections with records in the folder `results`."""
    texts = [_section(section, results) for section in sections()]
    texts += [_images(words, results) for words in WORDS["images"]]
    texts += [_correspondence(results), _spread(results)]
    parts = list(filter(None, texts)) or ["No study of this page has records yet."]
    return "\n\n".join([f"# {WORDS['title']}", WORDS["intro"].strip(), *parts]) + "\n"


def _section(section: Section, results: Path) -> str:
    """Section of a study: figures, then text, then tables."""
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
    """Section of an image dataset, if its study has records."""
    known = inferred(words, results)
    if not known:
        return ""
    shown = f"![{words['title']}](images/{_picture(words)})"
    every = [r for by_rule in known.values() for r in by_rule]
    about = f"{words['about'].strip()} {_runs(every, every)}"
    parts = [f"## {words['title']}", shown, about, words["finding"].strip()]
    parts += [given_views.markdown(known, k, title) for k, title in words["scores"].items()]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def inferred(words: Words, results: Path) -> dict[str, list[Record]]:
    """Records by the rule that decodes given views.

    A record is listed under its own rule, and under the other if that was scored on its weights.
    """
    file = results / words["study"] / "records.jsonl"
    by_rule: dict[str, list[Record]] = {rule: [] for rule in RULES}
    for r in records.finished(lines.read(file)):
        by_rule[r["settings"]["observed"]].append(r)
        for rule in RULES:
            scored = {k: v for k, v in r["scores"].items() if k.startswith(f"{rule}_ssim_given_")}
            if scored:
                plain = {k.removeprefix(f"{rule}_"): v for k, v in scored.items()}
                by_rule[rule].append(r | {"scores": plain})
    return {rule: known for rule, known in by_rule.items() if known}


def _picture(words: Words) -> str:
    return f"what-works-decoding-{words['dataset']}.png"


def _correspondence(results: Path) -> str:
    known = correspondence.recorded(results / "correspondence" / "records.jsonl")
    if not known:
        return ""
    words = WORDS["correspondence"]
    picture = f"![{words['title']}](images/{CORRESPONDENCE})"
    about = f"{words['about'].strip()} {_runs(known, known)}"
    parts = [f"## {words['title']}", picture, about, words["finding"], correspondence.table(known)]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _spread(results: Path) -> str:
    known, words = spread.recorded(results / "spread" / "records.jsonl"), WORDS["spread"]
    if not known:
        return ""
    parts = [f"## {words['title']}", spread.table(known), words["about"], words["finding"]]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _runs(every: Sequence[Record], known: Sequence[Record]) -> str:
    """Sentence on the numbers of runs and seeds, the devices, and the number of failures."""
    done = {_place(r) for r in known}
    failed = {_place(r) for r in every} - done
    seeds = len({r["seed"] for r in known})
    many = "one seed" if seeds == 1 else f"{seeds} seeds"
    text = f"{len(done)} runs, {many}, on {_devices(known)}."
    return f"{text} {len(failed)} more failed." if failed else text


def _devices(known: Sequence[Record]) -> str:
    """Names of the devices, each with its seeds if there are several."""
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
    """Method of a label "method: variant", "" for other labels."""
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
            made = list(tables(section, records.read(file)))
            file.with_name("effects.md").write_text(markdown(shown(made)), encoding="utf-8")
            file.with_name("effects.csv").write_text(comma_separated(made), encoding="utf-8")
            for table in shown(made):
                drawn = {k: rows for k, rows in table.estimates.items() if k in DRAWN}
                path = docs / "images" / table.picture(section.study)
                files.save(forest(drawn, TITLES), path, 150)
    for words in WORDS["images"]:
        known = inferred(words, results)
        if known:
            drawn = {k: t for k, t in words["scores"].items() if k in DRAWN_OF_IMAGES}
            path = docs / "images" / _picture(words)
            files.save(given_views.figure(known, drawn), path, 150)
    known = correspondence.recorded(results / "correspondence" / "records.jsonl")
    if known:
        files.save(correspondence.figure(known), docs / "images" / CORRESPONDENCE, 150)
    (docs / "what-makes-mvp-work.md").write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    write(RESULTS, DOCS)
