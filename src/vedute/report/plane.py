"""The map of samples: one set of dots, colored by cluster, label, missing pattern or certainty."""

from __future__ import annotations

from collections import Counter
from html import escape
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedute.report import svg
from vedute.report.html import Key, color, figure, legend
from vedute.report.run_folder import Array, FittedRun
from vedute.report.svg import Plot, Scale

MOST_CLASSES = 20
PLANE_SIZE = (1000, 640)


class Coloring(NamedTuple):
    """A way to color samples: the names of its classes, and (n,) the class of each sample.

    ordered: classes are ordered, and get shades of one color.
    """

    question: str
    words: list[str]
    which: NDArray[np.intp]
    ordered: bool = False


def colorings(run: FittedRun) -> list[Coloring]:
    """All ways to color the samples of a run."""
    choices = []
    if run.labels is not None:
        K = int(run.labels.max()) + 1
        names = [f"cluster {k}" for k in range(K)]
        choices.append(Coloring("cluster", names, run.labels.astype(int)))
    if len(run.samples.y):
        choices.append(_by_label(run.samples.y))
    choices.append(_by_pattern(run))
    if len(run.samples.margin):
        choices.append(Coloring("certainty", ["certain", "uncertain"], run.uncertain().astype(int)))
    return choices


def plane(run: FittedRun) -> str:
    """The representation in two dimensions."""
    points, rows = run.samples.plane.astype(float), run.samples.plane_rows
    if run.private:  # the order of rows identifies samples, too
        order = np.lexsort(points.T)
        points, rows = points[order], rows[order]
    plot = _frame(points)
    asked = colorings(run)
    for (x, y), row in zip(points, rows, strict=True):
        kinds = " ".join(f"{'cqrt'[q]}{c.which[row]}" for q, c in enumerate(asked))
        plot.marks.append(svg.dot(plot.x(x), plot.y(y), kinds, *_tip(run, asked, int(row))))
    kind = "t-SNE" if len(points) >= 10 else "principal axes"
    of = "" if len(rows) == len(run.mask) else f"{len(rows)} of {len(run.mask)} samples. "
    note = (
        f"{of}{kind} of the representation: neighbors here are neighbors in it; distances between "
        "groups mean little. Point at a sample to see what it is."
    )
    return figure("The samples in the plane", _switch(asked) + str(plot), note, kind="wide map")


def rules(run: FittedRun) -> str:
    """The color of each class of dots under each coloring, as CSS."""
    css = ""
    for q, asked in enumerate(colorings(run)):
        for i in range(len(asked.words)):
            name = f"r{round(8 * i / max(len(asked.words) - 1, 1))}" if asked.ordered else color(i)
            value = f"var(--{('line', 'k2')[i] if asked.question == 'certainty' else name})"
            css += f"#by{q}:checked~svg .{'cqrt'[q]}{i},.by{q} .{'cqrt'[q]}{i}{{--c:{value}}}"
        css += f"#by{q}:checked~.by{q}{{display:flex}}#by{q}:checked+label{{{PRESSED}}}"
    return css


PRESSED = "background:var(--ink);color:var(--paper);border-color:var(--ink)"


def _switch(asked: list[Coloring]) -> str:
    """Radio buttons, each with its legend: colors change without a script."""
    buttons = "".join(
        f'<input type="radio" name="by" id="by{q}"{" checked" if q == 0 else ""}>'
        f'<label for="by{q}">{escape(c.question)}</label>'
        for q, c in enumerate(asked)
    )
    legends = "".join(
        legend(
            [Key(f"{'cqrt'[q]}{i}", f"{'cqrt'[q]}{i}", w) for i, w in enumerate(c.words)],
            f"by by{q}",
        )
        for q, c in enumerate(asked)
    )
    return f'<span class="ask">Color by</span>{buttons}{legends}'


def _frame(points: Array) -> Plot:
    """An empty plot around all points, both axes to the same scale."""
    width, height = PLANE_SIZE
    low, high = points.min(0), points.max(0)
    center, reach = (low + high) / 2, np.maximum((high - low) / 2, 1e-6) * 1.05
    unit = max(reach[0] / (width - 20), reach[1] / (height - 20))
    half = unit * np.array([width - 20, height - 20])
    (a, b), (c, d) = zip(center - half, center + half, strict=True)
    x, y = Scale(a, b, 10, width - 10), Scale(c, d, height - 10, 10)
    return Plot(PLANE_SIZE, x, y, "samples in the plane")


def _tip(run: FittedRun, asked: list[Coloring], row: int) -> list[str]:
    """The tooltip of a sample: its name, cluster, label, margin and views."""
    lines = [run.sample(row)]
    for c in asked:
        if c.question in ("cluster", "label"):
            word = c.words[c.which[row]]
            lines.append(word if c.question == "cluster" else f"label {word}")
    if len(run.samples.margin):
        stays, tries = run.samples.stays[row], run.samples.tries[row]
        kept = f", kept in {stays} of {tries} tries" if tries else ""
        lines.append(f"margin {run.samples.margin[row]:.2f}{kept}")
    return [*lines, run.views_of(row)]


def _by_label(y: Array) -> Coloring:
    """A coloring by label: many numbers by quintile, many words by the most frequent."""
    values, which = np.unique(y, return_inverse=True)
    if len(values) <= MOST_CLASSES:
        return Coloring("label", [str(v) for v in values], which)
    if y.dtype.kind in "iuf":
        edges = np.quantile(y, np.linspace(0, 1, 6))
        words = [f"{svg.number(a)} to {svg.number(b)}" for a, b in pairwise(edges)]
        return Coloring("label", words, np.searchsorted(edges[1:-1], y), ordered=True)
    common = [k for k, _ in Counter(which.tolist()).most_common(MOST_CLASSES - 1)]
    place = {k: i for i, k in enumerate(common)}
    words = [*(str(values[k]) for k in common), "others"]
    return Coloring("label", words, np.array([place.get(int(k), len(common)) for k in which]))


def _by_pattern(run: FittedRun) -> Coloring:
    """A coloring by missing pattern, or by the number of observed views if patterns are many."""
    patterns, which = np.unique(run.mask, axis=0, return_inverse=True)
    which = which.reshape(-1)
    if len(patterns) <= 10:
        order = np.argsort(-np.bincount(which), kind="stable")
        first = [int(np.flatnonzero(which == k)[0]) for k in order]
        return Coloring(
            "missing pattern", [run.views_of(r) for r in first], np.argsort(order)[which]
        )
    seen = run.mask.sum(1)
    counts, place = np.unique(seen, return_inverse=True)
    words = [f"{c} view{'' if c == 1 else 's'} observed" for c in counts]
    return Coloring("missing pattern", words, place, ordered=True)
