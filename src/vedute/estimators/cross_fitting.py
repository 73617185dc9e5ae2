"""Hidden views as predicted by a model that has not seen them, calibrated by cross-fitting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data.holdout import HoldOut
from vedute.data.rows import slices
from vedute.data.sparse_view import Sparse
from vedute.data.views import Views
from vedute.estimators.calibration import LEVELS
from vedute.estimators.fitted_view import FittedView
from vedute.estimators.imputation import DRAWS, Imputer
from vedute.metrics.scores import normal_crps
from vedute.nn import noise

Array = NDArray[Any]
FOLDS = 5
MOST, NUMBERS = 2000, 2**22  # hidden instances, and numbers of the samples they are of
BLOCK_NUMBERS = 2**18  # numbers that are compared at once


def predictions(imputer: Imputer, held: HoldOut, shrink: bool) -> dict[str, Array]:
    """What the model predicts at some of the hidden instances, of which each row has one.

    The calibration of an instance comes from the other folds; a single one, or one group, has none.

    at               (h,)             which of the hidden instances, in order
    error            (h,)             as in `Imputer.hidden_results`
    levels, covered  (q,), (L, q)     nominal and actual coverage of their intervals, by view
    crps             (L,)             of their distributions, in standard deviations, by view
    in_units         (L,)             R2 in the user's units, of views whose kind has another scale
    mean<v>, std<v>  (h_v, *shape_v)  of those that are of view v, in the user's units
    reach<v>         (h_v, q)         of their intervals, in standard deviations
    known<v>, explained<v>, off<v>    of each feature of view v: see `_by_feature`
    """
    width = sum(view.numbers for view in imputer.views)
    at = some(len(held.hidden), min(MOST, NUMBERS // width))
    if len(at) < 2:
        return {"at": at[:0], "error": np.zeros(0)}
    held = held.part(at)
    once, held = _decoded_once(imputer, held)
    which = held.hidden.int().argmax(1).numpy()
    fold = folds(which, held.groups)
    if len(np.unique(fold)) < 2:
        return {"at": at[:0], "error": np.zeros(0)}
    shapes = [(len(at), *view.scaler.mean.shape) for view in imputer.views]
    means, stds = ([np.zeros(s, np.float32) for s in shapes] for _ in range(2))
    reach = np.zeros((len(shapes), len(at), len(LEVELS)), np.float32)
    error = np.zeros(len(at))
    for k in np.unique(fold):
        here = np.flatnonzero(fold == k)
        rest, part = held.part(np.flatnonzero(fold != k)), held.part(here)
        fitted = replace(once, views=once.calibrated(rest, shrink))
        error[here] = fitted.hidden_results(part)[0]["error"]
        for v, (mean, std) in enumerate(zip(*fitted.values(part.inputs, spread=True), strict=True)):
            means[v][here], stds[v][here] = mean, std
            reach[v, here] = fitted.views[v].calibrated.reach
    del once, fitted  # and what they have decoded
    found = {"at": at, "error": error, "levels": LEVELS}
    found["covered"] = np.full((len(means), len(LEVELS)), np.nan)
    found["crps"], found["in_units"] = (np.full(len(means), np.nan) for _ in range(2))
    for v, view in enumerate(imputer.views):
        mine = which == v
        mean, std = means[v][mine], stds[v][mine]
        found |= {f"mean{v}": mean, f"std{v}": std, f"reach{v}": reach[v, mine]}
        if not mine.any() or view.likelihood.text:
            continue
        truth = imputer.truth(held, v)
        found |= {f"{k}{v}": a for k, a in _by_feature(view, truth, mean).items()}
        if view.transformed:
            found["in_units"][v] = _explained(truth, mean)
        if view.likelihood.scaled:
            found["covered"][v] = _coverage(view.far(truth, mean, std), reach[v, mine])
            found["crps"][v] = _crps(view, truth, mean, std)
    return found


def r2_in_units(r2: dict[str, float], found: dict[str, Array]) -> dict[str, float]:
    """R2 by view in the user's units, given that on the scales of kinds, and `predictions`."""
    own = found.get("in_units", np.full(len(r2), np.nan))
    own_or_same = [float(u) if np.isfinite(u) else s for u, s in zip(own, r2.values(), strict=True)]
    return dict(zip(r2, own_or_same, strict=True))


def some(n: int, most: int) -> NDArray[np.intp]:
    """Choose at most so many of n positions, in order, the same ones each time; fewer are among
    more."""
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def folds(which: Array, groups: torch.Tensor | None) -> NDArray[np.int64]:
    """The fold of each instance, given its view (h,): views evenly spread, groups in one piece."""
    if groups is None:
        fold = np.empty(len(which), np.int64)
        fold[np.argsort(which, kind="stable")] = np.arange(len(which)) % FOLDS
        return fold
    _, first, group = np.unique(groups.numpy(), return_index=True, return_inverse=True)
    return folds(which[first], None)[group]


def _coverage(far: Array, reach: Array) -> Array:
    """Share of entries inside the interval of each level, averaged over instances, (q,).

    far (h, features), reach (h, q), in standard deviations; what is not known is NaN.
    """
    some = ~np.isnan(far).all(1)
    far, reach = far[some], reach[some]
    known = ~np.isnan(far)
    inside = [(far <= r[:, None]).sum(1) / known.sum(1) for r in reach.T]
    return np.mean(inside, axis=1) if len(far) else np.full(len(LEVELS), np.nan)


def _by_feature(view: FittedView, truth: Array, mean: Array) -> dict[str, Array]:
    """Errors of each feature, (features,) each, of truth and mean (h, *shape) in the user's units:

    known      how many of these are known
    explained  1 - squared error / that of the mean of the feature, in scaled units; NaN: unknown
    off        the median of the absolute error, in the user's units
    """
    h, center = len(truth), view.scaler.mean.ravel()
    known, error, base = (np.zeros(len(center)) for _ in range(3))
    step = max(1, BLOCK_NUMBERS // len(center))
    for part in slices(h, step):  # wide views are large
        there = ~np.isnan(truth[part]).reshape(-1, len(center))
        x, inferred = (
            _scaled(view, a).reshape(there.shape) for a in (np.nan_to_num(truth[part]), mean[part])
        )
        known += there.sum(0)
        error += np.where(there, (x - inferred) ** 2, 0.0).sum(0)
        base += np.where(there, (x - center) ** 2, 0.0).sum(0)
    apart = np.abs(np.subtract(truth, mean, dtype=np.float32)).reshape(h, -1)
    some = (known > 0) & (base > 0) & (view.scaler.std.ravel() > 0)
    explained = np.full(len(known), np.nan)
    explained[some] = 1 - error[some] / base[some]
    apart[:, known == 0] = 0.0
    off = np.where(known > 0, np.nanmedian(apart, axis=0, overwrite_input=True), np.nan)
    return {
        "known": known.astype(np.int64),
        "explained": explained.astype(np.float32),
        "off": off.astype(np.float32),
    }


def _explained(truth: Array, mean: Array) -> float:
    """Share of the variance of each feature, averaged over those that vary; (h, *shape) in the
    user's units, NaN where the truth is not known."""
    truth, mean = truth.reshape(len(truth), -1), mean.reshape(len(mean), -1)
    known = (~np.isnan(truth)).sum(0)
    center = np.nansum(truth, 0) / np.maximum(known, 1)
    base, error = (np.nansum((truth - a) ** 2, 0) for a in (center, mean))
    some = base > 0
    weight = known[some] / known[some].sum()
    return float(1 - (weight * error[some] / base[some]).sum()) if some.any() else float("nan")


def _scaled(view: FittedView, values: Array) -> Array:
    """Values (h, *shape) in the user's units as the model sees them."""
    if view.likelihood.shares:
        return values
    x = torch.from_numpy(np.asarray(values, np.float64))
    x = x if view.scaler.signed else x.clamp(min=0)
    return np.asarray(view.scaler.transform(x, torch.ones_like(x).bool()).double().numpy())


def _crps(view: FittedView, truth: Array, mean: Array, std: Array) -> float:
    """The CRPS of normal distributions, averaged over entries, then over instances.

    truth, mean, std (h, *shape) in the user's units; what is not known is NaN.
    """
    unit = view.scaler.moments(view.scaler.mean, view.scaler.std)[1].ravel()
    each = normal_crps(truth, mean, std).reshape(len(truth), -1)
    each = each[:, unit > 0] / unit[unit > 0]
    each = each[~np.isnan(each).all(1)]
    return float(np.nanmean(each, axis=1).mean()) if each.size else float("nan")


def _decoded_once(imputer: Imputer, held: HoldOut) -> tuple[Imputer, HoldOut]:
    """An imputer that decodes the rows of `held`, which are now numbered, once for all folds."""
    with noise.seeded(0):
        decoded = {0: imputer.decoded(held.inputs)}

    def common(rows: Views, draws: int) -> list[Array]:
        with noise.common_to_rows():
            return imputer.decode(rows, draws)

    drawn = replace(imputer, decode=common)
    sparse = any(isinstance(part, Sparse) for part in held.inputs.parts)
    rows = held.inputs
    decoded[DRAWS] = _pairs(drawn, rows) if sparse else drawn.decoded(rows, DRAWS)

    def known(rows: Views, draws: int) -> list[Array]:
        return [d[:, rows.index.numpy()] for d in decoded[draws]]

    numbered = replace(held.inputs, index=torch.arange(len(held.inputs)))
    return replace(imputer, decode=known), replace(held, inputs=numbered)


def _pairs(imputer: Imputer, data: Views) -> list[Array]:
    """Two draws with the variance of DRAWS, which is all that is asked of them: L arrays
    (2, n, *shape_v). Beside a sparse view, all draws would take far more room than the data."""
    each = zip(imputer.views, imputer.variances(data), strict=True)
    spread = [(view.scaler.mean, np.sqrt(variance)) for view, variance in each]
    return [np.stack([mean - s, mean + s]).astype(np.float32) for mean, s in spread]
