"""How well hidden views are inferred, and the coverage of intervals."""

from __future__ import annotations

from html import escape

import numpy as np

from vedute.report import svg
from vedute.report.charts import BROAD, Frame, both, short
from vedute.report.html import Key, color, figure, legend, table
from vedute.report.run_folder import Array, FittedRun
from vedute.report.svg import Plot, Scale

STEP = 34  # pixels per view
MOST_SLIM = 60  # dots of a view on a phone
NOMINAL = (0.5, 0.8, 0.9, 0.95)


def explained(run: FittedRun) -> str:
    """A chart of R2 by view, for the model and the simple fills."""
    errors, base, rows = run.errors(), run.base(), _rows(run)
    scores = {k: [r2(e[at], base[at]) for _, at in rows] for k, e in errors.items()}
    keys = legend(Key(f"s{i}", color(i), k) for i, k in enumerate(scores))
    note = "Right is better. 0 % is the mean of each feature, 100 % the truth." + _in_units(run)
    charts = both(lambda frame: _explained(run, scores, frame))
    return figure("Hidden views explained (R²), against simple fills", charts, note, keys, "wide")


def _in_units(run: FittedRun) -> str:
    """A note with R2 in the user's units for views that were learned on another scale."""
    shares = zip(run.names, run.results.in_units, strict=False)
    known = [(name, share) for name, share in shares if np.isfinite(share)]
    said = ", ".join(f"{name} {svg.percent(s)}" for name, s in known)
    scale = " Bars are on the scale of the kind of a view (logarithms of counts, say); in units"
    return f"{scale} {run.method} explains {said}." if said else ""


def _explained(run: FittedRun, scores: dict[str, list[float]], frame: Frame) -> str:
    errors, rows = run.errors(), _rows(run)
    low = max(min(0.0, *(min(s) for s in scores.values())), -1.0)
    height, title = 20 + STEP * len(rows), "variance of hidden views explained"
    x = Scale(low - 0.03, 1.0, frame.left, frame.right, percent=True)
    plot = Plot((frame.width, height + 46), x, Scale(0, 1, height, 8), title, (title, ""))
    plot.zoom, plot.axes = False, False
    _ruled(plot, height, len(rows), frame)
    for r, (name, at) in enumerate(rows):
        y, ends = 26.0 + STEP * r, [float(x(max(s[r], low))) for s in scores.values()]
        kind = "end" if r else "end strong"
        plot.notes.append(svg.text(frame.left - 16, y, short(name, frame.letters), kind))
        span = f"M{svg.px(min(ends))} {svg.px(y)}H{svg.px(max(ends))}"
        plot.notes.append(f'<path class="span" d="{span}"/>')
        for i, method in reversed(list(enumerate(scores))):  # the model on top
            tip = (
                f"{method}: {svg.percent(scores[method][r], 1)}",
                f"{name}, {at.sum()} hidden",
                f"error {errors[method][at].mean():.3f}",
            )
            plot.notes.append(svg.dot(ends[i], y, f"{SIZES[i > 0]} s{i} {color(i)}", *tip))
    return str(plot)


SIZES = ("big", "mean")


def distribution(run: FittedRun) -> str:
    """A chart of the error of every hidden instance by view, with mean and median."""
    error = run.errors()[run.method]
    words = [("s0", color(0), "hidden view of a sample"), ("s1", "k2", "mean")]
    keys = legend(Key(*entry) for entry in [*words, ("s2", "ink", "median")])
    note = (
        f"{_half(error)} Where mean and median differ much, a few samples make most of the error."
    )
    charts = both(lambda frame: _distribution(run, error, frame))
    return figure(f"Errors of {run.method} one by one", charts, note, keys, "wide")


def _distribution(run: FittedRun, error: Array, frame: Frame) -> str:
    rows = _rows(run)[1:]
    high = float(error.max()) or 1.0
    low = max(float(error[error > 0].min(initial=high)), 1e-4 * high)
    x = Scale(0.8 * low, 1.25 * high, frame.left, frame.right, log=True)
    height = 20 + STEP * len(rows)
    title = "squared error of an instance in standard deviations, logarithmic"
    plot = Plot((frame.width, height + 46), x, Scale(0, 1, height, 8), "errors", (title, ""))
    plot.zoom, plot.axes = False, False
    _ruled(plot, height, len(rows), frame)
    for r, (name, at) in enumerate(rows):
        mine, y = np.sort(error[at]), 26.0 + STEP * r
        plot.notes.append(svg.text(frame.left - 16, y, short(name, frame.letters), "end"))
        step = 1 if frame is BROAD else -(-len(mine) // MOST_SLIM)
        for i, e in list(enumerate(mine))[::step]:  # apart, so that all are seen
            off = 16 * (0.618 * i % 1 - 0.5)
            tip = name, f"error {e:.3f}", f"{i + 1} of {len(mine)}"
            plot.notes.append(svg.dot(x(max(e, low)), y + off, f"each s0 {color(0)}", *tip))
        for kind, value in (("average s1 k2", mine.mean()), ("middle s2", np.median(mine))):
            place = f"M{svg.px(x(max(value, low)))} {svg.px(y - 13)}V{svg.px(y + 13)}"
            plot.notes.append(f'<path class="line {kind}" d="{place}"/>')
    return str(plot)


def _half(error: Array) -> str:
    """A note on how few instances make up half of the error."""
    share = np.cumsum(-np.sort(-error)) / max(float(error.sum()), 1e-300)
    few = int(np.searchsorted(share, 0.5)) + 1
    return f"{few} of {len(error)} hidden views make half of the whole error."


def _ruled(plot: Plot, height: int, rows: int, frame: Frame) -> None:
    """Draw bands for rows, and the ticks of x below them."""
    width = frame.right - frame.left + 10
    plot.notes += [svg.bar(frame.left - 4, 12.0 + STEP * r, width, 28, "row") for r in range(rows)]
    for value, word in plot.x.ticks(frame.ticks):
        at = float(plot.x(value))
        plot.notes.append(f'<path class="tick" d="M{svg.px(at)} {height}V8"/>')
        plot.notes.append(svg.text(at, height + 14, word, "mid small"))


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
    """A chart of actual against nominal coverage of intervals on hidden values."""
    title, names = "calibration of intervals", ("nominal coverage", "values inside")
    x, y = Scale(0, 1, 60, 535, percent=True), Scale(0, 1, 390, 28, percent=True)
    plot = Plot((552, 440), x, y, title, names)
    plot.marks.append(f'<path class="line ideal" d="M{x(0)} {y(0)}L{x(1)} {y(1)}"/>')
    keys = []
    for i, (name, covered) in reversed(list(enumerate(_curves(run)))):
        _curve(plot, run.results.levels, covered, f"{'thin ' * (i > 0)}s{i} {color(i)}", name)
        keys.append(Key(f"s{i}", color(i), name))
    note = "On the dashed line intervals cover what they should; above it they are too wide."
    return figure("Interval calibration", plot, note, legend(keys[::-1]))


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


def _curve(plot: Plot, levels: Array, covered: Array, kind: str, name: str) -> None:
    x, y = plot.x(np.r_[0, levels, 1]), plot.y(np.r_[0, covered, 1])
    plot.marks.append(svg.line(x, y, kind))
    for a, b, p, c in zip(x[1:-1], y[1:-1], levels, covered, strict=True):
        tip = (name, f"{svg.percent(p)} interval", f"covers {svg.percent(c, 1)}")
        plot.marks.append(svg.dot(a, b, f"spot {kind}", *tip))
