"""Charts of the data and of the training."""

from __future__ import annotations

from html import escape
from itertools import groupby

import numpy as np

from vedute.figures import axes
from vedute.report import svg
from vedute.report.drawing import HALF, both, drawing
from vedute.report.html import figure, table
from vedute.report.run_folder import FittedRun
from vedute.training import history

CURVES = 3.2  # height in inches
SURE, SMALL = 0.01, 0.2  # a probability, and a difference in standard deviations that matters


def patterns(run: FittedRun) -> str:
    """A figure of the views that are observed together: a column per pattern."""
    count = len(np.unique(run.mask, axis=0))
    title = f"{count} pattern{'' if count == 1 else 's'} of observed views"
    note = (
        "One column per pattern, as wide as it is frequent: blue views are observed. On the right, "
        "how much of each view is missing."
    )
    seen = np.maximum(run.mask.mean(0), 1e-9)
    holes = np.array([run.facts["holes_by_view"][name] for name in run.names]) / seen
    height = 1.3 + 0.3 * len(run.names)
    body = both(lambda ax: axes.missing(ax, run.mask, run.names, holes.tolist()), title, height)
    return figure(title, body, note, kind="wide")


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
    """A figure of the loss terms over steps."""
    stages = run.warmup(), run.second()
    body = drawing(lambda ax: axes.terms(ax, run.history, *stages), "loss terms", HALF, CURVES)
    return figure("Loss by term", body, "The loss is the sum of these.")


def hidden_error(run: FittedRun) -> str:
    """A figure of the error on hidden views over steps; it marks the weights that were kept."""
    checked = [r for r in run.history if r["hidden_error"] is not None]
    if not checked:
        return figure("Error on hidden views", "", "No view was hidden from this training.")
    kept, stages = history.kept(checked), (run.warmup(), run.second())
    body = drawing(
        lambda ax: axes.errors(ax, run.history, kept, *stages), "hidden-view error", HALF, CURVES
    )
    note = f"1 is the mean of each feature. Kept: step {kept['step']:.0f}, "
    note += f"error {kept['hidden_error']:.3f}."
    if run.second():
        note += (
            f" After step {run.second()} the model was refit with the hidden views, for as many "
            "steps as had lowered the error: no error can be measured during the refit."
        )
    return figure("Error on hidden views", body, note)
