"""Which observed view informs which: views are hidden and predicted again.

explanation     by how much what is imputed changes without a view
errors_without  the errors of predictions of views from the others, for `score` and `informs`
contributions   errors at hidden views from one view alone, and from all but one
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
from vedute.estimators.cross_fitting import some
from vedute.estimators.fitted_view import FittedView
from vedute.estimators.imputation import Imputer
from vedute.nn import noise

Array = NDArray[Any]
Floats = NDArray[np.float64]
ROUNDED_CHANGE = 1e-6  # a change by rounding
MOST, NUMBERS = 400, 2**21  # hidden instances, and numbers of the samples they are of
TABLE_NUMBERS = 2**27  # numbers of the tables that a model makes of all their cases


def left_out(data: Views, hidden: Tensor) -> Tensor:
    """The samples, (n,) bool, that have one of the views `hidden` (L,), and another one."""
    return (data.mask & hidden).any(1) & (data.mask & ~hidden).any(1)


def predicted_again(
    imputer: Imputer, data: Views, hidden: Tensor, size: int | None = None
) -> Iterator[tuple[HoldOut, list[Array]]]:
    """Hide views (L,) of the samples that have others, and predict them again: batches of these
    samples, each with the predictions of all views, L arrays (1, m, *shape_v)."""
    rows = left_out(data, hidden)
    for batch in data[rows].bare().batches(size or imputer.rows()) if rows.any() else ():
        held = HoldOut.of(batch, batch.mask & hidden, [view.scaler for view in imputer.views])
        yield held, imputer.expected(held.inputs)


def errors_without(
    imputer: Imputer, data: Views, hidden: Tensor, size: int | None = None
) -> Iterator[tuple[HoldOut, int, Tensor, Tensor]]:
    """The errors of each view of `hidden` (L,) where it was hidden: batch, view, error (m,), and
    that of the mean of each feature (m,)."""
    for held, values in predicted_again(imputer, data, hidden, size):
        for v in hidden.nonzero()[:, 0].tolist():
            value = torch.from_numpy(values[v][0])
            yield held, v, held.errors(value, v), held.errors(held.means[v], v)


def left_out_errors(imputer: Imputer, data: Views) -> tuple[float, float]:
    """Leave out every observed view of rows with two or more in turn: summed error, and that of
    mean-fill."""
    error = base = 0.0
    for hidden in torch.eye(data.shape[1]).bool():
        for *_, errors, bases in errors_without(imputer, data, hidden):
            error += float(errors.sum())
            base += float(bases.sum())
    return error, base


def explanation(imputer: Imputer, data: Views) -> pd.DataFrame:
    """Per sample, missing view and observed view: `change` and `share`, see `Estimator.explain`."""
    ids = np.arange(len(data)) if data.ids is None else data.ids
    lacking = ~data.mask.all(1)
    change = changes(imputer, data[lacking].bare())
    total = np.nansum(change, axis=2, keepdims=True)
    share = np.divide(change, total, out=np.full_like(change, np.nan), where=total > ROUNDED_CHANGE)
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
    hidden = torch.arange(L) == u
    rows = left_out(data, hidden).numpy()
    parts = [values for _, values in predicted_again(imputer, data, hidden)]
    for value, predicted in zip(less, zip(*parts, strict=True), strict=bool(parts)):
        value[rows] = np.concatenate(predicted, axis=1)[0]
    return less


def _apart(view: FittedView, a: Array, b: Array) -> Floats:
    """Root mean square over the features that vary, (n, *shape) -> (n,); of tokens, of how many
    differ."""
    unit = view.scaler.unit
    off = (a != b) if view.likelihood.text else (a - b) / np.where(unit > 0, unit, np.inf)
    squares = (off.astype(np.float64) ** 2).sum(tuple(range(1, off.ndim)))
    return np.asarray(np.sqrt(squares / max(1, int((unit > 0).sum()))))


def contributions(imputer: Imputer, held: HoldOut) -> dict[str, Array]:
    """Errors at some of the hidden instances, of which each row has one, where the model is given
    only one of the other views, and all but one. [u, v]: hidden view v, other view u.

    alone    (3, L, L)  error from u alone, error of the mean of each feature, number of instances
    without  (3, L, L)  error without u, error with it, number of instances that have a third view

    Both errors are sums over the instances.
    """
    L, width = held.hidden.shape[1], sum(view.numbers for view in imputer.views)
    most = min(MOST, NUMBERS // width, TABLE_NUMBERS // (L * imputer.table))
    held = held.part(some(len(held.hidden), most))
    found = {k: np.zeros((3, L, L)) for k in ("alone", "without")}
    if not len(held.hidden) or L < 2:
        return found
    rows, others, gone = _cases(held.inputs.mask)
    part = held.part(rows)
    with noise.seeded(0):
        results = imputer.hidden_results(replace(part, inputs=part.inputs.hide(gone)))[0]
    n = len(held.hidden)
    whole, view = results["error"][:n], results["view"]
    single = gone.sum(1).numpy() == L - 1
    for kind, base in (("alone", results["mean_error"]), ("without", whole[rows.numpy()])):
        at = np.flatnonzero(single if kind == "alone" else ~single)
        at = at[at >= n]  # the first are whole
        for k, values in enumerate((results["error"], base, np.ones(len(view)))):
            np.add.at(found[kind][k], (others[at], view[at]), values[at])
    return found


def _cases(mask: torch.Tensor) -> tuple[torch.Tensor, Array, torch.Tensor]:
    """Rows of mask (m, L) as they are, then with one observed view alone, then without it where
    others are left; all at once, since models work through rows with the same views together.

    Which row of mask each is, which view it is about (-1: none), which views are gone (r, L).
    """
    L = mask.shape[1]
    rows, others, gone = [torch.arange(len(mask))], [-1] * len(mask), [torch.zeros_like(mask)]
    for u in range(L):
        only = torch.arange(L) == u
        for these, out in ((mask[:, u], ~only), (mask[:, u] & (mask.sum(1) > 1), only)):
            at = these.nonzero()[:, 0]
            rows.append(at)
            others += [u] * len(at)
            gone.append(out.expand(len(at), L))
    return torch.cat(rows), np.array(others), torch.cat(gone)
