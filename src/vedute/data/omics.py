"""MuData and AnnData objects, recognised by their attributes, as views: modalities; or the matrix
of an AnnData, cut by `feature_types`, and those of its `obsm` that are no embeddings (no X_)."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from vedute.data import limits
from vedute.data.ids import warn_of_look_alikes

FEATURE_TYPES = "feature_types"


def is_omics(X: Any) -> bool:
    ann = hasattr(X, "obs_names") and hasattr(X, "obsm") and hasattr(X, "write_h5ad")
    return ann or is_mu(X)


def is_mu(whole: Any) -> bool:
    return hasattr(whole, "mod") and hasattr(whole, "obs_names")


def views(
    whole: Any, what: str, frames: dict[str, pd.DataFrame] | None = None
) -> dict[str, pd.DataFrame]:
    """Return one frame per view, by default of all, with a row for every sample, in the order of
    `obs_names`."""
    if frames is None and is_mu(whole):
        if not whole.mod:
            raise ValueError(f"{what} has no modality; write at least one")
        frames = {k: matrix(mod, f"{what}, {k}") for k, mod in whole.mod.items()}
    elif frames is None:
        frames = {}
        if whole.X is not None and whole.n_vars:
            frames["X"] = table = matrix(whole, what)
            kinds = whole.var.get(FEATURE_TYPES, pd.Series(dtype=object)).astype(str)
            if kinds.nunique() > 1:
                frames = {k: table.loc[:, (kinds == k).to_numpy()] for k in kinds.unique()}
        for name, a in whole.obsm.items():
            if not name.startswith("X_"):
                columns = a.columns if isinstance(a, pd.DataFrame) else range(a.shape[1])
                frames[name] = _frame(a, whole.obs_names, columns, f"{what}, {name}")
        if not frames:
            raise ValueError(f"{what} has no matrix X; write one")
    ids = pd.Index(whole.obs_names.astype(str))
    if not ids.is_unique:
        twice = ids[ids.duplicated()][0]
        raise ValueError(f"{what}: id {twice!r} occurs twice; make obs_names unique")
    warn_of_look_alikes({k: v.index for k, v in frames.items()})
    return {k: v.reindex(ids) for k, v in frames.items()}


def matrix(ann: Any, what: str) -> pd.DataFrame:
    """Frame of X of an AnnData, or of a modality."""
    if ann.X is None:
        raise ValueError(f"{what} has no matrix X; write one")
    return _frame(ann.X, ann.obs_names, ann.var_names, what)


def _frame(x: Any, ids: Any, columns: Any, what: str) -> pd.DataFrame:
    if sparse.issparse(x):
        limits.check(prod(x.shape) * x.dtype.itemsize, what)
        x = x.toarray()
    return pd.DataFrame(np.asarray(x), index=pd.Index(ids.astype(str)), columns=pd.Index(columns))
