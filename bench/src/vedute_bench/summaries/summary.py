"""Summaries of records: mean and population std over seeds, and the paper's numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from statistics import fmean, pstdev
from typing import Any, NamedTuple

from vedute_bench import studies
from vedute_bench.runner import recipes
from vedute_bench.runner.records import BERNOULLI, RunRecord, best_pair

PAPER = "the paper's "
PAIRS = ", mean over pairs"
Place = float | str  # a column: a rate, with the protocol if records have several
Runs = Mapping[tuple[str, str, Place], Sequence[RunRecord]]  # by label, dataset and rate
CLUSTERING = ("acc", "nmi", "ari")
# Scores where higher is better.
RAISED = tuple(f"{how}{k}" for how in ("", "kmeans_", "one_start_") for k in CLUSTERING)


class Score(NamedTuple):
    """Format of a score: title, and digits after the decimal point."""

    title: str
    digits: int


SCORES: Mapping[str, Score] = {
    "acc": Score("Clustering accuracy (ACC), %", 2),
    "nmi": Score("Normalized mutual information (NMI), %", 2),
    "ari": Score("Adjusted Rand index (ARI), %", 2),
    "kmeans_acc": Score(
        "ACC of k-means on the representation, where labels have another rule, %", 2
    ),
    "kmeans_nmi": Score("NMI of k-means on the representation, %", 2),
    "kmeans_ari": Score("ARI of k-means on the representation, %", 2),
    "one_start_acc": Score("ACC of k-means with one start, %", 2),
    "one_start_nmi": Score("NMI of k-means with one start, %", 2),
    "one_start_ari": Score("ARI of k-means with one start, %", 2),
    "error": Score("Error of hidden views (1 is the mean)", 3),
    "coverage": Score("Coverage of 90 % intervals, %", 1),
    "crps": Score("CRPS of hidden views, in standard deviations", 3),
    "seconds": Score("Seconds of fit", 2),
}


class Cell(NamedTuple):
    mean: float
    std: float | None = None
    runs: int = 0

    def rounded(self) -> tuple[float, float]:
        """Mean and std with the digits of CSV files."""
        return round(self.mean, 5), round(self.std or 0.0, 5)


class TableRow(NamedTuple):
    """Line of a table: a cell per rate, then their mean; marks are "best", "second" or ""."""

    dataset: str
    label: str
    cells: Sequence[Cell | None]
    marks: Sequence[str]


@dataclass(frozen=True)
class Summary:
    """Records by their place in a table."""

    labels: Sequence[str]
    datasets: Sequence[str]
    rates: Sequence[Place]
    records: Runs
    tried: Runs = field(default_factory=dict)  # the searches, one run per pair of views

    @classmethod
    def of(cls, records: Iterable[RunRecord]) -> Summary:
        """Summarize records; a run with other settings or another mask replaces earlier ones.

        If there are runs on several pairs of views, `records` has those on the best pair and
        `tried` has all.
        """
        records = list(records)
        several = len({_protocol(r) for r in records}) > 1
        cells: dict[tuple[str, str, Place], dict[tuple[int, str], RunRecord]] = {}
        for r in records:
            column = _column(_protocol(r), r["rate"]) if several else r["rate"]
            cell = cells.setdefault((_label(r), r["dataset"], column), {})
            if any(not _same_recipe(old, r) for old in cell.values()):
                cell.clear()
            cell[r["seed"], str(r.get("pair"))] = r
        runs = {place: _on_best_pair(list(cell.values())) for place, cell in cells.items()}
        tried = {k: [r for r in cell.values() if "pair_score" in r] for k, cell in cells.items()}
        names = {r["study"] for rs in runs.values() for r in rs} & set(studies.available())
        known = [studies.load(name) for name in sorted(names)]
        labels = [entry.label for study in known for entry in study.entries]
        datasets = [dataset for study in known for dataset in study.datasets]
        columns = [_column(*how) for study in known for how in study.hidden()]
        rates = {rate for _, _, rate in runs}
        return cls(
            _ordered((label for label, _, _ in runs), labels),
            _ordered((dataset for _, dataset, _ in runs), datasets),
            _ordered(map(str, rates), columns) if several else sorted(rates),
            runs,
            {place: searches for place, searches in tried.items() if searches},
        )

    def by_rate(self) -> bool:
        """Whether columns are rates of one protocol."""
        return not any(isinstance(rate, str) for rate in self.rates)

    def cell(self, label: str, dataset: str, rate: Place, score: str) -> Cell | None:
        """Mean and population std of a score over seeds.

        With the prefix PAPER on the label, the published numbers; with the suffix PAIRS, mean and
        std over all pairs of views with one seed.
        """
        if label.startswith(PAPER):
            numbers = studies.published(label.removeprefix(PAPER))
            published = None if isinstance(rate, str) else numbers.get((dataset, score, rate))
            return None if published is None else Cell(*published)
        pairs = label.endswith(PAIRS)
        place = label.removesuffix(PAIRS), dataset, rate
        runs = (self.tried if pairs else self.records).get(place, [])
        values = [r["seconds"] if score == "seconds" else r["scores"].get(score) for r in runs]
        known = [v for v in values if v is not None]
        return Cell(fmean(known), pstdev(known), 0 if pairs else len(known)) if known else None

    def rows(self, score: str) -> list[TableRow]:
        """Rows of the table of a score, without labels and datasets that lack the score."""
        rows = []
        for dataset in self.datasets:
            grid = {}
            for label in self._lines():
                cells = [self.cell(label, dataset, rate, score) for rate in self.rates]
                if any(cells):
                    mixed = score == "seconds" and len(self._devices(label, dataset)) > 1
                    grid[label] = [*cells, None if mixed else _mean(cells)]
            if not any(label in self.labels for label in grid):
                continue
            rivals = [label for label in grid if label in self.labels and not self.redrawn(label)]
            columns = zip(*(grid[label] for label in rivals), strict=True)
            marked = zip(*(_marks(column, score) for column in columns), strict=True)
            marks = dict(zip(rivals, marked, strict=True))
            rows += [TableRow(dataset, k, c, marks.get(k, [""] * len(c))) for k, c in grid.items()]
        return rows

    def method(self, label: str) -> str:
        """Method of a label; variants of MVP are MVP."""
        method = next(rs[0]["method"] for (k, _, _), rs in self.records.items() if k == label)
        return "mvp" if method == "paper_mvp" else str(method)

    def redrawn(self, label: str) -> bool:
        """Whether class labels chose the pair, on redrawn masks, so that scores do not compare."""
        runs = (r for (k, _, _), rs in self.records.items() if k == label for r in rs)
        return any(r.get("redraw") for r in runs)

    def comparable(self, score: str) -> dict[str, list[float]]:
        """Means over the rates of each dataset, for labels with all rates of all datasets."""
        places = sorted({(dataset, rate) for _, dataset, rate in self.records})
        means_of = {}
        for label in self.labels:
            blocks: dict[str, list[Cell | None]] = {}
            for dataset, rate in places:
                blocks.setdefault(dataset, []).append(self.cell(label, dataset, rate, score))
            means = [cell.mean for cell in map(_mean, blocks.values()) if cell is not None]
            if len(means) == len(blocks) and not self.redrawn(label):
                means_of[label] = means
        return means_of

    def against_paper(self, label: str, score: str) -> str | None:
        """Sentence that compares a label with the paper's cells of its method."""
        for source in reversed(studies.sources(self.method(label))):
            pairs = []
            for dataset, rate in product(self.datasets, self.rates):
                ours = self.cell(label, dataset, rate, score)
                paper = self.cell(PAPER + source, dataset, rate, score)
                if ours is not None and paper is not None:
                    pairs.append((ours.mean, paper.mean, paper.std))
            if pairs:
                return f"{label}: {_beside(pairs, source.partition(',')[2])}"
        return None

    def _devices(self, label: str, dataset: str) -> set[str]:
        """Devices of the runs; times are averaged only on one device."""
        runs = (self.records.get((label, dataset, rate), []) for rate in self.rates)
        return {str(r["device"]) for rs in runs for r in rs}

    def _lines(self) -> Iterator[str]:
        """Labels of the table's lines.

        A label is followed by its mean over pairs of views, if several were tried, and the last
        label of a method by the paper's numbers.
        """
        last = {self.method(label): label for label in self.labels}
        searched = {label for label, _, _ in self.tried}
        for label in self.labels:
            yield label
            if label in searched:
                yield label + PAIRS
            if last[self.method(label)] == label:
                yield from (PAPER + source for source in studies.sources(self.method(label)))


def _beside(pairs: Sequence[tuple[float, float, float | None]], how: str) -> str:
    """Sentence on cells with our mean, the paper's mean and its std, if there is one."""
    ours_mean, paper_mean = fmean(p[0] for p in pairs), fmean(p[1] for p in pairs)
    near = sum(ours >= mean - (std or 0.0) for ours, mean, std in pairs)
    least = "its mean" if pairs[0][2] is None else "its mean minus one std"
    return (
        f"{ours_mean:.2f} over the {len(pairs)} cells that the paper reports, where it has "
        f"{paper_mean:.2f}{how}; at least {least} in {near} of {len(pairs)}."
    )


def _label(r: RunRecord) -> str:
    """Label of a run with the user's overrides: mvp (steps=10)."""
    changed = ", ".join(f"{k}={v}" for k, v in r["overrides"].items())
    return f"{r['label']} ({changed})" if changed else str(r["label"])


def _protocol(r: RunRecord) -> str:
    """Protocol of a record; old records lack it and all have the same."""
    return str(r.get("protocol", BERNOULLI))


def _column(protocol: str, rate: float) -> str:
    return f"{protocol} {rate:g}"


def _same_recipe(a: RunRecord, b: RunRecord) -> bool:
    """Whether two runs differ only in their seeds or in settings of the display."""
    return a["mask"] == b["mask"] and _recipe(a) == _recipe(b)


def _recipe(r: RunRecord) -> dict[str, Any]:
    changed = recipes.changed(r["method"], r["settings"])
    return {k: v for k, v in changed.items() if k != "random_state"}


def _on_best_pair(runs: list[RunRecord]) -> list[RunRecord]:
    best = best_pair(runs)
    return [r for r in runs if best is None or tuple(r["pair"]) == best]


def _ordered(names: Iterable[str], known: list[str]) -> list[str]:
    """Sort names as in the study; names that it lacks come last."""
    return sorted(set(names), key=lambda k: (known.index(k) if k in known else len(known), k))


def _mean(cells: Sequence[Cell | None]) -> Cell | None:
    means = [c.mean for c in cells if c is not None]
    return Cell(fmean(means)) if len(means) == len(cells) else None


def _marks(column: Sequence[Cell | None], score: str) -> list[str]:
    """Mark best and second of a column; numbers that round to the same are equal."""
    worth = [
        None if c is None else _cost(round(c.mean, SCORES[score].digits), score) for c in column
    ]
    ranks = sorted({w for w in worth if w is not None})
    words = dict(zip(ranks, ("best", "second"), strict=False)) if len(ranks) > 1 else {}
    return ["" if w is None else words.get(w, "") for w in worth]


def _cost(value: float, score: str) -> float:
    """Cost of a score, lower is better; intervals of 90 % should cover 90 %."""
    return -value if score in RAISED else abs(value - 90) if score == "coverage" else value
