"""The figures of mvp.md, light and dark: python docs/figures.py (needs matplotlib).

One sample with four views, of which the third is missing; the color is that of the view from which
a latent comes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

HERE = Path(__file__).parent / "images"
VIEWS = ("blood", "scan", "genes", "survey")
MISSING = 2
SEEN = tuple(v for v in range(len(VIEWS)) if v != MISSING)
CYCLES = ((1, 3, 2, 0), (3, 0, 2, 1), (1, 3, 2, 0), (3, 0, 2, 1))  # [j][i]: the source
PLACES = (-0.7, 0.6, 0.1, -0.2)  # the latent of each view
ERRORS = (-0.35, 0.35, 0.0, 0.2)  # of the correspondences from each view


class Ink(NamedTuple):
    """The colors of one theme."""

    text: str
    faint: str
    empty: str
    cell: str
    views: tuple[str, ...]


LIGHT = Ink(
    text="#24262d",
    faint="#6b7280",
    empty="#c3c7ce",
    cell="#ffffff",
    views=("#3f6fb5", "#c9462c", "#8a8f98", "#2f8f6b"),
)
DARK = Ink(
    text="#e6e8ec",
    faint="#9aa1ad",
    empty="#555b68",
    cell="#262a33",
    views=("#7da7e8", "#ef8268", "#8a8f98", "#63c79f"),
)


def main() -> None:
    drawings: dict[str, Callable[[Ink], Figure]] = {
        "table": table,
        "permutation": permutation,
        "consensus": consensus,
    }
    style = {"font.family": "DejaVu Sans", "font.size": 10, "svg.hashsalt": "vedute"}
    for name, draw in drawings.items():
        for ink, suffix in ((LIGHT, ""), (DARK, "-dark")):
            with rc_context(style | {"text.color": ink.text}):
                text = StringIO()
                draw(ink).savefig(text, format="svg", transparent=True, metadata={"Date": None})
            slim = re.sub(r' d="[^"]*"', _rounded, text.getvalue())
            (HERE / f"mvp-{name}{suffix}.svg").write_text(slim, encoding="utf-8")


def _rounded(path: re.Match[str]) -> str:
    """A path with one decimal after the point, which is enough."""
    short = re.sub(r"-?\d+\.\d+", lambda x: f"{float(x[0]):.1f}".removesuffix(".0"), path[0])
    return " ".join(short.split()).replace('d="', ' d="', 1)


def table(ink: Ink) -> Figure:
    """The latent of every view from every view."""
    figure, ax = _canvas(9.2, 3.75, (-3.75, 8.65), (4.2, -0.85))
    _heads(ax, ink, rows=False)
    for i in range(4):
        y = i + 0.5
        for j in range(4):
            _cell(ax, j, i, i, ink)
        if i == MISSING:
            _card(ax, -3.65, y, 1.4, VIEWS[i], ink, ink.empty, dashed=True)
            ax.text(-1.1, y, "not measured", color=ink.faint, va="center", ha="center", size=9)
        else:
            _card(ax, -3.65, y, 1.4, VIEWS[i], ink, ink.views[i])
            _arrow(ax, (-2.2, y), (0.02, y), ink.views[i])
            ax.text(-1.1, y - 0.13, "encoder", color=ink.faint, fontsize=8.5, ha="center")
    notes = (
        ("heavy frame: the latent of a view", "by its own encoder"),
        ("light frame: the latent of another view,", "by a correspondence (a small network)"),
        ("a missing view gives no latents,", "but the others predict its latent"),
        ("one column, one latent:", "the observed views should agree"),
    )
    for i, lines in enumerate(notes):
        for line, at in zip(lines, (0.35, 0.67), strict=True):
            _note(ax, 4.45, i + at, line, ink, "left")
    return figure


def permutation(ink: Ink) -> Figure:
    """The table, and the table with every column turned among the observed views."""
    figure, ax = _canvas(9.2, 4.35, (-1.35, 10.75), (4.75, -0.95))
    away = 6.6
    for shift in (0.0, away):
        _heads(ax, ink, shift, rows=shift == 0)
    for i, name in enumerate(VIEWS):
        color = ink.empty if i == MISSING else ink.views[i]
        ax.text(-0.1, i + 0.5, name, color=color, ha="right", va="center")
        for j in range(4):
            _cell(ax, j, i, i, ink)
            _cell(ax, j, i, CYCLES[j][i], ink, away)
    _arrow(ax, (4.2, 2.0), (6.4, 2.0), ink.faint)
    _note(ax, 5.3, 1.72, "turn each column", ink, "center")
    _note(ax, 5.3, 2.28, "in a cycle through", ink, "center")
    _note(ax, 5.3, 2.58, "the observed views", ink, "center")
    _note(ax, 2.0, 4.4, "the table  Z⁰", ink, "center", size=10.5)
    _note(ax, away + 2.0, 4.4, "the turned table  Z¹", ink, "center", size=10.5)
    return figure


def consensus(ink: Ink) -> Figure:
    """Products along rows and columns, and what a product is."""
    figure = Figure(figsize=(9.2, 4.15))
    ax = figure.add_axes((0.0, 0.0, 0.63, 1.0))
    _bare(ax, (-1.3, 7.0), (5.45, -0.95))
    _heads(ax, ink)
    for i, name in enumerate(VIEWS):
        y = i + 0.5
        color = ink.empty if i == MISSING else ink.views[i]
        ax.text(-0.1, y, name, color=color, ha="right", va="center")
        for j in range(4):
            _cell(ax, j, i, i, ink)
        if i != MISSING:
            _arrow(ax, (4.0, y), (4.45, y), color)
            _bell(ax, 4.5, y, color, ink, 0.76, width=0.6)
            _arrow(ax, (5.32, y), (5.88, 2.0 + 0.2 * (y - 2.0)), ink.faint)
    ax.text(4.88, -0.2, "wᵢ", ha="center", color=ink.faint, fontsize=9)
    _bell(ax, 5.93, 2.0, ink.text, ink, 0.86, bold=True, width=0.4)
    _note(ax, 6.38, 2.68, "w, the", ink, "center")
    _note(ax, 6.38, 2.94, "consensus", ink, "center")
    _arrow(ax, (2.5, 4.0), (2.5, 4.4), ink.faint)
    _bell(ax, 2.07, 4.85, ink.text, ink, 0.86, bold=True, at=PLACES[2], width=0.4)
    _note(ax, 3.1, 4.7, "the latent of genes,", ink, "left")
    _note(ax, 3.1, 4.98, "which were not measured", ink, "left")
    _product(figure.add_axes((0.675, 0.25, 0.31, 0.56)), ink)
    return figure


def _product(ax: Axes, ink: Ink) -> None:
    """Three posteriors and their product."""
    x = np.linspace(-4.2, 4.6, 121)
    means, widths = np.array([-0.9, 1.1, 0.45]), np.array([0.85, 1.15, 0.6])
    for v, mean, width in zip(SEEN, means, widths, strict=True):
        ax.plot(x, _normal(x, mean, width), color=ink.views[v], linewidth=1.4)
        ax.fill_between(x, _normal(x, mean, width), color=ink.views[v], alpha=0.12, linewidth=0)
    precision = (widths**-2).sum()
    mean, width = (means * widths**-2).sum() / precision, precision**-0.5
    ax.plot(x, _normal(x, mean, width), color=ink.text, linewidth=2.4)
    ax.text(mean + 0.55, _normal(mean, mean, width) * 0.95, "product", weight="bold", va="center")
    ax.set_title("several posteriors, one consensus", fontsize=10.5, loc="left", pad=14)
    ax.set_yticks([])
    ax.set_xticks([])
    for side in ("left", "top", "right"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(ink.empty)
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(0, _normal(mean, mean, width) * 1.06)
    for at, line in enumerate(("precisions add up; the mean is", "weighted by precision")):
        ax.text(0, -0.1 - 0.09 * at, line, transform=ax.transAxes, color=ink.faint, fontsize=9)
    ax.patch.set_visible(False)


def _normal(x: float | np.ndarray, mean: float, width: float) -> np.ndarray:
    return np.exp(-0.5 * ((np.asarray(x) - mean) / width) ** 2) / width


def _canvas(
    width: float, height: float, across: tuple[float, float], down: tuple[float, float]
) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height))
    ax = figure.add_axes((0, 0, 1, 1))
    _bare(ax, across, down)
    return figure, ax


def _bare(ax: Axes, across: tuple[float, float], down: tuple[float, float]) -> None:
    ax.set(xlim=across, ylim=down, aspect="equal")
    ax.axis("off")


def _heads(ax: Axes, ink: Ink, shift: float = 0.0, rows: bool = True) -> None:
    ax.text(2.0 + shift, -0.62, "latent of …", ha="center", color=ink.faint, fontsize=9)
    for j, name in enumerate(VIEWS):
        ax.text(j + 0.5 + shift, -0.15, name, ha="center", fontsize=9.5)
    if rows:
        ax.text(-0.1, -0.15, "from …", ha="right", color=ink.faint, fontsize=9)


def _cell(ax: Axes, j: int, i: int, source: int, ink: Ink, shift: float = 0.0) -> None:
    """The latent of view j from view `source`, in row i; dashes where that is missing."""
    x, y = j + shift + 0.07, i + 0.5
    if source == MISSING:
        _frame(ax, x + 0.03, y, 0.8, ink.empty, dashed=True)
        return
    own = source == j
    at = PLACES[j] + (0.0 if own else ERRORS[source])
    _bell(ax, x, y, ink.views[source], ink, 0.86, own, at, 0.55 if own else 0.75)


def _bell(
    ax: Axes,
    x: float,
    y: float,
    color: str,
    ink: Ink,
    size: float,
    bold: bool = False,
    at: float = 0.0,
    width: float = 0.7,
) -> None:
    """A small Gaussian in a frame, its left edge at x."""
    _frame(ax, x, y, size, color, ink.cell, bold)
    t = np.linspace(-2.4, 2.4, 33)
    curve = np.exp(-0.5 * ((t - at) / width) ** 2) * (0.55 / width) ** 0.5
    across, base = x + size * (0.5 + t / 5.6), y + 0.32 * size
    top = base - 0.58 * size * curve
    ax.fill_between(across, base, top, color=color, alpha=0.22, linewidth=0)
    ax.plot(across, top, color=color, linewidth=1.3)


def _frame(
    ax: Axes,
    x: float,
    y: float,
    size: float,
    color: str,
    inside: str = "none",
    bold: bool = False,
    dashed: bool = False,
    width: float | None = None,
) -> None:
    """A box with round corners, its left edge at x and centered at y."""
    box = FancyBboxPatch(
        (x, y - size / 2),
        size if width is None else width,
        size,
        boxstyle="round,pad=0,rounding_size=0.11",
        facecolor=inside,
        edgecolor=color,
        linewidth=2.4 if bold else 0.9,
        linestyle=(0, (2.5, 2.5)) if dashed else "-",
    )
    ax.add_patch(box)


def _card(
    ax: Axes,
    x: float,
    y: float,
    width: float,
    text: str,
    ink: Ink,
    color: str,
    dashed: bool = False,
) -> None:
    _frame(ax, x, y, 0.6, color, ink.cell, dashed=dashed, width=width)
    ax.text(x + width / 2, y, text, ha="center", va="center", color=color)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], color: str) -> None:
    ax.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=10, color=color, linewidth=1.1)
    )


def _note(ax: Axes, x: float, y: float, text: str, ink: Ink, align: str, size: float = 9.0) -> None:
    ax.text(x, y, text, ha=align, va="center", color=ink.faint, fontsize=size)


if __name__ == "__main__":
    main()
