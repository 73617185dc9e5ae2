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

Array = NDArray[Any]
MOST, NUMBERS = 400, 2**21  # hidden instances, and numbers of the samples they are of


def contributions(imputer: Imputer, held: HoldOut) -> dict[str, Array]:
    """Errors at some of the hidden instances, of which each row has one, where the model is given
    only one of the other views, and all but one. [u, v]: hidden view v, other view u.

    alone    (3, L, L)  error from u alone, error of the mean of each feature, number of instances
    without  (3, L, L)  error without u, error with it, number of instances that have a third view

    Both errors are sums over the instances.
    """
    L, width = held.hidden.shape[1], sum(view.numbers for view in imputer.views)
    held = held.part(some(len(held.hidden), min(MOST, NUMBERS // width)))
    found = {k: np.zeros((3, L, L)) for k in ("alone", "without")}
    if not len(held.hidden) or L < 2:
        return found
    with torch.random.fork_rng():  # nobody's generator moves
        torch.manual_seed(0)
        whole = imputer.hidden_results(held)[0]["error"]
        for u in range(L):
            there, only = held.inputs.mask[:, u], torch.arange(L) == u
            _add(found["alone"], imputer, held, there, u, ~only, None)
            more = there & (held.inputs.mask.sum(1) > 1)
            _add(found["without"], imputer, held, more, u, only, whole)
    return found


def _add(
    total: Array,
    imputer: Imputer,
    held: HoldOut,
    rows: torch.Tensor,
    u: int,
    gone: torch.Tensor,
    beside: Array | None,
) -> None:
    """To total[:, u], the errors in some rows (m,) where the views `gone` (L,) are hidden, too,
    those that they are compared with (by default of the mean), and their number."""
    if not rows.any():
        return
    part = held.part(rows)
    less = part.inputs.hide(gone.expand_as(part.hidden))
    results = imputer.hidden_results(replace(part, inputs=less))[0]
    other = results["mean_error"] if beside is None else beside[rows.numpy()]
    for k, values in enumerate((results["error"], other, np.ones(len(other)))):
        np.add.at(total[k, u], results["view"], values)
