"""Figures of the report page on one Axes, from arrays and names, in the style of `axes`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedute.figures import axes
from vedute.figures.plots import BLUE, GREY, INK, PALE, SMALL, cycle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[Any]
PALE_BLUE = "#b9cbe6"
RIDGE_BINS, RIDGE_HEIGHT = 40, 0.85
DASHED: dict[str, Any] = {"color": GREY, "linewidth": 1, "linestyle": (0, (4, 3)), "zorder": 0}


def explained(ax: Axes, scores: Mapping[str, Sequence[float]], names: Sequence[str]) -> None:
    """Draw R2 by view, a dot per method; the first method on top."""
    low = max(min(0.0, *(min(values) for values in scores.values())), -1.0)
    rows = range(len(names))
    clipped = np.array([np.maximum(values, low) for values in scores.values()])
    ax.hlines(rows, clipped.min(0), clipped.max(0), color=PALE, linewidth=2, zorder=1)
    for i, (method, color) in enumerate(zip(scores, cycle(len(scores)), strict=True)):
        style: dict[str, Any] = {"s": 64 if i == 0 else 34, "color": color, "zorder": 9 - i}
        ax.scatter(clipped[i], rows, label=axes.short(method, 20), linewidths=0, **style)
    best = next(iter(scores.values()))
    axes.rows(ax, names, [axes.percent_of(value) for value in best])
    ax.set(xlim=(low - 0.03, 1.0), xlabel="variance of hidden views explained")
    ax.xaxis.set_major_formatter(lambda x, _: axes.percent_of(x))
    ax.axvline(0, **DASHED)
    axes.legend_above(ax)


def ridges(ax: Axes, shares: Mapping[str, Array]) -> None:
    """Draw a histogram of R2 by feature for every view, with the median of its features."""
    low = min(max(min(float(s.min()) for s in shares.values()), -0.5), 0.0) - 0.02
    edges = np.linspace(low, 1.0, RIDGE_BINS + 1)
    notes, middles = [], (edges[:-1] + edges[1:]) / 2
    for r, (share, color) in enumerate(zip(shares.values(), cycle(len(shares)), strict=True)):
        counts, _ = np.histogram(share.clip(low, 1.0), edges)
        ground = r + 0.4
        tops = ground - RIDGE_HEIGHT * counts / counts.max()
        ax.fill_between(middles, tops, ground, color=color, alpha=0.6, linewidth=0)
        median = float(np.median(share))
        ax.vlines(max(median, low), ground - RIDGE_HEIGHT, ground, color=INK, linewidth=2)
        notes.append(f"median {axes.percent_of(median)}")
    axes.rows(ax, list(shares), notes)
    ax.set(xlim=(low, 1.0), xlabel="variance of a feature explained")
    ax.xaxis.set_major_formatter(lambda x, _: axes.percent_of(x))


def calibration(ax: Axes, levels: Array, curves: Sequence[tuple[str, Array]]) -> None:
    """Draw actual against nominal coverage of intervals; the first curve is the average."""
    ax.plot([0, 1], [0, 1], **DASHED)
    for i, ((name, covered), color) in enumerate(zip(curves, cycle(len(curves)), strict=True)):
        width = 2.0 if i == 0 else 1.1
        values = np.r_[0, covered, 1]
        label = axes.short(name, 14)
        ax.plot(
            np.r_[0, levels, 1], values, color=color, linewidth=width, label=label, zorder=9 - i
        )
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="nominal coverage", ylabel="values inside")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda x, _: axes.percent_of(x))
    axes.legend(ax)


def sizes(ax: Axes, counts: Array, uncertain: Array) -> None:
    """Draw the sizes of clusters, their uncertain part (same shape) in a paler color."""
    at = np.arange(len(counts))
    ax.barh(at, counts - uncertain, height=0.7, color=BLUE, label="certain")
    paler: dict[str, Any] = {"color": PALE_BLUE, "label": "uncertain"}
    ax.barh(at, uncertain, left=counts - uncertain, height=0.7, **paler)
    axes.rows(ax, [f"cluster {k}" for k in at], [str(n) for n in counts])
    ax.set(xlabel="samples", xlim=(0, None))
    if uncertain.any():
        axes.legend_above(ax)


def labels(ax: Axes, counts: Array, names: Sequence[str], clusters: Sequence[int]) -> None:
    """Draw the share of each label (rows) in each cluster (columns), with counts."""
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    axes.cells(ax, shares, counts)
    ax.set_xticks(range(len(clusters)), [str(k) for k in clusters])
    ax.set_yticks(range(len(names)), [axes.short(name, 16) for name in names])
    ax.set(ylim=(len(names) - 0.5, -0.5), xlabel="cluster", ylabel="label")


def stability(ax: Axes, curve: Mapping[str, Array]) -> None:
    """Draw the stability of clusterings by their number, beside data without clusters."""
    K, stable, error, chance = (
        curve[k].astype(float) for k in ("n_clusters", "stability", "error", "chance")
    )
    ax.errorbar(K, stable, error, color=BLUE, marker="o", markersize=4, label="these data")
    ax.plot(K, chance, color=GREY, marker="o", markersize=3, label="data without clusters")
    ax.set(ylim=(0, 1.02), xlabel="number of clusters", ylabel="agreement of two halves")
    ax.spines[["top", "right"]].set_visible(False)
    axes.legend(ax)


def instance(ax: Axes, feature: Array, truth: Array, inferred: tuple[Array, Array, Array]) -> None:
    """Draw one instance (p,): truth, and inferred mean, low and high; few features separately."""
    from matplotlib.ticker import MaxNLocator

    mean, low, high = inferred
    if len(feature) <= axes.SEPARATE_FEATURES:
        ax.vlines(feature, low, high, color="#8fa9cf", linewidth=3.5)
        ax.plot(feature, mean, "o", color=BLUE, markersize=5)
        ax.plot(feature, truth, "D", color=INK, markersize=3.5)
    else:
        ax.fill_between(feature, low, high, color=BLUE, alpha=0.2, linewidth=0)
        ax.plot(feature, mean, color=BLUE, linewidth=1.4)
        ax.plot(feature, truth, ".", color=INK, markersize=2.5)
    ax.set_xlabel("feature", **SMALL)
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.margins(x=0.03)
