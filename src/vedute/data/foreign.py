"""Tables of polars, pyarrow and other libraries that narwhals supports: pandas on the way in,
and the original library on the way out. They have no index, so row i is sample i. No cell passes
through a type that cannot hold it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pandas as pd

from vedute.data import omics
from vedute.data.cells import decimals
from vedute.data.frames import Frame, is_plain
from vedute.data.tables import items, replaced

Back = Callable[[Any], Any]
DOORS = {"__arrow_c_stream__", "__dataframe__", "collect"}  # attributes of such tables
INDEX = "__index_level_0__"  # pyarrow's name for the index of a frame of pandas


def as_pandas(X: Any) -> tuple[Any, Back | None]:
    """Convert foreign tables in X, or AnnData, to pandas; return a function that converts filled
    frames back, or None. Reject tables that cannot be aligned by row."""
    if hasattr(X, "obs_names") and omics.is_omics(X):
        X = omics.views(X, "X")
    sources, indexed = {}, list[Any]()
    for k, view in items(X):
        if isinstance(view, Frame):
            indexed.append(k)
        elif not DOORS.isdisjoint(dir(type(view))):
            sources[k] = _narwhals(k, view)
    if not sources:
        return X, None
    (first, example), *others = sources.items()
    for name, table in others:
        if len(table) != len(example):
            lengths = f"{first!r} {len(example)}, {name!r} {len(table)}"
            fix = "align their rows, or pass frames of pandas to join by index"
            raise ValueError(f"views differ in length: {lengths}; {fix}")
    if indexed:
        problem = f"view {indexed[0]!r} is a frame of pandas, joined by index"
        fix = f"while view {first!r} has no index; pass all views as one kind of table"
        raise TypeError(f"{problem}, {fix}")
    frames = {k: _frame(v) for k, v in sources.items()}

    def back(filled: Any) -> Any:
        """Convert each view to its original library, and new views to that of the first."""
        import narwhals as nw

        views, library = {}, example.implementation
        for k, new in items(filled):
            if k in sources:
                views[k] = _back(sources[k], frames[k], new)
            else:
                columns = {c.name: c for c in _series(example, new)}
                views[k] = nw.DataFrame.from_dict(columns, backend=library).to_native()
        return replaced(filled, views)

    return replaced(X, frames), back


def _narwhals(name: Any, table: Any) -> Any:
    """Wrap a table or column in narwhals; columns without a type hold numbers."""
    if find_spec("narwhals") is None:
        library = type(table).__module__.split(".")[0]
        fix = "pip install narwhals, or pass frames of pandas"
        raise ImportError(f"a table of {library} needs narwhals: {fix}")
    import narwhals as nw

    try:
        wrapped = nw.from_native(table, eager_only=True, allow_series=True)
    except TypeError:
        fix = "pass tables of pandas, polars or pyarrow, of a lazy one what its collect() gives"
        raise TypeError(f"cannot read views from {type(table).__name__}; {fix}") from None
    except nw.exceptions.DuplicateError as e:
        reason = " ".join(str(e).split())
        raise ValueError(f"view {name!r} has duplicated columns ({reason}); rename them") from None
    if INDEX in getattr(wrapped, "columns", ()):
        fix = "drop the column, or pass to_pandas() of each table to join them by it"
        raise ValueError(f"view {name!r} has a column {INDEX!r}, the index of a frame; {fix}")
    if isinstance(wrapped, nw.Series):
        return wrapped
    untyped = [
        c for c in wrapped.iter_columns() if c.dtype == nw.Unknown and c.null_count() == len(c)
    ]
    return wrapped.with_columns(*(c.cast(nw.Float64) for c in untyped))


def _frame(table: Any) -> pd.DataFrame | pd.Series:
    if not hasattr(table, "iter_columns"):
        return pd.Series(_column(table), name=table.name)
    columns = {c.name: _column(c) for c in table.iter_columns()}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(table)))


def _column(c: Any) -> Any:
    """Convert a column to pandas; integers and booleans stay so where some are missing."""
    kind, dtype = str(c.dtype), c.dtype
    if dtype.is_float() or dtype.is_temporal():
        return c.to_numpy()
    wide = kind in ("Int128", "UInt128")  # unknown to numpy
    if (dtype.is_integer() and not wide) or kind == "Boolean":
        whole = kind.replace("Boolean", "boolean")
        return pd.array(c.to_list(), dtype=whole) if c.null_count() else c.to_numpy()
    if kind == "Categorical" or kind.startswith("Enum"):
        return pd.Categorical(c.to_list(), getattr(dtype, "categories", None))
    return pd.Series(c.to_list(), dtype=object)


def _back(table: Any, before: Any, filled: Any) -> Any:
    """Write the changed columns into the table, in its own types."""
    if isinstance(filled, pd.Series):
        frame = filled.to_frame(table.name)
        return _back(table.to_frame(), before.to_frame(table.name), frame)[table.name]
    floats = [c for c in before if filled[c].dtype.kind == "f" and not table[c].dtype.is_float()]
    table = table.with_columns(*_series(table, filled[floats]))  # values on another scale
    absent = filled[[c for c in filled.columns if c not in before]]
    changed = filled[[c for c in before if not filled[c].equals(before[c])]].copy()
    for c in [c for c in changed if table[c].dtype.is_decimal()]:  # rounded, to fit the column
        own = table[c].to_native()
        kind = own.type if table.implementation.is_pyarrow() else own.dtype
        changed[c] = decimals(changed[c], kind.scale, kind.precision)
    native = table.with_columns(*_series(table, changed)).to_native()
    native = native.cast(table.to_native().schema)
    if floats and table.implementation.is_pyarrow():  # its schema for pandas is outdated
        native = native.replace_schema_metadata(None)
    if absent.empty:
        return native
    import narwhals as nw

    return nw.from_native(native).with_columns(*_series(table, absent)).to_native()


def _series(like: Any, frame: pd.DataFrame) -> list[Any]:
    """Convert columns of a frame without missing cells to the library of `like`."""
    import narwhals as nw

    plain = {str(k): c.to_numpy() if is_plain(c.dtype) else c.tolist() for k, c in frame.items()}
    return [nw.new_series(k, x, backend=like.implementation) for k, x in plain.items()]
