"""What a page shows of a fit beyond what is learned: measured once, after `fit`, kept in the RUN.

method, kinds            (), (L,)      its name, and the likelihood of each view
taken                    (L,)          what each view was taken for, and why
map, map_rows            (m, 2), (m,)  samples in the plane, and which they are
y                        (n,)          labels, where the data have them
margin, runner_up        (n,)          distance from the next cluster, and which that is
stable_<what>            (tried,)      the curve that chose the number of clusters, if one did
stays, tries             (n,)          of `tries` views left out in turn, `stays` keep the cluster
honest                   ()            hidden views were predicted before they were learned from
again                    ()            the model that is kept then learned from them, too
picked, error            (h,)          some of its hidden views, and the error at each
<fill>                   (h,)          the error of each simple fill at these
seconds_<fill>           ()            what it took to learn and to impute them
fill_rows                ()            how many samples the fills learned from
levels, covered          (q,), (L, q)  nominal and actual coverage of intervals, by view
truth<v>, mean<v>, std<v>, at<v>       some hidden instances of view v, by error; their rows
reach<v>                 (h, q)        of their intervals, in standard deviations
center<v>, scale<v>      (*shape_v,)   mean and deviation of its features
features<v>              (width,)      their names; positions where they have none
known<v>, explained<v>, off<v>         (width,), see `vedute.estimators.cross_fitting`
alone, without           (3, L, L)     see `vedute.estimators.explanation`
doubt, gaps, listed, nearest, sample_<what>  single samples, see `vedute.report.sample_values`
profile                  (f, K)        what makes a cluster, see `vedute.analysis.profiles`
profile_view, profile_feature          (f,) the view and the name of each of its features
depends_<what>           (t,)          see `vedute.analysis.missingness`

Where a run keeps no values (`vedute fit --no-values`) there is no y, truth, mean, std and reach,
and no sample_<what>.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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

Array = NDArray[Any]
Found = dict[str, Array]
MOST_ROWS, MOST_MAPPED, MOST_HIDDEN = 5000, 3000, cross_fitting.MOST
LEARNED_NUMBERS = 2**24  # a simple fill may learn from
EXAMPLES, WIDEST = 9, 2**14  # instances and numbers of a view
FEWEST, TRAITS = 5, 8  # samples of a cluster that is described, features that do
BY_FEATURE = re.compile(r"(known|explained|off)\d+")
WHOLE = ("levels", "covered", "crps", "in_units", "alone", "without")


def evidence(model: Estimator, views: Views) -> Found:
    """Measure a fitted model on the views it was fitted on; nothing here changes it."""
    found = {
        "method": np.array(type(model).__name__),
        "kinds": np.array([v.likelihood.name for v in model.views_]),
        "taken": np.array([f"{v.kind} ({v.why})" for v in model.views_]),
    }
    found |= {} if views.y is None else {"y": _plain(views.y)}
    found |= {f"stable_{k}": a for k, a in getattr(model, "stability_", {}).items()}
    with noise.seeded(0):
        data = model.learner.scaled(views)
        z = model.embed(data)
        found |= _in_the_plane(z)
        found["gaps"] = sample_values.gaps(views)
        if hasattr(model, "labels_"):
            found |= _certainty(model, views, z) | _profiles(model, views)
        if model.generative:
            found |= sample_values.samples(model, views, data, z)
        found |= _dependence(data, model)
        if len(getattr(model, "hidden_", {}).get("row", ())):
            found |= _on_hidden_views(model, views)
    return found


def _in_the_plane(z: Array) -> Found:
    rows = cross_fitting.some(len(z), MOST_MAPPED)
    return {"map": plots.plane(z[rows].astype(np.float64)), "map_rows": rows}


def _certainty(model: Estimator, views: Views, z: Array) -> Found:
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
    measured = np.isin(np.arange(n), cross_fitting.some(n, MOST_ROWS))
    for hidden in torch.eye(L).bool():
        rows = np.flatnonzero(measured & left_out(views, hidden).numpy())
        if len(rows):
            less = views[rows].hide(hidden.expand(len(rows), L))
            stays[rows] += model.predict(less) == model.labels_[rows]
            tries[rows] += 1
    runner = order[:, min(1, order.shape[1] - 1)]
    return {"margin": margin, "runner_up": runner, "stays": stays, "tries": tries}


def _on_hidden_views(model: Estimator, views: Views) -> Found:
    """What was predicted before it was learned from; of anything else only that it is not."""
    known = getattr(model, "hidden_predictions_", {})
    found = {"honest": np.array("at" in known)}
    if "at" not in known:
        return found
    picked = cross_fitting.some(len(model.hidden_["row"]), MOST_HIDDEN)
    error = model.hidden_["error"].copy()
    error[known["at"]] = known["error"]
    found |= {"again": np.array(model.learned_again_), "picked": picked, "error": error[picked]}
    hidden = torch.zeros_like(views.mask)
    hidden[model.hidden_["row"][picked], model.hidden_["view"][picked]] = True
    found |= _fills(model, views, hidden, model.hidden_["row"][picked])
    rows, which = (model.hidden_[k][known["at"]] for k in ("row", "view"))
    for v in (v for v in range(len(views.x)) if f"mean{v}" in known):
        mine = which == v
        found |= _examples(model, views, v, rows[mine], known["error"][mine])
    found |= {k: known[k] for k in known if BY_FEATURE.fullmatch(k)}
    for v in (v for v in range(len(views.x)) if f"known{v}" in known):
        found[f"features{v}"] = np.array(features(model.specs[v]))
    return found | {k: known[k] for k in WHOLE if k in known}


def _examples(model: Estimator, views: Views, v: int, rows: Array, error: Array) -> Found:
    """Some instances of view v, from the smallest error to the largest."""
    known, scaler = model.hidden_predictions_, model.views_[v].scaler
    if not len(rows) or scaler.mean.size > WIDEST:
        return {}
    places = np.linspace(0, len(rows) - 1, min(EXAMPLES, len(rows)))
    shown = error.argsort(kind="stable")[places.round().astype(int)]
    stored = [k for k in ("mean", "std", "reach") if f"{k}{v}" in known]
    kept = {k: known[f"{k}{v}"][shown] for k in stored}
    kept |= {"truth": views.known(v)[rows[shown]]}
    kept |= dict(zip(("center", "scale"), scaler.moments(scaler.mean, scaler.std), strict=True))
    return {f"{k}{v}": a.astype(np.float32) for k, a in kept.items()} | {f"at{v}": rows[shown]}


def _profiles(model: Estimator, views: Views) -> Found:
    """The features that differ most between clusters, some of each that has enough samples."""
    counts = np.bincount(model.labels_)
    if (counts >= FEWEST).sum() < 1 or (counts > 0).sum() < 2:
        return {}
    effects = profiles(model, views).reindex(columns=range(len(counts)))
    effects = effects[effects.columns[counts >= FEWEST]]
    best = effects.abs().rank(ascending=False, method="first").min(axis=1) <= TRAITS
    described = effects[best].reindex(columns=range(len(counts)))
    view, name = (np.array([str(k[i]) for k in described.index], str) for i in (0, 1))
    return {"profile": described.to_numpy(), "profile_view": view, "profile_feature": name}


def _dependence(data: Views, model: Estimator) -> Found:
    """Whether what is missing depends on what is observed; where that can be asked."""
    tests = missingness(data, [features(spec) for spec in model.specs])
    words = {k: tests[k].to_numpy().astype(str) for k in ("missing", "view", "feature")}
    sizes = {k: tests[k].to_numpy(np.float64) for k in ("difference", "p")}
    return {f"depends_{k}": a for k, a in (words | sizes).items()}


def _fills(model: Estimator, views: Views, hidden: torch.Tensor, rows: Array) -> Found:
    """Errors of the simple fills at the same hidden views, which they did not see either."""
    width = sum(int(np.prod(s)) for s in views.shapes)
    room = int(np.clip(LEARNED_NUMBERS // max(width, 1), 500, MOST_ROWS))
    others = np.setdiff1d(np.arange(len(views)), rows)
    extra = others[cross_fitting.some(len(others), max(room - len(rows), 0))]
    known = np.sort(np.concatenate([rows, extra]))
    data = views[known].hide(hidden[known]).bare()
    if not data.mask.any(0).all():
        return {}
    asked = views[rows].hide(hidden[rows]).bare()
    held = model.learner.held_out(model.learner.scaled(views[rows]), hidden[rows])
    found = {"fill_rows": np.array(len(data))}
    for name in methods.baselines():
        if name != "mean_fill" and type(model) is not methods.find(name):  # the unit of R2
            begun = perf_counter()
            filled = methods.find(name)(random_state=0, kinds=model.kinds).fit(data).impute(asked)
            found[f"seconds_{name}"] = np.array(perf_counter() - begun)
            found[name] = _errors(held, filled, model.scalers)
    return found


def _errors(held: HoldOut, filled: Views, scalers: Sequence[Scaler]) -> Array:
    """Of each hidden instance, row by row: what is filled in, as a row of the usual size."""
    errors = torch.zeros(held.hidden.shape)
    for v, (x, scaler) in enumerate(zip(filled.floating().x, scalers, strict=True)):
        x = x if scaler.signed else x.clamp(min=0)
        images = filled.x[v].dtype == torch.uint8
        value = x if images else scaler.transform(x, torch.ones_like(x).bool())
        errors[:, v] = held.errors(value, v)
    return errors[held.hidden].double().numpy()


def _plain(y: Array) -> Array:
    """Labels that can be kept without pickling."""
    return y.astype(str) if y.dtype.kind == "O" else y
