"""missForest with scikit-learn: each column is regressed on all others by trees."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

Floats = NDArray[np.float64]


def forest(x: Floats, blocks: Sequence[slice], seed: int) -> Floats:
    """Impute by missForest, with a hundred trees per column, in rounds until values converge."""
    trees = ExtraTreesRegressor(100, max_features="sqrt", random_state=seed)
    model = IterativeImputer(trees, random_state=seed, keep_empty_features=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.fit_transform(x))
