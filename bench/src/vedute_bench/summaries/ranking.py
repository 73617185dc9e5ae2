"""Ranks of methods over the datasets of a table, as text and as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from vedute.figures.plots import BLUE, GREY, INK, panels, styled
from vedute_bench.metrics.significance import ALPHA, Comparison, Paired, alike, least_p

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEADS = ("method", "average rank", "mean ACC", "better than", "worse than", "p against the first")
COLUMNS = ("better_rank", "worse_rank", "datasets", "wins", "losses", "difference", "p_holm")
BAR = 0.45  # lines of text between two bars


def markdown(ranks: Comparison) -> str:
    """Table with a line per label: average rank, and numbers of labels it beats and loses to."""
    text = f"| {' | '.join(HEADS)} |\n|---{'|--:' * (len(HEADS) - 1)}|\n"
    sure = [t for t in ranks.tests if t.p < ALPHA]
    first = {t.worse: _p(t.p) for t in ranks.tests if t.better == ranks.labels[0]}
    for label, rank, mean in zip(ranks.labels, ranks.ranks, ranks.means, strict=True):
        wins = sum(_winner(t) == label for t in sure)
        losses = sum(label in (t.better, t.worse) for t in sure) - wins
        cells = [f"{rank:.2f}", f"{mean:.2f}", str(wins), str(losses), first.get(label, "–")]
        text += f"| {label} | {' | '.join(cells)} |\n"
    few = least_p(ranks.datasets)
    blind = f" No pair can pass it: over {ranks.datasets} datasets its p is at least {few:g}."
    return text + (
        f"\nOver {ranks.datasets} datasets, each the mean over its rates and seeds, which share "
        f"its samples. Friedman: chi² {ranks.chi2:.1f}, p {_p(ranks.p)}. Nemenyi: average ranks "
        f"differ where they lie more than {ranks.distance:.2f} apart. Better and worse: Wilcoxon's "
        f"signed-rank test, p < {ALPHA:g} after Holm's correction for all {len(ranks.tests)} pairs."
        f"{blind if few >= ALPHA else ''}\n"
    )


def comma_separated(ranks: Comparison) -> str:
    """CSV with a line per pair of labels."""
    lines = [
        (t.better, t.worse, ranks.datasets, t.wins, t.losses, round(t.difference, 5), f"{t.p:.4g}")
        for t in ranks.tests
    ]
    return pd.DataFrame(lines, columns=COLUMNS).to_csv(index=False, lineterminator="\n")


@styled
def diagram(ranks: Comparison) -> Figure:
    """Draw average ranks, the best at the left; bars join ranks that do not differ."""
    k, bars = len(ranks.labels), alike(ranks.ranks, ranks.distance)
    top = 0.8 + BAR * len(bars)  # of the first label, in lines below the axis
    lines = top + (k + 1) // 2
    figure, (ax,) = panels(1, (8.8, 0.2 * (lines + 3.5)))
    ax.set(xlim=(1 - 0.02 * k, 1.02 * k), ylim=(lines, -3))
    ax.set_axis_off()
    _axis(ax, k, ranks.distance)
    for i, (first, last) in enumerate(bars):
        ends = ranks.ranks[first] - 0.004 * k, ranks.ranks[last] + 0.004 * k
        height = 0.55 + BAR * i
        ax.plot(ends, (height, height), color=BLUE, linewidth=3, solid_capstyle="butt")
    for i, (label, rank) in enumerate(zip(ranks.labels, ranks.ranks, strict=True)):
        left = i < (k + 1) // 2
        edge, height = (1 - 0.02 * k, top + i) if left else (1.02 * k, top + k - 1 - i)
        ax.plot((rank, rank, edge), (0, height, height), color=GREY, linewidth=0.8, zorder=0)
        ha, words = ("right", (label, f"{rank:.1f}")) if left else ("left", (f"{rank:.1f}", label))
        ax.text(edge, height, f" {'  '.join(words)} ", ha=ha, va="center", fontsize=8.5)
    return figure


def _axis(ax: Axes, k: int, distance: float) -> None:
    """Draw the axis of ranks 1 .. k, and the critical difference."""
    ax.plot((1, k), (0, 0), color=INK, linewidth=1)
    for rank in range(1, k + 1, 1 + k // 16):
        ax.plot((rank, rank), (0, -0.3), color=INK, linewidth=1)
        ax.text(rank, -0.5, str(rank), ha="center", va="bottom", fontsize=8.5)
    ax.plot((1, 1 + distance), (-2.1, -2.1), "|-", color=BLUE, linewidth=1.4)
    text = f"  critical difference {distance:.2f}"
    ax.text(1 + distance, -2.1, text, ha="left", va="center", color=BLUE, fontsize=8.5)


def _winner(test: Paired) -> str:
    """Label with the better mean score, which usually has the better rank, too."""
    return test.better if test.difference > 0 else test.worse


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
