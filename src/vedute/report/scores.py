"""How well hidden views are inferred, and the coverage of intervals."""

from __future__ import annotations

from html import escape

import numpy as np

from vedute.figures import axes, page_axes
from vedute.report import svg
from vedute.report.drawing import HALF, both, drawing
from vedute.report.html import figure, table
from vedute.report.run_folder import Array, FittedRun

NOMINAL = (0.5, 0.8, 0.9, 0.95)


def explained(run: FittedRun) -> str:
    """A figure of R2 by view, for the model and the simple fills."""
    errors, base, rows = run.errors(), run.base(), _rows(run)
    scores = {k: [r2(e[at], base[at]) for _, at in rows] for k, e in errors.items()}
    note = "Right is better. 0 % is the mean of each feature, 100 % the truth." + _in_units(run)
    title, names = "Hidden views explained (R²), against simple fills", [name for name, _ in rows]
    body = both(lambda ax: page_axes.explained(ax, scores, names), title, 1.0 + 0.32 * len(rows))
    return figure(title, body, note, kind="wide")


def _in_units(run: FittedRun) -> str:
    """A note with R2 in the user's units for views that were learned on another scale."""
    shares = zip(run.names, run.results.in_units, strict=False)
    known = [(name, share) for name, share in shares if np.isfinite(share)]
    said = ", ".join(f"{name} {svg.percent(s)}" for name, s in known)
    scale = " Bars are on the scale of the kind of a view (logarithms of counts, say); in units"
    return f"{scale} {run.method} explains {said}." if said else ""


def distribution(run: FittedRun) -> str:
    """A figure of the error of every hidden instance by view, with mean and median."""
    error, base, view = run.errors()[run.method], run.base(), run.hidden_views()
    note = (
        f"{_half(error)} Where mean and median differ much, a few samples make most of the error."
    )
    title, height = f"Errors of {run.method} one by one", 1.0 + 0.36 * len(_rows(run))
    body = both(lambda ax: axes.hidden(ax, error, base, view, run.names), title, height)
    return figure(title, body, note, kind="wide")


def _half(error: Array) -> str:
    """A note on how few instances make up half of the error."""
    share = np.cumsum(-np.sort(-error)) / max(float(error.sum()), 1e-300)
    few = int(np.searchsorted(share, 0.5)) + 1
    return f"{few} of {len(error)} hidden views make half of the whole error."


def error_table(run: FittedRun) -> str:
    """A table of imputation errors by view and method: means, the least in bold, and medians."""
    errors, lines = run.errors(), []
    for name, at in _rows(run):
        pairs = [(e[at].mean(), np.median(e[at])) for e in errors.values()]
        least = min(mean for mean, _ in pairs)
        cells = [
            f"{f'<b>{mean:.3f}</b>' if mean == least else f'{mean:.3f}'}<small>{median:.3f}</small>"
            for mean, median in pairs
        ]
        lines.append([escape(name), svg.number(at.sum()), *cells])
    unit = (
        "<small>mean squared error in standard deviations, medians beside the means; 1 is the mean "
        "of each feature</small>"
    )
    whole = f"<h3>Imputation error {unit}</h3>{table(['view', 'hidden', *errors], lines)}"
    return f'<div class="plain">{whole}</div>'


def trust_table(run: FittedRun) -> str:
    """A table of expert weights by view, in percent; empty without experts."""
    weights: dict[str, dict[str, float]] = run.facts.get("weights", {})
    if not weights:
        return ""
    experts = list(next(iter(weights.values())))
    lines = []
    for name, shares_by_expert in weights.items():
        shares = [*shares_by_expert.values(), max(0.0, 1 - sum(shares_by_expert.values()))]
        lines.append([escape(name), *(svg.percent(w) for w in shares)])
    unit = "<small>weights learned on hidden views; the rest is the mean of each feature</small>"
    whole = f"<h3>Expert weights {unit}</h3>{table(['view', *experts, 'mean'], lines)}"
    return f'<div class="plain">{whole}</div>'


def calibration(run: FittedRun) -> str:
    """A figure of actual against nominal coverage of intervals on hidden values."""
    curves, levels = _curves(run), run.results.levels
    body = drawing(lambda ax: page_axes.calibration(ax, levels, curves), "calibration", HALF, 3.6)
    note = "On the dashed line intervals cover what they should; above it they are too wide."
    return figure("Interval calibration", body, note)


def coverage_table(run: FittedRun) -> str:
    """A table of interval coverage at common levels, and CRPS."""
    curves = _curves(run)
    rows = [
        [escape(name), *(svg.percent(_at(run, c, p), 1) for p in NOMINAL)] for name, c in curves
    ]
    heads, note = ["values inside", *map(svg.percent, NOMINAL)], "by nominal level of the interval"
    if len(run.results.crps):
        averages = _averaged(run, run.results.crps[:, None])
        rows = [[*row, f"{x.item():.3f}"] for row, (_, x) in zip(rows, averages, strict=True)]
        heads.append("CRPS")
        note += (
            "; CRPS is the error of the whole predicted distribution in standard deviations: 0.564 "
            "where only mean and spread of a normal feature are known, 0 at best"
        )
    return f"<h3>Coverage <small>{note}</small></h3>{table(heads, rows)}"


def coverage(run: FittedRun, level: float) -> float:
    """The share of hidden values inside intervals of this level; NaN if none was hidden."""
    if not np.isfinite(run.results.covered).any():
        return float("nan")
    return _at(run, _curves(run)[0][1], level)


def r2(error: Array, base: Array) -> float:
    """One minus the error over that of the mean."""
    return float(1 - error.sum() / base.sum()) if base.sum() else 0.0


def _rows(run: FittedRun) -> list[tuple[str, Array]]:
    """All views, then each that has hidden instances, and which instances these are."""
    view = run.hidden_views()
    by_view = [(name, view == v) for v, name in enumerate(run.names)]
    return [("all views", view >= 0), *((name, at) for name, at in by_view if at.any())]


def _curves(run: FittedRun) -> list[tuple[str, Array]]:
    """Coverage over levels (q,): averaged over hidden instances, then view by view."""
    return _averaged(run, run.results.covered)


def _averaged(run: FittedRun, values: Array) -> list[tuple[str, Array]]:
    """The average of values (L, q) over hidden instances, then every view that is known, (q,)."""
    view = run.hidden_views()
    shown = [v for v in range(len(values)) if np.isfinite(values[v]).any()]
    weight = np.array([(view == v).sum() for v in shown], float)
    average = weight @ values[shown] / weight.sum()
    return [("all views", average), *((run.names[v], values[v]) for v in shown)]


def _at(run: FittedRun, covered: Array, level: float) -> float:
    return float(np.interp(level, run.results.levels, covered))
