"""What each observed view tells of a hidden one: by itself, and beside the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data.holdout import HoldOut
from vedute.estimators.cross_fitting import some
from vedute.estimators.imputation import Imputer
from vedute.nn import noise

Array = NDArray[Any]
MOST, NUMBERS = 400, 2**21  # hidden instances, and numbers of the samples they are of
TABLES = 2**27  # numbers of the tables that a model makes of all their cases


def contributions(imputer: Imputer, held: HoldOut) -> dict[str, Array]:
    """Errors at some of the hidden instances, of which each row has one, where the model is given
    only one of the other views, and all but one. [u, v]: hidden view v, other view u.

    alone    (3, L, L)  error from u alone, error of the mean of each feature, number of instances
    without  (3, L, L)  error without u, error with it, number of instances that have a third view

    Both errors are sums over the instances.
    """
    L, width = held.hidden.shape[1], sum(view.numbers for view in imputer.views)
    most = min(MOST, NUMBERS // width, TABLES // (L * imputer.table))
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
