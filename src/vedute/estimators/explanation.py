"""Effects of observed views on others: views are hidden and predicted.

explanation      changes of imputed values without a view
predicted_again  predictions of views from the others, for `score` and `informs`
contributions    errors at hidden views from one view alone, and from all but one
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from vedute.data.holdout import HoldOut
from vedute.data.views import Views
from vedute.estimators import progress
from vedute.estimators.cross_fitting import sample_positions
from vedute.estimators.imputation import Imputer
from vedute.nn import noise

Array = NDArray[Any]
ROUNDED_CHANGE = 1e-6  # changes below are rounding errors
MAX_INSTANCES, NUMBERS = 400, 2**21  # hidden instances; numbers of their samples
TABLE_NUMBERS = 2**27  # numbers of the tables that a model makes of all their cases


def left_out(data: Views, hidden: Tensor) -> Tensor:
    """Return the samples, (n,) bool, that have one of the views `hidden` (L,) and another one."""
    return (data.mask & hidden).any(1) & (data.mask & ~hidden).any(1)


def predicted_again(
    imputer: Imputer, data: Views, hidden: Tensor, size: int | None = None
) -> Iterator[tuple[HoldOut, list[Array]]]:
    """Hide views (L,) of samples that have others; yield batches with predictions of all views."""
    rows = left_out(data, hidden)
    for batch in data[rows].bare().batches(size or imputer.rows()) if rows.any() else ():
        held = HoldOut.of(batch, batch.mask & hidden, [view.scaler for view in imputer.views])
        yield held, imputer.expected(held.inputs)


def left_out_errors(imputer: Imputer, data: Views) -> tuple[float, float]:
    """Leave out every observed view in turn; return the summed error, and that of the mean."""
    error = base = 0.0
    for v, hidden in enumerate(torch.eye(data.shape[1]).bool()):
        for held, values in predicted_again(imputer, data, hidden):
            error += float(held.errors(torch.from_numpy(values[v][0]), v).sum())
            base += float(held.errors(held.means[v], v).sum())
    return error, base


def explanation(imputer: Imputer, data: Views) -> pd.DataFrame:
    """Return `change` and `share` per sample, missing and observed view, as `Estimator.explain`.

    Changes are root mean squares over features that vary, in the unit of errors, or shares of
    words. Without their only view, samples are at the mean.
    """
    lacking, ids = ~data.mask.all(1), np.arange(len(data)) if data.ids is None else data.ids
    ids, data = ids[lacking.numpy()], data[lacking].bare()
    (n, L), mask = data.shape, data.mask.numpy()
    change = np.full((n, L, L), np.nan)  # of missing view v without the observed view u, (n, v, u)
    values = imputer.expected(data) if n else []
    for u, hidden in enumerate(torch.eye(L).bool() if n else ()):
        again = left_out(data, hidden).numpy()
        parts = [values for _, values in predicted_again(imputer, data, hidden)]
        for v, view in enumerate(imputer.views):
            less = np.broadcast_to(view.scaler.mean, values[v][0].shape).astype(np.float32)
            if parts:
                less[again] = np.concatenate([predicted[v] for predicted in parts], axis=1)[0]
            rows, unit = mask[:, u] & ~mask[:, v], view.scaler.unit
            off = values[v][0][rows] - less[rows]
            off = off != 0 if view.likelihood.text else off / np.where(unit > 0, unit, np.inf)
            squares = (off.astype(np.float64) ** 2).sum(tuple(range(1, off.ndim)))
            change[rows, v, u] = np.sqrt(squares / max(1, int((unit > 0).sum())))
        progress.advance(1, "view")
    total = np.nansum(change, axis=2, keepdims=True)
    share = np.divide(change, total, out=np.full_like(change, np.nan), where=total > ROUNDED_CHANGE)
    at = sample, missing, removed = np.nonzero(~np.isnan(change))
    names = np.array(data.names, dtype=object)
    which = {"sample": ids[sample], "missing": names[missing], "left_out": names[removed]}
    return pd.DataFrame(which | {"change": change[at], "share": share[at]})


def contributions(imputer: Imputer, held: HoldOut) -> dict[str, Array]:
    """Return errors at a subset of the hidden instances, one per row, given only one of the other
    views, and given all but one. [u, v]: hidden view v, other view u.

    alone    (3, L, L)  error from u alone, error of the mean of each feature, number of instances
    without  (3, L, L)  error without u, error with it, number of instances that have a third view

    Errors are sums over the instances.
    """
    L = held.hidden.shape[1]
    most = min(MAX_INSTANCES, NUMBERS // imputer.numbers, TABLE_NUMBERS // (L * imputer.table))
    held = held.part(sample_positions(len(held.hidden), most))
    mask, n = held.inputs.mask, len(held.hidden)
    alone, without = np.zeros((2, 3, L, L))
    # Rows as they are, with one observed view alone, and without it if others remain; in one
    # batch, as models process rows with the same views together.
    rows, others, hidden = [torch.arange(n)], [np.full(n, -1)], [torch.zeros_like(mask)]
    for u, only in enumerate(torch.eye(L).bool() if n and L > 1 else ()):
        for cases, out in ((mask[:, u], ~only), (mask[:, u] & (mask.sum(1) > 1), only)):
            rows.append(cases.nonzero()[:, 0])
            others.append(np.full(len(rows[-1]), u))
            hidden.append(out.expand(len(rows[-1]), L))
    which, other = torch.cat(rows), np.concatenate(others)
    part, single = held.part(which), torch.cat(hidden).sum(1).numpy() == L - 1
    gone = torch.cat(hidden) & part.inputs.mask  # in the truth, too: errors are of the hidden view
    part = replace(part, inputs=part.inputs.hide(gone), truth=part.truth.hide(gone))
    with noise.seeded(0):
        results = imputer.hidden_results(part)[0]
    error, mean_error, view = results["error"], results["mean_error"], results["view"]
    for total, base, kind in ((alone, mean_error, single), (without, error[which], ~single)):
        at = np.flatnonzero(kind & (other >= 0))
        for k, values in enumerate((error, base, np.ones(len(view)))):
            np.add.at(total[k], (other[at], view[at]), values[at])
    return {"alone": alone, "without": without}
