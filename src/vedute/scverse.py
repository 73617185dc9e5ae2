"""What a fitted estimator learns about a MuData or AnnData, written into it."""

from __future__ import annotations

import warnings
from typing import Any

from vedute.data import omics
from vedute.estimators.base import Estimator
from vedute.io import mudata


def annotate(model: Estimator, X: Any) -> None:
    """Representation and clusters into X: `obsm["X_vedute"]`, and `obs["vedute"]` where `model`
    was fitted with `n_clusters`."""
    _check(X)
    rows = {"embedding": model.transform(X)}
    rows |= {"labels": model.predict(X)} if hasattr(model, "labels_") else {}
    mudata.put(X, rows)


def impute(model: Estimator, X: Any, interval: float | None = None) -> Any:
    """A copy of X with every value in the layer "filled" and, with `interval`, its ends in
    "filled_lower" and "filled_upper"; of a MuData with every sample in every modality. X itself,
    and `X` in it, stay as they are."""
    _check(X)
    found = model.impute(X, interval=interval)
    layers = {"filled": found}
    if interval is not None:
        layers = {"filled": found.mean, "filled_lower": found.lower, "filled_upper": found.upper}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mudata warns of its own future
        return mudata.completed(X if omics.is_mu(X) else X.copy(), layers)


def _check(X: Any) -> None:
    if not omics.is_omics(X):
        raise TypeError(f"X is a MuData or an AnnData, got {type(X).__name__}")
