"""Predictions of held-out views, calibrated by cross-fitting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data.holdout import HoldOut
from vedute.data.rows import is_sparse, slices
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
    width = sum(view.numbers for view in imputer.views)
    at = sample_positions(len(held.hidden), min(MAX_INSTANCES, NUMBERS // width))
    held = held.part(at)
    which = held.hidden.int().argmax(1).numpy()
    fold = folds(which, held.groups)
    if len(np.unique(fold)) < 2:
        return {"at": at[:0], "error": np.zeros(0)}
    once, held = _decoded_once(imputer, held)
    shapes = [(len(at), *view.scaler.mean.shape) for view in imputer.views]
    means, stds = ([np.zeros(s, np.float32) for s in shapes] for _ in range(2))
    reach, error = np.zeros((len(shapes), len(at), len(LEVELS)), np.float32), np.zeros(len(at))
    for k in np.unique(fold):
        test = np.flatnonzero(fold == k)
        rest, part = held.part(np.flatnonzero(fold != k)), held.part(test)
        fitted = replace(once, views=once.calibrated(rest, shrink))
        error[test] = fitted.hidden_results(part)[0]["error"]
        for v, (mean, std) in enumerate(zip(*fitted.values(part.inputs, spread=True), strict=True)):
            means[v][test], stds[v][test] = mean, std
            reach[v, test] = fitted.views[v].calibrated.reach
    del once, fitted  # and the values they hold
    results = {"at": at, "error": error, "levels": LEVELS}
    results["covered"] = np.full((len(means), len(LEVELS)), np.nan)
    results["crps"], results["in_units"] = (np.full(len(means), np.nan) for _ in range(2))
    for v, view in enumerate(imputer.views):
        rows = which == v
        mean, std = means[v][rows], stds[v][rows]
        results |= {f"mean{v}": mean, f"std{v}": std, f"reach{v}": reach[v, rows]}
        if not rows.any() or view.likelihood.text:
            continue
        truth = imputer.truth(held, v)
        results |= {f"{k}{v}": a for k, a in _by_feature(view, truth, mean).items()}
        if view.transformed:
            results["in_units"][v] = _explained(truth, mean)
        if view.likelihood.scaled:
            results["covered"][v] = _coverage(view.far(truth, mean, std), reach[v, rows])
            results["crps"][v] = _crps(view, truth, mean, std)
    return results


def r2_in_units(r2: dict[str, float], results: dict[str, Array]) -> dict[str, float]:
    """Return R2 by view in the user's units, given R2 on the scales of kinds and `predictions`."""
    in_units = results.get("in_units", np.full(len(r2), np.nan))
    each = zip(r2.items(), in_units, strict=True)
    return {name: float(u) if np.isfinite(u) else same for (name, same), u in each}


def sample_positions(n: int, most: int) -> NDArray[np.intp]:
    """Sample at most `most` of n positions without replacement, ascending, with a fixed seed; a
    smaller sample is a subset of a larger one."""
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def folds(which: Array, groups: torch.Tensor | None) -> NDArray[np.int64]:
    """Return the fold of each instance, stratified by its view (h,), with groups kept together."""
    if groups is None:
        fold = np.empty(len(which), np.int64)
        fold[np.argsort(which, kind="stable")] = np.arange(len(which)) % FOLDS
        return fold
    _, first, group = np.unique(groups.numpy(), return_index=True, return_inverse=True)
    return folds(which[first], None)[group]


def _coverage(far: Array, reach: Array) -> Array:
    """Return the share of entries inside the interval of each level, averaged over instances, (q,).

    far (h, features), reach (h, q), in standard deviations; unknown values are NaN.
    """
    rows = ~np.isnan(far).all(1)
    far, reach = far[rows], reach[rows]
    known = ~np.isnan(far)
    inside = [(far <= r[:, None]).sum(1) / known.sum(1) for r in reach.T]
    return np.mean(inside, axis=1) if len(far) else np.full(len(LEVELS), np.nan)


def _by_feature(view: FittedView, truth: Array, mean: Array) -> dict[str, Array]:
    """Return errors per feature, (features,), given truth and mean (h, *shape) in the user's units:

    known      number of known values
    explained  1 - squared error / that of the mean of the feature, in scaled units; NaN: unknown
    off        median of the absolute error, in the user's units
    """
    h, center = len(truth), view.scaler.mean.ravel()
    known, error, base = (np.zeros(len(center)) for _ in range(3))
    step = max(1, BLOCK_NUMBERS // len(center))
    for part in slices(h, step):  # wide views are large
        mask = ~np.isnan(truth[part]).reshape(-1, len(center))
        x, inferred = (
            _scaled(view, a).reshape(mask.shape) for a in (np.nan_to_num(truth[part]), mean[part])
        )
        known += mask.sum(0)
        error += np.where(mask, (x - inferred) ** 2, 0.0).sum(0)
        base += np.where(mask, (x - center) ** 2, 0.0).sum(0)
    distance = np.abs(np.subtract(truth, mean, dtype=np.float32)).reshape(h, -1)
    varying = (known > 0) & (base > 0) & (view.scaler.std.ravel() > 0)
    explained = np.full(len(known), np.nan)
    explained[varying] = 1 - error[varying] / base[varying]
    distance[:, known == 0] = 0.0
    off = np.where(known > 0, np.nanmedian(distance, axis=0, overwrite_input=True), np.nan)
    floats = {"explained": explained.astype(np.float32), "off": off.astype(np.float32)}
    return {"known": known.astype(np.int64), **floats}


def _explained(truth: Array, mean: Array) -> float:
    """Return the share of the variance of features, averaged over those that vary; (h, *shape) in
    the user's units, NaN where the truth is unknown."""
    truth, mean = truth.reshape(len(truth), -1), mean.reshape(len(mean), -1)
    known = (~np.isnan(truth)).sum(0)
    center = np.nansum(truth, 0) / np.maximum(known, 1)
    base, error = (np.nansum((truth - a) ** 2, 0) for a in (center, mean))
    varying = base > 0
    weight = known[varying] / known[varying].sum()
    if not varying.any():
        return float("nan")
    return float(1 - (weight * error[varying] / base[varying]).sum())


def _scaled(view: FittedView, values: Array) -> Array:
    """Convert values (h, *shape) from the user's units to scaled units."""
    if view.likelihood.shares:
        return values
    x = torch.from_numpy(np.asarray(values, np.float64))
    x = x.clamp(min=0) if view.transformed else x
    return np.asarray(view.scaler.transform(x, torch.ones_like(x).bool()).double().numpy())


def _crps(view: FittedView, truth: Array, mean: Array, std: Array) -> float:
    """Return the CRPS of normal distributions, averaged over entries, then over instances.

    truth, mean, std (h, *shape) in the user's units; unknown values are NaN.
    """
    unit = view.scaler.moments(view.scaler.mean, view.scaler.std)[1].ravel()
    crps = normal_crps(truth, mean, std).reshape(len(truth), -1)
    crps = crps[:, unit > 0] / unit[unit > 0]
    crps = crps[~np.isnan(crps).all(1)]
    return float(np.nanmean(crps, axis=1).mean()) if crps.size else float("nan")


def _decoded_once(imputer: Imputer, held: HoldOut) -> tuple[Imputer, HoldOut]:
    """Return an imputer that decodes the rows of `held` once for all folds, and `held` with
    numbered rows."""
    with noise.seeded(0):
        decoded = {0: imputer.decoded(held.inputs)}

    def common(rows: Views, draws: int) -> list[Array]:
        with noise.seeded(0, common=True):
            return imputer.decode(rows, draws)

    drawn, rows = replace(imputer, decode=common), held.inputs
    if not any(map(is_sparse, rows.parts)):
        decoded[DRAWS] = drawn.decoded(rows, DRAWS)
    else:  # two draws with the same variance, as all would be far larger than the data
        stds = [np.sqrt(variance) for variance in drawn.variances(rows)]
        means = [view.scaler.mean for view in imputer.views]
        ends = ((mean - std, mean + std) for mean, std in zip(means, stds, strict=True))
        decoded[DRAWS] = [np.stack(pair).astype(np.float32) for pair in ends]

    def look_up(rows: Views, draws: int) -> list[Array]:
        return [d[:, rows.index.numpy()] for d in decoded[draws]]

    numbered = replace(rows, index=torch.arange(len(rows)))
    return replace(imputer, decode=look_up), replace(held, inputs=numbered)
