"""Cholesky factors of matrices that are positive definite but for rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor

Array = NDArray[Any]
JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)  # relative to the mean of the diagonal


def factored(S: Array, lower: bool = False) -> tuple[Array, bool]:
    """The factor of S that `cho_solve` takes. Where rounding has made S indefinite, as equal rows
    do, a jitter is added to its diagonal, the smallest that helps."""
    for jitter in JITTERS:
        try:
            A = S + jitter * np.abs(S.diagonal()).mean() * np.eye(len(S)) if jitter else S
            factor: tuple[Array, bool] = cho_factor(A, lower=lower, check_finite=False)
            return factor
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError("a matrix that should be positive definite is not")
