"""Figures from arrays, records and names, in one style; `vedute.plot` computes what they show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

Array = NDArray[Any]
Records = Sequence[Mapping[str, Any]]
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
    "axes.edgecolor": "#9a9ea8",
    "axes.linewidth": 0.8,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10.0,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 3.0),
}
OFFSET: dict[str, Any] = {"textcoords": "offset points"}
SMALL: dict[str, Any] = {"fontsize": 8, "color": GREY}
NOTE = OFFSET | SMALL
CENTERED: dict[str, Any] = {"ha": "center", "va": "center"}
NUMBER = CENTERED | {"fontsize": 8.5}  # in the middle of a cell
MOST_POINTS = 5000  # t-SNE of more takes too long
EMPTY = "#eceef2"
RAMP = ("#f4f6f9", "#cfdcec", "#9cb7d8", "#6891c3", "#3c6aa1", "#1b3f6c")  # the report's
MOST_CELLS = 150  # with a number in each
NARROW = 4.5  # inches: figures without room for three columns of a legend
SEPARATE_FEATURES = 16  # at most: more are drawn as curves
MOST_DOTS = 400  # of one view
COLORED_CLASSES = 20
RIDGE_BINS, RIDGE_HEIGHT = 40, 0.85
DASHED: dict[str, Any] = {"color": GREY, "linewidth": 1, "linestyle": (0, (4, 3)), "zorder": 0}
FLAT = 0.06  # of all samples: patterns with fewer have no room for their number
MARKERS = "o^"  # the second ten classes have the colors of the first


@contextmanager
def style() -> Iterator[None]:
    """A context with our style only: `rc_context` would end the interactive mode of a notebook."""
    if find_spec("matplotlib") is None:
        raise ImportError("plots need matplotlib: pip install 'vedute[plots]'")
    from matplotlib import rcParams

    before = {name: rcParams[name] for name in STYLE}
    rcParams.update(STYLE)
    try:
        yield
    finally:
        rcParams.update(before)


styled = style()  # as a decorator


def missing(ax: Axes, mask: Array, names: Sequence[str], holes: Sequence[float]) -> None:
    """Draw samples by pattern; mask (n, L); holes (L,): share missing within observed views."""
    n, L = mask.shape
    counts = sorted(Counter(map(tuple, mask.tolist())).items(), key=lambda c: (-c[1], -sum(c[0])))
    ends = np.cumsum([0, *(count for _, count in counts)])
    cells = np.array([pattern for pattern, _ in counts]).T.astype(float)  # (L, patterns)
    ax.pcolormesh(ends, np.arange(L + 1) - 0.5, cells, cmap=_colors(EMPTY, BLUE), vmin=0, vmax=1)
    ax.hlines(np.arange(1, L) - 0.5, 0, n, color="white", linewidth=2.5)
    if len(counts) <= n / 4:
        ax.vlines(ends[1:-1], -0.5, L - 0.5, color="white", linewidth=0.8)
    for (_, count), start in zip(counts, ends, strict=False):
        if count > FLAT * n:
            ax.text(start + count / 2, -0.56, f"{count}", ha="center", va="bottom", **SMALL)
    notes = [f"{percent_of(part)} missing" for part in (~mask).mean(0)]
    inside = [f", {percent_of(hole)} of its values" if hole else "" for hole in holes]
    rows(ax, names, [note + more for note, more in zip(notes, inside, strict=True)])
    ax.set(xlim=(0, n), xlabel="samples, the most frequent pattern first")
    patterns = f"{len(counts)} pattern{'' if len(counts) == 1 else 's'}"
    titled(ax, f"Observed views: {patterns}, {percent_of(mask.all(1).mean())} complete")


def errors(ax: Axes, history: Records, kept: Mapping[str, Any], warm: int, second: int) -> None:
    """Draw the error on hidden views; warm, second: end of warm-up and start of refit, or 0."""
    checked = [r for r in history if r["hidden_error"] is not None]
    last = _stages(ax, history, warm, second)
    steps, values = ([r[k] for r in checked] for k in ("step", "hidden_error"))
    ax.plot(steps, values, color=BLUE, linewidth=1.8)
    step, least = kept["step"], kept["hidden_error"]
    ax.plot(step, least, "o", color=RED, markersize=7, zorder=3)
    usual = [v for v in values if v <= 3 * max(values[-1], 1.0)]  # the first ones may be huge
    top = 1.12 * max(*usual, 1.0)
    ax.set_ylim(0, top)
    # the label: on the side with more room, and below the curve unless that is near the axis
    side, x = (("left", 6), ("center", 0), ("right", -6))[min(int(3 * step / last), 2)]
    level, y = ("top", -8) if least / top > 0.2 else ("bottom", 8)
    look: dict[str, Any] = {"ha": side, "va": level, "color": RED}
    look["bbox"] = {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.8}
    ax.annotate(f"kept: step {step}, error {least:.3f}", (step, least), (x, y), **OFFSET, **look)
    ax.axhline(1, **DASHED)
    ax.annotate("mean of each feature", (last, 1), (-3, -3), ha="right", va="top", **NOTE)
    ax.set_ylabel("mean squared error\nin standard deviations")


def terms(ax: Axes, history: Records, warm: int, second: int) -> None:
    """Draw the terms of the loss over steps."""
    _stages(ax, history, warm, second)
    names = list(dict.fromkeys(k for r in history for k in r["terms"]))
    for name, color in zip(names, cycle(len(names)), strict=True):
        values = [r["terms"].get(name, np.nan) for r in history]
        words = name.replace("_", " ")
        ax.plot([r["step"] for r in history], values, color=color, linewidth=1.6, label=words)
    log = all(v > 0 for r in history for v in r["terms"].values())
    ax.set(yscale="log" if log else "linear", ylabel="value, logarithmic" if log else "value")
    legend(ax)


def _stages(ax: Axes, history: Records, warm: int, second: int) -> int:
    """Shade warm-up and refit, which hidden views do not end; return the last step."""
    last = int(max(r["step"] for r in history))
    for start, end, words in ((0, warm, "warm-up"), (second, last, "refit, with all views")):
        if end > start and (words == "warm-up" or second):
            ax.axvspan(start, end, color="#f1f2f5", zorder=0, linewidth=0)
            at = ((start + end) / 2, 1)
            how = NOTE | {"xycoords": ax.get_xaxis_transform(), "ha": "center", "va": "top"}
            if end - start > 0.12 * last:
                ax.annotate(words, at, (0, -4), **how)
    ax.set(xlim=(0, max(last, 1)), xlabel="step")
    ax.spines[["top", "right"]].set_visible(False)
    return last


def points(ax: Axes, places: Array, labels: Array | None, name: str) -> None:
    """Draw samples (n, 2) colored by label (n,): many numbers on a scale, rare classes in grey."""
    (x, y), size = places.T, float(np.clip(5000 / max(len(places), 1), 6, 36))
    style: dict[str, Any] = {"s": size, "alpha": 0.8, "linewidths": 0}
    if labels is None:
        ax.scatter(x, y, color=BLUE, **style)
    elif labels.dtype.kind in "iuf" and len(np.unique(labels)) > COLORED_CLASSES:
        known = np.isfinite(labels)
        ax.scatter(x[~known], y[~known], color=PALE, **style)
        colors = _colors(*RAMP[1:])
        _bar(ax, ax.scatter(x[known], y[known], c=labels[known], cmap=colors, **style), name)
    else:
        values, counts = np.unique(labels[~pd.isna(labels)], return_counts=True)
        shown = np.sort(values[np.argsort(-counts, kind="stable")[:COLORED_CLASSES]])
        for i, value in enumerate(shown):
            mine, words = labels == value, short(str(value), 24)
            marker, color = MARKERS[i // len(COLORS) % 2], COLORS[i % len(COLORS)]
            ax.scatter(x[mine], y[mine], color=color, marker=marker, label=words, **style)
        rest = ~np.isin(labels, shown)
        if rest.any():
            words = "unknown" if len(values) == len(shown) else "others"
            ax.scatter(x[rest], y[rest], color=PALE, zorder=0, label=words, **style)
        legend(ax, title=name, markerscale=float(np.sqrt(36 / size)))
    ax.set(xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[:].set_visible(False)


def hidden(ax: Axes, error: Array, base: Array, view: Array, names: Sequence[str]) -> None:
    """Draw the error of every hidden instance (h,), and that of mean-fill, by view (h,)."""
    top = float(error.max()) or 1.0
    low = max(float(error[error > 0].min(initial=top)), 1e-4 * top)
    notes, shown = [], [v for v in range(len(names)) if (view == v).any()]
    for r, v in enumerate(shown):
        mine, usual = np.sort(error[view == v]), base[view == v]
        sample = mine[np.linspace(0, len(mine) - 1, min(len(mine), MOST_DOTS)).round().astype(int)]
        off = 0.5 * (0.618 * np.arange(len(sample)) % 1 - 0.5)  # jitter, so that all are visible
        ax.scatter(sample.clip(low), r + off, s=11, color=BLUE, alpha=0.45, linewidths=0)
        marks = {"median": np.median(mine), "mean": mine.mean(), "mean-fill (mean)": usual.mean()}
        for (word, at), color in zip(marks.items(), (INK, RED, GREY), strict=True):
            label = "" if r else word  # one entry of the legend for all rows
            ax.vlines(max(at, low), r - 0.36, r + 0.36, color=color, linewidth=2.2, label=label)
        share = 1 - mine.sum() / usual.sum() if usual.sum() else np.nan
        notes.append(f"R² {share:.2f}, {len(mine)} hidden")
    ax.set(xscale="log", xlabel="mean squared error in standard deviations, logarithmic")
    rows(ax, [names[v] for v in shown], notes)
    legend(ax, above=True)


def matrix(ax: Axes, table: pd.DataFrame) -> None:
    """Draw shares of at most 1, a row per predicting view; the last row is set apart."""
    values, L = table.to_numpy(), table.shape[1]
    gap = 0.25  # before the last row
    at, rows = [*range(L), L + gap], np.r_[np.arange(L + 1) - 0.5, L - 0.5 + gap, L + 0.5 + gap]
    cells = np.insert(values, L, np.nan, axis=0)
    mesh = _mesh(ax, rows, cells, _colors(*RAMP), (0.0, 1.0))
    for r, v in np.argwhere(np.isnan(values)):
        if r != v:
            ax.text(v, at[r], "–", **CENTERED, color=GREY)
    if values.size <= MOST_CELLS:
        for r, v in np.argwhere(np.isfinite(values)):
            share = round(100 * values[r, v])
            color = RED if share < 0 else "white" if share > 55 else INK
            ax.text(v, at[r], str(share).replace("-", "−"), **NUMBER, color=color)
    _bar(ax, mesh, "variance explained", shares=True)
    names = [short(str(k), 18) for k in table.columns]
    long = max(map(len, names)) * L > 50
    turned: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(L), names, **(turned if long else {}))
    ax.set_yticks(at, [short(str(k), 18) for k in table.index])
    ax.set(ylim=(L + 0.5 + gap, -0.5), xlabel="predicted view", ylabel="from")


def profiles(ax: Axes, table: pd.DataFrame, sizes: Mapping[Any, int]) -> None:
    """Draw effects (features, clusters); sizes: samples by cluster."""
    values = table.to_numpy()
    reach = float(np.clip(np.nanmax(np.abs(values)), 0.5, 3.0))
    colors = _colors(RED, "#f6f4f3", BLUE)
    mesh = _mesh(ax, np.arange(len(values) + 1) - 0.5, values, colors, (-reach, reach))
    if values.size <= MOST_CELLS:
        for r, k in np.argwhere(np.isfinite(values)):
            x, color = values[r, k], "white" if abs(values[r, k]) > 0.65 * reach else INK
            text = f"{x:+.1f}".replace("-", "−") if abs(x) >= 0.05 else "0.0"
            ax.text(k, r, text, **NUMBER, color=color)
    _bar(ax, mesh, "difference from the others\nin standard deviations")
    ax.set_xticks(range(values.shape[1]), [f"{k}\nn={sizes[k]}" for k in table.columns])
    if values.shape[1] > 12:
        ax.tick_params(axis="x", labelsize=7)
    names = [f"{short(view, 14)} · {short(feature, 26)}" for view, feature in table.index]
    ax.set_yticks(range(len(values)), names)
    ax.set(ylim=(len(values) - 0.5, -0.5), xlabel="cluster")


def intervals(ax: Axes, table: pd.DataFrame, coverage: float) -> None:
    """Draw features of one sample: value, lower, upper (in standard deviations) and their text."""
    at, seen = np.arange(len(table)), table["observed"].to_numpy(bool)
    ax.axvline(0, color=PALE, linewidth=1, zorder=0)
    if (~seen).any():
        mine, y = table[~seen], at[~seen]
        ax.hlines(y, mine["lower"], mine["upper"], color=LIGHT_BLUE, linewidth=3.5)
        words = f"imputed, {100 * coverage:g} % interval"
        ax.plot(mine["value"], y, "o", color=BLUE, markersize=5.5, label=words)
    if seen.any():
        ax.plot(table["value"][seen], at[seen], "D", color=INK, markersize=4.5, label="observed")
    rows(ax, [short(str(k), 30) for k in table.index], list(table["text"]))
    low, high = table["lower"].min(), table["upper"].max()
    room = 0.04 * (max(high, 1.0) - min(low, -1.0))
    ax.set(xlim=(min(low, -1.0) - room, max(high, 1.0) + room))
    ax.set_xlabel("standard deviations from the mean of the data")
    legend(ax, above=True)


def image(ax: Axes, pixels: Array) -> None:
    """Draw an image (h, w), (1 or 3, h, w) or (h, w, 1 or 3)."""
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3):
        pixels = np.moveaxis(pixels, 0, -1)
    low, high = float(pixels.min()), float(pixels.max())
    level = (pixels - low) / ((high - low) or 1.0)
    ax.imshow(level if level.shape[2:] == (3,) else level.reshape(level.shape[:2]), cmap="gray")
    ax.set(xticks=[], yticks=[])


def explained(ax: Axes, scores: Mapping[str, Sequence[float]], names: Sequence[str]) -> None:
    """Draw R2 by view, a dot per method; the first method on top."""
    low = max(min(0.0, *map(min, scores.values())), -1.0)
    at, clipped = range(len(names)), np.maximum([*scores.values()], low)  # (methods, views)
    ax.hlines(at, clipped.min(0), clipped.max(0), color=PALE, linewidth=2, zorder=1)
    for i, (method, color) in enumerate(zip(scores, cycle(len(scores)), strict=True)):
        size, label = 64 if i == 0 else 34, short(method, 20)
        ax.scatter(clipped[i], at, size, color, zorder=9 - i, label=label, linewidths=0)
    rows(ax, names, [percent_of(value) for value in next(iter(scores.values()))])
    ax.set(xlim=(low - 0.03, 1.0), xlabel="variance of hidden views explained")
    ax.xaxis.set_major_formatter(lambda x, _: percent_of(x))
    ax.axvline(0, **DASHED)
    legend(ax, above=True)


def ridges(ax: Axes, shares: Mapping[str, Array]) -> None:
    """Draw a histogram of R2 by feature for every view, with the median of its features."""
    low = min(max(min(float(s.min()) for s in shares.values()), -0.5), 0.0) - 0.02
    edges = np.linspace(low, 1.0, RIDGE_BINS + 1)
    notes, middles = [], (edges[:-1] + edges[1:]) / 2
    for r, (share, color) in enumerate(zip(shares.values(), cycle(len(shares)), strict=True)):
        counts, ground = np.histogram(share.clip(low, 1.0), edges)[0], r + 0.4
        tops = ground - RIDGE_HEIGHT * counts / counts.max()
        ax.fill_between(middles, tops, ground, color=color, alpha=0.6, linewidth=0)
        median = float(np.median(share))
        ax.vlines(max(median, low), ground - RIDGE_HEIGHT, ground, color=INK, linewidth=2)
        notes.append(f"median {percent_of(median)}")
    rows(ax, list(shares), notes)
    ax.set(xlim=(low, 1.0), xlabel="variance of a feature explained")
    ax.xaxis.set_major_formatter(lambda x, _: percent_of(x))


def calibration(ax: Axes, levels: Array, curves: Sequence[tuple[str, Array]]) -> None:
    """Draw actual against nominal coverage of intervals; the first curve is the average."""
    ax.plot([0, 1], [0, 1], **DASHED)
    for i, ((name, covered), color) in enumerate(zip(curves, cycle(len(curves)), strict=True)):
        width, label, values = 2.0 if i == 0 else 1.1, short(name, 14), np.r_[0, covered, 1]
        ax.plot(np.r_[0, levels, 1], values, color=color, lw=width, label=label, zorder=9 - i)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="nominal coverage", ylabel="values inside")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda x, _: percent_of(x))
    legend(ax)


def sizes(ax: Axes, counts: Array, uncertain: Array) -> None:
    """Draw the sizes of clusters, their uncertain part (same shape) in a paler color."""
    at, certain = np.arange(len(counts)), counts - uncertain
    ax.barh(at, certain, height=0.7, color=BLUE, label="certain")
    ax.barh(at, uncertain, left=certain, height=0.7, color=PALE_BLUE, label="uncertain")
    rows(ax, [f"cluster {k}" for k in at], [str(n) for n in counts])
    ax.set(xlabel="samples", xlim=(0, None))
    if uncertain.any():
        legend(ax, above=True)


def labels(ax: Axes, counts: Array, names: Sequence[str], clusters: Sequence[int]) -> None:
    """Draw the share of each label (rows) in each cluster (columns), with counts."""
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    _mesh(ax, np.arange(len(shares) + 1) - 0.5, shares, _colors(*RAMP), (0.0, 1.0))
    if counts.size <= MOST_CELLS:
        for r, k in np.argwhere(counts > 0):
            color = "white" if shares[r, k] > 0.55 else INK
            ax.text(k, r, str(counts[r, k]), **NUMBER, color=color)
    ax.set_xticks(range(len(clusters)), [str(k) for k in clusters])
    ax.set_yticks(range(len(names)), [short(name, 16) for name in names])
    ax.set(ylim=(len(names) - 0.5, -0.5), xlabel="cluster", ylabel="label")


def stability(ax: Axes, curve: Mapping[str, Array]) -> None:
    """Draw the stability of clusterings by their number, beside data without clusters."""
    names = "n_clusters", "stability", "error", "chance"
    K, stable, error, chance = (curve[name].astype(float) for name in names)
    ax.errorbar(K, stable, error, color=BLUE, marker="o", markersize=4, label="these data")
    ax.plot(K, chance, color=GREY, marker="o", markersize=3, label="data without clusters")
    ax.set(ylim=(0, 1.02), xlabel="number of clusters", ylabel="agreement of two halves")
    legend(ax)


def instance(ax: Axes, feature: Array, truth: Array, inferred: tuple[Array, Array, Array]) -> None:
    """Draw one instance (p,): truth, and inferred mean, low and high; few features separately."""
    from matplotlib.ticker import MaxNLocator

    mean, low, high = inferred
    if len(feature) <= SEPARATE_FEATURES:
        ax.vlines(feature, low, high, color=LIGHT_BLUE, linewidth=3.5)
        ax.plot(feature, mean, "o", color=BLUE, markersize=5)
        ax.plot(feature, truth, "D", color=INK, markersize=3.5)
    else:
        ax.fill_between(feature, low, high, color=BLUE, alpha=0.2, linewidth=0)
        ax.plot(feature, mean, color=BLUE, linewidth=1.4)
        ax.plot(feature, truth, ".", color=INK, markersize=2.5)
    ax.set_xlabel("feature", **SMALL)
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.margins(x=0.03)


def short(name: str, most: int) -> str:
    """A name of at most so many characters, with dollar signs escaped from mathematics."""
    cut = name if len(name) <= most else f"{name[: most - 1]}…"
    return re.sub(r"(?<!\\)\$", r"\\$", cut)


def _mesh(ax: Axes, rows: Array, cells: Array, colors: Colormap, ends: tuple[float, float]) -> Any:
    """Draw colored cells between white lines; rows: their edges."""
    columns = np.arange(cells.shape[1] + 1) - 0.5
    style: dict[str, Any] = {"edgecolors": "white", "linewidth": 1.2 if cells.size < 900 else 0.3}
    mesh = ax.pcolormesh(
        columns, rows, np.ma.masked_invalid(cells), cmap=colors, vmin=ends[0], vmax=ends[1], **style
    )
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return mesh


def rows(ax: Axes, names: Sequence[str], notes: Sequence[str]) -> None:
    """Set up one row per name, top to bottom, with notes at the right."""
    n = len(names)
    size = 9.5 if n <= 12 else 7.5
    ax.set(ylim=(n - 0.5, -0.5))
    ax.set_yticks(range(n), [short(str(name), 30) for name in names], fontsize=size)
    right = ax.secondary_yaxis("right")
    right.set_yticks(range(n), list(notes), fontsize=min(size, 8), color=GREY)
    for side in (ax, right):
        side.tick_params(axis="y", length=0)
    right.spines[:].set_visible(False)
    ax.spines[["left", "top", "right"]].set_visible(False)


def legend(ax: Axes, above: bool = False, **look: Any) -> None:
    """Place the legend right of the Axes, or between them and the title, which `titled` sets."""
    look |= {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    if above:
        columns = 3 if ax.figure.bbox.width > NARROW * ax.figure.dpi else 2
        look |= {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": columns}
        look |= {"borderaxespad": 0.3, "borderpad": 0, "columnspacing": 1.4}
    ax.legend(frameon=False, fontsize=8.5, handletextpad=0.5, **look)


def titled(ax: Axes, title: str) -> None:
    """Set a title above the legend."""
    ax.set_title(title, pad=24)


def _bar(ax: Axes, drawn: Any, label: str, shares: bool = False) -> None:
    bar = ax.figure.colorbar(drawn, ax=ax, shrink=0.8, aspect=18, pad=0.02, label=label)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=8)
    if shares:
        bar.ax.yaxis.set_major_formatter(lambda x, _: percent_of(x))


def _colors(*colors: str) -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("vedute", colors)


def percent_of(share: float) -> str:
    """Format a share in percent; a positive one is never rounded to 0 %."""
    return "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


@styled
def embedding_map(embedding: Array, mean_filled: Array, y: Array) -> Figure:
    """A figure of representation (n, D) and mean-filled data (n, d), colored by y (n,)."""
    figure, axes = panels(2, (9.4, 4.2))
    shown = {"Mean-filled data": mean_filled, "Learned representation": embedding}
    for ax, (title, values) in zip(axes, shown.items(), strict=True):
        points(ax, plane(np.asarray(values, np.float64)), np.asarray(y), "class")
        ax.set_title(title)
    return figure


@styled
def inferred_images(
    images: Sequence[Array], shape: tuple[int, int], rows: list[int], notes: Sequence[str] = ()
) -> Figure:
    """A figure of images (n, height * width): truth, mean and reach of the interval; a column per
    sample of `rows`, with a note below it."""
    truth, mean, reach = images
    white, black = float(truth[rows].min()), float(truth[rows].max())
    low, high = float(reach[rows].min()), float(reach[rows].max())
    kinds = {
        "truth,\nnever shown": (truth, "gray_r", white, black),
        "inferred": (mean, "gray_r", white, black),
        "half of its\n90 % interval": (reach, "viridis", low, high),
    }
    figure = empty((0.86 * len(rows) + 1.2, 3.6))
    axes = figure.subplots(3, len(rows), squeeze=False)
    for k, (name, (pictures, colors, low, high)) in enumerate(kinds.items()):
        drawn = axes[k].tolist()
        for ax, row in zip(drawn, rows, strict=True):
            picture = ax.imshow(pictures[row].reshape(shape), cmap=colors, vmin=low, vmax=high)
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


def cycle(n: int) -> list[str]:
    """n colors."""
    return [COLORS[i % len(COLORS)] for i in range(n)]
