"""The sections on hidden views: how well they are inferred, by view and by feature, and whether
intervals cover what they should."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

import numpy as np

from vedute.figures import plots
from vedute.report.html import chart, number, percent, plain, section, table
from vedute.report.results import Array
from vedute.report.run_folder import FittedRun

FEW = 100  # hidden views: with fewer, scores by view are uncertain
NOMINAL = (0.5, 0.8, 0.9, 0.95)
FEWEST, ENDS = 10, 8  # hidden values of a feature; rows of a table
UNKNOWN = (
    "<b>No view was hidden from this training</b>, so it is not known how well views are inferred: "
    "on views that were learned from, errors look smaller and intervals better than they are. "
    "Where <code>early_stopping</code> is on, about a tenth of the views is hidden."
)


def hidden(run: FittedRun) -> str:
    """The section on hidden views; empty where a method never hides any."""
    if not len(run.hidden.get("row", ())):
        return ""
    count = len(run.hidden_views())
    if not count:
        return section("hidden", "Hidden views", UNKNOWN)
    lead = (
        f"{number(count)} observed views were hidden, inferred from the other views of their "
        "sample by a model that had not seen them, and compared with the truth. "
    )
    if count < FEW:
        lead += f"<b>{count} are few</b>: these numbers are uncertain. "
    if run.watched():
        lead += "They also ended the training: errors on new views may be a little larger. "
    if run.results.refitted:
        lead += "The saved model was then refit with them. "
    parts = _explained(run), _by_feature(run), _errors(run), _distribution(run), _weights(run)
    return section("hidden", "Hidden views", lead, *parts)


def r2(error: Array, base: Array) -> float:
    """One minus the error over that of the mean."""
    return float(1 - error.sum() / base.sum()) if base.sum() else 0.0


def _rows(run: FittedRun) -> list[tuple[str, Array]]:
    """All views, then each that has hidden instances, and which instances these are."""
    view = run.hidden_views()
    by_view = [(name, view == v) for v, name in enumerate(run.names)]
    return [("all views", view >= 0), *((name, at) for name, at in by_view if at.any())]


def _explained(run: FittedRun) -> str:
    """A figure of R2 by view, for the model and the simple fills."""
    base, rows = run.base(), _rows(run)
    scores = {k: [r2(e[at], base[at]) for _, at in rows] for k, e in run.errors().items()}
    note = "Right is better. 0 % is the mean of each feature, 100 % the truth."
    shares = zip(run.names, run.results.in_units, strict=False)
    said = ", ".join(f"{name} {percent(share)}" for name, share in shares if np.isfinite(share))
    if said:
        scale = "Bars are on the scale of the kind of a view (logarithms of counts, say); in units"
        note += f" {scale} {run.method} explains {said}."
    title, names = "Hidden views explained (R²), against simple fills", [name for name, _ in rows]
    height = 1.0 + 0.32 * len(rows)
    return chart(title, lambda ax: plots.explained(ax, scores, names), height, note, wide=True)


class Feature(NamedTuple):
    """How well a feature is inferred: share of its variance, and median error."""

    view: int
    name: str
    explained: float
    off: float


def _by_feature(run: FittedRun) -> str:
    """Chart and tables of the features that were hidden often enough; empty without two."""
    results, ranked = run.results, []
    for v in results.known if run.held_out() else ():
        each = zip(run.features(v), results.explained[v], results.off[v], strict=True)
        enough = (results.known[v] >= FEWEST) & np.isfinite(results.explained[v])
        ranked += [Feature(v, *row) for row, known in zip(each, enough, strict=True) if known]
    ranked.sort(key=lambda row: -row.explained)
    if len(ranked) < 2:
        return ""
    shares = {
        run.names[v]: np.array([r.explained for r in ranked if r.view == v])
        for v in sorted({r.view for r in ranked})
    }
    note = (
        "How much of each feature is explained where its view was hidden: one bump per view, "
        "taller where many features are; the line is the median. 0 % is the mean of the feature."
    )
    height, title = 0.9 + 0.5 * len(shares), "Features one by one"
    half = min(ENDS, len(ranked) // 2)
    pair = _ends(run, "Best inferred", ranked[:half])
    pair += _ends(run, "Worst inferred", ranked[::-1][:half])
    unit = (
        "Off: half of the inferred values are nearer to the truth than this, in your units. "
        f"Features with fewer than {FEWEST} hidden values are left out."
    )
    drawn = chart(title, lambda ax: plots.ridges(ax, shares), height, note, wide=True)
    return f'{drawn}<div class="two">{pair}</div><p class="hint">{unit}</p>'


def _ends(run: FittedRun, title: str, ranked: list[Feature]) -> str:
    lines = [
        [
            f"{escape(row.name)}<small>{escape(run.names[row.view])}</small>",
            percent(row.explained),
            number(row.off),
        ]
        for row in ranked
    ]
    return plain(title, "", table(["feature", "explained", "off"], lines))


def _errors(run: FittedRun) -> str:
    """A table of imputation errors by view and method: means, the least in bold, and medians."""
    errors, lines = run.errors(), []
    for name, at in _rows(run):
        pairs = [(e[at].mean(), np.median(e[at])) for e in errors.values()]
        least = min(mean for mean, _ in pairs)
        cells = [
            f"{f'<b>{mean:.3f}</b>' if mean == least else f'{mean:.3f}'}<small>{median:.3f}</small>"
            for mean, median in pairs
        ]
        lines.append([escape(name), number(at.sum()), *cells])
    note = (
        "mean squared error in standard deviations, medians beside the means; 1 is the mean "
        "of each feature"
    )
    return plain("Imputation error", note, table(["view", "hidden", *errors], lines))


def _distribution(run: FittedRun) -> str:
    """A figure of the error of every hidden instance by view, with mean and median."""
    error, base, view = run.errors()[run.method], run.base(), run.hidden_views()
    share = np.cumsum(-np.sort(-error)) / max(float(error.sum()), 1e-300)
    few = int(np.searchsorted(share, 0.5)) + 1
    note = (
        f"{few} of {len(error)} hidden views make half of the whole error. "
        "Where mean and median differ much, a few samples make most of the error."
    )
    title, height = f"Errors of {run.method} one by one", 1.0 + 0.36 * len(_rows(run))
    return chart(
        title, lambda ax: plots.hidden(ax, error, base, view, run.names), height, note, wide=True
    )


def _weights(run: FittedRun) -> str:
    """A table of expert weights by view, in percent; empty without experts."""
    weights: dict[str, dict[str, float]] = run.facts.get("weights", {})
    lines, experts = [], [""]
    for name, by_expert in weights.items():
        experts, shares = list(by_expert), [*by_expert.values()]
        lines.append([escape(name), *map(percent, [*shares, max(0.0, 1 - sum(shares))])])
    note = "weights learned on hidden views; the rest is the mean of each feature"
    whole = table(["view", *experts, "mean"], lines)
    return plain("Expert weights", note, whole) if lines else ""


def intervals(run: FittedRun) -> str:
    """The section on the coverage of intervals; empty if it was not measured."""
    if np.isnan(coverage(run, 0.9)):
        return ""
    lead = (
        "Inferred values come with intervals. Here they are checked on hidden views: the width of "
        "an interval was set without the views it is checked on (five folds)."
    )
    curves, levels = _averaged(run, run.results.covered), run.results.levels
    note = "On the dashed line intervals cover what they should; above it they are too wide."
    title = "Interval calibration"
    drawn = chart(title, lambda ax: plots.calibration(ax, levels, curves), 3.6, note)
    return section(
        "intervals", "Intervals", lead, f'<div class="two">{drawn}{_coverage(run)}</div>'
    )


def _coverage(run: FittedRun) -> str:
    """A table of interval coverage at common levels, and CRPS."""
    rows = [
        [escape(name), *(percent(_at(run, curve, p), 1) for p in NOMINAL)]
        for name, curve in _averaged(run, run.results.covered)
    ]
    heads, note = ["values inside", *map(percent, NOMINAL)], "by nominal level of the interval"
    if len(run.results.crps):
        averages = _averaged(run, run.results.crps[:, None])
        rows = [[*row, f"{x.item():.3f}"] for row, (_, x) in zip(rows, averages, strict=True)]
        heads.append("CRPS")
        note += (
            "; CRPS is the error of the whole predicted distribution in standard deviations: 0.564 "
            "where only mean and spread of a normal feature are known, 0 at best"
        )
    return plain("Coverage", note, table(heads, rows))


def coverage(run: FittedRun, level: float) -> float:
    """The share of hidden values inside intervals of this level; NaN if none was hidden."""
    if not np.isfinite(run.results.covered).any():
        return float("nan")
    return _at(run, _averaged(run, run.results.covered)[0][1], level)


def _averaged(run: FittedRun, values: Array) -> list[tuple[str, Array]]:
    """The average of values (L, q) over hidden instances, then every view that is known, (q,)."""
    view = run.hidden_views()
    shown = [v for v in range(len(values)) if np.isfinite(values[v]).any()]
    weight = np.array([(view == v).sum() for v in shown], float)
    average = weight @ values[shown] / weight.sum()
    return [("all views", average), *((run.names[v], values[v]) for v in shown)]


def _at(run: FittedRun, covered: Array, level: float) -> float:
    return float(np.interp(level, run.results.levels, covered))
