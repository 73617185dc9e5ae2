"""The section of single samples: a list to search and sort, each line opens to inferred values.

Without scripts every line that has values opens, too, and the others are plain text, from which
samples.js makes the same lines. A line is: name, uncertainty, cluster, what is missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape

import numpy as np

from vedute.report.data import feature_name
from vedute.report.html import color, number, percent, section, table
from vedute.report.results import Array, Cell
from vedute.report.run_folder import FittedRun

FIRST = 10  # lines visible at first
NONE = "–"
HIGH = 3.0  # standard deviations at the ends of a bar


def samples(run: FittedRun) -> str:
    """The section of samples; empty if they were not measured."""
    results, lead = run.results, "All samples, one line each. "
    if not len(results.doubt) and not len(results.margin):
        return ""
    if len(results.doubt):
        lacking = ~run.mask | (run.gap_counts() > 0)
        left = lacking.any(1) & np.isnan(results.doubt)
        unmeasured = f", and for {number(left.sum())} that were not measured" * bool(left.any())
        lead += (
            "<b>Uncertainty</b> is averaged over all values of a sample, and views count alike: an "
            "observed value counts 0 %, an inferred one up to 100 %, where no more is known than "
            f"the mean of the feature; – where nothing is missing{unmeasured}. "
        )
    if run.labels is not None and len(results.margin):
        lead += "Two clusters are named where either is about as near. "
    if len(results.cells):
        lead += (
            "Open a line to see values in your units, inferred ones <b>bold</b>, of the "
            f"{len(results.listed)} most uncertain samples: up to 30 features, those that "
            "are missing and those farthest from the mean. Bars reach from three standard "
            "deviations below the mean of a feature to three above."
        )
    return section("samples", "Samples", lead, _list(run))


def _list(run: FittedRun) -> str:
    order = ordered(run).tolist()
    if run.private:
        names = {row: f"no. {place + 1}" for place, row in enumerate(order)}
    else:
        names = {row: " ".join(run.sample(row).split()) for row in order}
    lines = {row: line(run, row, names[row]) for row in order}
    shown = {int(row): i for i, row in enumerate(run.results.listed)}
    cells: dict[int, list[Cell]] = defaultdict(list)
    for record in run.results.cells.tolist():
        cells[record[0]].append(Cell(*record))
    listed = []
    for row in (row for row in order if row in shown):
        spans = "".join(f"<span>{escape(field)}</span>" for field in lines[row].values())
        inside = _about(run, row, names) + _values(run, cells[shown[row]])
        head = f'<summary class="line">{spans}</summary>'
        listed.append(f'<details class="sample">{head}{inside}</details>')
    more, rest = "".join(listed[FIRST:]), [row for row in order if row not in shown]
    if more:
        count = f"{len(listed) - FIRST} more"
        more = f'<details class="more"><summary>{count}</summary>{more}</details>'
    if rest:
        words = f"{number(len(rest))}{' other' if shown else ''} samples, one line each"
        text = escape("\n".join("\t".join(lines[row].values()) for row in rest))
        more += f'<details class="rest"><summary>{words}</summary><pre>{text}</pre></details>'
    heads = list(lines[order[0]])
    buttons = "".join(f'<button type="button" data-by="{h}">{h}</button>' for h in heads)
    head = f'<div class="line heads">{buttons}</div>'
    body = head + "".join(listed[:FIRST]) + more
    return f'<div class="samples" data-heads="{",".join(heads)}">{body}</div>'


def ordered(run: FittedRun) -> Array:
    """Rows of all samples, the most uncertain first; ties are shuffled in a private run."""
    n = len(run.mask)
    doubt = run.results.doubt.astype(float) if len(run.results.doubt) else np.full(n, np.nan)
    margin = run.results.margin.astype(float) if len(run.results.margin) else np.zeros(n)
    last = np.random.default_rng(0).permutation(n) if run.private else np.arange(n)
    return np.lexsort((last, margin, np.where(np.isnan(doubt), 1.0, -doubt)))


def line(run: FittedRun, row: int, name: str) -> dict[str, str]:
    """The fields of one sample, as text by heading."""
    fields = {"sample": name}
    if len(run.results.doubt):
        doubt = float(run.results.doubt[row])
        fields["uncertainty"] = NONE if np.isnan(doubt) else percent(doubt)
    if run.labels is not None:
        label, unsure = str(int(run.labels[row])), bool(run.uncertain()[row])
        fields["cluster"] = f"{label} or {run.results.runner_up[row]}" if unsure else label
    gaps, views = run.gaps(row), zip(run.names, run.mask[row], strict=True)
    lost = [gaps.get(name, name) for name, seen in views if name in gaps or not seen]
    fields["missing"] = ", ".join(" ".join(words.split()) for words in lost) or "nothing"
    return fields


def _about(run: FittedRun, row: int, names: dict[int, str]) -> str:
    """The views, cluster and nearest neighbors of a sample."""
    gaps = "".join(f"; {words} missing" for words in run.gaps(row).values())
    parts = [escape(f"{run.views_of(row).capitalize()}{gaps}.")]
    if run.labels is not None and len(run.results.margin):
        k, other = int(run.labels[row]), int(run.results.runner_up[row])
        stays, tries = int(run.results.stays[row]), int(run.results.tries[row])
        kept = f", kept with {stays} of {tries} views left out" if tries else ""
        margin = f"margin {run.results.margin[row]:.2f}{kept}"
        parts.append(f'<i class="{color(k)}"></i>Cluster {k}; next is {other}, {margin}.')
    place = np.flatnonzero(run.results.listed == row)[0]
    near = [escape(names[int(r)]) for r in run.results.nearest[place]]
    if near:
        buttons = " ".join(f'<button type="button">{name}</button>' for name in near)
        parts.append(f'Nearest in the representation: <span class="near">{buttons}</span>')
    return f"<p>{' '.join(parts)}</p>"


def _values(run: FittedRun, cells: Sequence[Cell]) -> str:
    """A table of inferred values with intervals, followed by observed ones, each with a bar from
    three standard deviations below the mean to three above."""
    if not cells:
        return ""
    rows = []
    for cell in sorted(cells, key=lambda cell: cell.seen):
        wide = not cell.seen and not cell.word and cell.high > cell.low
        text = escape(cell.word) or number(cell.value)
        interval = f"{number(cell.low)} to {number(cell.high)}" if wide else NONE
        at, *ends = (round(50 + 48 * float(np.clip(z, -HIGH, HIGH)) / HIGH) for z in cell.z)
        low, high = ends if wide else (at, at)
        style = f"--m:{at};--a:{low};--b:{high}"
        row = [
            escape(run.names[cell.view]),
            escape(feature_name(cell.name)),
            text if cell.seen else f"<b>{text}</b>",
            "observed" if cell.seen else interval,
            "" if cell.word else f'<i class="iv{"" if wide else " was"}" style="{style}"></i>',
        ]
        rows.append(row)
    return table(["view", "feature", "value", "90 % interval", ""], rows, 99)
