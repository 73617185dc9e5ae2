"""Results of a fitted estimator, written into a MuData or AnnData."""

from __future__ import annotations

import warnings
from typing import Any

from vedute.data import omics
from vedute.estimators.base import Estimator
from vedute.io import mudata


def annotate(model: Estimator, X: Any) -> None:
    """Write representation and clusters into X: `obsm["X_vedute"]`, and `obs["vedute"]` if `model`
    was fitted with `n_clusters`."""
    _check(X)
    rows = {"embedding": model.transform(X)}
    rows |= {"labels": model.predict(X)} if hasattr(model, "labels_") else {}
    mudata.put(X, rows)


def impute(model: Estimator, X: Any, interval: float | None = None) -> Any:
    """Return a copy of X with every value in the layer "filled" and, with `interval`, its ends in
    "filled_lower" and "filled_upper"; a MuData gets every sample in every modality. X itself, and
    `X` in it, are not changed."""
    _check(X)
    filled = model.impute(X, interval=interval)
    layers = {"filled": filled}
    if interval is not None:
        layers = {"filled": filled.mean, "filled_lower": filled.lower, "filled_upper": filled.upper}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mudata warns of its own future
        return mudata.completed(X if omics.is_mu(X) else X.copy(), layers)


def _check(X: Any) -> None:
    if not omics.is_omics(X):
        raise TypeError(f"X is a MuData or an AnnData, got {type(X).__name__}")
