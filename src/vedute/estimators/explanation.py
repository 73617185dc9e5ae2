"""Which observed views decide what is imputed: each is left out in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from vedute.data.views import Views
from vedute.estimators import progress
from vedute.estimators.fitted_view import FittedView
from vedute.estimators.imputation import Imputer

Array = NDArray[Any]
Floats = NDArray[np.float64]
NOTHING = 1e-6  # a change by rounding


def explanation(imputer: Imputer, data: Views) -> pd.DataFrame:
    """Per sample, missing view and observed view: `change` and `share`, see `Estimator.explain`."""
    ids = np.arange(len(data)) if data.ids is None else data.ids
    lacking = ~data.mask.all(1)
    change = changes(imputer, data[lacking].bare())
    total = np.nansum(change, axis=2, keepdims=True)
    share = np.divide(change, total, out=np.full_like(change, np.nan), where=total > NOTHING)
    at = sample, missing, left_out = np.nonzero(~np.isnan(change))
    names = np.array(data.names, dtype=object)
    return pd.DataFrame(
        {
            "sample": ids[lacking.numpy()][sample],
            "missing": names[missing],
            "left_out": names[left_out],
            "change": change[at],
            "share": share[at],
        }
    )


def changes(imputer: Imputer, data: Views) -> Floats:
    """How far the values of missing view v move without the observed view u, (n, v, u): root mean
    square, in the unit of errors; NaN where v is observed or u is not. Without their only view,
    samples are at the mean."""
    (n, L), mask = data.shape, data.mask.numpy()
    change = np.full((n, L, L), np.nan)
    values = imputer.expected(data) if n else []
    for u in range(L) if n else ():
        less = _without(imputer, data, u)
        for v, view in enumerate(imputer.views):
            rows = mask[:, u] & ~mask[:, v]
            change[rows, v, u] = _apart(view, values[v][0][rows], less[v][rows])
        progress.advance(1, "view")
    return change


def _without(imputer: Imputer, data: Views, u: int) -> list[Array]:
    """All views of samples that have view u, once it is hidden: L arrays (n, *shape_v); the mean
    where no other view is observed."""
    n, L = data.shape
    means = [view.scaler.mean for view in imputer.views]
    less = [np.tile(mean.astype(np.float32), (n, *[1] * mean.ndim)) for mean in means]
    rows = data.mask[:, u] & (data.mask.sum(1) > 1)
    if rows.any():
        some = data[rows]
        hidden = (torch.arange(L) == u).expand(len(some), L)
        for value, found in zip(less, imputer.expected(some.hide(hidden)), strict=True):
            value[rows.numpy()] = found[0]
    return less


def _apart(view: FittedView, a: Array, b: Array) -> Floats:
    """Root mean square over the features that vary, (n, *shape) -> (n,); of tokens, of how many
    differ."""
    unit = view.scaler.unit
    off = (a != b) if view.likelihood.text else (a - b) / np.where(unit > 0, unit, np.inf)
    squares = (off.astype(np.float64) ** 2).sum(tuple(range(1, off.ndim)))
    return np.asarray(np.sqrt(squares / max(1, int((unit > 0).sum()))))
