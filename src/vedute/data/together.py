"""Which views are ever seen together: counts of samples by pair of views, and what they connect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from vedute.data.escaping import escaped


def counts(mask: ArrayLike) -> NDArray[np.int64]:
    """(L, L): how many samples of mask (n, L) have both views; on the diagonal, the view."""
    seen = np.asarray(mask, bool).astype(np.int64)
    return np.asarray(seen.T @ seen)


def components(mask: ArrayLike, names: Sequence[str]) -> list[list[str]]:
    """Names of views that samples connect, directly or by way of others; one list if all are."""
    _, part = connected_components(counts(mask) > 0, directed=False)
    return [[k for k, q in zip(names, part, strict=True) if q == p] for p in np.unique(part)]


def warning(parts: Sequence[Sequence[str]]) -> str | None:
    """One sentence where the views fall apart into components; else None."""
    if len(parts) < 2:
        return None
    listed = " | ".join(", ".join(map(escaped, part)) for part in parts)
    return f"the views form groups that no sample connects ({listed}): fit each by itself"
