"""Hidden views as predicted by a model that has not seen them, calibrated by cross-fitting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import norm

from vedute.data.holdout import HoldOut
from vedute.data.views import Views
from vedute.estimators.fitted_view import FittedView
from vedute.estimators.imputation import Imputer
from vedute.metrics.scores import normal_crps

Array = NDArray[Any]
FOLDS = 5
LEVELS = np.append(np.arange(0.05, 0.96, 0.05), 0.99)
MOST, NUMBERS = 2000, 2**22  # hidden instances, and numbers of the samples they are of


def predictions(imputer: Imputer, held: HoldOut, shrink: bool) -> dict[str, Array]:
    """What the model predicts at some of the hidden instances, of which each row has one.

    The calibration of an instance comes from the other folds; a single one, or one group, has none.

    at               (h,)             which of the hidden instances, in order
    error            (h,)             as in `Imputer.hidden_results`
    levels, covered  (q,), (L, q)     nominal and actual coverage of their intervals, by view
    crps             (L,)             of their distributions, in standard deviations, by view
    mean<v>, std<v>  (h_v, *shape_v)  of those that are of view v, in the user's units
    """
    views = imputer.views
    width = sum(view.numbers for view in views)
    at = some(len(held.hidden), min(MOST, NUMBERS // width))
    if len(at) < 2:
        return {"at": at[:0], "error": np.zeros(0)}
    held = held.part(at)
    imputer, held = _decoded_once(imputer, held)
    which = held.hidden.int().argmax(1).numpy()
    fold = folds(which, held.groups)
    if len(np.unique(fold)) < 2:
        return {"at": at[:0], "error": np.zeros(0)}
    shapes = [(len(at), *view.scaler.mean.shape) for view in views]
    means, stds = ([np.zeros(s, np.float32) for s in shapes] for _ in range(2))
    error = np.zeros(len(at))
    for k in np.unique(fold):
        here = np.flatnonzero(fold == k)
        rest, part = held.part(np.flatnonzero(fold != k)), held.part(here)
        fitted = replace(imputer, views=imputer.calibrated(rest, shrink))
        error[here] = fitted.hidden_results(part)[0]["error"]
        for v, (mean, std) in enumerate(zip(*fitted.values(part.inputs, spread=True), strict=True)):
            means[v][here], stds[v][here] = mean, std
    del imputer, fitted  # and what they have decoded
    found = {"at": at, "error": error, "levels": LEVELS}
    found["covered"] = np.full((len(means), len(LEVELS)), np.nan)
    found["crps"] = np.full(len(means), np.nan)
    for v, view in enumerate(views):
        mine = which == v
        mean, std = means[v][mine], stds[v][mine]
        found |= {f"mean{v}": mean, f"std{v}": std}
        if mine.any() and view.likelihood.scaled:
            truth = held.truth.x[v].masked_fill(~held.truth.seen(v), np.nan).numpy()
            there = view.in_units(truth, held.truth.size(v))[mine]
            found["covered"][v] = _coverage(view, there, mean, std)
            found["crps"][v] = _crps(view, there, mean, std)
    return found


def some(n: int, most: int) -> NDArray[np.intp]:
    """At most so many of n positions, in order, the same ones each time; fewer are among more."""
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def folds(which: Array, groups: torch.Tensor | None) -> NDArray[np.int64]:
    """The fold of each instance, given its view (h,): views evenly spread, groups in one piece."""
    if groups is None:
        fold = np.empty(len(which), np.int64)
        fold[np.argsort(which, kind="stable")] = np.arange(len(which)) % FOLDS
        return fold
    _, first, group = np.unique(groups.numpy(), return_index=True, return_inverse=True)
    return folds(which[first], None)[group]


def _coverage(view: FittedView, truth: Array, mean: Array, std: Array) -> Array:
    """Share of entries inside the interval of each level, averaged over instances, (q,).

    truth, mean, std (h, *shape) in the user's units; what is not known is NaN.
    """
    far = view.scaler.distance(truth, mean, std)
    far = far.reshape(len(far), -1)[:, view.scaler.std.ravel() > 0]
    far = far[~np.isnan(far).all(1)]
    reach = norm.ppf(0.5 + LEVELS / 2)
    inside = [np.nanmean(np.where(np.isnan(far), np.nan, far <= r), axis=1) for r in reach]
    return np.mean(inside, axis=1) if len(far) else np.full(len(LEVELS), np.nan)


def _crps(view: FittedView, truth: Array, mean: Array, std: Array) -> float:
    """Averaged over entries, then over instances; arguments as above."""
    unit = view.scaler.moments(view.scaler.mean, view.scaler.std)[1].ravel()
    each = normal_crps(truth, mean, std).reshape(len(truth), -1)
    each = each[:, unit > 0] / unit[unit > 0]
    each = each[~np.isnan(each).all(1)]
    return float(np.nanmean(each, axis=1).mean()) if each.size else float("nan")


@dataclass(frozen=True, eq=False)
class _Decoded(Imputer):
    """What is decoded of some rows, which go by their index, and the variance of draws of it: the
    same to all folds. means, spreads: L arrays (m, *shape_v)."""

    means: Sequence[Array]
    spreads: Sequence[Array]

    def decoded(self, data: Views, draws: int = 0) -> list[Array]:
        if draws:  # of an interval, once for each row
            return super().decoded(data, draws)
        return [mean[data.index.numpy()][None] for mean in self.means]

    def variances(self, data: Views) -> list[Array]:
        return [spread[data.index.numpy()] for spread in self.spreads]


def _decoded_once(imputer: Imputer, held: HoldOut) -> tuple[Imputer, HoldOut]:
    """What is decoded of the rows of `held`, which are now numbered."""
    with torch.random.fork_rng():  # nobody's generator moves
        torch.manual_seed(0)
        means = [d[0] for d in imputer.decoded(held.inputs)]
        spreads = imputer.variances(held.inputs)

    def decode(rows: Views, draws: int) -> list[Array]:
        return imputer.decode(held.inputs[rows.index.numpy()], draws)

    numbered = replace(held.inputs, index=torch.arange(len(held.inputs)))
    return _Decoded(decode, imputer.views, means, spreads), replace(held, inputs=numbered)
