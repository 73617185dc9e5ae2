"""Tables and figures of generation runs: scores over the number of missing views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, takewhile
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from vedute.figures.plots import COLORS, GREY, panels, styled
from vedute_bench import studies
from vedute_bench.figures.lines import curve_with_band, legend_below
from vedute_bench.summaries.summary import Cell, Score, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCORES: Mapping[str, Score] = {
    "nmi": Score("NMI, one k-means start, %", 2),
    "nmi_ten": Score("NMI, ten k-means starts, %", 2),
    "same_clusters": Score("Same clusters as from all views, ARI, %", 2),
    "coherence_all": Score("Coherence, all views, %", 2),
    "coherence_missing": Score("Coherence, missing views, %", 2),
    "coherence_drawn_missing": Score("Coherence, missing, one draw, %", 2),
    "angle_all": Score("Angle, all views, %", 2),
    "angle_missing": Score("Angle, missing views, %", 2),
    "ssim_missing": Score("SSIM of missing views", 4),
    "ssim_given": Score("SSIM of given views", 4),
    "ssim_all": Score("SSIM, all views", 4),
}
ONCE: Mapping[str, Score] = {
    "generated_coherence": Score("samples of one class in all views, %", 2),
    "bits": Score("bits per entry of test samples", 3),
    "hidden_ssim": Score("SSIM of views hidden from training", 4),
    "hidden_error": Score("their mean squared error", 4),
}
FLOORS = {"(mean image)": "mean", "(nearest training sample)": "nearest"}
PANELS = ("nmi", "coherence_all", "coherence_drawn_missing", "angle_all", "ssim_missing")
STYLES = ("o-", "o--", "o-.", "o:")


class GenerationRow(NamedTuple):
    """Scores of a label on a dataset, trained at a rate: a cell per number of missing views.

    ours: measured here, not published by others.
    """

    dataset: str
    rate: float
    label: str
    cells: Sequence[Cell | None]
    ours: bool = True


def markdown(summary: Summary) -> str:
    missing = _missing(summary)
    heads = ["dataset", "trained at", "method", *(f"{m} missing" for m in missing)]
    text = ""
    for score, (title, digits) in SCORES.items():
        rows = list(_with_references(summary, score))
        if not rows:
            continue
        text += f"## {title}\n\n| {' | '.join(heads)} |\n|---|--:|---|{'--:|' * len(missing)}\n"
        for row in rows:
            rivals = [r for r in rows if r.ours and (r.dataset, r.rate) == (row.dataset, row.rate)]
            cells = [_text(row, i, rivals, digits) for i in range(len(missing))]
            text += f"| {row.dataset} | {row.rate:g} | {row.label} | {' | '.join(cells)} |\n"
        text += "\n"
    return text + _of_models(summary) + "".join(f"{line}\n" for line in _notes(summary))


def _of_models(summary: Summary) -> str:
    """Table of the scores that do not depend on the number of missing views."""
    rows = ""
    for dataset, rate in places(summary):
        for label in summary.labels:
            cells = [summary.cell(label, dataset, rate, k) for k in ONCE]
            if any(cells):
                digits = (score.digits for score in ONCE.values())
                texts = (cell_text(cell, n) for cell, n in zip(cells, digits, strict=True))
                rows += f"| {dataset} | {rate:g} | {label} | {' | '.join(texts)} |\n"
    heads = ["dataset", "trained at", "method", *(score.title for score in ONCE.values())]
    head = f"| {' | '.join(heads)} |\n|---|--:|---|{'--:|' * len(ONCE)}\n"
    return f"## Samples from no view, likelihood, hidden views\n\n{head}{rows}\n" if rows else ""


def comma_separated(summary: Summary) -> str:
    """One line per score, dataset, rate, label and number of missing views."""
    lines = [
        (score, row.dataset, row.rate, row.label, m, *cell.rounded(), cell.runs)
        for score in SCORES
        for row in _rows(summary, score)
        for m, cell in zip(_missing(summary), row.cells, strict=True)
        if cell is not None
    ]
    heads = ["score", "dataset", "rate", "label", "missing", "mean", "std", "runs"]
    return pd.DataFrame(lines, columns=heads).to_csv(index=False, lineterminator="\n")


def places(summary: Summary) -> list[tuple[str, float]]:
    """Pairs of a dataset and a rate with runs."""
    runs = {(dataset, rate) for _, dataset, rate in summary.records}
    by_rate = [(dataset, rate) for dataset, rate in runs if not isinstance(rate, str)]
    return sorted(by_rate, key=lambda place: (summary.datasets.index(place[0]), place[1]))


@styled
def curves(summary: Summary, dataset: str, rate: float) -> Figure:
    """Draw a panel per score over the number of missing views, with a line per label."""
    rows_of = {
        score: [r for r in _rows(summary, score) if (r.dataset, r.rate) == (dataset, rate)]
        for score in PANELS
    }
    shown = {score: rows for score, rows in rows_of.items() if rows}
    figure, axes = panels(len(shown), (1.0 + 2.9 * len(shown), 3.4))
    looks = _looks(summary)
    for ax, (score, rows) in zip(axes, shown.items(), strict=True):
        for row in rows:
            _line(ax, row, _missing(summary), looks)
        ax.set(title=SCORES[score].title, xlabel="missing views", xticks=_missing(summary))
    legend_below(figure, {str(line.get_label()): line for ax in axes for line in ax.get_lines()})
    return figure


def _looks(summary: Summary) -> dict[str, tuple[str, str]]:
    """Color and style of each label.

    A method has one color in all studies; the first is MVP's even if it was not run. Further labels
    of the same method have different dashes.
    """
    looks: dict[str, tuple[str, str]] = {}
    methods = list(dict.fromkeys(["mvp", *(summary.method(label) for label in summary.labels)]))
    for label in summary.labels:
        color = COLORS[methods.index(summary.method(label)) % len(COLORS)]
        before = sum(summary.method(known) == summary.method(label) for known in looks)
        looks[label] = color, STYLES[before % len(STYLES)]
    return looks


def _line(
    ax: Axes, row: GenerationRow, missing: Sequence[int], looks: Mapping[str, tuple[str, str]]
) -> None:
    known = [(m, c.mean, c.std or 0.0) for m, c in zip(missing, row.cells, strict=True) if c]
    at, means, stds = zip(*known, strict=True)
    if row.label in FLOORS:
        style = {"(mean image)": ":"}.get(row.label, "--")
        ax.plot(at, means, style, color=GREY, linewidth=1.4, label=row.label)
        return
    color, style = looks[row.label]
    curve_with_band(ax, at, means, stds, style, color, row.label)


def _rows(summary: Summary, score: str) -> Iterator[GenerationRow]:
    for place in places(summary):
        for label in summary.labels:
            cells = _cells(summary, label, place, score)
            if any(cells):
                yield GenerationRow(*place, label, cells)
        for floor, prefix in FLOORS.items():  # the same in every run
            by_label = (_cells(summary, k, place, f"{prefix}_{score}") for k in summary.labels)
            known = [cells for cells in by_label if any(cells)]
            yield from (GenerationRow(*place, floor, cells) for cells in known[:1])


def _with_references(summary: Summary, score: str) -> Iterator[GenerationRow]:
    """Rows, each followed by the numbers that others report for its method on other data."""
    for row in _rows(summary, score):
        yield row
        given = [_views(summary, row.dataset) - m for m in _missing(summary)]
        references = studies.references(row.label, row.dataset, row.rate, score)
        for source, values in references.items():
            cells = [Cell(values[g - 1]) if 1 <= g <= len(values) else None for g in given]
            yield GenerationRow(row.dataset, row.rate, f"*{source}*", cells, ours=False)


def _cells(summary: Summary, label: str, place: tuple[str, float], score: str) -> list[Cell | None]:
    given = [_views(summary, place[0]) - m for m in _missing(summary)]
    return [summary.cell(label, *place, f"{score}_{g}") for g in given]


def _views(summary: Summary, dataset: str) -> int:
    """Number of views of a dataset: one more than the most that were given with some missing."""
    return max(_given(summary, dataset, "nmi"), 1 + _given(summary, dataset, "ssim_missing"))


def _given(summary: Summary, dataset: str, score: str) -> int:
    """Largest number of given views with this score, which all smaller numbers have, too."""
    runs = [r for (_, name, _), rs in summary.records.items() if name == dataset for r in rs]
    exists = (any(f"{score}_{n}" in r["scores"] for r in runs) for n in count(1))
    return sum(takewhile(bool, exists))


def _missing(summary: Summary) -> list[int]:
    """Possible numbers of missing views, with 0 if that was evaluated."""
    whole = any(_given(summary, d, "nmi") == _views(summary, d) for d in summary.datasets)
    return list(range(not whole, max(_views(summary, d) for d in summary.datasets)))


def _text(row: GenerationRow, i: int, rivals: Sequence[GenerationRow], digits: int) -> str:
    cell = row.cells[i]
    if cell is None:
        return cell_text(cell, digits)
    best = max(round(c.mean, digits) for r in rivals if (c := r.cells[i]) is not None)
    marked = row.ours and len(rivals) > 1 and round(cell.mean, digits) == best
    return f"**{cell_text(cell, digits)}**" if marked else cell_text(cell, digits)


def cell_text(cell: Cell | None, digits: int) -> str:
    """Text of a mean, with its spread over several seeds."""
    if cell is None:
        return "–"
    std = f" ± {cell.std:.{digits}f}" if cell.std is not None and cell.runs > 1 else ""
    return f"{cell.mean:.{digits}f}{std}"


def _notes(summary: Summary) -> Iterator[str]:
    """Notes on numbers of seeds, accuracies of the classifiers, seconds and devices."""
    runs = [r for rs in summary.records.values() for r in rs]
    counts = [len(rs) for rs in summary.records.values()]
    seeds = sorted({min(counts), max(counts)})
    yield (
        f"- Means over the subsets of a size, then over {' to '.join(map(str, seeds))} seed(s) "
        "(± population standard deviation); images decoded at posterior means unless it says "
        "'one draw'; best **bold**. In *italics* what others report of the method above, on other "
        "data than ours."
    )
    for dataset in summary.datasets:
        on_dataset = [r for r in runs if r["dataset"] == dataset]
        for name in ("coherence", "angle"):
            accuracies = (r["scores"].get(f"classifier_{name}") for r in on_dataset)
            known = [a for a in accuracies if a is not None]
            if known:
                ends = sorted({f"{share:.2f}" for share in (min(known), max(known))}, key=float)
                share = f"{' to '.join(ends)} % of real images"
                yield f"- {dataset}: the classifiers that judge {name} are right on {share}."
    for (label, dataset, rate), rs in summary.records.items():
        minutes = sum(r["seconds"] for r in rs) / len(rs) / 60
        judged = sum(r["evaluation"] for r in rs) / len(rs)
        size = rs[0].get("parameters")
        large = f"{size / 1e6:.1f} million parameters, " if size else ""
        yield (
            f"- {label} on {dataset} at {rate:g}: {large}{minutes:.1f} min of training, "
            f"{judged:.0f} s of evaluation, {rs[0]['device']}."
        )
