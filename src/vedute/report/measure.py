"""What a page shows of a fit beyond what is learned: measured once, after `fit`, kept in the RUN.

method, kinds            (), (L,)      its name, and the likelihood of each view
map, map_rows            (m, 2), (m,)  samples in the plane, and which they are
y                        (n,)          labels, where the data have them
margin, runner_up        (n,)          distance from the next cluster, and which that is
stable_<what>            (tried,)      the curve that chose the number of clusters, if one did
stays, tries             (n,)          of `tries` views left out in turn, `stays` keep the cluster
held_out                 ()            False: the hidden views of this run were trained on
picked                   (h,)          which of its hidden views were measured
<fill>                   (h,)          the error of each simple fill at these
levels, covered          (q,), (L, q)  nominal and actual coverage of intervals, by view
truth<v>, mean<v>, std<v>, at<v>       some hidden instances of view v, by error; their rows
center<v>, scale<v>      (*shape_v,)   mean and deviation of its features
columns<v>               (width,)      their names, where they have some
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import clone

from vedute import methods
from vedute.data.holdout import HoldOut
from vedute.data.views import Views
from vedute.estimators.base import Estimator
from vedute.estimators.imputation import Imputer
from vedute.figures import plots
from vedute.metrics import scores

Array = NDArray[Any]
Found = dict[str, Array]
FILLS = ("lowrank_fill", "knn_fill")  # mean-fill is the unit of R2
MOST_ROWS, MOST_MAPPED, MOST_HIDDEN = 5000, 3000, 2000
NUMBERS = 2**24  # a simple fill may learn from
EXAMPLES, WIDEST = 9, 2**14  # instances and numbers of a view
FOLDS = 5
LEVELS = np.append(np.arange(0.05, 0.96, 0.05), 0.99)


def evidence(model: Estimator, views: Views) -> Found:
    """Measure a fitted model on the views it was fitted on; nothing here changes it."""
    found = {
        "method": np.array(type(model).__name__),
        "kinds": np.array([v.likelihood.name for v in model.views_]),
    }
    found |= _in_the_plane(model) | ({} if views.y is None else {"y": _plain(views.y)})
    found |= {f"stable_{k}": a for k, a in vars(model).get("stability_", {}).items()}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if "labels_" in vars(model):
            found |= _certainty(model, views)
        if len(vars(model).get("hidden_", {}).get("row", ())):
            found |= _on_hidden_views(model, views)
    return found


def _in_the_plane(model: Estimator) -> Found:
    rows = _some(len(model.embedding_), MOST_MAPPED)
    return {"map": plots.plane(model.embedding_[rows].astype(np.float64)), "map_rows": rows}


def _certainty(model: Estimator, views: Views) -> Found:
    n, L = views.shape
    if "centers_" in vars(model):
        distance = np.linalg.norm(model.embedding_[:, None] - model.centers_, axis=2)
        order, ranked = distance.argsort(1), np.sort(distance, 1)
        margin = 1 - ranked[:, 0] / np.maximum(ranked[:, min(1, ranked.shape[1] - 1)], 1e-12)
    else:
        soft = model.predict_proba(views)
        order, ranked = (-soft).argsort(1), -np.sort(-soft, 1)
        margin = ranked[:, 0] - (ranked[:, 1] if ranked.shape[1] > 1 else 0.0)
    stays, tries = np.zeros(n, np.int64), np.zeros(n, np.int64)
    some = np.isin(np.arange(n), _some(n, MOST_ROWS)) & (views.mask.sum(1) > 1).numpy()
    for v in range(L):
        rows = np.flatnonzero(some & views.mask[:, v].numpy())
        if len(rows):
            less = views[rows].hide(torch.arange(L).expand(len(rows), L) == v)
            stays[rows] += model.predict(less) == model.labels_[rows]
            tries[rows] += 1
    runner = order[:, min(1, order.shape[1] - 1)]
    return {"margin": margin, "runner_up": runner, "stays": stays, "tries": tries}


def _on_hidden_views(model: Estimator, views: Views) -> Found:
    records = vars(model).get("history_", [])
    held_out = not records or any(r["hidden_error"] is not None for r in records)
    picked = _some(len(model.hidden_["row"]), MOST_HIDDEN)
    rows, which = (model.hidden_[k][picked] for k in ("row", "view"))
    hidden = torch.zeros_like(views.mask)
    hidden[rows, which] = True
    found = {"held_out": np.array(held_out), "picked": picked}
    if held_out:
        found |= _fills(model, views, hidden, rows)
    truth = [_with_holes(views, v)[rows] for v in range(len(views.x))]
    means, stds = _predicted(model, views, hidden, rows, which)
    found |= _coverage(model, truth, means, stds, which)
    for v, scaler in enumerate(model._scalers()):
        at = np.flatnonzero(which == v)
        if len(at) and scaler.mean.size <= WIDEST:
            ranked = at[model.hidden_["error"][picked][at].argsort()]
            shown = ranked[np.linspace(0, len(at) - 1, min(EXAMPLES, len(at))).round().astype(int)]
            kept = {"truth": truth[v][shown], "mean": means[v][shown], "std": stds[v][shown]}
            kept |= {"center": scaler.restore(scaler.mean), "scale": scaler.std * scaler.scale}
            found |= {f"{k}{v}": a.astype(np.float32) for k, a in kept.items()}
            found[f"at{v}"] = rows[shown]
            names = [str(c) for c in model.views_[v].spec.columns or ()]
            found |= {f"columns{v}": np.array(names)} if len(names) == scaler.mean.size else {}
    return found


def _fills(model: Estimator, views: Views, hidden: torch.Tensor, rows: Array) -> Found:
    """Errors of the simple fills at the same hidden views, which they did not see either."""
    width = sum(int(np.prod(s)) for s in views.shapes)
    room = int(np.clip(NUMBERS // max(width, 1), 500, MOST_ROWS))
    others = np.setdiff1d(np.arange(len(views)), rows)
    extra = others[_some(len(others), max(room - len(rows), 0))]
    known = np.sort(np.concatenate([rows, extra]))
    data = views[known].hide(hidden[known]).bare()
    if not data.mask.any(0).all():
        return {}
    asked, out = views[rows].hide(hidden[rows]).bare(), hidden[rows].numpy()
    truth = [_with_holes(views, v)[rows] for v in range(len(views.x))]
    units = [s.std * s.scale for s in model._scalers()]
    found = {}
    for name in FILLS:
        if type(model) is not methods.find(name):
            filled = methods.find(name)(random_state=0).fit(data).impute(asked)
            errors = scores.instance_errors(truth, [x.numpy() for x in filled.x], out, units)
            found[name] = np.nan_to_num(errors[out])
    return found


def _predicted(
    model: Estimator, views: Views, hidden: torch.Tensor, rows: Array, which: Array
) -> tuple[list[Array], list[Array]]:
    """Means and deviations of all views of `rows`, L arrays (m, *shape_v) each, in user units.

    The calibration of an instance never saw it: it comes from the other folds.
    """
    if model.relearns:  # its last fit saw the hidden views
        model = clone(model).fit(views.hide(hidden))
        data = model._enter(views[rows].hide(hidden[rows]).bare())
        return model._imputer().values(data, spread=True)
    held = HoldOut.of(model._enter(views[rows].bare()), hidden[rows], model._scalers())
    fold = np.empty(len(rows), np.int64)
    fold[np.argsort(which, kind="stable")] = np.arange(len(rows)) % FOLDS
    means = [np.zeros((len(rows), *s.mean.shape)) for s in model._scalers()]
    stds = [np.ones_like(m) for m in means]
    for k in range(FOLDS):
        here, rest = fold == k, _part(held, fold != k)
        if not here.any() or not len(rest.inputs):
            continue
        calibrated = model._imputer().calibrated(rest, model.shrinks)
        mean, std = Imputer(model._decode, calibrated).values(held.inputs[here], spread=True)
        for v in range(len(means)):
            means[v][here], stds[v][here] = mean[v], std[v]
    return means, stds


def _part(held: HoldOut, rows: Array) -> HoldOut:
    return replace(held, inputs=held.inputs[rows], truth=held.truth[rows], hidden=held.hidden[rows])


def _coverage(
    model: Estimator, truth: list[Array], means: list[Array], stds: list[Array], which: Array
) -> Found:
    """Share of entries inside the interval of each level, averaged over instances, by view."""
    covered = np.full((len(truth), len(LEVELS)), np.nan)
    reach = norm.ppf(0.5 + LEVELS / 2)
    for v, view in enumerate(model.views_):
        at = which == v
        if at.any() and view.likelihood.scaled:
            far = np.abs(truth[v][at] - means[v][at]) / np.maximum(stds[v][at], 1e-12)
            far = far.reshape(len(far), -1)[:, view.scaler.std.ravel() > 0]
            for q, r in enumerate(reach):
                inside = np.where(np.isnan(far), np.nan, far <= r)
                known = ~np.isnan(inside).all(1)
                covered[v, q] = np.nanmean(inside[known], axis=1).mean() if known.any() else np.nan
    return {"levels": LEVELS, "covered": covered}


def _with_holes(views: Views, v: int) -> Array:
    """View v with NaN where nothing is known, (n, *shape_v)."""
    return np.where(views.seen(v).numpy(), views.x[v].numpy(), np.nan)


def _plain(y: Array) -> Array:
    """Labels that can be kept without pickling."""
    return y.astype(str) if y.dtype.kind == "O" else y


def _some(n: int, most: int) -> NDArray[np.intp]:
    """At most so many of n positions, in order, the same ones each time."""
    return np.sort(np.random.default_rng(0).permutation(n)[:most])
