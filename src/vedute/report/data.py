"""The sections on the data and on the training, and how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from vedute.data import missing
from vedute.figures import plots
from vedute.report import html
from vedute.report.html import chart, feature_of, figure, number, percent, plain, section, table
from vedute.report.measure import Array
from vedute.report.run_folder import FittedRun, public, used_settings
from vedute.training import history

CURVES = 3.2  # height in inches
SURE, SMALL = 0.01, 0.2  # a probability, and a difference in standard deviations that matters
MOST_TESTS = 10


def data(run: FittedRun) -> str:
    """The section on the data."""
    facts, unknown = run.facts, [""] * len(run.names)
    holes = [facts["holes_by_view"][name] for name in run.names]
    columns = {
        "view": run.names,
        "taken for": run.results.kinds if len(run.results.kinds) else unknown,
        "likelihood": run.results.likelihoods if len(run.results.likelihoods) else unknown,
        "features": [" × ".join(map(str, shape)) for shape in facts["shapes"]],
        "observed": [number(count) for count in run.mask.sum(0)],
        "missing": [percent(facts["missing_by_view"][name]) for name in run.names],
        "single entries missing": [percent(share, 1) if share else "–" for share in holes],
    }
    rows = ([escape(str(cell)) for cell in row] for row in zip(*columns.values(), strict=True))
    lead = f"{number(len(run.mask))} samples in {len(run.names)} views. A view is missing when "
    lead += "all of it is missing for a sample; zeros are values like any other."
    views = table(list(columns), rows, 3)
    count = len(np.unique(run.mask, axis=0))
    title = f"{count} pattern{'' if count == 1 else 's'} of observed views"
    note = "One column per pattern, as wide as it is frequent: blue views are observed. On the "
    note += "right, how much of each view is missing."
    inside = (np.array(holes) / np.maximum(run.mask.mean(0), 1e-9)).tolist()
    shown, height = (run.mask, run.names, inside), 1.3 + 0.3 * len(run.names)
    patterns = chart(title, note, height, plots.missing, *shown, wide=True)
    together = ""
    if not run.mask.all() and len(run.names) > 2:
        counts, apart = missing.pair_counts(run.mask), unconnected(run)
        cells = [[number(n) if n else "<b>0</b>" for n in row] for row in counts]
        pairs = [[escape(name), *row] for name, row in zip(run.names, cells, strict=True)]
        together = table(["", *run.names], pairs) + f"<p><b>{escape(apart)}.</b></p>" * bool(apart)
        together = plain("Samples that have both views", "on the diagonal, the view", together)
    more = html.fold("Views, and samples that have both of two", views, together)
    return section("data", "Data", lead, patterns, _dependence(run), more)


def depends(run: FittedRun) -> Array:
    """The tests by which missingness clearly depends on observed values."""
    tests = run.results.depends
    if not len(tests):
        return tests
    return np.asarray(tests[(tests["p"] < SURE) & (np.abs(tests["difference"]) >= SMALL)])


def _dependence(run: FittedRun) -> str:
    """The test of whether missingness depends on observed values, with a warning if it does."""
    if not len(run.results.depends):
        return ""
    title = "Does what is missing depend on what is observed?"
    note = "Welch tests of every feature, p times the number of tests; differences in standard "
    note += "deviations"
    tests, rows = depends(run).tolist(), []
    if not tests:
        words = "<p>No sign of it: samples that lack a view are much like the others.</p>"
        return plain(title, note, words)
    for lost, view, feature, difference, p in tests[:MOST_TESTS]:
        far = f"{'+' if difference > 0 else ''}{number(difference)}"
        sure = f"{p:.1g}" if p >= 1e-12 else "< 1e−12"
        rows.append([escape(lost), feature_of(feature, view), far, sure])
    lost = ", ".join(dict.fromkeys(test[0] for test in tests))
    words = f'<p class="warning"><b>It does, for {escape(lost)}.</b> Views were hidden at random '
    words += "to measure errors; where views are really missing for a reason, errors may be "
    words += "larger.</p>"
    heads = ["missing", "feature that differs there", "difference", "p"]
    tests = f'<p class="hint">{note}</p>{table(heads, rows, 2)}'
    return plain(title, "", words + html.fold("The features that differ", tests))


def unconnected(run: FittedRun) -> str:
    """A warning on views that no samples connect; "" if all are."""
    apart = missing.components_warning(missing.components(run.mask, run.names)) or ""
    return apart[:1].upper() + apart[1:]


def training(run: FittedRun) -> str:
    """The section on the training; empty without one."""
    if not run.history:
        return ""
    last, second, marked = run.history[-1], run.second(), (run.warmup(), run.second())
    lead = f"{number(last['step'])} steps in {number(last['epoch'])} epochs"
    experts = [k for shares in run.facts.get("weights", {}).values() for k in shares]
    lead += f", by {escape(experts[0])}, whose representation this is. " if experts else ". "
    title, note = "Error on hidden views", "The loss is the sum of these."
    pair = chart("Loss by term", note, CURVES, plots.terms, run.history, *marked)
    if run.watched():
        lead += "About a tenth of the observed views are hidden from training: how well they are "
        lead += "inferred decides when to stop."
        kept = history.kept([r for r in run.history if r["hidden_error"] is not None])
        note = f"1 is the mean of each feature. Kept: step {kept['step']:.0f}, "
        note += f"error {kept['hidden_error']:.3f}."
        if second:
            note += f" After step {second} the model was refit with the hidden views, for as many "
            note += "steps as had lowered the error: no error can be measured during the refit."
        pair += chart(title, note, CURVES, plots.errors, run.history, kept, *marked)
    else:
        pair += figure(title, "", "No view was hidden from this training.")
    if reason := ended(run.history):
        lead += f" It ended: {escape(reason)}."
    if second:
        lead += f" With so few samples they are needed: <b>after step {second} the model was "
        lead += "refit</b> with the hidden views, for as many steps as had lowered the error. All "
        lead += "results on hidden views are from before the refit."
    more = html.fold("Curves and stages", f'<div class="two">{pair}</div>', stages(run))
    return section("training", "Training", lead, more)


def ended(records: Sequence[history.Record]) -> str:
    """Why training ended, before a refit; "" if that is not known."""
    return next((str(record["ended"]) for record in records if "ended" in record), "")


def stages(run: FittedRun) -> str:
    """A table of the training stages; consecutive ones of one kind without an error are one."""
    rows: list[list[str]] = []
    start, second = 0, run.second()
    for _, group in groupby(run.history, key=lambda record: record["stage"]):
        records = list(group)
        errors = [r["hidden_error"] for r in records if r["hidden_error"] is not None]
        if second and start >= second:
            what = "refit, with the hidden views"
        elif any(r["watched"] for r in records):
            what = "trained; hidden views decide when to stop"
        elif any("better" in r for r in records):
            what = "tried; hidden views decide whether to keep it"
        else:
            what = "warm-up" if start < run.warmup() else "trained for a fixed number of steps"
        error = f"{errors[0]:.3f} to {min(errors):.3f}" if errors else "–"
        first, last = number(start + 1), int(records[-1]["step"])
        if rows and rows[-1][0] == what and rows[-1][2] == error == "–":
            first = rows.pop()[1].partition(" to ")[0]
        rows.append([what, f"{first} to {number(last)}", error])
        start = last
    heads = ["stage", "steps", "hidden error, first to least"]
    return f'<div class="plain">{table(heads, rows)}</div>'


def repeat(run: FittedRun) -> str:
    """The section with the command, versions and settings."""
    facts, config = run.facts, run.config
    command = shlex.join(_public(run, w) for w in facts["command"])
    origin = {
        "data": _public(run, str(facts["source"])) or "DATA",
        "missing pattern": facts["mask"],
        "method": config["method"],
        **({"preset": config["preset"]} if config.get("preset") else {}),
        "seed": facts.get("seed"),
        **facts["versions"],
        **({"left out": facts["left_out"]} if facts.get("left_out") else {}),
    }
    settings = {k: _public(run, v) for k, v in used_settings(config).items()}
    command = f'<pre tabindex="0">{escape(command)}</pre>'
    more = html.fold("Versions and settings", _pairs(origin), "<h3>Settings</h3>", _pairs(settings))
    lead = "Same data, same versions, same seed: same result."
    return section("repeat", "To repeat this", lead, command, more)


def _public(run: FittedRun, word: Any) -> Any:
    """Strip names of files and folders from `word` in a private run; datasets keep their names."""
    if not (run.private and isinstance(word, str)):
        return word
    source = str(run.facts["source"])
    return public(word, source if Path(source).is_absolute() else "")


def _pairs(table: Mapping[str, Any]) -> str:
    """A list of names and values, in columns."""
    rows = ""
    for name, value in table.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        rows += f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>"
    return f'<dl class="settings">{rows}</dl>'
