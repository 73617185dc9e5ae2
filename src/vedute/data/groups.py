"""Samples that belong together, such as visits of one patient: one group per sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vedute.data.frames import listed


def codes(groups: Any, n: int, ids: NDArray[Any] | None = None) -> NDArray[np.int64]:
    """Whole numbers (n,) from 0, equal within a group.

    groups: one value per sample, in their order; a Series goes by the ids of the samples, where
    these have any.
    """
    if isinstance(groups, pd.Series) and ids is not None:
        groups = _by_id(groups, ids)
    found = np.asarray(groups)
    if found.shape != (n,):
        raise ValueError(f"groups has shape {found.shape}; pass one group for each of {n} samples")
    lost = np.flatnonzero(pd.isna(found) | (found.astype(str) == ""))
    if len(lost):
        some = [int(i) if ids is None else ids[i] for i in lost]
        word = "row" if ids is None else "sample"
        raise ValueError(f"{word} {listed(some)} has no group; give it one, if of its own")
    return pd.factorize(found)[0].astype(np.int64)


def _by_id(groups: pd.Series, ids: NDArray[Any]) -> pd.Series:
    index = pd.Index(groups.index.astype(str))
    twice = index[index.duplicated()].unique()
    if len(twice):
        raise ValueError(f"groups has the id {listed(twice)} twice; give each sample one group")
    return groups.set_axis(index).reindex(np.asarray(ids).astype(str))
