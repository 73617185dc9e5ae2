"""One view of one sample: observed values, and inferred ones with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted

from vedute.analysis.inspection import features
from vedute.data.escaping import listed
from vedute.data.views import Views
from vedute.estimators.base import Estimator


def inferred(
    model: Estimator, X: Any, i: Any, view: str | int, coverage: float = 0.9
) -> pd.DataFrame:
    """Sample i in one view, by feature: value, lower and upper end of its interval, whether it was
    observed, and mean and standard deviation of the feature in the data that was fitted.

    i: the position of the sample, or its id where that is not a whole number. Values are in your
    units; of what was observed all three are the value. Three or more categories have no interval.
    """
    check_is_fitted(model, "views_")
    model.learner.imputer()  # refuses a method that does not impute
    v = place(model, view)
    views = Views.of(X, None, model.columns, like=model.specs, dtype=torch.float64)
    if isinstance(i, (int, np.integer)) and not isinstance(i, bool):
        if not 0 <= i < len(views):
            raise IndexError(f"no sample {i}; X has {len(views)}, from 0 to {len(views) - 1}")
        row = int(i)
    else:
        rows = [r for r, same in enumerate(() if views.ids is None else views.ids) if same == i]
        if not rows:
            last = len(views) - 1
            raise IndexError(f"no sample {i!r}; pass its position, from 0 to {last}, or its id")
        row = rows[0]
    sample = views[row].to("cpu")
    ends = model.impute(sample, interval=coverage)
    mean, lower, upper = (filled.known(v).astype(float).ravel() for filled in ends)
    scaler, seen = model.views_[v].scaler, sample.seen(v).flatten().numpy()
    center, deviation = scaler.moments(scaler.mean, scaler.std)
    columns = {"value": mean, "lower": lower, "upper": upper, "observed": seen}
    columns |= {"mean": center.ravel(), "std": deviation.ravel()}
    return pd.DataFrame(columns, pd.Index(features(model.specs[v]), name="feature"))


def place(model: Estimator, view: str | int) -> int:
    """The position of a fitted view of numbers, given that or its name."""
    names = [fitted.name for fitted in model.views_]
    v = names.index(view) if view in names else view
    if isinstance(v, bool) or not isinstance(v, (int, np.integer)) or not 0 <= v < len(names):
        raise ValueError(f"no view {view!r}; choose from {listed(names, 20)}")
    if model.views_[int(v)].likelihood.text:
        raise ValueError(f"view {names[int(v)]!r} holds tokens, which have no intervals")
    return int(v)
