"""Rubin's rules: combine estimates, each from another draw of the missing values.

For estimates q_1 .. q_m with variances u_1 .. u_m (squared standard errors)

    estimate   q = mean of q_i
    variance   t = u + (1 + 1/m) b,   u = mean of u_i,  b = sum (q_i - q)^2 / (m - 1)
    lambda     share of t that is due to what is missing, (1 + 1/m) b / t
    df         (m - 1) / lambda^2; with `df` k of complete data, combined with what is observed of
               it, (k + 1) / (k + 3) k (1 - lambda), as 1 / df = 1 / df_1 + 1 / df_2
    missing    fraction of missing information, (r + 2 / (df + 3)) / (r + 1), r = (1 + 1/m) b / u

(Rubin 1987; Barnard & Rubin, Biometrika 1999)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t


@dataclass(frozen=True)
class Pooled:
    """Estimates as given: numbers, arrays or Series; missing_information is from 0 to 1."""

    estimate: Any
    standard_error: Any
    df: Any
    missing_information: Any

    def interval(self, confidence: float = 0.95) -> tuple[Any, Any]:
        """Lower and upper end of the confidence interval, by Student's t."""
        if not 0 < confidence < 1:
            raise ValueError(f"confidence is a probability between 0 and 1, got {confidence!r}")
        reach = t.ppf(0.5 + confidence / 2, self.df) * self.standard_error
        return self.estimate - reach, self.estimate + reach


def pool(estimates: Sequence[Any], variances: Sequence[Any], df: float | None = None) -> Pooled:
    """Combine estimates from several imputations (`sample_imputations`).

    estimates, variances: one of each per imputation, the variance a squared standard error;
    numbers, arrays of equal shape, or Series with the same labels. df: the degrees of freedom that
    complete data would leave; with few samples intervals are too narrow without it.
    """
    first = estimates[0] if len(estimates) else None
    q, u = _stacked("estimates", estimates, first), _stacked("variances", variances, first)
    m = len(q)
    if m != len(u) or m < 2:
        counts = f"{m} estimates and {len(u)} variances"
        raise ValueError(f"{counts}; pass one of each for two or more imputations")
    if q.shape != u.shape:
        raise ValueError(f"estimates have shape {q.shape[1:]}, variances {u.shape[1:]}")
    if not (np.isfinite(q).all() and np.isfinite(u).all() and (u >= 0).all()):
        raise ValueError("estimates must be finite, and variances finite and not negative")
    if df is not None and not df > 0:
        raise ValueError(f"df must be positive, got {df!r}")
    between = (1 + 1 / m) * q.var(0, ddof=1)
    total = u.mean(0) + between
    share = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    with np.errstate(divide="ignore"):
        rest = np.asarray((m - 1) / share**2)  # infinite where all imputations agree
        if df is not None:
            rest = np.asarray(1 / (1 / rest + 1 / ((df + 1) / (df + 3) * df * (1 - share))))
    # r / (r + 1) is the share of the variance, 1 / (r + 1) the rest of it
    missing = np.where(share > 0, share + (1 - share) * 2 / (rest + 3), 0.0)
    pooled = q.mean(0), np.sqrt(total), rest, missing
    if isinstance(first, pd.Series):
        return Pooled(*(pd.Series(x, first.index) for x in pooled))
    return Pooled(*(x if x.ndim else float(x) for x in pooled))


def _stacked(name: str, given: Sequence[Any], first: Any) -> NDArray[np.float64]:
    """(m, ...); Series in the order of the first one's labels."""
    if isinstance(first, pd.Series):
        for item in given:
            labels = item.index if isinstance(item, pd.Series) else None
            if labels is None or set(labels) != set(first.index) or not labels.is_unique:
                raise ValueError(f"{name} have different labels; pass Series with the same ones")
        given = [item[first.index] for item in given]
    shapes = {np.shape(item) for item in given}
    if len(shapes) > 1:
        raise ValueError(f"{name} have shapes {', '.join(map(str, shapes))}; pass equal ones")
    return np.asarray(list(given), np.float64)
