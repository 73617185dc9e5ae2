"""How well each feature of hidden views is inferred: the distribution, the best and the worst."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

import numpy as np

from vedute.report import svg
from vedute.report.charts import BROAD, Frame, both, short
from vedute.report.html import color, figure, table
from vedute.report.run_folder import Array, FittedRun
from vedute.report.svg import Plot, Scale

FEWEST, ENDS, STEP, BINS = 10, 8, 46, 40  # hidden values of a feature; rows of a table; pixels
QUARTERS = (0.25, 0.5, 0.75)


class Row(NamedTuple):
    view: int
    name: str
    explained: float
    off: float
    known: int


def rows(run: FittedRun) -> list[Row]:
    """All features that were hidden often enough, the best first."""
    measured = []
    for v in range(len(run.names)):
        if v not in run.results.known or not run.held_out():
            continue
        parts = run.results.explained[v], run.results.off[v], run.results.known[v]
        names = run.features(v)
        measured += [
            Row(v, names[f], float(e), float(o), int(k))
            for f, (e, o, k) in enumerate(zip(*parts, strict=True))
            if k >= FEWEST and np.isfinite(e)
        ]
    return sorted(measured, key=lambda row: -row.explained)


def by_feature(run: FittedRun) -> str:
    """Chart and tables of the features; empty if none was measured."""
    ranked = rows(run)
    if len(ranked) < 2:
        return ""
    shares = {
        v: np.array([r.explained for r in ranked if r.view == v]) for v in {r.view for r in ranked}
    }
    note = (
        "How much of each feature is explained where its view was hidden: one bump per view, "
        "taller where many features are; the line is the median. 0 % is the mean of the feature."
    )
    chart = figure(
        "Features one by one", both(lambda f: _ridges(run, shares, f)), note, kind="wide"
    )
    half = min(ENDS, len(ranked) // 2)
    pair = _table(run, "Best inferred", ranked[:half]) + _table(
        run, "Worst inferred", ranked[::-1][:half]
    )
    unit = (
        "Off: half of the inferred values are nearer to the truth than this, in your units. "
        f"Features with fewer than {FEWEST} hidden values are left out."
    )
    return f'{chart}<div class="two">{pair}</div><p class="hint">{unit}</p>'


def _views(ranked: list[Row]) -> list[int]:
    return sorted({row.view for row in ranked})


def _table(run: FittedRun, title: str, ranked: list[Row]) -> str:
    lines = [
        [
            f"{escape(r.name)}<small>{escape(run.names[r.view])}</small>",
            svg.percent(r.explained),
            svg.number(r.off),
        ]
        for r in ranked
    ]
    return (
        f'<div class="plain"><h3>{title}</h3>{table(["feature", "explained", "off"], lines)}</div>'
    )


def _ridges(run: FittedRun, shares: dict[int, Array], frame: Frame = BROAD) -> str:
    """A histogram per view."""
    low = max(min(float(s.min()) for s in shares.values()), -0.5)
    x = Scale(min(low, 0.0) - 0.02, 1.0, frame.left, frame.right, percent=True)
    height = 8 + STEP * len(shares)
    title = "variance of a feature explained"
    plot = Plot((frame.width, height + 46), x, Scale(0, 1, height, 8), title, (title, ""))
    plot.zoom, plot.axes = False, False
    for value, word in x.ticks(frame.ticks):
        at = svg.px(x(value))
        plot.notes.append(f'<path class="tick" d="M{at} {height}V8"/>')
        plot.notes.append(svg.text(float(x(value)), height + 14, word, "mid small"))
    edges = np.linspace(x.low, 1.0, BINS + 1)
    for r, (v, share) in enumerate(sorted(shares.items())):
        ground = 8.0 + STEP * (r + 1)
        counts, _ = np.histogram(share.clip(x.low, 1.0), edges)
        tops = ground - (STEP - 8) * counts / counts.max()
        middles = x((edges[:-1] + edges[1:]) / 2)
        plot.notes.append(svg.band(middles, np.full(BINS, ground), tops, f"ridge {color(v)}"))
        a, m, b = np.quantile(share, QUARTERS)
        tip = (
            run.names[v],
            f"median {svg.percent(m)} of {len(share)} features",
            f"half of them from {svg.percent(a)} to {svg.percent(b)}",
        )
        name = short(run.names[v], frame.letters)
        plot.notes.append(svg.text(frame.left - 12, ground - 10, name, "end"))
        middle = float(x(max(m, x.low)))
        plot.notes.append(svg.bar(middle - 1.5, ground - STEP + 8, 3, STEP - 8, "median", *tip))
    return str(plot)
