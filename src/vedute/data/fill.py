"""Frames, columns and arrays of the user with their gaps filled, in their own formats. Only
missing cells change, so observed values never pass through a float."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vedute.data import dates
from vedute.data.cells import as_text, decimals, is_text, stripped, without_limits
from vedute.data.cells import numbers as as_numbers
from vedute.data.frames import Levels, ViewSpec, fitted_names, is_plain, numbers

Array = NDArray[Any]
Floats = NDArray[np.float64]


def as_fitted(value: Array, spec: ViewSpec) -> Any:
    """Convert a whole view to the type that was fitted: a frame of its columns, or an array."""
    if spec.columns is None:
        return as_array(value, spec)
    return filled_frame(None, pd.RangeIndex(len(value)), value, np.ones(value.shape, bool), spec)


def as_array(value: Array, spec: ViewSpec) -> Array:
    """Convert to the dtype and the axes of the array that was fitted."""
    value = np.moveaxis(value, -3, -1) if spec.channels_last else value
    dtypes = spec.dtypes if spec.columns is None else ()
    dtype = np.dtype(dtypes[0]) if dtypes else value.dtype
    return value if value.dtype == dtype else as_dtype(value, dtype)


def filled_frame(
    view: Any, index: pd.Index, value: Floats, gap: Any, spec: ViewSpec
) -> pd.DataFrame | pd.Series:
    """Fill all joined rows, in the frame's own columns and dtypes. Columns of numbers of one
    dtype are filled together, since there may be fifty thousand."""
    frame = _no_rows(index, spec) if view is None else view
    frame = frame.to_frame() if isinstance(frame, pd.Series) else frame
    columns = spec.columns or tuple(frame.columns)
    names = fitted_names(frame.columns, columns)
    fitted = {label: c for c, label in enumerate(columns)}
    order, none = np.array([fitted[label] for label in names]), (None,) * len(columns)
    levels, origins = spec.levels or none, spec.origins or none
    ends = np.cumsum([numbers(k) for k in levels])  # of the numbers of each column
    where, by_dtype, single = index.get_indexer(frame.index), dict[Any, list[int]](), {}
    for j, (c, dtype) in enumerate(zip(order, frame.dtypes, strict=True)):
        if levels[c] is None and origins[c] is None and is_plain(dtype):
            by_dtype.setdefault(dtype, []).append(j)
            continue
        column, at = frame.iloc[:, j], slice(ends[c] - numbers(levels[c]), ends[c])
        new = _typed(value[:, at], levels[c], origins[c], column)
        cells = _filled_column(column, new, where, gap[:, at.start])
        single[j] = pd.Series(cells, index, cells.dtype)
    parts = [pd.DataFrame(single)] if single else []
    for positions in by_dtype.values():
        at = ends[order[positions]] - 1
        mine = frame if len(positions) == frame.shape[1] else frame.iloc[:, positions]
        block = as_dtype(value[:, at], _plain(mine.iloc[:, 0]))
        own = mine.to_numpy(block.dtype, na_value=0)
        block[where] = np.where(gap[where][:, at], block[where], own)
        parts.append(pd.DataFrame(block, index, positions).astype(mine.dtypes.iloc[0]))
    filled = parts[0] if len(parts) == 1 else pd.concat(parts, axis=1)[[*range(len(order))]]
    filled.columns = frame.columns
    if isinstance(view, pd.Series):
        return pd.Series(filled.iloc[:, 0], name=view.name)
    if len(columns) == len(names):
        return filled
    others: pd.DataFrame = as_fitted(value, spec).drop(columns=names)  # of fitting
    return pd.concat([filled, others.set_axis(index)], axis=1)


def _no_rows(index: pd.Index, spec: ViewSpec) -> pd.DataFrame:
    """Make an empty frame with the columns and dtypes of fitting."""
    columns = spec.columns or tuple(range(int(np.prod(spec.shape))))
    dtypes = spec.dtypes if len(spec.dtypes) == len(columns) else ("float64",) * len(columns)
    levels = spec.levels or (None,) * len(columns)
    series = {
        c: pd.Series(index=index[:0], dtype=dtype if k is None else pd.CategoricalDtype(list(k)))
        for c, dtype, k in zip(columns, dtypes, levels, strict=True)
    }
    return pd.DataFrame(series)


def _typed(block: Floats, levels: Levels, origin: str | None, column: pd.Series) -> Array:
    """Convert the numbers of one column (n, k) to categories (objects), dates or floats (n,)."""
    if levels is not None:
        codes = (block[:, 0] > 0.5).astype(int) if len(levels) <= 2 else block.argmax(1)
        codes = np.minimum(codes, len(levels) - 1)
        cells: Array = pd.Series(list(levels), dtype=object).to_numpy()[codes]
        cells[np.isnan(block).any(1)] = None  # an interval of categories has no ends
        return cells
    if origin is None:
        return block[:, 0]
    known = dates.of_text("", stripped(column)) if is_text(column) else column
    like = known if known is not None and dates.are_in(known) else None
    return dates.since(block[:, 0], origin, like)


def written(column: pd.Series, new: pd.Series, missing: NDArray[np.bool_]) -> pd.Series:
    """Write cells of `new` into a column where they are `missing`, in its own format."""
    if new.dtype.kind == "M":
        cells: Array = dates.stamps(new)
    elif isinstance(new.dtype, pd.CategoricalDtype):
        cells = np.array(new, dtype=object)
    else:
        cells = new.to_numpy(np.float64, na_value=np.nan)
    return pd.Series(_filled_column(column, cells, np.arange(len(new)), missing))


def _filled_column(column: pd.Series, new: Array, where: Array, missing: Array) -> Any:
    """Fill one column: the user's cells, which are at rows `where`, and where they are missing new
    ones (n,): categories (objects), dates or floats, in its format: text, decimals or its dtype."""
    dtype: Any = column.dtype
    text, dated, known = is_text(column), new.dtype.kind == "M", ~missing[where]
    cells: Any
    if new.dtype == object:
        cells = new
    elif dated and text:
        cells = np.array(dates.written(new, dates.wording(stripped(column))), dtype=object)
    elif dated:
        cells = dates.like_column(new, column)
    elif text:
        (strings, _), mark = without_limits(stripped(column)), "."
        number, truth = as_numbers(strings), next(iter(strings.dropna()), "")
        if number is None:
            number, mark = as_numbers(strings.str.replace(",", ".")), ","
        assert number is not None
        cells = np.array(as_text(as_dtype(new, _plain(number)), mark, truth), dtype=object)
    elif form := _decimal_form(column):
        cells = np.array(decimals(new.tolist(), *form), dtype=object)
    else:
        kind = getattr(dtype, "subtype", dtype)
        cells = as_dtype(new, _plain(column))
        cells = cells.astype(kind) if isinstance(kind, np.dtype) else pd.array(cells, kind)
    objects = cells.dtype == object
    if known.any():
        own: Any = column.to_numpy(object) if objects else column.array
        cells[where[known]] = own[known]
    if isinstance(dtype, pd.CategoricalDtype):  # extended by the levels that it lacks
        lacking = [k for k in dict.fromkeys(new) if k is not None and k not in dtype.categories]
        if lacking:
            dtype = pd.CategoricalDtype([*dtype.categories, *lacking], dtype.ordered)
    return cells if dated and not objects else pd.Series(cells, dtype=dtype).array


def _decimal_form(column: pd.Series) -> tuple[int, int | None] | None:
    """Places and digits of a column of decimals; None where it holds other numbers."""
    arrow: Any = getattr(column.dtype, "pyarrow_dtype", None)
    if arrow is not None:
        return (arrow.scale, arrow.precision) if str(arrow).startswith("decimal") else None
    if pd.api.types.infer_dtype(column, skipna=True) != "decimal":
        return None
    exponents = [x.as_tuple().exponent for x in column.dropna()]
    return max((-e for e in exponents if isinstance(e, int)), default=0), None


def _plain(column: pd.Series) -> np.dtype[Any]:
    """Numpy dtype of a column's numbers."""
    dtype: Any = column.dtype
    if pd.api.types.is_object_dtype(dtype):  # booleans with gaps in pandas
        kind = pd.api.types.infer_dtype(column, skipna=True)
        return np.dtype({"boolean": bool, "integer": np.int64}.get(kind, float))
    dtype = getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype))
    return dtype if isinstance(dtype, np.dtype) and dtype.kind in "biuf" else np.dtype(float)


def with_columns(table: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Copy a table with some columns replaced, all at once; of two of one name the last counts.
    Columns that the table lacks follow."""
    new = new.loc[:, ~new.columns.duplicated(keep="last")].set_axis(table.index)
    at, width = new.columns.get_indexer(table.columns), table.shape[1]
    order = np.where(at < 0, np.arange(width), at + width)
    absent = np.flatnonzero(~new.columns.isin(table.columns)) + width
    return pd.concat([table, new], axis=1).iloc[:, np.append(order, absent)]


def whole(spec: ViewSpec) -> bool:
    """Whether a view holds integers or booleans only."""
    for dtype in spec.dtypes:
        if pd.api.types.pandas_dtype(dtype).kind not in "biu":
            return False
    return bool(spec.dtypes)


def as_dtype(value: Floats, dtype: Any) -> Array:
    if np.issubdtype(dtype, np.bool_):
        return value > 0.5
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        top = info.max if info.bits < 53 else np.nextafter(float(info.max), 0)  # as a float
        return np.clip(np.rint(value), info.min, top).astype(dtype)
    return value.astype(dtype)
