"""Type in = type out: values are written into a copy of the user's own object.

Only missing cells change, so what was observed never passes through a float.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy import sparse

from vedute import door
from vedute.door import Columns
from vedute.frames import ViewSpec, joined_index
from vedute.views import Views

Values = Sequence[NDArray[np.float64]]


def fill(
    X: Any, values: Values, absent: Values, specs: Sequence[ViewSpec], columns: Columns | None
) -> Any:
    """A copy of X with `values` where `absent`; both L arrays (n, *shape_v), float and bool."""
    if isinstance(X, Views):
        return _fill_views(X, values, absent)
    views = door.named(X, columns, specs)
    index = joined_index(views)
    n = len(values[0])
    filled = {
        spec.name: _fill_frame(views[spec.name], index, value, gap, spec)
        if index is not None
        else _fill_array(views[spec.name], n, value, gap)
        for spec, value, gap in zip(specs, values, absent, strict=True)
    }
    if columns is not None or not isinstance(X, (Mapping, list, tuple)):
        return _fill_table(X, filled, columns)
    if isinstance(X, Mapping):
        order = [str(k) for k in X] + [k for k in filled if k not in {str(k) for k in X}]
        return {k: filled[k] for k in order}
    return list(filled.values())


def _fill_views(X: Views, values: Values, absent: Values) -> Views:
    out = []
    for x, value, gap in zip(X.x, values, absent, strict=True):
        if x.shape[1:] != value.shape[1:]:
            x = x.new_zeros(value.shape)
        cast = torch.from_numpy(_as_dtype(value, x.cpu().numpy().dtype))
        out.append(torch.where(torch.from_numpy(gap), cast, x.cpu()))
    return Views(
        tuple(out),
        torch.ones_like(X.mask),
        X.index,
        tuple(None for _ in out),
        X.names,
        X.ids,
        X.y,
    )


def _fill_array(view: Any, n: int, value: NDArray[np.float64], gap: NDArray[np.float64]) -> Any:
    if view is None:
        return value.copy()
    if sparse.issparse(view):
        dense = view.toarray()
        return type(view)(np.where(gap, _as_dtype(value, dense.dtype), dense))
    a = np.array(view)
    value, gap = value.reshape(a.shape), gap.reshape(a.shape)
    a[gap] = _as_dtype(value, a.dtype)[gap]
    return a


def _fill_frame(
    view: Any, index: pd.Index, value: NDArray[np.float64], gap: Any, spec: ViewSpec
) -> pd.DataFrame | pd.Series:
    """All joined rows, the frame's own columns and dtypes."""
    labels = spec.columns or tuple(range(value.shape[1]))
    if view is None:
        frame = pd.DataFrame(index=index[:0], columns=list(labels), dtype=float)
    else:
        frame = view.to_frame() if isinstance(view, pd.Series) else view
    where = index.get_indexer(frame.index)
    out, start = {}, 0
    for c, label in enumerate(labels):
        levels = spec.levels[c] if spec.levels is not None else None
        width = 1 if levels is None or len(levels) <= 2 else len(levels)
        block, hole = value[:, start : start + width], gap[:, start]
        start += width
        out[label] = _fill_column(frame[label], where, len(index), block, hole, levels)
    filled = pd.DataFrame(out, index=index)[list(frame.columns)]
    return filled[filled.columns[0]] if isinstance(view, pd.Series) else filled


def _fill_column(
    column: pd.Series,
    where: NDArray[np.intp],
    n: int,
    block: NDArray[np.float64],
    hole: NDArray[np.bool_],
    levels: tuple[Any, ...] | None,
) -> Any:
    """One column of n cells: the user's where there is one, the model's elsewhere."""
    position = np.full(n, -1)
    position[where] = np.arange(len(column))
    own = ~hole & (position >= 0)
    dtype = column.dtype
    if levels is not None:
        code = (block[:, 0] > 0.5).astype(int) if len(levels) <= 2 else block.argmax(1)
        code = np.minimum(code, len(levels) - 1)
        cells = np.array([levels[k] for k in code], dtype=object)
        cells[own] = column.to_numpy(object)[position[own]]
        return (
            pd.Categorical(cells, dtype=dtype) if isinstance(dtype, pd.CategoricalDtype) else cells
        )
    guess = block[:, 0]
    if pd.api.types.is_object_dtype(dtype):
        cells = guess.astype(object)
    elif pd.api.types.is_bool_dtype(dtype):
        cells = guess > 0.5
    elif pd.api.types.is_integer_dtype(dtype):
        cells = np.rint(guess).astype(np.int64)
    else:
        cells = guess
    filled = pd.Series(cells).astype(dtype)
    filled[own] = column.array[position[own]]
    return filled.to_numpy() if isinstance(dtype, np.dtype) else filled.array


def _fill_table(X: Any, filled: dict[str, Any], columns: Columns | None) -> Any:
    """The views back in one table; columns in no view stay as they are."""
    if columns is None:
        only = next(iter(filled.values()))
        return only
    if isinstance(X, pd.DataFrame):
        table = X.copy()
        for view in filled.values():
            for label in view.columns:
                table[label] = view[label]
        return table
    out = np.array(X.toarray() if sparse.issparse(X) else X)
    for name, which in columns.items():
        view = filled[str(name)]
        out[:, which] = view.toarray() if sparse.issparse(view) else view
    return type(X)(out) if sparse.issparse(X) else out


def _as_dtype(value: NDArray[np.float64], dtype: Any) -> NDArray[Any]:
    if np.issubdtype(dtype, np.bool_):
        return value > 0.5
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return np.clip(np.rint(value), info.min, info.max).astype(dtype)
    return value.astype(dtype)
