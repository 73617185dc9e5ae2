"""Type in = type out: values are written into a copy of the user's own object, block by block.

Only missing cells change, so observed values never pass through a float.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy import sparse

from vedute.data import dates, rows
from vedute.data.cells import as_text, decimals, have_commas, is_text, stripped, without_limits
from vedute.data.cells import numbers as as_numbers
from vedute.data.checks import Parts
from vedute.data.frames import ViewSpec, fitted_names, is_frame, is_plain, numbers
from vedute.data.mapped import Stack
from vedute.data.tables import as_array, chosen

Array = NDArray[Any]
Floats = NDArray[np.float64]
About = tuple[tuple[Any, ...] | None, str | None]  # levels and origin of a column


class Copy:
    """An array or tensor of numbers whose missing entries are filled block by block."""

    def __init__(self, view: Any) -> None:
        view = rows.whole(view)
        self.tensor = (view.device, view.dtype) if isinstance(view, torch.Tensor) else None
        a = np.array(as_array(view))
        self.array: Array = a if a.dtype.kind in "biufO" else a.astype(np.float64)

    def add(self, at: slice, value: Array, gap: Array) -> None:
        """Fill rows with values (k, *shape) where gap is True."""
        own = self.array[at]
        if value.ndim == own.ndim == 4 and value.shape != own.shape:  # images of the user
            value, gap = (np.moveaxis(a, -3, -1) for a in (value, gap))  # channels last
        gap = gap.reshape(own.shape)  # columns may be one number
        own[gap] = as_dtype(value.reshape(own.shape), own.dtype)[gap]

    def view(self) -> Any:
        return self.array if self.tensor is None else torch.from_numpy(self.array).to(*self.tensor)


class WholeCopy:
    """A frame, a sparse matrix, or a view that no sample has: filled after all n rows are known."""

    def __init__(self, view: Any, index: pd.Index | None, spec: ViewSpec, n: int) -> None:
        self.source, self.index, self.spec = view, index, spec
        self.value, self.gap = Stack(n), Stack(n)

    def add(self, at: slice, value: Array, gap: Array) -> None:
        self.value.add(value)
        self.gap.add(gap)

    def view(self) -> Any:
        view, value, gap = self.source, self.value.array, self.gap.array
        if self.index is not None and (view is None or is_frame(view)):
            return _filled_frame(view, self.index, value, gap, self.spec)
        return _as_array(value, self.spec) if view is None else _filled_sparse(view, value, gap)


def copy(parts: Parts, spec: ViewSpec, n: int) -> Copy | WholeCopy:
    """Start to fill a view of n rows."""
    view = parts.views[spec.name]
    late = view is None or is_frame(view) or sparse.issparse(view)
    return WholeCopy(view, parts.rows, spec, n) if late else Copy(view)


def joined(parts: Parts, copies: Sequence[Any]) -> Any:
    """Put filled views into an object like X; columns of a table in no view are unchanged."""
    X, columns = parts.X, parts.columns
    views = {spec.name: view for spec, view in zip(parts.specs, copies, strict=True)}
    if columns is None and isinstance(X, Mapping):
        named = {k: views.pop(str(k)) for k in X}
        return named | views
    if columns is None and isinstance(X, (list, tuple)):
        return tuple(copies) if isinstance(X, tuple) else [*copies]
    if columns is None:
        return copies[0]
    if isinstance(X, pd.DataFrame):
        return _with_columns(X, pd.concat(copies, axis=1))
    out = np.array(X.toarray() if sparse.issparse(X) else X)
    if out.dtype.kind in "biu" and any(view.dtype.kind == "f" for view in copies):
        out = out.astype(np.float64)
    for name, which in columns.items():
        view = views[str(name)]
        out[:, chosen(which)] = view.toarray() if sparse.issparse(view) else view
    return type(X)(out) if sparse.issparse(X) else out


def in_floats(parts: Parts, names: Collection[str]) -> Parts:
    """Convert some views to floats, whose cells are all to be written."""
    views = {k: _in_floats(view) if k in names else view for k, view in parts.views.items()}
    specs = [
        replace(s, dtypes=("float64",) * len(s.dtypes), origins=()) if s.name in names else s
        for s in parts.specs
    ]
    return parts._replace(views=views, specs=specs)


def _in_floats(view: Any) -> Any:
    """Convert a view to floats; frames lose their cells."""
    view = rows.whole(view)
    if isinstance(view, torch.Tensor):
        return view if view.is_floating_point() else view.double()
    if isinstance(view, pd.DataFrame):
        return pd.DataFrame(0.0, view.index, view.columns)
    if isinstance(view, pd.Series):
        return pd.Series(0.0, view.index, name=view.name)
    if view is None or np.dtype(getattr(view, "dtype", object)).kind == "f":
        return view
    return view.astype(np.float64) if sparse.issparse(view) else np.zeros(np.shape(view))


def as_fitted(value: Array, spec: ViewSpec) -> Any:
    """Convert a whole view to the type that was fitted: a frame of its columns, or an array."""
    if spec.columns is None:
        return _as_array(value, spec)
    return _filled_frame(None, pd.RangeIndex(len(value)), value, np.ones(value.shape, bool), spec)


def _as_array(value: Array, spec: ViewSpec) -> Array:
    """Convert to the dtype and the axes of the array that was fitted."""
    value = np.moveaxis(value, -3, -1) if spec.channels_last else value
    dtypes = spec.dtypes if spec.columns is None else ()
    dtype = np.dtype(dtypes[0]) if dtypes else value.dtype
    return value if value.dtype == dtype else as_dtype(value, dtype)


def _filled_sparse(view: Any, value: Floats, gap: Any) -> Any:
    """Fill a sparse matrix; complete rows are unchanged."""
    if view.ndim == 1:
        whole = Copy(view.toarray())
        whole.add(slice(None), value, gap)
        return type(view)(whole.array)
    holed, csr = gap.any(1), view.tocsr()
    new = np.where(gap[holed], as_dtype(value[holed], view.dtype), csr[holed].toarray())
    stacked = sparse.vstack([csr[~holed], sparse.csr_array(new)], format="csr")
    order = np.argsort(np.append(np.flatnonzero(~holed), np.flatnonzero(holed)))
    return type(view)(stacked[order])


def _filled_frame(
    view: Any, index: pd.Index, value: Floats, gap: Any, spec: ViewSpec
) -> pd.DataFrame | pd.Series:
    """Fill all joined rows, in the frame's own columns and dtypes. Columns of numbers of one
    dtype are filled together, since there may be fifty thousand."""
    frame = _no_rows(index, spec) if view is None else view
    frame = frame.to_frame() if isinstance(frame, pd.Series) else frame
    columns = spec.columns or tuple(frame.columns)
    names = fitted_names(frame.columns, columns)
    fitted = {label: c for c, label in enumerate(columns)}
    order = np.array([fitted[label] for label in names])
    none = (None,) * len(columns)
    levels, origins = spec.levels or none, spec.origins or none
    ends = np.cumsum([numbers(k) for k in levels])  # of the numbers of each column
    place, by_dtype, single = frame.index.get_indexer(index), dict[Any, list[int]](), {}
    for j, (c, dtype) in enumerate(zip(order, frame.dtypes, strict=True)):
        if levels[c] is None and origins[c] is None and is_plain(dtype):
            by_dtype.setdefault(dtype, []).append(j)
            continue
        at, about = slice(ends[c] - numbers(levels[c]), ends[c]), (levels[c], origins[c])
        single[j] = _filled_column(frame.iloc[:, j], place, value[:, at], gap[:, at.start], about)
    series = {j: pd.Series(cells, index, cells.dtype) for j, cells in single.items()}
    parts = [pd.DataFrame(series)] if series else []
    for positions in by_dtype.values():
        at = ends[order[positions]] - 1
        parts.append(_filled_numbers(frame, positions, index, value[:, at], gap[:, at]))
    filled = parts[0] if len(parts) == 1 else pd.concat(parts, axis=1)[[*range(len(order))]]
    filled.columns = frame.columns
    if isinstance(view, pd.Series):
        return pd.Series(filled.iloc[:, 0], name=view.name)
    if len(columns) == len(names):
        return filled
    others: pd.DataFrame = as_fitted(value, spec).drop(columns=names)  # of fitting
    return pd.concat([filled, others.set_axis(index)], axis=1)


def _filled_numbers(
    frame: pd.DataFrame, columns: list[int], index: pd.Index, value: Floats, gap: Any
) -> pd.DataFrame:
    """Fill columns at k positions of a frame, of one dtype of numpy or a nullable one: the user's
    cells where present, else the model's; value and gap (n, k)."""
    mine = frame if len(columns) == frame.shape[1] else frame.iloc[:, columns]
    cells, dtype = as_dtype(value, _plain(mine.iloc[:, 0])), mine.dtypes.iloc[0]
    nullable, where = not isinstance(dtype, np.dtype), index.get_indexer(frame.index)
    source = mine.fillna(cells.dtype.type(0)) if nullable else mine
    merged = cells[where]
    np.copyto(merged, source.to_numpy(cells.dtype), where=~gap[where])
    cells[where] = merged
    if not nullable:
        return pd.DataFrame(cells, index=index, columns=columns)
    no_mask, array = np.zeros(len(cells), bool), dtype.construct_array_type()
    arrays = {c: array(x, no_mask.copy()) for c, x in zip(columns, cells.T.copy(), strict=True)}
    return pd.DataFrame(arrays, index=index)


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


def _filled_column(
    column: pd.Series, place: Array, block: Floats, hole: Array, about: About = (None, None)
) -> Any:
    """Fill one column: the user's cells, at `place` (n,) where present (else -1), or the model's.
    about: levels of categories, origin of dates."""
    (levels, origin), dtype = about, column.dtype
    observed = ~hole & (place >= 0)
    if levels is not None:
        codes = (block[:, 0] > 0.5).astype(int) if len(levels) <= 2 else block.argmax(1)
        codes = np.minimum(codes, len(levels) - 1)
        cells = pd.Series(list(levels), dtype=object).to_numpy()[codes]
        cells[np.isnan(block).any(1)] = None  # an interval of categories has no ends
    elif origin is not None:
        cells = _dates_like(column, block[:, 0], origin)
    else:
        cells = _numbers_like(column, block[:, 0])
    objects = cells.dtype == object
    if observed.any():
        source: Any = column.to_numpy(object) if objects else column.array
        cells[observed] = source[place[observed]]
    if isinstance(dtype, pd.CategoricalDtype):  # extended by the levels that it lacks
        used = {*cells}
        lacking = [k for k in levels or () if k in used and k not in dtype.categories]
        if lacking:
            dtype = pd.CategoricalDtype([*dtype.categories, *lacking], dtype.ordered)
    return cells if origin and not objects else pd.Series(cells, dtype=dtype).array


def _dates_like(column: pd.Series, value: Floats, origin: str) -> Any:
    """Convert days to dates in the dtype of a column, or in its wording."""
    if is_text(column):
        strings = stripped(column)
        new = dates.since(value, origin, dates.of_text("", strings))
        return np.array(dates.written(new, dates.wording(strings)), dtype=object)
    new = dates.since(value, origin, column if dates.are_in(column) else None)
    return dates.like_column(new, column)


def _numbers_like(column: pd.Series, value: Floats) -> Any:
    """Convert values to the numbers of a column: text, decimals, or its dtype."""
    dtype: Any = getattr(column.dtype, "subtype", column.dtype)
    if is_text(column):
        strings = without_limits(stripped(column))
        number, truth = as_numbers(strings), next(iter(strings.dropna()), "")
        assert number is not None
        return np.array(as_text(as_dtype(value, _plain(number)), truth=truth), dtype=object)
    form = _decimal_form(column)
    if form is not None:
        return np.array(decimals(value.tolist(), *form), dtype=object)
    cells = as_dtype(value, _plain(column))
    if isinstance(dtype, np.dtype):
        return cells.astype(dtype)
    return pd.Series(cells).astype(dtype).array


def written(column: pd.Series, new: pd.Series, missing: NDArray[np.bool_]) -> pd.Series:
    """Write cells of `new` into a column where they are `missing`, in its own format."""
    text, dated = is_text(column), new.dtype.kind == "M"
    words = isinstance(new.dtype, pd.CategoricalDtype)
    if not (text or dated or words):
        block = new.to_numpy(np.float64, na_value=np.nan)[:, None]
        return pd.Series(_filled_column(column, np.arange(len(new)), block, missing))
    strings, cells = stripped(column), column.to_numpy(object).copy()
    own: Any
    if dated:
        stamps, objects = dates.stamps(new), column.astype(object)
        spelled = dates.written(stamps, dates.wording(strings)) if text else None
        own = np.array(spelled or dates.like_objects(stamps, objects), dtype=object)[missing]
    elif words:
        own = list(new.astype(object)[missing])
    else:
        strings = without_limits(strings)
        mark, truth = "," if have_commas(strings) else ".", next(iter(strings.dropna()), "")
        own = as_text(new[missing], mark, truth)
    cells[missing] = own
    return pd.Series(cells, dtype=object)


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
    if isinstance(dtype, pd.SparseDtype):
        dtype = dtype.subtype
    dtype = getattr(dtype, "numpy_dtype", dtype)
    return dtype if isinstance(dtype, np.dtype) and dtype.kind in "biuf" else np.dtype(float)


def _with_columns(table: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Copy a table with some columns replaced, all at once; of two of one name the last counts.
    Columns that the table lacks follow."""
    new = new.loc[:, ~new.columns.duplicated(keep="last")].set_axis(table.index)
    at = new.columns.get_indexer(table.columns)
    rest = table.loc[:, at < 0]
    order = np.where(at < 0, np.cumsum(at < 0) - 1, at + rest.shape[1])
    absent = np.flatnonzero(~new.columns.isin(table.columns))
    merged = pd.concat([rest, new], axis=1).iloc[:, np.append(order, absent + rest.shape[1])]
    merged.columns = table.columns.append(new.columns[absent])
    return merged


def whole(spec: ViewSpec) -> bool:
    """Whether a view holds integers or booleans only."""
    kinds = [pd.api.types.pandas_dtype(d).kind for d in spec.dtypes]
    return bool(kinds) and all(k in "biu" for k in kinds)


def one_hot(value: Floats) -> Floats:
    """Turn probabilities (..., K) into a one-hot choice of the largest."""
    choice: Floats = np.eye(value.shape[-1])[value.argmax(-1)]
    return choice


def as_dtype(value: Floats, dtype: Any) -> Array:
    if np.issubdtype(dtype, np.bool_):
        return value > 0.5
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        top = info.max if info.bits < 53 else np.nextafter(float(info.max), 0)  # as a float
        return np.clip(np.rint(value), info.min, top).astype(dtype)
    return value.astype(dtype)
