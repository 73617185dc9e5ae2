"""Figures of a score over the missing rate."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from vedute.figures.plots import COLORS, GREY, PALE, panels, styled
from vedute_bench.figures.lines import curve_with_band, legend_below
from vedute_bench.summaries.summary import PAPER, RAISED, SCORES, Summary, TableRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def rate_curves(summary: Summary, score: str) -> Figure:
    """Draw a panel per dataset, a line per label with a band of one std, and the paper's MVP.

    If there are more labels than colors, the best on average are colored. Labels with redrawn
    masks are left out.
    """
    rows = [row for row in summary.rows(score) if row.label in summary.labels]
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    labels = list(dict.fromkeys(row.label for row in rows if not summary.redrawn(row.label)))
    colors = dict(zip(_best(labels, rows, score), COLORS, strict=False))
    figure, axes = panels(len(datasets), (1.0 + 2.6 * len(datasets), 3.4))
    for ax, dataset in zip(axes, datasets, strict=True):
        for label in labels:
            _line(ax, summary, label, dataset, score, colors.get(label))
        _line(ax, summary, f"{PAPER}mvp", dataset, score, GREY)
        ax.set(title=dataset, xlabel="missing rate", xticks=summary.rates)
    axes[0].set_ylabel(SCORES[score].title)
    lines = {str(line.get_label()): line for ax in axes for line in ax.get_lines()}
    legend_below(figure, {k: lines[k] for k in (*colors, *lines) if k in lines})
    return figure


def _best(labels: Sequence[str], rows: Sequence[TableRow], score: str) -> list[str]:
    """Choose as many labels as there are colors, in their order; incomplete ones come last."""
    if len(labels) <= len(COLORS):
        return list(labels)
    means: dict[str, list[float]] = {label: [] for label in labels}
    for row in rows:
        if row.label in means:
            means[row.label] += [c.mean for c in row.cells[:-1] if c is not None]
    sign = 1 if score in RAISED else -1
    first = sorted(labels, key=lambda k: (-len(means[k]), -sign * fmean(means[k])))[: len(COLORS)]
    return [label for label in labels if label in first]


def _line(
    ax: Axes, summary: Summary, label: str, dataset: str, score: str, color: str | None
) -> None:
    cells = {rate: summary.cell(label, dataset, rate, score) for rate in summary.rates}
    known = {rate: cell for rate, cell in cells.items() if cell is not None}
    if not known:
        return
    rates, means = list(known), [c.mean for c in known.values()]
    if label.startswith(PAPER):
        ax.plot(rates, means, "--", color=color, linewidth=1.4, label=label)
        return
    if color is None:
        ax.plot(rates, means, "-", color=PALE, linewidth=1.0, zorder=0, label="others")
        return
    curve_with_band(ax, rates, means, [c.std or 0.0 for c in known.values()], "o-", color, label)
