"""The section of hidden views as the model infers them, beside the truth: profiles with intervals,
or pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from vedute.figures import plots
from vedute.figures.png import picture
from vedute.report.html import THIRD, drawing, figure, section
from vedute.report.results import Array
from vedute.report.run_folder import FittedRun

SHOWN_AT = 0.9  # of intervals
WIDTH = 1.645  # deviations: so much of a normal distribution lies within
SHOWN_FEATURES = 120  # features: more are thinned out
UNLIKE = 20  # features whose deviations differ more have no common unit
SHARES = ("bernoulli", "categorical")  # values between 0 and 1
WHICH = {0.1: "easy", 0.5: "typical", 0.9: "hard"}


def examples(run: FittedRun, shapes: Mapping[str, Sequence[int]]) -> str:
    """Examples of every view, if any; `shapes` of views that hold pictures as rows of numbers."""
    unknown = [k for k in shapes if k not in run.names]
    if unknown:
        raise ValueError(f"no view {unknown[0]!r}; views are {', '.join(run.names)}")
    parts = ""
    for v, name in enumerate(run.names):
        stored = tuple(run.facts["shapes"][v])
        shape = tuple(shapes.get(name, stored))
        if np.prod(shape) != np.prod(stored):
            sides = "x".join(map(str, shape))
            raise ValueError(f"view {name!r} has {np.prod(stored)} numbers per sample, not {sides}")
        if v in run.results.truth:
            parts += _pictures(run, v, shape) if len(shape) > 1 else _profiles(run, v)
    lead = (
        "Hidden views of single samples, as inferred from the others before the model learned from "
        "them. They are chosen by rank: their errors are at the 10th, 50th and 90th percentile of "
        "the view."
    )
    return section("examples", "Inferred views", lead, parts) if parts else ""


def _pictures(run: FittedRun, v: int, shape: Sequence[int]) -> str:
    """Pictures of truth, inferred values and uncertainty of some instances, easiest first."""
    results = run.results
    measured = results.truth[v], results.mean[v], results.std[v]
    truth, mean, std = (images.reshape(-1, *shape) for images in measured)
    ends = float(np.nanmin(truth)), float(np.nanmax(truth))
    doubt = std.mean(1 if std.shape[1] in (1, 3) else -1) if std.ndim > 3 else std  # of colors
    low, high = (float(q) for q in np.nanquantile(doubt, (0.02, 0.98)))
    lines = {
        "truth, never shown": [picture(i, *ends) for i in truth],
        "inferred": [picture(i, *ends) for i in mean],
        "uncertainty": [picture(i, low, high) for i in doubt],
    }
    rows, names = "", [escape(run.sample(int(row))) for row in results.at[v]]
    for word, sources in lines.items():
        cells = (
            f'<td><img alt="{word}" title="{who}" src="{src}"></td>'
            for src, who in zip(sources, names, strict=True)
        )
        rows += f"<tr><th>{word}</th>{''.join(cells)}</tr>"
    note = f"{len(names)} hidden instances, easiest first; in the last row bright is uncertain."
    body = f'<div class="table"><table class="pictures">{rows}</table></div>'
    return figure(run.names[v], body, note, kind="wide")


def _profiles(run: FittedRun, v: int) -> str:
    """Charts of three instances of a view: an easy, a typical and a hard one."""
    count, width = len(run.results.at[v]), run.results.scale[v].size
    instances = {round(q * (count - 1)): word for q, word in WHICH.items()}
    charts = [
        _instance(run, v, i, word if len(instances) > 2 else "") for i, word in instances.items()
    ]
    key = (
        '<span><i class="was"></i>truth, never shown</span>'
        '<span><i class="is"></i>inferred</span><span><i class="may"></i>90 % interval</span>'
    )
    stride = -(-width // SHOWN_FEATURES)
    thin = f"{-(-width // stride)} of " if stride > 1 else ""
    unit = "in your units" if _unit(run, v) is None else "in standard deviations"
    body = f'<div class="legend key">{key}</div><div class="three">{"".join(charts)}</div>'
    return figure(run.names[v], body, f"{thin}{width} features, {unit}", kind="wide")


def _instance(run: FittedRun, v: int, i: int, word: str) -> str:
    """A chart of one instance: truth, inferred values and 90 % intervals."""
    results, unit = run.results, _unit(run, v)
    center, scale = results.center[v].ravel(), results.scale[v].ravel()
    truth, mean, std = (a[v][i].ravel() for a in (results.truth, results.mean, results.std))
    known = (scale > 0) & ~np.isnan(truth - mean)
    error = np.mean(((truth - mean)[known] / scale[known]) ** 2) if known.any() else np.nan
    reach = results.reach.get(v)  # in standard deviations; normal if it was not measured
    wide = WIDTH if reach is None else float(np.interp(SHOWN_AT, results.levels, reach[i]))
    if unit is not None:
        truth, mean, std = (truth - center) / unit, (mean - center) / unit, std / unit
    low, high = mean - wide * std, mean + wide * std
    if results.likelihoods[v] in SHARES:
        low, high = low.clip(0, 1), high.clip(0, 1)
    shown = np.arange(0, len(truth), -(-len(truth) // SHOWN_FEATURES))
    inferred = mean[shown], low[shown], high[shown]
    title = f"{run.names[v]}, {word or 'an'} instance"
    body = drawing(lambda ax: plots.instance(ax, shown, truth[shown], inferred), title, THIRD, 1.9)
    words = (word, run.sample(int(results.at[v][i])), f"error {error:.2f}")
    head = " · ".join(w for w in words if w)
    return f'<div><p class="instance">{escape(head)}</p>{body}</div>'


def _unit(run: FittedRun, v: int) -> Array | None:
    """Standard deviations of the features of a view if they have no common scale, else None."""
    scale = run.results.scale[v].ravel().astype(float)
    positive = scale[scale > 0]
    if not positive.size:
        return None
    low, high = np.quantile(positive, (0.05, 0.95))
    return np.where(scale > 0, scale, 1.0) if high > UNLIKE * max(low, 1e-300) else None
