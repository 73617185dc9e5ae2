"""Other imputers of missing views, each used as its documentation recommends.

A function takes a table x (n, p) with z-scored columns, NaN where missing, the columns of each
view, and a seed. It returns the table without NaN. The code of a function is a part of its records'
checksums: changed names make the records obsolete.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.linear_model import BayesianRidge, RidgeCV

Floats = NDArray[np.float64]
Blocks = Sequence[slice]
ROUNDS, FOREST_ROUNDS = 5, 10  # maximum number of rounds over all views
SHARE = 0.2  # share of the rows that lose a view, to choose the number of rounds
PENALTIES = np.logspace(-2, 6, 17)
TREES, LEAF = 100, 3
FACTORS = 15


def knn_imputer(x: Floats, blocks: Blocks, seed: int) -> Floats:
    """Impute by scikit-learn's KNNImputer, with ten neighbors like our `knn_fill`."""
    return np.asarray(KNNImputer(n_neighbors=10, keep_empty_features=True).fit_transform(x))


def iterative_imputer(x: Floats, blocks: Blocks, seed: int) -> Floats:
    """Impute by scikit-learn's IterativeImputer by column, with its default, BayesianRidge."""
    model = IterativeImputer(BayesianRidge(), random_state=seed, keep_empty_features=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten rounds are its default, converged or not
        return np.asarray(model.fit_transform(x))


def block_ridge(x: Floats, blocks: Blocks, seed: int) -> Floats:
    """Impute by ridge regression of each view on the others, in rounds from the mean.

    The penalty is chosen by leave-one-out, the number of rounds by hiding observed views.
    """
    hidden = _some_views(x, blocks, seed)
    partial = _by_blocks(np.where(hidden, np.nan, x), blocks, _ridge)
    errors = [((filled - x)[hidden] ** 2).sum() for filled in islice(partial, ROUNDS)]
    return next(islice(_by_blocks(x, blocks, _ridge), int(np.argmin(errors)), None))


def block_forest(x: Floats, blocks: Blocks, seed: int) -> Floats:
    """Impute by missForest by view: trees with many outputs regress each view on the others.

    The rounds end when values change more than in the round before.
    """
    settings = dict(n_estimators=TREES, max_features="sqrt", min_samples_leaf=LEAF)
    rounds = _by_blocks(x, blocks, lambda: ExtraTreesRegressor(random_state=seed, **settings))
    before, change = next(rounds), np.inf
    for filled in islice(rounds, FOREST_ROUNDS - 1):
        last, change = change, float(((filled - before) ** 2).sum())
        if change > last:
            return before
        before = filled
    return before


def mofa(x: Floats, blocks: Blocks, seed: int) -> Floats:
    """Impute by factors times weights of MOFA (mofapy2), with 15 factors and other defaults."""
    from mofapy2.run.entry_point import entry_point

    filled = np.where(np.isnan(x), 0.0, x)
    varying = [np.arange(b.start, b.stop)[filled[:, b].std(0) > 0] for b in blocks]
    varying = [columns for columns in varying if len(columns)]
    with redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = entry_point()
        model.set_data_matrix([[x[:, c]] for c in varying], ["gaussian"] * len(varying))
        model.set_model_options(factors=FACTORS)
        model.set_train_options(seed=seed, quiet=True)
        model.build()
        model.run()
    factors = model.model.nodes["Z"].getExpectation()
    for columns, weights in zip(varying, model.model.nodes["W"].getExpectations(), strict=True):
        filled[:, columns] = factors @ weights["E"].T
    return np.where(np.isnan(x), filled, x)


RIVALS: dict[str, Callable[[Floats, Blocks, int], Floats]] = {
    f.__name__: f for f in (knn_imputer, iterative_imputer, block_ridge, block_forest, mofa)
}


def available() -> list[str]:
    """Names of the imputers; MOFA needs its library."""
    return [name for name in RIVALS if name != "mofa" or find_spec("mofapy2")]


def _ridge() -> Any:
    return RidgeCV(PENALTIES)


def _by_blocks(x: Floats, blocks: Blocks, regressor: Callable[[], Any]) -> Iterator[Floats]:
    """Yield the table of each round, which predicts views with missing rows from the others."""
    lacking = np.stack([np.isnan(x[:, b]).any(1) for b in blocks])
    filled = np.where(np.isnan(x), 0.0, x)
    while True:
        for b, rows in zip(blocks, lacking, strict=True):
            if rows.any():
                others = np.delete(filled, b, axis=1)
                model = regressor().fit(others[~rows], filled[~rows, b])
                predicted = model.predict(others[rows]).reshape(rows.sum(), -1)
                filled[rows, b] = np.where(np.isnan(x[rows, b]), predicted, filled[rows, b])
        yield filled.copy()


def _some_views(x: Floats, blocks: Blocks, seed: int) -> NDArray[np.bool_]:
    """Draw entries (n, p) to hide: one view each of a fifth of the rows with two or more."""
    rng = np.random.default_rng(seed)
    seen = np.stack([~np.isnan(x[:, b]).any(1) for b in blocks], axis=1)
    hidden = np.zeros(x.shape, bool)
    for i in np.flatnonzero((seen.sum(1) > 1) & (rng.random(len(x)) < SHARE)):
        hidden[i, blocks[rng.choice(np.flatnonzero(seen[i]))]] = True
    return hidden
