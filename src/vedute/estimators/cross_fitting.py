"""Predictions of held-out views, calibrated by cross-fitting."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data.holdout import HoldOut
from vedute.data.rows import slices
from vedute.data.views import Views
from vedute.estimators.calibration import LEVELS
from vedute.estimators.fitted_view import FittedView
from vedute.estimators.imputation import DRAWS, Imputer
from vedute.metrics.scores import normal_crps
from vedute.nn import noise

Array = NDArray[Any]
FOLDS = 5
MAX_INSTANCES, NUMBERS = 2000, 2**22  # hidden instances; numbers of their samples
BLOCK_NUMBERS = 2**18  # numbers per comparison


def predictions(imputer: Imputer, held: HoldOut, shrink: bool) -> dict[str, Array]:
    """Predict a subset of the hidden instances, one per row, with cross-fitted calibration.

    An instance is calibrated on the other folds; the result is empty for one instance or group.

    at               (h,)             positions among the hidden instances, ascending
    error            (h,)             as in `Imputer.hidden_results`
    levels, covered  (q,), (L, q)     nominal and actual coverage of intervals, by view
    crps             (L,)             CRPS of distributions, in standard deviations, by view
    in_units         (L,)             R2 in the user's units, for views learned on another scale
    mean<v>, std<v>  (h_v, *shape_v)  predictions of view v, in the user's units
    reach<v>         (h_v, q)         reach of intervals, in standard deviations
    known<v>, explained<v>, off<v>    results for each feature of view v: see `_by_feature`
    """
    most = min(MAX_INSTANCES, NUMBERS // imputer.numbers)
    at = sample_positions(len(held.hidden), most)
    held = held.part(at)
    which = held.hidden.int().argmax(1).numpy()
    fold = folds(which, held.groups)
    if len(np.unique(fold)) < 2:
        return {"at": at[:0], "error": np.zeros(0)}
    once, held = _decoded_once(imputer, held)
    results = {"at": at, "error": np.zeros(len(at)), "levels": LEVELS}
    for name, wide in (("covered", LEVELS.shape), ("crps", ()), ("in_units", ())):
        results[name] = np.full((len(imputer.views), *wide), np.nan)
    for v, view in enumerate(imputer.views):
        rows, shape = int((which == v).sum()), view.scaler.mean.shape
        for name, wide in (("mean", shape), ("std", shape), ("reach", LEVELS.shape)):
            results[f"{name}{v}"] = np.zeros((rows, *wide), np.float32)
    for k in np.unique(fold):
        test = fold == k
        rest, part = held.part(np.flatnonzero(~test)), held.part(np.flatnonzero(test))
        fitted = replace(once, views=once.calibrated(rest, shrink))
        results["error"][test] = fitted.hidden_results(part)[0]["error"]
        for v, (mean, std) in enumerate(zip(*fitted.values(part.inputs, spread=True), strict=True)):
            mine, here = part.rows_of(v), test[which == v]
            results[f"mean{v}"][here], results[f"std{v}"][here] = mean[mine], std[mine]
            results[f"reach{v}"][here] = fitted.views[v].by_entry(attrgetter("reach"), None)
    del once, fitted  # and the values they hold
    for v, view in enumerate(imputer.views):
        mean, std, reach = results[f"mean{v}"], results[f"std{v}"], results[f"reach{v}"]
        if not len(mean) or view.likelihood.text:
            continue
        truth = imputer.truth(held, v)
        known, explained, off = _by_feature(view, truth, mean)
        results |= {f"known{v}": known, f"explained{v}": explained, f"off{v}": off}
        if not view.scaler.signed:
            results["in_units"][v] = _explained(truth, mean)
        if view.likelihood.scaled:
            scores = _interval_scores(view, truth, mean, std, reach)
            results["covered"][v], results["crps"][v] = scores
    return results


def r2_in_units(r2: dict[str, float], results: dict[str, Array]) -> dict[str, float]:
    """Return R2 by view in the user's units, given R2 on the scales of kinds and `predictions`."""
    in_units = results.get("in_units", np.full(len(r2), np.nan))
    best = np.where(np.isfinite(in_units), in_units, [*r2.values()])
    return dict(zip(r2, best.tolist(), strict=True))


def sample_positions(n: int, most: int) -> NDArray[np.intp]:
    """Sample at most `most` of n positions, ascending; smaller samples are parts of larger ones."""
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def folds(which: Array, groups: torch.Tensor | None) -> NDArray[np.int64]:
    """Return the fold of each instance, stratified by its view (h,), with groups kept together."""
    if groups is None:
        fold = np.empty(len(which), np.int64)
        fold[np.argsort(which, kind="stable")] = np.arange(len(which)) % FOLDS
        return fold
    _, first, group = np.unique(groups.numpy(), return_index=True, return_inverse=True)
    return folds(which[first], None)[group]


def _interval_scores(
    view: FittedView, truth: Array, mean: Array, std: Array, reach: Array
) -> tuple[Array, float]:
    """Return the share of entries inside the interval of each level (q,), and the CRPS of normal
    distributions in deviations of the features, averaged over entries, then over instances.

    truth, mean, std (h, *shape) in the user's units; reach (h, q); unknown values are NaN.
    """
    far = view.varying(view.scaler.distance(truth, mean, std))
    rows = ~np.isnan(far).all(1)
    if not rows.any():
        return np.full(len(LEVELS), np.nan), np.nan
    far, known = far[rows], (~np.isnan(far[rows])).sum(1)
    inside = [(far <= r[:, None]).sum(1) / known for r in reach[rows].T]
    unit = view.scaler.moments(view.scaler.mean, view.scaler.std)[1]
    crps = view.varying(normal_crps(truth, mean, std))[rows] / view.varying(unit[None])
    return np.mean(inside, axis=1), float(np.nanmean(crps, axis=1).mean())


def _by_feature(view: FittedView, truth: Array, mean: Array) -> tuple[Array, Array, Array]:
    """Return errors per feature, (features,), given truth and mean (h, *shape) in the user's units:

    known      number of known values
    explained  1 - squared error / that of the mean of the feature, in scaled units; NaN: unknown
    off        median of the absolute error, in the user's units
    """
    center = view.scaler.mean.ravel()
    known, error, base = np.zeros((3, len(center)))
    for part in slices(len(truth), max(1, BLOCK_NUMBERS // len(center))):  # wide views are large
        mask = ~np.isnan(truth[part]).reshape(-1, len(center))
        both: Array = np.concatenate([np.nan_to_num(truth[part]), mean[part]])
        if not view.likelihood.shares:
            t = torch.from_numpy(both.astype(np.float64))
            t = t if view.scaler.signed else t.clamp(min=0)
            both = view.scaler.transform(t, torch.ones_like(t).bool()).double().numpy()
        x, inferred = both.reshape(2, *mask.shape)
        known += mask.sum(0)
        error += np.where(mask, (x - inferred) ** 2, 0.0).sum(0)
        base += np.where(mask, (x - center) ** 2, 0.0).sum(0)
    varying = (known > 0) & (base > 0) & (view.scaler.std.ravel() > 0)
    share = np.divide(error, base, out=np.full(len(known), np.nan), where=varying)
    distance = np.abs(np.subtract(truth, mean, dtype=np.float32)).reshape(len(truth), -1)
    distance[:, known == 0] = 0.0
    off = np.where(known > 0, np.nanmedian(distance, axis=0, overwrite_input=True), np.nan)
    return known.astype(np.int64), (1 - share).astype(np.float32), off.astype(np.float32)


def _explained(truth: Array, mean: Array) -> float:
    """Return the mean share of the variance of features; (h, *shape), NaN where unknown."""
    truth, mean = truth.reshape(len(truth), -1), mean.reshape(len(mean), -1)
    known = (~np.isnan(truth)).sum(0)
    center = np.nansum(truth, 0) / np.maximum(known, 1)
    base, error = (np.nansum((truth - a) ** 2, 0) for a in (center, mean))
    varying = base > 0
    weight = known[varying] / known[varying].sum()
    return float(1 - (weight * error[varying] / base[varying]).sum()) if len(weight) else np.nan


def _decoded_once(imputer: Imputer, held: HoldOut) -> tuple[Imputer, HoldOut]:
    """Return an imputer that decodes `held` once for all folds, and `held` with numbered rows."""
    rows, common = held.inputs, noise.seeded(0, common=True)
    drawn = replace(imputer, decode=common(imputer.decode))
    with noise.seeded(0):
        decoded = {0: imputer.decoded(rows)}
    if not any(map(attrgetter("is_sparse"), rows.parts)):
        decoded[DRAWS] = drawn.decoded(rows, DRAWS)
    else:  # two draws with the same variance, as all would be far larger than the data
        decoded[DRAWS] = []
        for view, variance in zip(imputer.views, drawn.variances(rows), strict=True):
            mean, std = view.scaler.mean, np.sqrt(variance)
            decoded[DRAWS].append(np.stack([mean - std, mean + std]).astype(np.float32))

    def look_up(rows: Views, draws: int) -> list[Array]:
        return [d[:, rows.index.numpy()] for d in decoded[draws]]

    numbered = replace(rows, index=torch.arange(len(rows)))
    return replace(imputer, decode=look_up), replace(held, inputs=numbered)
