"""Measurements for the page, taken once after `fit` and kept in the RUN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vedute import methods
from vedute.analysis.inspection import features
from vedute.analysis.missingness import missingness
from vedute.analysis.profiles import profiles
from vedute.data.holdout import HoldOut
from vedute.data.scaling import Scaler
from vedute.data.views import Views
from vedute.estimators import cross_fitting
from vedute.estimators.base import Estimator
from vedute.estimators.explanation import left_out
from vedute.figures import plots
from vedute.nn import noise
from vedute.report import sample_values
from vedute.report.results import Results, RunResults, SampleResults

Array = NDArray[Any]
Fields = dict[str, Any]  # of RunResults or SampleResults
MOST_ROWS, MOST_MAPPED, MOST_HIDDEN = 5000, 3000, cross_fitting.MAX_INSTANCES
LEARNED_NUMBERS = 2**24  # most entries that a simple fill learns from
EXAMPLES, WIDEST = 9, 2**14  # instances and numbers of a view
FEWEST, TRAITS = 5, 8  # samples of a cluster to describe it, features that describe it
BY_FEATURE = ("known", "explained", "off")
WHOLE = ("levels", "covered", "crps", "in_units", "alone", "without")


def evidence(model: Estimator, views: Views) -> Results:
    """Measure a fitted model on the views it was fitted on, without changing it."""
    run: Fields = {
        "method": type(model).__name__,
        "likelihoods": np.array([v.likelihood.name for v in model.views_]),
        "kinds": np.array([f"{v.kind} ({v.why})" for v in model.views_]),
        "stability": getattr(model, "stability_", {}),
    }
    samples: Fields = {"gaps": sample_values.gaps(views)}
    samples |= {} if views.y is None else {"y": _plain(views.y)}
    with noise.seeded(0):
        data = model.learner.scaled(views)
        z = model.embed(data)
        samples |= _in_the_plane(z)
        if hasattr(model, "labels_"):
            samples |= _certainty(model, views, z)
            run |= _profiles(model, views)
        if model.generative:
            samples |= sample_values.samples(model, views, data, z)
        run |= _dependence(data, model)
        if len(getattr(model, "hidden_", {}).get("row", ())):
            run |= _on_hidden_views(model, views)
    return Results(RunResults(**run), SampleResults(**samples))


def _in_the_plane(z: Array) -> Fields:
    rows = cross_fitting.sample_positions(len(z), MOST_MAPPED)
    return {"plane": plots.plane(z[rows].astype(np.float64)), "plane_rows": rows}


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
    measured |= _fills(model, views, hidden, row[picked])
    L = len(views.x)
    measured |= {k: _by_view(known, k, L) for k in BY_FEATURE}
    names = {v: np.array(features(model.specs[v])) for v in measured["known"]}
    whole = {k: known[k] for k in WHOLE if k in known}
    return measured | {"features": names} | _examples(model, views) | whole


def _by_view(arrays: Mapping[str, Array], name: str, n_views: int) -> dict[int, Array]:
    """The arrays <name>0, <name>1, ... by view."""
    return {v: arrays[f"{name}{v}"] for v in range(n_views) if f"{name}{v}" in arrays}


def _examples(model: Estimator, views: Views) -> Fields:
    """Instances of each view, from the smallest error to the largest, as fields by view."""
    known = model.hidden_predictions_
    rows, which = (model.hidden_[k][known["at"]] for k in ("row", "view"))
    fields: dict[str, dict[int, Array]] = {}
    for v in (v for v in range(len(views.x)) if f"mean{v}" in known):
        mine = which == v
        for name, a in _example(model, views, v, rows[mine], known["error"][mine]).items():
            fields.setdefault(name, {})[v] = a
    return fields


def _example(model: Estimator, views: Views, v: int, rows: Array, error: Array) -> dict[str, Array]:
    """Instances of view v, from the smallest error to the largest; none of a very wide view."""
    known, scaler = model.hidden_predictions_, model.views_[v].scaler
    if not len(rows) or scaler.mean.size > WIDEST:
        return {}
    places = np.linspace(0, len(rows) - 1, min(EXAMPLES, len(rows)))
    shown = error.argsort(kind="stable")[places.round().astype(int)]
    stored = [k for k in ("mean", "std", "reach") if f"{k}{v}" in known]
    kept = {k: known[f"{k}{v}"][shown] for k in stored}
    kept |= {"truth": views.known(v)[rows[shown]]}
    kept |= dict(zip(("center", "scale"), scaler.moments(scaler.mean, scaler.std), strict=True))
    return {k: a.astype(np.float32) for k, a in kept.items()} | {"at": rows[shown]}


def _profiles(model: Estimator, views: Views) -> Fields:
    """The features that differ most between clusters with enough samples."""
    counts = np.bincount(model.labels_)
    if (counts >= FEWEST).sum() < 1 or (counts > 0).sum() < 2:
        return {}
    effects = profiles(model, views).reindex(columns=range(len(counts)))
    effects = effects[effects.columns[counts >= FEWEST]]
    best = effects.abs().rank(ascending=False, method="first").min(axis=1) <= TRAITS
    described = effects[best].reindex(columns=range(len(counts)))
    view, name = (np.array([str(k[i]) for k in described.index], str) for i in (0, 1))
    return {"profile": described.to_numpy(), "profile_view": view, "profile_feature": name}


def _dependence(data: Views, model: Estimator) -> Fields:
    """Tests of whether missingness depends on observed values."""
    tests = missingness(data, [features(spec) for spec in model.specs])
    words = {k: tests[k].to_numpy().astype(str) for k in ("missing", "view", "feature")}
    sizes = {k: tests[k].to_numpy(np.float64) for k in ("difference", "p")}
    return {f"depends_{k}": a for k, a in (words | sizes).items()}


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
            errors[name] = _errors(held, filled, model.scalers)
    return {"fill_errors": errors, "fill_seconds": seconds, "fill_rows": len(data)}


def _errors(held: HoldOut, filled: Views, scalers: Sequence[Scaler]) -> Array:
    """Errors of filled values at each hidden instance, row by row."""
    errors = torch.zeros(held.hidden.shape)
    for v, (x, scaler) in enumerate(zip(filled.floating().x, scalers, strict=True)):
        x = x if scaler.signed else x.clamp(min=0)
        images = filled.x[v].dtype == torch.uint8
        value = x if images else scaler.transform(x, torch.ones_like(x).bool())
        errors[:, v] = held.errors(value, v)
    return errors[held.hidden].double().numpy()


def _plain(y: Array) -> Array:
    """Convert labels to an array that can be stored without pickling."""
    return y.astype(str) if y.dtype.kind == "O" else y
