"""Hidden views as the model infers them, beside the truth: profiles with intervals, or pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from vedute.figures import page_axes
from vedute.figures.png import gray, picture
from vedute.report.drawing import THIRD, drawing
from vedute.report.html import figure
from vedute.report.run_folder import Array, FittedRun

SHOWN_AT = 0.9  # of intervals
WIDTH = 1.645  # deviations: so much of a normal distribution lies within
SHOWN_FEATURES = 120  # features: more are thinned out
UNLIKE = 20  # features whose deviations differ more have no common unit
SHARES = ("bernoulli", "categorical")  # values between 0 and 1
WHICH = {0.1: "easy", 0.5: "typical", 0.9: "hard"}


class Profile(NamedTuple):
    """One instance, in the unit of its chart: feature, truth, mean, low and high, (p,) each."""

    feature: Array
    truth: Array
    mean: Array
    low: Array
    high: Array


def examples(run: FittedRun, shapes: Mapping[str, Sequence[int]]) -> str:
    """Examples of every view; `shapes` of views that hold pictures as rows of numbers."""
    unknown = [k for k in shapes if k not in run.names]
    if unknown:
        raise ValueError(f"no view {unknown[0]!r}; views are {', '.join(run.names)}")
    parts = []
    for v, name in enumerate(run.names):
        stored = tuple(run.facts["shapes"][v])
        shape = tuple(shapes.get(name, stored))
        if np.prod(shape) != np.prod(stored):
            sides = "x".join(map(str, shape))
            raise ValueError(f"view {name!r} has {np.prod(stored)} numbers per sample, not {sides}")
        if v in run.results.truth:
            parts.append(pictures(run, v, shape) if len(shape) > 1 else profiles(run, v))
    return "".join(parts)


def profiles(run: FittedRun, v: int) -> str:
    """Charts of three instances of a view: an easy, a typical and a hard one."""
    count, width = len(run.results.at[v]), run.results.scale[v].size
    instances = {round(q * (count - 1)): word for q, word in WHICH.items()}
    charts = [
        _chart(run, v, i, word if len(instances) > 2 else "") for i, word in instances.items()
    ]
    key = (
        '<span><i class="was"></i>truth, never shown</span>'
        '<span><i class="is"></i>inferred</span><span><i class="may"></i>90 % interval</span>'
    )
    thin = f"{-(-width // _stride(width))} of " if _stride(width) > 1 else ""
    note = f"{thin}{width} features, {_unit(run, v)[2]}"
    body = f'<div class="legend key">{key}</div><div class="three">{"".join(charts)}</div>'
    return figure(run.names[v], body, escape(note), kind="wide")


def pictures(run: FittedRun, v: int, shape: Sequence[int]) -> str:
    """Pictures of truth, inferred values and uncertainty of some instances, easiest first."""
    at = run.results.at[v]
    measured = run.results.truth[v], run.results.mean[v], run.results.std[v]
    truth, mean, std = (images.reshape(-1, *shape) for images in measured)
    ends = float(np.nanmin(truth)), float(np.nanmax(truth))
    doubt = gray(std)
    low, high = (float(q) for q in np.nanquantile(doubt, (0.02, 0.98)))
    lines = {
        "truth, never shown": [picture(i, *ends) for i in truth],
        "inferred": [picture(i, *ends) for i in mean],
        "uncertainty": [picture(i, low, high) for i in doubt],
    }
    rows, names = "", [escape(run.sample(int(row))) for row in at]
    for word, sources in lines.items():
        cells = (
            f'<td><img alt="{escape(word)}" title="{who}" src="{src}"></td>'
            for src, who in zip(sources, names, strict=True)
        )
        rows += f"<tr><th>{escape(word)}</th>{''.join(cells)}</tr>"
    note = f"{len(at)} hidden instances, easiest first; in the last row bright is uncertain."
    body = f'<div class="table"><table class="pictures">{rows}</table></div>'
    return figure(run.names[v], body, note, kind="wide")


def _chart(run: FittedRun, v: int, i: int, word: str) -> str:
    """A figure of one instance: truth, inferred values and 90 % intervals."""
    p = _profile(run, v, i)
    values = p.feature, p.truth, (p.mean, p.low, p.high)
    title = f"{run.names[v]}, {word or 'an'} instance"
    body = drawing(lambda ax: page_axes.instance(ax, *values), title, THIRD, 1.9)
    words = (word, run.sample(int(run.results.at[v][i])), f"error {_error(run, v, i):.2f}")
    head = " · ".join(w for w in words if w)
    return f'<div><p class="instance">{escape(head)}</p>{body}</div>'


def _profile(run: FittedRun, v: int, i: int) -> Profile:
    shift, scale, _ = _unit(run, v)
    measured = run.results.truth[v], run.results.mean[v], run.results.std[v]
    truth, mean, std = (values[i].ravel() for values in measured)
    truth, mean, reach = (truth - shift) / scale, (mean - shift) / scale, std / scale
    reach *= _width(run, v, i)
    shown = np.arange(0, len(truth), _stride(len(truth)))
    ends = [mean - reach, mean + reach]
    if run.results.likelihoods[v] in SHARES:
        ends = [end.clip(0, 1) for end in ends]
    return Profile(shown, *(a[shown] for a in (truth, mean, *ends)))


def _width(run: FittedRun, v: int, i: int) -> float:
    """Half the width of an interval in standard deviations; normal if none was measured."""
    reach = run.results.reach.get(v)
    return WIDTH if reach is None else float(np.interp(SHOWN_AT, run.results.levels, reach[i]))


def _error(run: FittedRun, v: int, i: int) -> float:
    """The imputation error of an instance, in squared standard deviations without constants."""
    scale = run.results.scale[v].ravel()
    deviation = (run.results.truth[v][i] - run.results.mean[v][i]).ravel()
    known = (scale > 0) & ~np.isnan(deviation)
    return float(np.mean((deviation[known] / scale[known]) ** 2)) if known.any() else np.nan


def _unit(run: FittedRun, v: int) -> tuple[Array, Array, str]:
    """(shift, scale, its name): the user's unit if the features of a view have a common scale."""
    scale = run.results.scale[v].ravel().astype(float)
    positive = scale[scale > 0]
    if positive.size and np.quantile(positive, 0.95) > UNLIKE * max(
        np.quantile(positive, 0.05), 1e-300
    ):
        unit = np.where(scale > 0, scale, 1.0)
        return run.results.center[v].ravel(), unit, "in standard deviations"
    return np.zeros_like(scale), np.ones_like(scale), "in your units"


def _stride(width: int) -> int:
    return -(-width // SHOWN_FEATURES)
