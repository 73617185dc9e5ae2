"""How well each feature of hidden views is inferred: the distribution, the best and the worst."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

import numpy as np

from vedute.figures import page_axes
from vedute.report import svg
from vedute.report.drawing import both
from vedute.report.html import figure, table
from vedute.report.run_folder import FittedRun

FEWEST, ENDS = 10, 8  # hidden values of a feature; rows of a table


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
    named = {run.names[v]: share for v, share in sorted(shares.items())}
    title, height = "Features one by one", 0.9 + 0.5 * len(named)
    body = both(lambda ax: page_axes.ridges(ax, named), title, height)
    chart = figure(title, body, note, kind="wide")
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
