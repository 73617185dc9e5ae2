"""Information between views: how well each is predicted from each other one, and from all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from vedute.data.views import Views
from vedute.estimators.base import Estimator
from vedute.estimators.explanation import predicted_again
from vedute.estimators.imputation import Imputer
from vedute.metrics.scores import share_explained

ALL_OTHERS = "all others"
PREDICTED_ROWS = 1024  # per batch


def informs(model: Estimator, X: Any) -> pd.DataFrame:
    """How well each view (columns) is predicted from each other one alone, and from all others
    together (rows, the last one "all others"): 1 - error / error of the mean of each feature.

    1 is perfect, 0 no better than the mean; NaN on the diagonal, and where no sample has both. A
    pair of views is measured on the samples that have both, at their observed values. What is
    predicted is hidden from the model, and so are all views but the one that it is predicted
    from. In `fit` the model may have learned from these very values, unless X is new.
    """
    data, imputer = model.learner.scaled(X), model.learner.imputer()
    L = len(data.x)
    if L < 2:
        raise ValueError("X has one view; two are needed to predict one from the other")
    which = torch.arange(L)
    alone = np.stack([_errors(imputer, data, which != v) for v in range(L)])  # (L, 2, L)
    together = np.stack([_errors(imputer, data, which == v)[:, v] for v in range(L)], axis=1)
    error, base = np.concatenate([alone, together[None]]).transpose(1, 0, 2)
    return pd.DataFrame(share_explained(error, base), [*data.names, ALL_OTHERS], list(data.names))


def _errors(imputer: Imputer, data: Views, hidden: torch.Tensor) -> NDArray[np.float64]:
    """Errors of the views `hidden` (L,) and of their means, summed over samples, (2, L)."""
    total = np.zeros((2, len(hidden)))
    for held, values in predicted_again(imputer, data, hidden, PREDICTED_ROWS):
        for v in hidden.nonzero()[:, 0].tolist():
            for k, value in enumerate((torch.from_numpy(values[v][0]), held.means[v])):
                total[k, v] += float(held.errors(value, v)[held.hidden[:, v]].double().sum())
    return total
