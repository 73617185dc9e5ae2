"""Measurements for the page, taken once after `fit` and kept in the RUN."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import prod
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch

from vedute import methods
from vedute.analysis.inspection import features
from vedute.analysis.missingness import missingness
from vedute.analysis.profiles import profiles
from vedute.data.frames import Levels, ViewSpec, numbers
from vedute.data.rows import pieces, slices
from vedute.data.views import Views
from vedute.estimators import cross_fitting
from vedute.estimators.base import Estimator
from vedute.estimators.explanation import left_out
from vedute.estimators.filling import interval_of
from vedute.estimators.imputation import DRAWS
from vedute.figures import plots
from vedute.nn import noise
from vedute.report.results import Array, Cell, Results, records

Fields = dict[str, Any]  # of Results
MOST_ROWS, MOST_MAPPED, MOST_HIDDEN = 5000, 3000, cross_fitting.MAX_INSTANCES
LEARNED_NUMBERS = 2**24  # most entries that a simple fill learns from
EXAMPLES, WIDEST = 9, 2**14  # instances and numbers of a view
FEWEST, TRAITS = 5, 8  # samples of a cluster to describe it, features that describe it
WHOLE = ("levels", "covered", "crps", "in_units", "alone", "without")
MOST_LISTED, MOST_VALUES, MOST_INFERRED, NEAREST = 300, 30, 20, 5
INFERRED_NUMBERS = 2**24  # most entries to infer for comparing samples
SAMPLE_LEVEL = 0.9  # of intervals


def evidence(model: Estimator, views: Views) -> Results:
    """Measure a fitted model on the views it was fitted on, without changing it."""
    results: Fields = {
        "method": type(model).__name__,
        "likelihoods": np.array([v.likelihood.name for v in model.views_]),
        "kinds": np.array([f"{v.kind} ({v.why})" for v in model.views_]),
        "stability": getattr(model, "stability_", {}),
        "gaps": gaps(views),
    }
    if views.y is not None:  # objects cannot be stored without pickling
        results["y"] = views.y.astype(str) if views.y.dtype.kind == "O" else views.y
    with noise.seeded(0):
        data = model.learner.scaled(views)
        z = model.embed(data)
        rows = cross_fitting.sample_positions(len(z), MOST_MAPPED)
        results |= {"plane": plots.plane(z[rows].astype(np.float64)), "plane_rows": rows}
        if hasattr(model, "labels_"):
            results |= _certainty(model, views, z) | _profiles(model, views)
        if model.generative:
            results |= _samples(model, views, data, z)
        tests = missingness(data, [features(spec) for spec in model.specs])
        results["depends"] = records(tests.to_dict("list"))
        if len(getattr(model, "hidden_", {}).get("row", ())):
            results |= _on_hidden_views(model, views)
    return Results(**results)


# Clusters.


def _certainty(model: Estimator, views: Views, z: Array) -> Fields:
    n, L = views.shape
    if hasattr(model, "centers_"):
        distance = np.linalg.norm(z[:, None] - model.centers_, axis=2)
        order, ranked = distance.argsort(1), np.sort(distance, 1)
        margin = 1 - ranked[:, 0] / np.maximum(ranked[:, min(1, ranked.shape[1] - 1)], 1e-12)
    else:
        soft = model.predict_proba(views)
        order, ranked = (-soft).argsort(1), -np.sort(-soft, 1)
        margin = ranked[:, 0] - (ranked[:, 1] if ranked.shape[1] > 1 else 0.0)
    stays, tries = np.zeros(n, np.int64), np.zeros(n, np.int64)
    measured = np.isin(np.arange(n), cross_fitting.sample_positions(n, MOST_ROWS))
    for hidden in torch.eye(L).bool():
        rows = np.flatnonzero(measured & left_out(views, hidden).numpy())
        if len(rows):
            less = views[rows].hide(hidden.expand(len(rows), L))
            stays[rows] += model.predict(less) == model.labels_[rows]
            tries[rows] += 1
    runner = order[:, min(1, order.shape[1] - 1)]
    return {"margin": margin, "runner_up": runner, "stays": stays, "tries": tries}


def _profiles(model: Estimator, views: Views) -> Fields:
    """The features that differ most between clusters with enough samples."""
    counts = np.bincount(model.labels_)
    if (counts >= FEWEST).sum() < 1 or (counts > 0).sum() < 2:
        return {}
    effects = profiles(model, views).reindex(columns=range(len(counts)))
    effects = effects[effects.columns[counts >= FEWEST]]
    best = effects.abs().rank(ascending=False, method="first").min(axis=1) <= TRAITS
    described = effects[best].reindex(columns=range(len(counts)))
    names = {k: described.index.get_level_values(k).map(str) for k in ("view", "feature")}
    columns = {k: list(labels) for k, labels in names.items()}
    return {"profiles": records(columns | {"effect": described.to_numpy()})}


# Hidden views.


def _on_hidden_views(model: Estimator, views: Views) -> Fields:
    """Results on views that were predicted before the model learned from them."""
    known = getattr(model, "hidden_predictions_", {})
    if "at" not in known:
        return {"held_out": False}
    row, view = model.hidden_["row"], model.hidden_["view"]
    picked = cross_fitting.sample_positions(len(row), MOST_HIDDEN)
    error = model.hidden_["error"].copy()
    error[known["at"]] = known["error"]
    hidden = torch.zeros_like(views.mask)
    hidden[row[picked], view[picked]] = True
    measured: Fields = {"held_out": True, "refitted": bool(model.learned_again_)}
    measured |= {"picked": picked, "error": error[picked]}
    measured |= {k: known[k] for k in WHOLE if k in known}
    shown = [v for v in range(len(views.x)) if f"known{v}" in known]
    for name in ("known", "explained", "off"):
        measured[name] = {v: known[f"{name}{v}"] for v in shown}
    measured["features"] = {v: np.array(features(model.specs[v])) for v in shown}
    return measured | _fills(model, views, hidden, row[picked]) | _examples(model, views)


def _examples(model: Estimator, views: Views) -> Fields:
    """Instances of each view, from the smallest error to the largest; none of a very wide view."""
    known = model.hidden_predictions_
    rows, which = (model.hidden_[k][known["at"]] for k in ("row", "view"))
    fields: dict[str, dict[int, Array]] = defaultdict(dict)
    for v, view in enumerate(model.views_):
        mine, scaler = which == v, view.scaler
        if f"mean{v}" not in known or not mine.any() or scaler.mean.size > WIDEST:
            continue
        places = np.linspace(0, mine.sum() - 1, min(EXAMPLES, mine.sum())).round().astype(int)
        shown = known["error"][mine].argsort(kind="stable")[places]
        at = rows[mine][shown]
        center, scale = scaler.moments(scaler.mean, scaler.std)
        kept = {"truth": views.known(v)[at], "center": center, "scale": scale}
        stored = [k for k in ("mean", "std", "reach") if f"{k}{v}" in known]
        kept |= {k: known[f"{k}{v}"][shown] for k in stored}
        for name, a in kept.items():
            fields[name][v] = a.astype(np.float32)
        fields["at"][v] = at
    return dict(fields)


def _fills(model: Estimator, views: Views, hidden: torch.Tensor, rows: Array) -> Fields:
    """Errors of the simple fills at the same hidden views, and the time they take."""
    width = sum(int(np.prod(s)) for s in views.shapes)
    room = int(np.clip(LEARNED_NUMBERS // max(width, 1), 500, MOST_ROWS))
    others = np.setdiff1d(np.arange(len(views)), rows)
    extra = others[cross_fitting.sample_positions(len(others), max(room - len(rows), 0))]
    known = np.sort(np.concatenate([rows, extra]))
    data = views[known].hide(hidden[known]).bare()
    if not data.mask.any(0).all():
        return {}
    asked = views[rows].hide(hidden[rows]).bare()
    held = model.learner.held_out(model.learner.scaled(views[rows]), hidden[rows])
    errors, seconds = {}, {}
    for name in methods.baselines():
        if name != "mean_fill" and type(model) is not methods.find(name):  # the unit of R2
            begun = perf_counter()
            filled = methods.find(name)(random_state=0, kinds=model.kinds).fit(data).impute(asked)
            seconds[name] = np.array(perf_counter() - begun)
            off = torch.zeros(held.hidden.shape)
            for v, (x, scaler) in enumerate(zip(filled.floating().x, model.scalers, strict=True)):
                x = x if scaler.signed else x.clamp(min=0)
                images = filled.x[v].dtype == torch.uint8
                value = x if images else scaler.transform(x, torch.ones_like(x).bool())
                off[:, v] = held.errors(value, v)
            errors[name] = off[held.hidden].double().numpy()
    return {"fill_errors": errors, "fill_seconds": seconds, "fill_rows": len(data)}


# Single samples.


class Looked(NamedTuple):
    """One view of m samples: seen, value, low, high (m, width), center and unit (width,); and its
    features: name, slice of columns, and categories."""

    seen: Array
    value: Array
    low: Array
    high: Array
    center: Array
    unit: Array
    features: list[tuple[str, slice, Levels]]


def _samples(model: Estimator, views: Views, data: Views, z: Array) -> Fields:
    """Values and neighbors of single samples, given views in the user's units, scaled data, and
    embedding z (n, D)."""
    from sklearn.neighbors import NearestNeighbors

    doubt = uncertainty(model, data)
    order = np.argsort(np.where(np.isnan(doubt), np.inf, -doubt), kind="stable")
    listed, k = order[:MOST_LISTED], min(NEAREST, len(z) - 1)
    cells = list(_cells(_looked(model, views[listed], data[listed]), views[listed].mask.numpy()))
    columns: Fields = dict(zip(Cell._fields, zip(*cells, strict=True), strict=bool(cells)))
    columns |= {name: np.float32(columns[name]) for name in ("value", "low", "high", "z") if cells}
    nearest = np.zeros((len(listed), 0), np.int64)
    if k > 0:
        near = (
            NearestNeighbors(n_neighbors=k + 1).fit(z).kneighbors(z[listed], return_distance=False)
        )
        others = [[j for j in js if j != row][:k] for js, row in zip(near, listed, strict=True)]
        nearest = np.array(others, np.int64)
    fields = {"cells": records(columns), "doubt": doubt.astype(np.float32)}
    return fields | {"listed": listed, "nearest": nearest}


def uncertainty(model: Estimator, data: Views) -> Array:
    """The standard deviation of the inferred values of each sample, in units of each feature's and
    at most 1, averaged over the features of a view, where observed ones count 0, and over views;
    (n,), NaN if nothing is missing, or not measured."""
    imputer, entries = model.learner.imputer(), sum(view.numbers for view in model.views_)
    lacking = [~data.seen(v).flatten(1).all(1) for v in range(len(data.x))]
    wanted = np.flatnonzero(np.any([gap.numpy() for gap in lacking], axis=0))
    wanted = wanted[
        cross_fitting.sample_positions(len(wanted), max(MOST_LISTED, INFERRED_NUMBERS // entries))
    ]
    doubt = np.full(len(data), np.nan)
    for block in slices(len(wanted), imputer.rows(DRAWS)):
        rows = wanted[block]
        total, count = np.zeros((2, len(rows)))
        part = data[rows]
        for v, std in enumerate(imputer.values(part, spread=True)[1]):
            unit, widths = _moments(model, v)[1], _widths(model.views_[v].spec)
            weight = np.where(unit > 0, np.repeat(1 / widths, widths), 0.0)  # of a feature: 1
            gap = ~part.seen(v).flatten(1).numpy() & (unit > 0)
            share = np.minimum(std.reshape(gap.shape) / np.where(unit > 0, unit, 1.0), 1.0)
            total += np.where(gap, share, 0.0) @ (weight / (weight.sum() or 1.0))
            count += gap.sum(1)
        doubt[rows] = np.where(count > 0, total / len(data.x), np.nan)
    return doubt


def gaps(views: Views) -> Array:
    """The number of missing entries in each observed view of a sample, (n, L)."""
    counts = np.zeros(views.shape, np.int64)
    for v, holes in enumerate(views.hole_parts):
        if holes is not None and views.specs is not None:
            firsts = np.cumsum(_widths(views.specs[v])) - 1
            for rows in pieces(holes):
                counts[rows, v] = holes[rows].flatten(1)[:, firsts].sum(1)
    return counts


def _looked(model: Estimator, views: Views, data: Views) -> dict[int, Looked]:
    """Values of views of numbers and categories; words and images are not listed."""
    shown, (means, stds) = {}, model.learner.imputer().values(data, spread=True)
    for v, (view, mean, std) in enumerate(zip(model.views_, means, stds, strict=True)):
        if view.likelihood.text or len(view.shape) > 1:
            continue
        ends, spec = interval_of(view, mean, std, data, v, SAMPLE_LEVEL), view.spec
        seen, observed = views.seen(v).numpy(), np.nan_to_num(views.known(v))
        filled = view.possible(mean), ends.lower, ends.upper
        value, low, high = (np.where(seen, observed, a) for a in filled)
        names = features(spec) if spec.columns is None or spec.levels is None else spec.columns
        stops = np.cumsum(_widths(spec)).tolist()
        columns = [
            (str(name), slice(stop - numbers(levels), stop), levels)
            for name, stop, levels in zip(names, stops, _levels(spec), strict=True)
        ]
        shown[v] = Looked(seen, value, low, high, *_moments(model, v), columns)
    return shown


def _cells(looked: dict[int, Looked], mask: Array) -> Iterator[Cell]:
    """Cells of each sample: missing features and those farthest from their mean, more of missing
    views than of observed ones; narrow views leave room to the others."""
    narrow_first = sorted(looked, key=lambda v: len(looked[v].features))
    for i, seen in enumerate(mask):
        lost = [v for v in narrow_first if not seen[v]]
        present = [v for v in narrow_first if seen[v]]
        counts: dict[int, int] = {}
        for views, most in (
            (lost, MOST_INFERRED if present else MOST_VALUES),
            (present, MOST_VALUES),
        ):
            room = most - sum(counts.values())
            for place, v in enumerate(views):
                counts[v] = min(len(looked[v].features), max(room, 0) // (len(views) - place))
                room -= counts[v]
        for v in [*sorted(lost), *sorted(present)]:
            yield from _farthest(looked[v], i, v, counts[v])


def _farthest(view: Looked, i: int, v: int, count: int) -> Iterator[Cell]:
    """Cells of `count` features of sample i in their order; missing ones have priority."""
    unit, starts = np.where(view.unit > 0, view.unit, 1.0), [at.start for _, at, _ in view.features]
    z = [(a[i] - view.center) / unit for a in (view.value, view.low, view.high)]
    far = np.maximum.reduceat(np.abs(z[0]), starts)
    seen = np.logical_and.reduceat(view.seen[i], starts)
    for f in np.sort(np.lexsort((-far, seen))[:count]):
        name, at, levels = view.features[f]
        shares, first, word = view.value[i, at], at.start, ""
        if levels:
            first += int(shares.argmax())
        if levels is not None:  # the most probable; of two, the share is that of the second
            shares = np.array([1 - shares[0], shares[0]]) if len(levels) == 2 else shares
            best = min(int(shares.argmax()), len(levels) - 1)
            sure = "" if shares[best] > 0.9995 else f" ({100 * shares[best]:.0f} %)"
            word = f"{levels[best]}{sure}"
        value, low, high = (float(a[i, first]) for a in (view.value, view.low, view.high))
        a, b, c = (float(np.clip(bound[first], -9, 9)) for bound in z)
        yield Cell(i, v, name, bool(view.seen[i, first]), value, low, high, word, (a, b, c))


def _levels(spec: ViewSpec) -> Sequence[Levels]:
    """The categories of each feature, or None."""
    return spec.levels or [None] * prod(spec.shape)


def _widths(spec: ViewSpec) -> Array:
    """The number of columns of each feature: one, or several for more than two categories."""
    return np.array([numbers(levels) for levels in _levels(spec)])


def _moments(model: Estimator, v: int) -> tuple[Array, Array]:
    """Mean and standard deviation of the features of view v, in the user's units."""
    scaler = model.views_[v].scaler
    center, unit = scaler.moments(scaler.mean, scaler.std)
    return center.ravel(), unit.ravel()
