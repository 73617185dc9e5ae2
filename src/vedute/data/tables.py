"""One 2-D table and the views it is cut into."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy import sparse

from vedute.data.escaping import close_to
from vedute.data.frames import Frame

Columns = Mapping[str, Any]


def as_table(X: Any) -> Any:
    """Convert objects with an array interface, and lists of rows of plain numbers, to arrays."""
    if isinstance(X, (list, tuple)):
        first = X[0] if X and isinstance(X[0], (list, tuple)) else ()
        numbers = len(first) > 0 and np.ndim(first[0]) == 0
        rows = numbers and all(isinstance(x, (list, tuple)) and len(x) == len(first) for x in X)
        return np.asarray(X) if rows else X
    if isinstance(X, Mapping | np.ndarray | Frame) or sparse.issparse(X):
        return X
    array = as_array(X)
    return array if array.ndim else X


def top_levels(columns: pd.MultiIndex) -> Columns:
    """Columns of each view, which the top one of several levels names."""
    tops = columns.get_level_values(0)
    if tops.hasnans:
        raise ValueError("a column has no name in the top level, that of the views; give it one")
    return {top: columns[tops == top].tolist() for top in tops.unique()}


def items(X: Any) -> Iterable[tuple[Any, Any]]:
    """Iterate over the views of a container by name or position; a table is at None."""
    if isinstance(X, Mapping):
        return X.items()
    return enumerate(X) if isinstance(X, (list, tuple)) else [(None, X)]


def replaced(X: Any, new: Mapping[Any, Any]) -> Any:
    """Rebuild a container like X with new views."""
    if isinstance(X, Mapping):
        return {k: new.get(k, v) for k, v in X.items()}
    if isinstance(X, (list, tuple)):
        made = [new.get(k, v) for k, v in enumerate(X)]
        return tuple(made) if isinstance(X, tuple) else made
    return new[None]


def without(X: Any, drop: str | Sequence[Any]) -> Any:
    """Drop columns of frames, alone or in a container; reject a name that none has."""
    names = [drop] if isinstance(drop, str) else list(drop)
    frames = {k: v for k, v in items(X) if isinstance(v, pd.DataFrame)}
    available = [c for v in frames.values() for c in v.columns]
    for name in names:
        if name not in available:
            raise ValueError(f"no view has a column {name!r} to drop; {close_to(name, available)}")
    return replaced(X, {k: v.drop(columns=names, errors="ignore") for k, v in frames.items()})


def split(table: Any, columns: Columns, lenient: bool = False) -> dict[str, Any]:
    """Split one 2-D table into views. lenient: a frame may lack columns that are named."""
    if not isinstance(columns, Mapping):
        fix = "pass columns={'a': slice(50), ...}"
        raise TypeError(f"columns= is a dict of views, got {columns!r}; {fix}")
    table = table.to_frame() if isinstance(table, pd.Series) else table
    rule = "columns= cuts one 2-D table into views"
    if not isinstance(table, Frame | np.ndarray) and not sparse.issparse(table):
        fix = "pass an array, a sparse matrix or a DataFrame, or leave columns= out"
        raise TypeError(f"{rule}, got {type(table).__name__}; {fix}")
    if table.ndim != 2:
        raise ValueError(f"{rule}, got rank {table.ndim}; reshape it to (n_samples, n_features)")
    parts, views = {name: chosen(which) for name, which in columns.items()}, {}
    table = table.tocsc() if sparse.issparse(table) else table
    cells, by_position = table, True
    if isinstance(table, pd.DataFrame):  # whole numbers are positions, unless all are names
        choices = [c for which in parts.values() if not isinstance(which, slice) for c in which]
        whole = all(isinstance(c, (int, np.integer)) and not isinstance(c, bool) for c in choices)
        by_position = whole and not all(c in table.columns for c in choices)
        cells = table.iloc
    for name, which in parts.items():
        try:
            if by_position or isinstance(which, slice):
                views[str(name)] = cells[:, which]
            else:
                names = [c for c in which if c in table.columns] if lenient else which
                views[str(name)] = table.loc[:, names]
        except (KeyError, IndexError, TypeError, ValueError) as e:
            problem = f"columns of view {name!r} are not in the table of width {table.shape[1]}"
            fix = "give a slice, names or positions of its columns"
            raise ValueError(f"{problem} ({e}); {fix}") from None
    return views


def chosen(which: Any) -> Any:
    """Normalize the columns of a view to a slice or a list."""
    if isinstance(which, slice):
        return which
    return list(which) if np.iterable(which) and not isinstance(which, str) else [which]


def as_array(view: Any) -> NDArray[Any]:
    """Apply `np.asarray`, also to tensors that need gradients, are on a GPU or in bfloat16."""
    if not isinstance(view, torch.Tensor):
        return np.asarray(view)
    if view.layout != torch.strided:
        raise ValueError("a view is a sparse tensor; pass to_dense() of it, or a matrix of scipy")
    view = view.detach().cpu()
    array: NDArray[Any] = (view.float() if view.dtype == torch.bfloat16 else view).numpy()
    return array
