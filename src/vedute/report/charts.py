"""Charts of the data and of the training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from html import escape
from itertools import groupby
from typing import NamedTuple

import numpy as np

from vedute.report import svg
from vedute.report.html import Key, color, figure, legend, table
from vedute.report.run_folder import Array, FittedRun
from vedute.report.svg import Plot, Scale
from vedute.training import history

MOST_SPOTS, HALF = 160, 492
CONTRAST = 20  # counts further apart are drawn on a logarithmic scale
TOP, GROUND, STEP = 44.0, 200.0, 26  # of the pattern chart, in pixels
SURE, SMALL = 0.01, 0.2  # a probability, and a difference in standard deviations that matters


class Frame(NamedTuple):
    """The layout of a wide chart in pixels: width, left and right edge of the plot area, and the
    most letters of a label, ticks and patterns."""

    width: int
    left: float
    right: float
    letters: int
    ticks: int
    patterns: int


BROAD, SLIM = Frame(1000, 130.0, 960.0, 14, 8, 24), Frame(380, 84.0, 368.0, 9, 4, 7)


def both(draw: Callable[[Frame], object]) -> str:
    """Draw a chart in two layouts: one for a wide window and paper, one for a phone."""
    return f'<div class="broad">{draw(BROAD)}</div><div class="slim">{draw(SLIM)}</div>'


def patterns(run: FittedRun) -> str:
    """Which views are observed together: one column per pattern, most frequent first."""
    counts = Counter(map(tuple, run.mask.tolist())).most_common()
    title = f"{len(counts)} pattern{'' if len(counts) == 1 else 's'} of observed views"
    note = (
        "One column per pattern: dark dots, joined by a line, are observed views, pale dots "
        "missing ones. On the right, how much of each view is missing."
    )
    return figure(title, both(lambda frame: _upset(run, counts, frame)), note, kind="wide")


def _upset(run: FittedRun, counts: list[tuple[tuple[bool, ...], int]], frame: Frame) -> str:
    shown, rest = counts[: frame.patterns], counts[frame.patterns :]
    most, fewest = shown[0][1], shown[-1][1]
    log = most > CONTRAST * fewest
    y = Scale(max(0.7 * fewest, 0.5) if log else 0.0, most, GROUND, TOP, log)
    size = frame.width, int(GROUND) + 14 + STEP * len(run.names)
    x = Scale(0, max(len(shown), 8 if frame is BROAD else 4), frame.left, _end(frame))
    plot = Plot(size, x, y, "missing patterns", zoom=False, axes=False)
    plot.notes += _shares(run, frame)
    for p, (pattern, count) in enumerate(shown):
        plot.notes += _pattern(run, y, float(x(p + 0.5)), float(x(1) - x(0)), pattern, count)
    plot.notes.append(svg.text(frame.left, 12, f"samples{' (logarithmic)' if log else ''}", "name"))
    if rest:
        more = f"and {len(rest)} rarer: {svg.number(sum(c for _, c in rest))} samples"
        plot.notes.append(svg.text(_end(frame), 12 if frame is BROAD else 26, more, "name end"))
    return str(plot)


def _end(frame: Frame) -> float:
    """The x coordinate between the pattern columns and the shares."""
    return frame.left + (0.8 if frame is BROAD else 0.68) * (frame.right - frame.left)


def dependence(run: FittedRun) -> str:
    """The test of whether missingness depends on observed values, with a warning if it does."""
    if not len(run.results.depends_p):
        return ""
    p, difference = run.results.depends_p, run.results.depends_difference
    sure = (p < SURE) & (np.abs(difference) >= SMALL)
    how = (
        "Welch tests of every feature, p times the number of tests; differences in standard "
        "deviations"
    )
    title = f"<h3>Does what is missing depend on what is observed? <small>{how}</small></h3>"
    if not sure.any():
        words = "<p>No sign of it: samples that lack a view are much like the others.</p>"
        return f'<div class="plain">{title}{words}</div>'
    missing = run.results.depends_missing.astype(str)
    rows = [
        [
            escape(missing[i]),
            f"{escape(feature_name(str(run.results.depends_feature[i])))}"
            f"<small>{escape(str(run.results.depends_view[i]))}</small>",
            f"{'+' if difference[i] > 0 else ''}{svg.number(difference[i])}",
            f"{p[i]:.1g}" if p[i] >= 1e-12 else "< 1e−12",
        ]
        for i in np.flatnonzero(sure)[:10]
    ]
    lost = ", ".join(
        dict.fromkeys(str(run.results.depends_missing[i]) for i in np.flatnonzero(sure))
    )
    words = (
        f'<p class="warning"><b>It does, for {escape(lost)}.</b> Views were hidden at random to '
        "measure errors; where views are really missing for a reason, errors may be larger.</p>"
    )
    heads = ["missing", "feature that differs there", "difference", "p"]
    return f'<div class="plain">{title}{words}{table(heads, rows, 2)}</div>'


def feature_name(name: str) -> str:
    return f"feature {name}" if name.isdecimal() else name


def stages(run: FittedRun) -> str:
    """A table of the training stages: what each did, its steps and its hidden-view error."""
    rows, start, second = [], 0, run.second()
    least = np.inf
    for _, group in groupby(run.history, key=lambda record: record["stage"]):
        records = list(group)
        errors = [r["hidden_error"] for r in records if r["hidden_error"] is not None]
        last = int(records[-1]["step"])
        least = min([least, *errors])
        watched = any(r["watched"] for r in records)
        if second and start >= second:
            what = "refit, with the hidden views"
        elif watched:
            what = "trained; hidden views decide when to stop"
        elif any("better" in r for r in records):
            what = "tried; hidden views decide whether to keep it"
        else:
            what = "warm-up" if start < run.warmup() else "trained for a fixed number of steps"
        error = f"{errors[0]:.3f} to {min(errors):.3f}" if errors else "–"
        rows.append([what, f"{svg.number(start + 1)} to {svg.number(last)}", error])
        start = last
    heads = ["stage", "steps", "hidden error, first to least"]
    return f'<div class="plain">{table(heads, _merged(rows))}</div>'


def _merged(rows: list[list[str]]) -> list[list[str]]:
    """Merge consecutive stages of one kind that have no measured error."""
    merged: list[list[str]] = []
    for row in rows:
        if merged and merged[-1][0] == row[0] and merged[-1][2] == row[2] == "–":
            first = merged[-1][1].partition(" to ")[0]
            merged[-1] = [row[0], f"{first} to {row[1].partition(' to ')[2]}", "–"]
        else:
            merged.append(row)
    return merged


def terms(run: FittedRun) -> str:
    """A chart of the loss terms over steps."""
    names = list(dict.fromkeys(k for r in run.history for k in r["terms"]))
    steps = np.array([r["step"] for r in run.history], float)
    series = {k: np.array([r["terms"].get(k, np.nan) for r in run.history], float) for k in names}
    values = np.concatenate(list(series.values()))
    log = bool((values[np.isfinite(values)] > 0).all())
    plot = _over_steps(run, values, "value, logarithmic" if log else "value", log, "loss terms")
    for i, (name, value) in enumerate(series.items()):
        _curve(plot, steps, value, i, name.replace("_", " "))
    keys = legend(Key(f"s{i}", color(i), k.replace("_", " ")) for i, k in enumerate(names))
    return figure("Loss by term", plot, "The loss is the sum of these.", keys)


def hidden_error(run: FittedRun) -> str:
    """A chart of the error on hidden views over steps; it marks the weights that were kept."""
    checked = [r for r in run.history if r["hidden_error"] is not None]
    if not checked:
        return figure("Error on hidden views", "", "No view was hidden from this training.")
    steps = np.array([r["step"] for r in checked], float)
    error = np.array([r["hidden_error"] for r in checked], float)
    label = "mean squared error in standard deviations"
    plot = _over_steps(run, np.append(error, 0.0), label, False, "hidden-view error")
    _curve(plot, steps, error, 0, "hidden views")
    kept = history.kept(checked)
    x, y = float(plot.x(kept["step"])), float(plot.y(kept["hidden_error"]))
    step, least = f"step {kept['step']:.0f}", f"error {kept['hidden_error']:.3f}"
    plot.marks.insert(0, f'<path class="line kept" d="M{svg.px(x)} {plot.y.start}V{plot.y.end}"/>')
    plot.marks.append(svg.dot(x, y, "big k2", "kept", step, least))
    note = f"1 is the mean of each feature. Kept: {step}, {least}."
    if run.second():
        note += (
            f" After step {run.second()} the model was refit with the hidden views, for as many "
            "steps as had lowered the error: no error can be measured during the refit."
        )
    return figure("Error on hidden views", plot, note)


def short(name: str, most: int = 12) -> str:
    """Shorten a name to fit beside a chart."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _pattern(
    run: FittedRun, y: Scale, x: float, step: float, pattern: tuple[bool, ...], count: int
) -> Iterator[str]:
    """The bar of one pattern and its column of dots."""
    wide, height = min(0.68 * step, 40.0), GROUND - float(y(count))
    lost = [k for k, seen in zip(run.names, pattern, strict=True) if not seen]
    size = f"{svg.number(count)} samples ({svg.percent(count / len(run.mask), 1)})"
    kind = "part" if lost else "full"
    missing = f"missing: {', '.join(lost) or 'nothing'}"
    yield svg.bar(x - wide / 2, GROUND - height, wide, height, kind, size, missing)
    yield svg.text(x, GROUND - height - 8, svg.number(count), "mid small")
    ends = [v for v, seen in enumerate(pattern) if seen]
    top, bottom = (GROUND + 24 + STEP * v for v in (ends[0], ends[-1]))
    yield f'<path class="joined" d="M{svg.px(x)} {top}V{bottom}"/>'
    for v, seen in enumerate(pattern):
        at = GROUND + 24 + STEP * v
        yield f'<circle class="{"seen" if seen else "lost"}" cx="{svg.px(x)}" cy="{at}" r="6"/>'


def _shares(run: FittedRun, frame: Frame) -> Iterator[str]:
    """Labels of the views, and bars of the share of each that is missing."""
    shares, end = (~run.mask).mean(0), _end(frame)
    room = frame.right - end - 56
    yield svg.text(end + 20, GROUND, "missing", "name")
    for v, (name, share) in enumerate(zip(run.names, shares, strict=True)):
        at, length = (
            GROUND + 24 + STEP * v,
            max(room, 0) * float(share) / max(float(shares.max()), 1e-9),
        )
        yield svg.bar(frame.left - 4, at - 11, end - frame.left + 8, 22, "row")
        yield svg.text(frame.left - 14, at, short(name, frame.letters), "end")
        words = f"{name}: missing for {svg.number((~run.mask[:, v]).sum())} samples"
        yield svg.bar(end + 20, at - 8, length, 16, "gone", words)
        yield svg.text(end + 26 + length, at, svg.percent(share), "small")


def _over_steps(run: FittedRun, values: Array, label: str, log: bool, title: str) -> Plot:
    """An empty chart for values over steps, with the warm-up and the refit shaded."""
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    room = (high / low) ** 0.06 if log else 0.06 * ((high - low) or abs(high) or 1.0)
    low, high = (low / room, high * room) if log else (low - room * (low != 0), high + room)
    last = max(r["step"] for r in run.history)
    x, y = Scale(0, 1.02 * last, 58, HALF - 12), Scale(low, high, 262, 28, log)
    plot = Plot((HALF, 306), x, y, title, ("step", label))
    warm = run.warmup()
    if warm:
        box = x.start, y.end, float(x(warm)) - x.start, y.start - y.end
        plot.marks.append(svg.bar(*box, "warm", "warm-up", f"until step {warm}"))
    again = run.second()
    if again:
        at, words = float(x(again)), "refit, with all views"
        box = at, y.end, x.end - at, y.start - y.end
        plot.marks.append(svg.bar(*box, "again", words, f"from step {again}"))
        plot.notes.append(
            svg.text((at + x.end) / 2, y.end + 12, "refit, with all views", "mid small")
        )
    return plot


def _curve(plot: Plot, steps: Array, value: Array, i: int, name: str) -> None:
    """A line, and dots on it with their values as tooltips."""
    x, y = plot.x(steps), plot.y(value)
    plot.marks.append(svg.line(x, y, f"s{i} {color(i)}"))
    few = np.linspace(0, len(steps) - 1, min(MOST_SPOTS, len(steps)))
    spots = np.unique(few.round().astype(int))
    for t in spots[np.isfinite(value[spots])]:
        tip = (f"{name} {value[t]:.4g}", f"step {steps[t]:.0f}")
        plot.marks.append(svg.dot(x[t], y[t], f"spot s{i} {color(i)}", *tip))
