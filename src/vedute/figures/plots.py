"""Figures from arrays and records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[Any]
P = ParamSpec("P")
T = TypeVar("T")
INK, GREY, PALE, BLUE, RED = "#2b2d33", "#7b7f89", "#d5d8de", "#3f6fb5", "#c8452e"
LIGHT_BLUE, PALE_BLUE = "#8fa9cf", "#b9cbe6"
# M. Petroff, Accessible color sequences for data visualization (2021): safe for color-blind eyes
COLORS = [
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"),
]
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#9a9ea8",
    "axes.linewidth": 0.8,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 3.0,
    "ytick.major.size": 3.0,
}
OFFSET: dict[str, Any] = {"textcoords": "offset points"}
SMALL: dict[str, Any] = {"fontsize": 8, "color": GREY}
CENTERED: dict[str, Any] = {"ha": "center", "va": "center"}
MOST_PATTERNS = 24
MOST_POINTS = 5000  # t-SNE of more takes too long


@contextmanager
def style() -> Iterator[None]:
    """A context with the style of this package. Other parameters are untouched: the first figure
    of a notebook makes matplotlib interactive, which `rc_context` would undo."""
    from matplotlib import rcParams

    before = {name: rcParams[name] for name in STYLE}
    rcParams.update(STYLE)
    try:
        yield
    finally:
        rcParams.update(before)


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Draw in the style of this package; raise if matplotlib is not installed."""

    @wraps(draw)
    def drawn(*args: P.args, **options: P.kwargs) -> T:
        if find_spec("matplotlib") is None:
            raise ImportError("plots need matplotlib: pip install 'vedute[plots]'")
        with style():
            return draw(*args, **options)

    return drawn


@styled
def missing_pattern(mask: ArrayLike, names: Sequence[str]) -> Figure:
    """A figure of the missing patterns by frequency, and the share missing per view.

    mask (n, L), True = observed.
    """
    seen = np.asarray(mask, bool)
    n, L = seen.shape
    counts = Counter(map(tuple, seen.tolist())).most_common()
    shown, rest = counts[:MOST_PATTERNS], counts[MOST_PATTERNS:]
    figure = empty((max(6.5, 2.8 + 0.27 * len(shown)), 2.4 + 0.27 * L))
    axes = figure.subplot_mosaic(
        [["count", "text"], ["dots", "share"]],
        width_ratios=[max(3.0, 0.22 * len(shown)), 1.5],
        height_ratios=[1.6, 0.27 * L],
    )
    _pattern_bars(axes["count"], [c for _, c in shown], all(shown[0][0]))
    more = f"{len(rest)} rarer patterns: {sum(c for _, c in rest)} samples" if rest else ""
    axes["count"].set_title(f"{len(counts)} patterns of observed views")
    axes["count"].annotate(more, (1, 0.9), xycoords="axes fraction", ha="right", color=GREY)
    rows, slots = (~seen.all(1)).mean(), (~seen).mean()
    facts = f"{n} samples\n{rows:.0%} lack a view\n{slots:.0%} of all views\nare missing"
    axes["text"].text(0, 0.95, facts, va="top", linespacing=1.5)
    axes["text"].set_axis_off()
    _dots(axes["dots"], np.array([pattern for pattern, _ in shown]).T, names)
    lost = 100 * (~seen).mean(0)
    axes["share"].barh(range(L), lost, height=0.6, color=RED)
    for v, part in enumerate(lost):
        axes["share"].annotate(f"{part:.0f} %", (part, v), (4, 0), **OFFSET, va="center")
    axes["share"].set(ylim=(L - 0.5, -0.5), xlim=(0, max(1.35 * lost.max(), 1.0)))
    axes["share"].set(yticks=[], xticks=[], xlabel="missing")
    axes["share"].spines[:].set_visible(False)
    return figure


@styled
def embedding_map(embedding: Array, mean_filled: Array, y: Array) -> Figure:
    """A figure of representation (n, D) and mean-filled data (n, d), colored by y (n,)."""
    figure, axes = panels(2, (9.4, 4.9))
    shown = {"Mean-filled data": mean_filled, "Learned representation": embedding}
    for ax, (title, points) in zip(axes, shown.items(), strict=True):
        _scatter(ax, plane(np.asarray(points, np.float64)), np.asarray(y))
        ax.set_title(title)
    return figure


@styled
def inferred_images(
    truth: Array,
    mean: Array,
    reach: Array,
    shape: tuple[int, int],
    rows: Sequence[int],
    notes: Sequence[str] = (),
) -> Figure:
    """A figure of hidden images, inferred ones and the width of intervals, a column per sample.

    truth, mean, reach (n, height * width); notes: a text below each column.
    """
    shown = list(rows)
    white, black = float(truth[shown].min()), float(truth[shown].max())
    low, high = float(reach[shown].min()), float(reach[shown].max())
    kinds = {
        "truth,\nnever shown": (truth, "gray_r", white, black),
        "inferred": (mean, "gray_r", white, black),
        "half of its\n90 % interval": (reach, "viridis", low, high),
    }
    figure = empty((0.86 * len(shown) + 1.2, 3.6))
    axes = figure.subplots(3, len(shown), squeeze=False)
    for k, (name, (images, colors, low, high)) in enumerate(kinds.items()):
        drawn = axes[k].tolist()
        for ax, row in zip(drawn, shown, strict=True):
            picture = ax.imshow(images[row].reshape(shape), cmap=colors, vmin=low, vmax=high)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set(visible=k < 2, color=PALE)
        drawn[0].set_ylabel(name, rotation=0, ha="right", va="center", labelpad=8)
        if k == 2:
            bar = figure.colorbar(picture, ax=drawn, shrink=0.9, pad=0.01, aspect=9)
            bar.outline.set_visible(False)
            for ax, note in zip(drawn, notes, strict=bool(notes)):
                ax.set_xlabel(note, **SMALL)
    return figure


def panels(n: int, size: tuple[float, float], **grid: Any) -> tuple[Figure, Sequence[Axes]]:
    """A figure with n panels side by side."""
    figure = empty(size)
    return figure, figure.subplots(1, n, squeeze=False, **grid)[0].tolist()


def empty(size: tuple[float, float]) -> Figure:
    """A figure without pyplot: no window, no state."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained", facecolor="white")


def _pattern_bars(ax: Axes, heights: list[int], first_complete: bool) -> None:
    colors = [BLUE if i == 0 and first_complete else LIGHT_BLUE for i in range(len(heights))]
    ax.bar(range(len(heights)), heights, width=0.72, color=colors)
    for x, h in enumerate(heights):
        ax.annotate(str(h), (x, h), (0, 2), **OFFSET, ha="center", fontsize=7.5)
    ax.set(yscale="log", ylabel="samples", xticks=[], xlim=(-0.6, len(heights) - 0.4))
    ax.set_ylim(0.5 * min(heights), 2.0 * max(heights))


def _dots(ax: Axes, seen: NDArray[np.bool_], names: Sequence[str]) -> None:
    """Draw a dot per view and pattern, dark where `seen` (L, patterns)."""
    L, patterns = seen.shape
    for v, row in enumerate(seen):
        ax.axhline(v, color="#f3f4f7", linewidth=12, zorder=0)
        ax.scatter(range(patterns), [v] * patterns, s=44, color=[INK if s else PALE for s in row])
    ax.set(xticks=[], xlim=(-0.6, patterns - 0.4), ylim=(L - 0.5, -0.5))
    ax.set_xlabel("one column per pattern: dark observed, pale missing", color=GREY)
    ax.set_yticks(range(L), list(names))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def plane(points: Array) -> Array:
    """Map points (n, d) to (n, 2): t-SNE initialised with PCA, or PCA alone for many points."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if np.ptp(points, axis=0).max(initial=0.0) <= 1e-9 * np.abs(points).max(initial=0.0):
        return np.zeros((len(points), 2))  # identical points: t-SNE would divide by their spread
    flat = PCA(min(50, *points.shape), random_state=0).fit_transform(points)
    if not by_tsne(*points.shape):
        return np.pad(flat, ((0, 0), (0, 2)))[:, :2]
    perplexity = min(30.0, (len(flat) - 1) / 3)
    tsne = TSNE(2, init="pca", perplexity=perplexity, max_iter=500, random_state=0)
    return np.asarray(tsne.fit_transform(flat))


def by_tsne(n: int, d: int) -> bool:
    """Whether `plane` uses t-SNE, not PCA alone, for n points of d numbers."""
    return 10 <= n <= MOST_POINTS and d >= 2


def _scatter(ax: Axes, points: Array, y: Array) -> None:
    classes = np.unique(y)
    for label, color in zip(classes, cycle(len(classes)), strict=True):
        mine = points[y == label]
        ax.scatter(mine[:, 0], mine[:, 1], s=7, color=color, alpha=0.75, linewidths=0)
        if len(classes) <= 20:
            x, top = np.median(mine, axis=0)
            frame = {"boxstyle": "round,pad=0.2", "fc": "white", "ec": color, "alpha": 0.85}
            ax.text(x, top, str(label), **CENTERED, fontsize=11, fontweight="bold", bbox=frame)
    ax.set(xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[:].set_visible(False)


def cycle(n: int) -> list[str]:
    """n colors."""
    return [COLORS[i % len(COLORS)] for i in range(n)]
