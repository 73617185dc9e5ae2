"""Figures of a summary: a score over the missing rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vedute.report import COLORS, GREY, styled
from vedute.summary import PAPER, SCORES, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def rate_curves(summary: Summary, score: str) -> Figure:
    """One panel per dataset, one line per label with a band of one std; the paper dashed."""
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(row.dataset for row in summary.rows(score)))
    labels = dict.fromkeys(row.label for row in summary.rows(score) if row.label != PAPER)
    figure = Figure(figsize=(1.0 + 2.6 * len(datasets), 3.4), layout="constrained")
    panels = figure.subplots(1, len(datasets), squeeze=False)[0]
    for ax, dataset in zip(panels, datasets, strict=True):
        for i, label in enumerate(labels):
            _line(ax, summary, label, dataset, score, COLORS[i % len(COLORS)])
        _line(ax, summary, PAPER, dataset, score, GREY)
        ax.set(title=dataset, xlabel="missing rate", xticks=summary.rates)
    panels[0].set_ylabel(SCORES[score].title)
    lines = {line.get_label(): line for ax in panels for line in ax.get_lines()}
    columns = min(len(lines), 2 * len(datasets))
    figure.legend(
        lines.values(), lines.keys(), loc="outside lower center", ncols=columns, frameon=False
    )
    return figure


def _line(ax: Axes, summary: Summary, label: str, dataset: str, score: str, color: str) -> None:
    cells = {rate: summary.cell(label, dataset, rate, score) for rate in summary.rates}
    known = {rate: cell for rate, cell in cells.items() if cell is not None}
    if not known:
        return
    rates, means = list(known), [c.mean for c in known.values()]
    if label == PAPER:
        ax.plot(rates, means, "--", color=color, linewidth=1.4, label=label)
        return
    stds = [c.std or 0.0 for c in known.values()]
    low, high = ([m + sign * s for m, s in zip(means, stds, strict=True)] for sign in (-1, 1))
    ax.fill_between(rates, low, high, color=color, alpha=0.18, linewidth=0)
    ax.plot(rates, means, "o-", color=color, linewidth=1.8, markersize=3.5, label=label)
