"""The page docs/leaderboard.md: results of papers on the MVP paper's datasets, beside our runs.

    python -m vedute_bench.pages.leaderboard        writes the page

Text and numbers of papers are in leaderboard.toml, numbers of the MVP paper in the studies'
paper.toml. Our own numbers come from the records of `clustering`, `mvp-clustering` and `cohorts`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from vedute_bench import studies
from vedute_bench.places import DOCS, RESULTS
from vedute_bench.runner import records
from vedute_bench.summaries.summary import Cell, Summary

PAGE = DOCS / "leaderboard.md"
RATES = (0.1, 0.3, 0.5, 0.7)
DATASETS = {
    "handwritten": "Handwritten",
    "cub": "CUB",
    "scene15": "Scene15",
    "reuters": "Reuters",
    "sensit": "SensIT Vehicle",
}
STARTS = {"one_start_acc": ", one k-means start", "acc": ""}  # score: suffix of a row's name
FACTS = {
    "mask": "what is hidden",
    "slots": "missing views at .5",
    "scaler": "do hidden values reach the scaler?",
    "labels": "what labels choose",
}


@dataclass(frozen=True)
class Entry:
    """Method in a paper. published: key of its numbers in paper.toml; acc: other numbers."""

    name: str
    paper: str
    mask: str
    slots: str
    scaler: str
    labels: str
    published: str = ""
    acc: Mapping[str, Sequence[float]] = field(default_factory=dict)
    ours: Sequence[str] = ()

    def cells(self, dataset: str) -> list[Cell | None]:
        """Cells of the paper, by rate."""
        if self.published:
            numbers = studies.published(self.published)
            printed = [numbers.get((dataset, "acc", rate)) for rate in RATES]
            return [None if number is None else Cell(*number) for number in printed]
        return [Cell(value) for value in self.acc.get(dataset, ())] or [None] * len(RATES)


def words() -> dict[str, str]:
    return {k: v for k, v in _file().items() if isinstance(v, str)}


def entries() -> list[Entry]:
    return [Entry(**fields) for fields in _file()["entries"]]


def page() -> str:
    text, ours = words(), _ours()
    parts = [f"# {text['title']}", text["intro"].strip()]
    for dataset, title in DATASETS.items():
        heads = ["method", "by", *(f"{rate:g}"[1:] for rate in RATES)]
        parts += [f"## {title}", _table(heads, _lines(dataset, ours), numbers=len(RATES))]
    parts += ["## How each number was made", _protocols(), text["notes"].strip()]
    return _filled("\n\n".join(parts) + "\n", ours)


def _lines(dataset: str, ours: Summary) -> Iterator[list[str]]:
    """Lines of the methods with numbers on a dataset: the paper's, then ours."""
    for entry in entries():
        reported = entry.cells(dataset)
        if any(reported):
            yield [entry.name, entry.paper, *map(_text, reported)]
        for label, (score, starts) in product(entry.ours, STARTS.items()):
            measured = [ours.cell(label, dataset, rate, score) for rate in RATES]
            if any(measured):
                yield [entry.name, f"vedute, `{label}`{starts}", *map(_text, measured)]


def _protocols() -> str:
    rows = [[e.name, e.paper, *(getattr(e, k) for k in FACTS)] for e in entries()]
    rows.append(["vedute", "our runs", *(_file()["ours"][k] for k in FACTS)])
    return _table(["method", "by", *FACTS.values()], rows, numbers=0)


def _filled(text: str, ours: Summary) -> str:
    """Replace placeholders in the text with numbers from our records."""
    label, dataset = "mvp (paper)", "handwritten"
    accuracies = {k: [ours.cell(label, dataset, rate, k) for rate in RATES] for k in STARTS}
    paper = entries()[0].cells(dataset)
    cohorts = Summary.of(records.read(RESULTS / "cohorts" / "records.jsonl"))
    chain = cohorts.cell("mvp", "handwritten", "chain 1", "acc")
    numbers = {k: f"{_mean(cells):.1f}" for k, cells in accuracies.items()}
    numbers["published"] = f"{_mean(paper):.1f}"
    numbers["chain"] = f"{_mean([chain]):.1f}"
    for name, number in numbers.items():
        text = text.replace(f"{{{name}}}", number)
    return text


def _table(heads: Sequence[str], rows: Iterator[list[str]] | list[list[str]], numbers: int) -> str:
    """Markdown table whose last columns are numbers."""
    lines = [heads, ["---"] * (len(heads) - numbers) + ["--:"] * numbers, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    digits = 1 if cell.std is None else 2
    spread = "" if cell.std is None else f" ± {cell.std:.{digits}f}"
    return f"{cell.mean:.{digits}f}{spread}"


def _mean(cells: Sequence[Cell | None]) -> float:
    return fmean(cell.mean for cell in cells if cell is not None)


@cache
def _ours() -> Summary:
    known = [records.read(RESULTS / k / "records.jsonl") for k in ("clustering", "mvp-clustering")]
    return Summary.of([*known[0], *known[1]])


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
