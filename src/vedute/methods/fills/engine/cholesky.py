"""Cholesky factors of matrices that are positive definite up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor

Array = NDArray[Any]
JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)  # relative to the mean of the diagonal


def factored(S: Array, lower: bool = False) -> tuple[Array, bool]:
    """The Cholesky factor of S for `cho_solve`.

    If rounding has made S indefinite, as with equal rows, the smallest sufficient jitter is added
    to its diagonal.
    """
    for jitter in JITTERS:
        try:
            A = S + jitter * np.abs(S.diagonal()).mean() * np.eye(len(S)) if jitter else S
            factor: tuple[Array, bool] = cho_factor(A, lower=lower, check_finite=False)
            return factor
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError("a matrix that should be positive definite is not")
