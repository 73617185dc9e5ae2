"""Forest plot: contrasts in rows, estimates with intervals for every dataset and over all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vedute.figures.plots import COLORS, GREY, INK, panels, styled
from vedute_bench.figures.lines import legend_below
from vedute_bench.pages.paired import ALL, Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Mapping[str, Mapping[str, Estimate]]  # contrast -> dataset
STRIPE = "#f5f6f8"
HEIGHT, DATASET_HEIGHT = 0.22, 0.06  # inches of a row, and of each dataset in it


@styled
def forest(rows_by_score: Mapping[str, Rows], titles: Mapping[str, str]) -> Figure:
    """Draw a panel per score; `titles` are axis labels, and errors are ratios."""
    names = list(dict.fromkeys(name for rows in rows_by_score.values() for name in rows))
    estimates = (row for rows in rows_by_score.values() for row in rows.values())
    datasets = (k for row in estimates for k in row if k != ALL)
    colors = dict(zip(dict.fromkeys(datasets), COLORS, strict=False))
    size = 8.6, 1.3 + len(names) * (HEIGHT + DATASET_HEIGHT * len(colors))
    figure, axes = panels(len(rows_by_score), size, sharey=True)
    for ax, (score, rows) in zip(axes, rows_by_score.items(), strict=True):
        for i, name in enumerate(names):
            _row(ax, i, rows.get(name, {}), colors)
        ratio = score == "error"
        ax.axvline(1.0 if ratio else 0.0, color=GREY, linewidth=0.8, zorder=1)
        ax.set(xlabel=f"{titles[score]}\n(better to the {'left' if ratio else 'right'})")
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
    axes[0].set(ylim=(len(names) - 0.5, -0.5))
    axes[0].set_yticks(range(len(names)), names)
    lines = {str(k.get_label()): k for k in axes[0].get_lines() if k.get_marker() != "None"}
    legend_below(figure, lines)
    return figure


def _row(ax: Axes, i: int, row: Mapping[str, Estimate], colors: Mapping[str, str]) -> None:
    """Draw the estimate over all datasets, and below it those of the datasets."""
    if i % 2:
        ax.axhspan(i - 0.5, i + 0.5, color=STRIPE, zorder=0, linewidth=0)
    step = 0.78 / (len(colors) + 1)
    if ALL in row:
        _point(ax, i - 0.37, row[ALL], INK, "over all", "D", 2.0)
    for k, (dataset, color) in enumerate(colors.items()):
        if dataset in row:
            _point(ax, i - 0.37 + step * (k + 1.2), row[dataset], color, dataset, "o", 1.1)


def _point(
    ax: Axes, y: float, e: Estimate, color: str, label: str, marker: str, width: float
) -> None:
    ax.plot((e.low, e.high), (y, y), color=color, linewidth=width, alpha=0.8)
    size = 2.6 + 1.2 * width
    ax.plot([e.value], [y], marker, color=color, markersize=size, label=label)
