"""Data scaled by scalers alone."""

from __future__ import annotations

from collections.abc import Sequence

from vedute.data.frames import ViewSpec
from vedute.data.scaling import Scaler
from vedute.data.views import Views
from vedute.estimators import fitted_view
from vedute.nn.likelihoods import LIKELIHOODS


def scaled(scalers: Sequence[Scaler], views: Views) -> Views:
    """Scale views of numbers."""
    likelihood, fitted = LIKELIHOODS["normal"], []
    for name, shape, scaler in zip(views.names, views.shapes, scalers, strict=True):
        fitted.append(fitted_view.FittedView(ViewSpec(name, shape), likelihood, scaler))
    return fitted_view.scaled(fitted, views)
