"""What was inferred for single samples: a list to search and sort, each one opens to its values.

Without scripts every line that has values opens, too, and the others are plain text, from which
samples.js makes the same lines. A line is: name, uncertainty, cluster, what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from vedute.report import svg
from vedute.report.charts import feature_name
from vedute.report.html import color, table
from vedute.report.run_folder import Array, FittedRun

FIRST = 10  # lines visible at first
NONE = "–"
HEADS = ("sample", "uncertainty", "cluster", "missing")
HIGH = 3.0  # standard deviations at the ends of a bar


def samples(run: FittedRun) -> str:
    """The list of samples; empty if they were not measured."""
    if not len(run.samples.doubt) and not len(run.samples.margin):
        return ""
    order = ordered(run)
    names = dict(zip(order.tolist(), _names(run, order), strict=True))
    listed = [int(row) for row in run.samples.listed]
    listed = sorted(listed, key=order.tolist().index) if len(listed) else []
    cells = _by_sample(run)
    open_ = [_sample(run, row, names, cells.get(row, [])) for row in listed]
    shown = set(listed)
    rest = ["\t".join(_line(run, int(r), names[int(r)])) for r in order if int(r) not in shown]
    more = "".join(open_[FIRST:])
    if more:
        count = f"{len(open_) - FIRST} more"
        more = f'<details class="more"><summary>{count}</summary>{more}</details>'
    return (
        f'<div class="samples" data-heads="{escape(",".join(_heads(run)))}">'
        f"{_head(run)}{''.join(open_[:FIRST])}{more}{_others(rest, bool(listed))}</div>"
    )


def ordered(run: FittedRun) -> Array:
    """Rows of all samples, the most uncertain first; ties are shuffled in a private run."""
    n = len(run.mask)
    doubt = run.samples.doubt.astype(float) if len(run.samples.doubt) else np.full(n, np.nan)
    margin = run.samples.margin.astype(float) if len(run.samples.margin) else np.zeros(n)
    last = np.random.default_rng(0).permutation(n) if run.private else np.arange(n)
    return np.lexsort((last, margin, np.where(np.isnan(doubt), 1.0, -doubt)))


def _names(run: FittedRun, order: Array) -> list[str]:
    """Names of samples, or their positions in this list in a private run."""
    if run.private:
        return [f"no. {place + 1}" for place in range(len(order))]
    return [" ".join(run.sample(int(row)).split()) for row in order]


def _heads(run: FittedRun) -> list[str]:
    without = {"cluster"} if run.labels is None else set()
    without |= set() if len(run.samples.doubt) else {"uncertainty"}
    return [head for head in HEADS if head not in without]


def _head(run: FittedRun) -> str:
    cells = "".join(f'<button type="button" data-by="{h}">{h}</button>' for h in _heads(run))
    return f'<div class="line heads">{cells}</div>'


def _line(run: FittedRun, row: int, name: str) -> list[str]:
    """The fields of one sample, as text."""
    fields = {"sample": name}
    doubt = float(run.samples.doubt[row]) if len(run.samples.doubt) else np.nan
    fields["uncertainty"] = NONE if np.isnan(doubt) else svg.percent(doubt)
    if run.labels is not None:
        label, unsure = str(int(run.labels[row])), bool(run.uncertain()[row])
        fields["cluster"] = f"{label} or {run.samples.runner_up[row]}" if unsure else label
    gaps, views = run.gaps(row), zip(run.names, run.mask[row], strict=True)
    lost = [gaps.get(name, name) for name, seen in views if name in gaps or not seen]
    fields["missing"] = ", ".join(" ".join(words.split()) for words in lost) or "nothing"
    return [fields[h] for h in _heads(run)]


def _sample(run: FittedRun, row: int, names: dict[int, str], cells: list[int]) -> str:
    """A line of the list that opens to the values of its sample."""
    fields = _line(run, row, names[row])
    spans = "".join(f"<span>{escape(field)}</span>" for field in fields)
    body = _about(run, row, names) + _values(run, cells)
    return f'<details class="sample"><summary class="line">{spans}</summary>{body}</details>'


def _about(run: FittedRun, row: int, names: dict[int, str]) -> str:
    """The views, cluster and nearest neighbors of a sample."""
    gaps = "".join(f"; {words} missing" for words in run.gaps(row).values())
    parts = [f"{run.views_of(row).capitalize()}{gaps}."]
    if run.labels is not None and len(run.samples.margin):
        k, other = int(run.labels[row]), int(run.samples.runner_up[row])
        tries = int(run.samples.tries[row])
        kept = f", kept with {run.samples.stays[row]} of {tries} views left out" if tries else ""
        margin = float(run.samples.margin[row])
        parts.append(
            f'<i class="{color(k)}"></i>Cluster {k}; next is {other}, margin {margin:.2f}{kept}.'
        )
    parts = [escape(parts[0]), *parts[1:]]
    place = np.flatnonzero(run.samples.listed == row)[0]
    near = [names[int(r)] for r in run.samples.nearest[place]]
    if near:
        buttons = " ".join(f'<button type="button">{escape(name)}</button>' for name in near)
        parts.append(f'Nearest in the representation: <span class="near">{buttons}</span>')
    return f"<p>{' '.join(parts)}</p>"


def _by_sample(run: FittedRun) -> dict[int, list[int]]:
    """Positions among the listed values, by row of their sample."""
    places: dict[int, list[int]] = {}
    for t, i in enumerate(run.samples.cell_of):
        places.setdefault(int(run.samples.listed[i]), []).append(t)
    return places


def _values(run: FittedRun, cells: Sequence[int]) -> str:
    """A table of inferred values with intervals, followed by observed ones."""
    if not cells:
        return ""
    heads = ["view", "feature", "value", "90 % interval", ""]
    order = sorted(cells, key=lambda t: bool(run.samples.cell_seen[t]))
    return table(heads, [_value(run, t) for t in order], 99)


def _value(run: FittedRun, t: int) -> list[str]:
    cells = run.samples
    seen, word = bool(cells.cell_seen[t]), cells.cell_word[t]
    value, low, high = (float(a[t]) for a in (cells.cell_value, cells.cell_low, cells.cell_high))
    wide = bool(not seen and not word and high > low)
    text = escape(str(word)) or svg.number(value)
    interval = f"{svg.number(low)} to {svg.number(high)}" if wide else NONE
    return [
        escape(run.names[int(cells.cell_view[t])]),
        escape(feature_name(str(cells.cell_names[cells.cell_name[t]]))),
        text if seen else f"<b>{text}</b>",
        "observed" if seen else interval,
        "" if word else _bar(cells.cell_z[t], wide),
    ]


def _bar(z: Array, wide: bool) -> str:
    """A bar of value and interval, from three standard deviations below the mean to three above."""
    at, low, high = (round(50 + 48 * float(np.clip(v, -HIGH, HIGH)) / HIGH) for v in z)
    low, high = (low, high) if wide else (at, at)
    return f'<i class="iv{"" if wide else " was"}" style="--m:{at};--a:{low};--b:{high}"></i>'


def _others(lines: list[str], others: bool) -> str:
    if not lines:
        return ""
    words = f"{svg.number(len(lines))}{' other' if others else ''} samples, one line each"
    text = escape("\n".join(lines))
    return f'<details class="rest"><summary>{words}</summary><pre>{text}</pre></details>'
