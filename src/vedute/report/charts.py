"""Charts of the data and of the training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from vedute.report import svg
from vedute.report.html import Key, color, figure, legend
from vedute.report.run_folder import Array, FittedRun
from vedute.report.svg import Plot, Scale
from vedute.training import history

MOST_PATTERNS, MOST_SPOTS = 24, 160
WIDE, HALF = 1000, 492
CONTRAST = 20  # counts further apart are drawn on a logarithmic scale
LEFT, RIGHT, TOP, GROUND, STEP = 96.0, 800.0, 44.0, 200.0, 26  # of the pattern chart, in pixels


def patterns(run: FittedRun) -> str:
    """Which views are observed together: one column per pattern, most frequent first."""
    counts = Counter(map(tuple, run.mask.tolist())).most_common()
    shown, rest = counts[:MOST_PATTERNS], counts[MOST_PATTERNS:]
    most, fewest = shown[0][1], shown[-1][1]
    log = most > CONTRAST * fewest
    y = Scale(max(0.7 * fewest, 0.5) if log else 0.0, most, GROUND, TOP, log)
    size = WIDE, int(GROUND) + 14 + STEP * len(run.names)
    plot = Plot(size, Scale(0, 1, LEFT, RIGHT), y, "missing patterns", zoom=False, axes=False)
    plot.notes += _shares(run)
    for p, (pattern, count) in enumerate(shown):
        plot.notes += _pattern(run, y, p, max(len(shown), 8), pattern, count)
    plot.notes.append(svg.text(LEFT, 12, f"samples{' (logarithmic)' if log else ''}", "name"))
    if rest:
        more = f"and {len(rest)} rarer patterns, {svg.number(sum(c for _, c in rest))} samples"
        plot.notes.append(svg.text(RIGHT, 12, more, "name end"))
    title = f"{len(counts)} pattern{'' if len(counts) == 1 else 's'} of observed views"
    note = "One column per pattern: dark dots are observed views, pale dots missing ones."
    return figure(title, plot, note, kind="wide")


def terms(run: FittedRun) -> str:
    """Loss terms over steps."""
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
    """Error on hidden views over steps, and the weights that were kept."""
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
            f" After step {run.second()} it learned again, with the hidden views and for as many "
            "steps as had been worth it: no error can be measured there."
        )
    return figure("Error on hidden views", plot, note)


def short(name: str, most: int = 12) -> str:
    """A name that fits beside a chart."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _pattern(
    run: FittedRun, y: Scale, p: int, columns: int, pattern: tuple[bool, ...], count: int
) -> Iterator[str]:
    """The bar of one pattern and its column of dots."""
    step = (RIGHT - LEFT) / columns
    x, wide, height = LEFT + step * (p + 0.5), min(0.68 * step, 40.0), GROUND - float(y(count))
    lost = [k for k, seen in zip(run.names, pattern, strict=True) if not seen]
    size = f"{svg.number(count)} samples ({svg.percent(count / len(run.mask), 1)})"
    kind = "part" if lost else "full"
    missing = f"missing: {', '.join(lost) or 'nothing'}"
    yield svg.bar(x - wide / 2, GROUND - height, wide, height, kind, size, missing)
    yield svg.text(x, GROUND - height - 8, svg.number(count), "mid small")
    for v, seen in enumerate(pattern):
        at = GROUND + 24 + STEP * v
        yield f'<circle class="{"seen" if seen else "lost"}" cx="{svg.px(x)}" cy="{at}" r="6"/>'


def _shares(run: FittedRun) -> Iterator[str]:
    """The names of the views, and how much of each is missing."""
    shares = (~run.mask).mean(0)
    yield svg.text(820, GROUND, "missing", "name")
    for v, (name, share) in enumerate(zip(run.names, shares, strict=True)):
        at, length = GROUND + 24 + STEP * v, 100 * float(share) / max(float(shares.max()), 1e-9)
        yield svg.bar(LEFT - 4, at - 11, RIGHT - LEFT + 8, 22, "row")
        yield svg.text(LEFT - 14, at, short(name), "end")
        words = f"{name}: missing for {svg.number((~run.mask[:, v]).sum())} samples"
        yield svg.bar(820, at - 8, length, 16, "gone", words)
        yield svg.text(826 + length, at, svg.percent(share), "small")


def _over_steps(run: FittedRun, values: Array, label: str, log: bool, title: str) -> Plot:
    """An empty chart for values over steps, the warm-up and the second learning shaded."""
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
        at, words = float(x(again)), "learned again, with all views"
        box = at, y.end, x.end - at, y.start - y.end
        plot.marks.append(svg.bar(*box, "again", words, f"from step {again}"))
        plot.notes.append(
            svg.text((at + x.end) / 2, y.end + 12, "again, with all views", "mid small")
        )
    return plot


def _curve(plot: Plot, steps: Array, value: Array, i: int, name: str) -> None:
    """A line, and dots on it with their values as tooltips."""
    x, y = plot.x(steps), plot.y(value)
    plot.marks.append(svg.line(x, y, f"s{i} {color(i)}"))
    few = np.linspace(0, len(steps) - 1, min(MOST_SPOTS, len(steps)))
    some = np.unique(few.round().astype(int))
    for t in some[np.isfinite(value[some])]:
        tip = (f"{name} {value[t]:.4g}", f"step {steps[t]:.0f}")
        plot.marks.append(svg.dot(x[t], y[t], f"spot s{i} {color(i)}", *tip))
