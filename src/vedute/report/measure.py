"""Measurements for the page, taken once after `fit` and kept in the RUN as report.npz.

A field of `Results` is empty if it was not measured. Arrays have n samples, L views, h hidden
instances, q levels of intervals and K clusters; a dict has an array per view, if it has no other
names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from vedute import methods
from vedute.analysis.inspection import features
from vedute.analysis.missingness import missingness
from vedute.analysis.profiles import profiles
from vedute.data import frames
from vedute.data.holdout import HoldOut
from vedute.data.rows import pieces, slices
from vedute.data.views import Views
from vedute.estimators import cross_fitting
from vedute.estimators.base import Estimator
from vedute.estimators.explanation import left_out
from vedute.estimators.filling import interval_of
from vedute.estimators.imputation import DRAWS
from vedute.figures import plots
from vedute.nn import noise
from vedute.report.columns import (
    categories_of,
    columns_of,
    confusions,
    correlations,
    painted,
    widths,
)

Array = NDArray[Any]
ByView = dict[int, Array]
Fields = dict[str, Any]  # of Results
MOST_ROWS, MOST_MAPPED, MOST_HIDDEN = 5000, 3000, cross_fitting.MAX_INSTANCES
LEARNED_NUMBERS = 2**24  # most entries that a simple fill learns from
EXAMPLES, WIDEST = 9, 2**14  # instances and numbers of a view
FEWEST, TRAITS = 5, 8  # samples of a cluster to describe it, features that describe it
WHOLE = ("levels", "covered", "crps", "in_units", "alone", "without")
MOST_LISTED, MOST_VALUES, MOST_INFERRED, NEAREST = 300, 30, 20, 5
INFERRED_NUMBERS = 2**24  # most entries to infer for comparing samples
SAMPLE_LEVEL = 0.9  # of intervals
PERSONAL = {"personal": True}  # of a field with values or labels of single samples


_empty = partial(np.zeros, 0)


class Cell(NamedTuple):
    """One value of a listed sample."""

    of: int  # position in `listed`
    view: int
    name: str  # of the feature
    seen: bool  # observed, not inferred
    value: float
    low: float  # ends of the interval
    high: float
    word: str  # of a category
    z: tuple[float, float, float]  # value, low, high: in standard deviations from the mean


@dataclass(frozen=True, eq=False, kw_only=True)
class Results:
    """All measurements of a fit; those marked `PERSONAL` are left out by --no-values."""

    method: str = ""
    likelihoods: Array = field(default_factory=_empty)  # (L,)
    kinds: Array = field(default_factory=_empty)  # (L,), each with its reason
    stability: dict[str, Array] = field(default_factory=dict)  # curve of the number of clusters
    held_out: bool | None = None  # hidden views were predicted before they were learned from
    refitted: bool = False  # the saved model was then refit with them
    # Measured hidden instances: rows of hidden.npz
    picked: Array = field(default_factory=_empty)  # (h,)
    error: Array = field(default_factory=_empty)  # (h,)
    fill_errors: dict[str, Array] = field(default_factory=dict)  # (h,) of each simple fill
    fill_seconds: dict[str, Array] = field(default_factory=dict)  # () each, to fit and impute
    fill_rows: int = 0  # samples that the fills learned from
    levels: Array = field(default_factory=_empty)  # (q,), nominal
    covered: Array = field(default_factory=_empty)  # (L, q), actual
    crps: Array = field(default_factory=_empty)  # (L,)
    in_units: Array = field(default_factory=_empty)  # (L,), R2 in the user's units
    alone: Array = field(default_factory=_empty)  # (3, L, L), see `vedute.estimators.explanation`
    without: Array = field(default_factory=_empty)  # (3, L, L)
    # Examples of hidden instances, sorted by error
    at: ByView = field(default_factory=dict)  # (e,), their rows
    truth: ByView = field(default_factory=dict, metadata=PERSONAL)  # (e, *shape_v)
    mean: ByView = field(default_factory=dict, metadata=PERSONAL)  # (e, *shape_v)
    std: ByView = field(default_factory=dict, metadata=PERSONAL)  # (e, *shape_v)
    reach: ByView = field(default_factory=dict, metadata=PERSONAL)  # (e, q), half intervals
    center: ByView = field(default_factory=dict)  # (*shape_v,), mean of the features
    scale: ByView = field(default_factory=dict)  # (*shape_v,), standard deviation of the features
    # Features of hidden views, see `vedute.estimators.cross_fitting`
    features: ByView = field(default_factory=dict)  # (width,), names, or positions
    known: ByView = field(default_factory=dict)  # (width,)
    explained: ByView = field(default_factory=dict)  # (width,)
    off: ByView = field(default_factory=dict)  # (width,)
    correlation: ByView = field(default_factory=dict)  # (width,), of truth and inferred values
    inside: Array = field(default_factory=_empty)  # (h,), share of values inside 90 % intervals
    column: dict[int, Array] = field(default_factory=dict)  # (width,), the column of each feature
    # Columns of categories, by "view.column"
    confusions: dict[str, Array] = field(default_factory=dict)  # (K, K), true and inferred
    categories: dict[str, Array] = field(default_factory=dict)  # (K,), their names
    # Features that differ, with columns as in `vedute.analysis`
    profiles: Array = field(default_factory=_empty)  # (f,), view, feature, effect, shares (K,)
    depends: Array = field(default_factory=_empty)  # (t,), as `missingness`
    # Samples
    y: Array = field(default_factory=_empty, metadata=PERSONAL)  # (n,), labels of the data
    plane: Array = field(default_factory=_empty)  # (p, 2), positions in the plane
    plane_rows: Array = field(default_factory=_empty)  # (p,)
    shades: dict[str, Array] = field(default_factory=dict, metadata=PERSONAL)  # see `painted`
    shade_names: dict[str, Array] = field(default_factory=dict, metadata=PERSONAL)
    margin: Array = field(default_factory=_empty)  # (n,), relative distance to the next cluster
    runner_up: Array = field(default_factory=_empty)  # (n,), that cluster
    stays: Array = field(default_factory=_empty)  # (n,), of `tries` views left out
    tries: Array = field(default_factory=_empty)  # (n,)
    doubt: Array = field(default_factory=_empty)  # (n,), see `measure.uncertainty`
    gaps: Array = field(default_factory=_empty)  # (n, L), missing entries of each observed view
    listed: Array = field(default_factory=_empty)  # (m,), most uncertain samples
    nearest: Array = field(default_factory=_empty)  # (m, k), the samples nearest to them
    cells: Array = field(default_factory=_empty, metadata=PERSONAL)  # (t,), see `Cell`

    def kept(self, values: bool) -> Results:
        """The results; without values and labels of single samples unless `values`."""
        empty = Results()
        return self if values else replace(self, **{k: getattr(empty, k) for k in personal()})

    def arrays(self) -> dict[str, Array]:
        """All measured fields as arrays, entries of a dict as <field>.<key>."""
        arrays: dict[str, Any] = {}
        for name in (f.name for f in fields(self)):
            value = getattr(self, name)
            named = isinstance(value, dict)
            arrays |= {f"{name}.{k}": a for k, a in value.items()} if named else {name: value}
        return {k: np.asarray(a) for k, a in arrays.items() if a is not None and np.size(a)}

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> Results:
        """Results from `arrays`."""
        values: dict[str, Any] = defaultdict(dict)
        for key, a in arrays.items():
            name, _, entry = key.partition(".")
            if entry:
                values[name][int(entry) if entry.isdecimal() else entry] = a
            else:
                values[name] = a if a.ndim else a.item()
        return cls(**values)


def personal() -> list[str]:
    """Names of the fields of `Results` that hold values or labels of single samples."""
    return [f.name for f in fields(Results) if f.metadata]


def records(columns: Mapping[Any, Any]) -> Array:
    """A structured array from columns (t,) or (t, k)."""
    arrays = [np.asarray(column) for column in columns.values()]
    kinds = [(k, a.dtype, a.shape[1:]) for k, a in zip(columns, arrays, strict=True)]
    return np.array([*zip(*arrays, strict=True)], kinds)


def evidence(model: Estimator, views: Views) -> Results:
    """Measure a fitted model on the views it was fitted on, without changing it."""
    results: Fields = {
        "method": type(model).__name__,
        "likelihoods": np.array([v.likelihood.name for v in model.views_]),
        "kinds": np.array([f"{v.kind} ({v.why})" for v in model.views_]),
        "stability": getattr(model, "stability_", {}),
        "gaps": np.zeros(views.shape, np.int64),
    }
    for v, holes in enumerate(views.hole_parts):
        if holes is not None and views.specs is not None:
            firsts = np.cumsum(widths(views.specs[v])) - 1
            for part in pieces(holes):
                results["gaps"][part, v] = holes[part].flatten(1)[:, firsts].sum(1)
    if views.y is not None:  # objects cannot be stored without pickling
        results["y"] = views.y.astype(str) if views.y.dtype.kind == "O" else views.y
    with noise.seeded(0):
        data = model.learner.scaled(views)
        z = model.embed(data)
        rows = cross_fitting.sample_positions(len(z), MOST_MAPPED)
        results |= {"plane": plots.plane(z[rows].astype(np.float64)), "plane_rows": rows}
        if hasattr(model, "labels_"):
            results |= _clusters(model, views, z)
        results |= painted(views, rows)
        if model.generative:
            results |= _samples(model, views, data, z)
        tests = missingness(data, [features(spec) for spec in model.specs])
        results["depends"] = records(tests.to_dict("list"))
        if len(getattr(model, "hidden_", {}).get("row", ())):
            results |= _on_hidden_views(model, views)
    return Results(**results)


def _clusters(model: Estimator, views: Views, z: Array) -> Fields:
    """How certain clusters are, and the features that differ most between large ones."""
    n, L = views.shape
    if hasattr(model, "centers_"):
        distance = np.linalg.norm(z[:, None] - model.centers_, axis=2)
        order, ranked = distance.argsort(1), np.sort(distance, 1)
        margin = 1 - ranked[:, 0] / np.maximum(ranked[:, min(1, ranked.shape[1] - 1)], 1e-12)
    else:
        soft = model.predict_proba(views)
        order, ranked = (-soft).argsort(1), -np.sort(-soft, 1)
        margin = ranked[:, 0] - (ranked[:, 1] if ranked.shape[1] > 1 else 0.0)
    stays, tries = np.zeros((2, n), np.int64)
    measured = np.isin(np.arange(n), cross_fitting.sample_positions(n, MOST_ROWS))
    for hidden in torch.eye(L).bool():
        rows = np.flatnonzero(measured & left_out(views, hidden).numpy())
        if len(rows):
            less = views[rows].hide(hidden.expand(len(rows), L))
            stays[rows] += model.predict(less) == model.labels_[rows]
            tries[rows] += 1
    runner = order[:, min(1, order.shape[1] - 1)]
    fields = {"margin": margin, "runner_up": runner, "stays": stays, "tries": tries}
    counts = np.bincount(model.labels_)
    large = np.flatnonzero(counts >= FEWEST)
    if len(large) and (counts > 0).sum() > 1:
        effects = profiles(model, views).reindex(columns=large)
        best = effects.abs().rank(ascending=False, method="first").min(axis=1) <= TRAITS
        described = effects[best].reindex(columns=range(len(counts)))
        names = {k: [*described.index.get_level_values(k).map(str)] for k in ("view", "feature")}
        shares = zip(("share", "share_of_others"), _shares(model, views, described), strict=True)
        fields["profiles"] = records(names | {"effect": described.to_numpy()} | dict(shares))
    return fields


def _shares(model: Estimator, views: Views, described: pd.DataFrame) -> Array:
    """Shares of yes in each cluster and in the other samples, (2, f, K); NaN for other features."""
    shares = np.full((2, *described.shape), np.nan)
    for v, (view, spec) in enumerate(zip(model.views_, model.specs, strict=True)):
        if not any(categories_of(spec)) and view.likelihood.name != "bernoulli":
            continue
        names, x = [str(k) for k in features(spec)], views.known(v).reshape(len(views), -1)
        for i, (name, feature) in enumerate(described.index):
            if str(name) != spec.name or str(feature) not in names:
                continue
            column = x[:, names.index(str(feature))]
            known = ~np.isnan(column)
            if not np.isin(column[known], (0, 1)).all():
                continue
            for k in range(described.shape[1]):
                for side, mine in enumerate((model.labels_ == k, model.labels_ != k)):
                    if (known & mine).any():
                        shares[side, i, k] = column[known & mine].mean()
    return shares


def _on_hidden_views(model: Estimator, views: Views) -> Fields:
    """Results on views that were predicted before the model learned from them."""
    known = getattr(model, "hidden_predictions_", {})
    if "at" not in known:
        return {"held_out": False}
    row, view, error = (model.hidden_[k].copy() for k in ("row", "view", "error"))
    error[known["at"]] = known["error"]
    picked = cross_fitting.sample_positions(len(row), MOST_HIDDEN)
    measured: Fields = defaultdict(dict, {k: known[k] for k in WHOLE if k in known})
    measured |= {"held_out": True, "refitted": bool(model.learned_again_)}
    measured |= {"picked": picked, "error": error[picked]}
    inside = np.full(len(row), np.nan)
    for v, scaler in enumerate(model.scalers):
        if f"known{v}" in known:
            for name, a in _of_features(model.specs[v], known, v).items():
                measured[name][v] = a
        mine = view[known["at"]] == v
        if f"mean{v}" not in known or not mine.any() or scaler.mean.size > WIDEST:
            continue
        true, mean = views.known(v)[row[known["at"]][mine]], known[f"mean{v}"]
        if f"known{v}" in known:
            measured["correlation"][v] = correlations(true, mean)
        if model.views_[v].likelihood.scaled:
            far = model.views_[v].varying(scaler.distance(true, mean, known[f"std{v}"]))
            inside[known["at"][mine]] = _share_inside(far, known["levels"], known[f"reach{v}"])
        for name, counts, levels in confusions(model.specs[v], true, mean):
            measured["confusions"][f"{v}.{name}"] = counts
            measured["categories"][f"{v}.{name}"] = np.array([str(level) for level in levels])
        # examples, from the smallest error to the largest
        places = np.linspace(0, mine.sum() - 1, min(EXAMPLES, mine.sum())).round().astype(int)
        shown = known["error"][mine].argsort(kind="stable")[places]
        at = measured["at"][v] = row[known["at"]][mine][shown]
        center, scale = scaler.moments(scaler.mean, scaler.std)
        kept = {"truth": views.known(v)[at], "center": center, "scale": scale}
        stored = [k for k in ("mean", "std", "reach") if f"{k}{v}" in known]
        for name, a in (kept | {k: known[f"{k}{v}"][shown] for k in stored}).items():
            measured[name][v] = a.astype(np.float32)
    measured["inside"] = inside[picked]
    return {**measured} | _fills(model, views, row[picked], view[picked])


def _of_features(spec: frames.ViewSpec, known: Fields, v: int) -> dict[str, Array]:
    """Results for each feature of view v. Columns of categories have `confusions` instead."""
    results = {name: known[f"{name}{v}"].copy() for name in ("known", "explained", "off")}
    names = np.array(features(spec))
    column = names.astype(object)
    for name, at, levels in columns_of(spec):
        if levels is not None:
            column[at], results["known"][at] = name, 0
    return results | {"features": names, "column": column.astype(str)}


def _share_inside(far: Array, levels: Array, reach: Array) -> Array:
    """The share of values inside intervals of SAMPLE_LEVEL, (h,), given their distances (h, f) and
    the reach of intervals of all levels (h, q) in standard deviations; NaN: unknown."""
    ends = np.array([np.interp(SAMPLE_LEVEL, levels, r) for r in reach])
    count = (~np.isnan(far)).sum(1)
    return np.where(count > 0, (far <= ends[:, None]).sum(1) / np.maximum(count, 1), np.nan)


def _fills(model: Estimator, views: Views, rows: Array, which: Array) -> Fields:
    """Errors of the simple fills at the same hidden views, and the time they take."""
    hidden = torch.zeros_like(views.mask)
    hidden[rows, which] = True
    width = sum(int(np.prod(s)) for s in views.shapes)
    room = int(np.clip(LEARNED_NUMBERS // max(width, 1), 500, MOST_ROWS))
    others = np.setdiff1d(np.arange(len(views)), rows)
    extra = others[cross_fitting.sample_positions(len(others), max(room - len(rows), 0))]
    known = np.sort(np.concatenate([rows, extra]))
    data = views[known].hide(hidden[known]).bare()
    if not data.mask.any(0).all():
        return {}
    asked = views[rows].hide(hidden[rows]).bare()
    held = HoldOut.of(model.learner.scaled(views[rows]), hidden[rows], model.scalers)
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


class Looked(NamedTuple):
    """One view of m samples."""

    ends: Array  # (3, m, width): value, low and high end of its interval
    z: Array  # the same in standard deviations from the mean
    seen: Array  # (m, width)
    order: Array  # (m, features): missing ones first, then those farthest from their mean
    features: list[tuple[str, slice, frames.Levels]]  # name, columns, categories


def _samples(model: Estimator, views: Views, data: Views, z: Array) -> Fields:
    """Values and neighbors of single samples; data: scaled views; z (n, D): their embedding."""
    from sklearn.neighbors import NearestNeighbors

    doubt = uncertainty(model, data)
    order = np.argsort(np.where(np.isnan(doubt), np.inf, -doubt), kind="stable")
    listed, k = order[:MOST_LISTED], min(NEAREST, len(z) - 1)
    looked, cells = _looked(model, views[listed], data[listed]), []
    narrow_first = sorted(looked, key=lambda v: len(looked[v].features))
    for i, seen in enumerate(views.mask.numpy()[listed]):
        present = [v for v in narrow_first if seen[v]]
        lost = [v for v in narrow_first if not seen[v]]
        counts: dict[int, int] = {}  # features shown: narrow views leave room to the others
        most_lost = MOST_INFERRED if present else MOST_VALUES
        for shown, most in ((lost, most_lost), (present, MOST_VALUES)):
            room = most - sum(counts.values())
            for place, v in enumerate(shown):
                counts[v] = min(len(looked[v].features), max(room, 0) // (len(shown) - place))
                room -= counts[v]
        for v in [*sorted(lost), *sorted(present)]:
            chosen = np.sort(looked[v].order[i, : counts[v]])
            cells += [_cell(looked[v], i, v, f) for f in chosen]
    columns: Fields = dict(zip(Cell._fields, zip(*cells, strict=True), strict=bool(cells)))
    columns |= {name: np.float32(columns[name]) for name in ("value", "low", "high", "z") if cells}
    near = NearestNeighbors(n_neighbors=k + 1).fit(z).kneighbors(z[listed], return_distance=False)
    others = [[j for j in js if j != row][:k] for js, row in zip(near, listed, strict=True)]
    fields = {"cells": records(columns), "doubt": doubt.astype(np.float32)}
    return fields | {"listed": listed, "nearest": np.array(others, np.int64)}


def uncertainty(model: Estimator, data: Views) -> Array:
    """The standard deviation of the inferred values of each sample, in units of each feature's and
    at most 1, averaged over the features of a view, where observed ones count 0, and over views;
    (n,), NaN if nothing is missing, or not measured."""
    imputer = model.learner.imputer()
    whole = [data.seen(v).flatten(1).all(1).numpy() for v in range(len(data.x))]
    wanted = np.flatnonzero(~np.all(whole, axis=0))
    most = max(MOST_LISTED, INFERRED_NUMBERS // imputer.numbers)
    wanted = wanted[cross_fitting.sample_positions(len(wanted), most)]
    doubt = np.full(len(data), np.nan)
    for block in slices(len(wanted), imputer.rows(DRAWS)):
        rows = wanted[block]
        total, count = np.zeros((2, len(rows)))
        part = data[rows]
        for v, std in enumerate(imputer.values(part, spread=True)[1]):
            unit, wide = _moments(model, v)[1], widths(model.views_[v].spec)
            weight = np.where(unit > 0, np.repeat(1 / wide, wide), 0.0)  # of a feature: 1
            gap = ~part.seen(v).flatten(1).numpy() & (unit > 0)
            share = np.minimum(std.reshape(gap.shape) / np.where(unit > 0, unit, 1.0), 1.0)
            total += np.where(gap, share, 0.0) @ (weight / (weight.sum() or 1.0))
            count += gap.sum(1)
        doubt[rows] = np.where(count > 0, total / len(data.x), np.nan)
    return doubt


def _looked(model: Estimator, views: Views, data: Views) -> dict[int, Looked]:
    """Values of views of numbers and categories; words and images are not listed."""
    shown, (means, stds) = {}, model.learner.imputer().values(data, spread=True)
    for v, (view, mean, std) in enumerate(zip(model.views_, means, stds, strict=True)):
        if view.likelihood.text or len(view.shape) > 1:
            continue
        between, spec = interval_of(view, mean, std, data, v, SAMPLE_LEVEL), view.spec
        seen, observed = views.seen(v).numpy(), np.nan_to_num(views.known(v))
        filled = view.possible(mean), between.lower, between.upper
        ends = np.stack([np.where(seen, observed, a) for a in filled])
        center, unit = _moments(model, v)
        z = (ends - center) / np.where(unit > 0, unit, 1.0)
        named = [*columns_of(spec)]
        starts = np.array([at.start for _, at, _ in named])
        far = np.maximum.reduceat(np.abs(z[0]), starts, axis=1)
        order = np.lexsort((-far, np.logical_and.reduceat(seen, starts, axis=1)))
        shown[v] = Looked(ends, z, seen, order, named)
    return shown


def _cell(view: Looked, i: int, v: int, f: int) -> Cell:
    """Feature f of sample i in view v."""
    name, at, levels = view.features[f]
    shares, first, word = view.ends[0, i, at], at.start, ""
    if levels:
        first += int(shares.argmax())
    if levels is not None:  # the most probable; of two, the share is that of the second
        shares = np.array([1 - shares[0], shares[0]]) if len(levels) == 2 else shares
        best = min(int(shares.argmax()), len(levels) - 1)
        sure = "" if shares[best] > 0.9995 else f" ({100 * shares[best]:.0f} %)"
        word = f"{levels[best]}{sure}"
    value, low, high = view.ends[:, i, first].tolist()
    a, b, c = view.z[:, i, first].clip(-9, 9).tolist()
    return Cell(i, v, name, bool(view.seen[i, first]), value, low, high, word, (a, b, c))


def _moments(model: Estimator, v: int) -> tuple[Array, Array]:
    """Mean and standard deviation of the features of view v, in the user's units."""
    scaler = model.views_[v].scaler
    center, unit = scaler.moments(scaler.mean, scaler.std)
    return center.ravel(), unit.ravel()
