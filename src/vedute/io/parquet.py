"""One table as .parquet: ids are the index that was stored with it, else the first column."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from vedute.data import fill, limits
from vedute.data.escaping import listed
from vedute.data.frames import ViewSpec
from vedute.data.views import Views
from vedute.io import contents
from vedute.io.contents import Array, Bools, Filled, Reading, errors_as
from vedute.io.files import below

VALUE_BYTES = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4}  # per value; other types take 8 or more
ROW_GROUP_VALUES = 2**22  # buffered per group of rows
# Paths are absolute: pandas and pyarrow expand a leading ~ to the home folder.


def needs_pyarrow(path: Path) -> None:
    if find_spec("pyarrow") is None:
        raise ImportError(f"{path} needs pyarrow: pip install 'vedute[parquet]'")


def raw(path: Path, how: Reading) -> pd.DataFrame:
    """Read columns in their own dtypes; the index is ids, as text."""
    return _with_ids(_stored(path), path, how)


def write(
    out: Path, source: Path, filled: pd.DataFrame, missing: Bools, how: Reading, ends: Filled
) -> None:
    """Write the source with the rows of `filled`, and its values where `missing`."""
    from pyarrow import Table, array, parquet

    raw = _stored(source)
    source_ids = _with_ids(raw, source, how).index
    order = contents.own_first(filled.index, source_ids)
    filled, missing = filled.iloc[order], missing[order]
    ids = filled.index.astype(str)
    rows = source_ids.get_indexer(ids)
    table = parquet.read_table(source.absolute()).take(array(rows, mask=rows < 0))
    for j, (name, column) in enumerate(filled.items()):
        if missing[:, j].any():
            table = _written(table, str(name), column, missing[:, j])
    if (rows < 0).any():
        table = _with_new_ids(table, raw, ids, how, source)
    for end, frame in ends.items():
        beside = Table.from_pandas(frame.iloc[order].add_prefix(f"{end}_"), preserve_index=False)
        for field, more in zip(beside.schema, beside.columns, strict=True):
            table = table.append_column(field, more)
    parquet.write_table(table, out.absolute())


def _written(table: Any, name: str, new: pd.Series, missing: Bools) -> Any:
    """Fill cells of one column of an arrow table; the others stay bit for bit."""
    from pyarrow import array, compute, float64, types

    at = table.schema.get_field_index(name)
    kind, old, dated = table.schema.types[at], table.column(at), new.dtype.kind == "M"
    if new[missing].isna().all():
        cells = compute.if_else(missing, None, old)
    elif missing.all() and new.dtype.kind == "f" and not types.is_floating(kind):
        cells = array(new.to_numpy())
    elif types.is_temporal(kind):
        dates = array(new.to_numpy()).cast(kind) if dated else array(list(new), kind)
        cells = compute.if_else(missing, dates, old)
    else:
        kind = float64() if types.is_null(kind) else kind
        column = pd.Series(old.cast(kind), dtype=pd.ArrowDtype(kind))
        cells = array(fill.written(column, new, missing), kind)
    return table.set_column(at, name, cells)


def _with_new_ids(table: Any, raw: pd.DataFrame, ids: pd.Index, how: Reading, path: Path) -> Any:
    """Replace the ids of all rows, where some are new: as text if they do not fit the dtype of the
    file, or two would be equal in it; categories lack new ids."""
    from pyarrow import ArrowException, array

    at = _id_place(raw, path, how)
    name = table.schema.pandas_metadata["index_columns"][0] if at < 0 else str(raw.columns[at])
    dtype, converted = raw.index.dtype if at < 0 else raw.dtypes.iloc[at], ids
    if not isinstance(dtype, pd.CategoricalDtype):
        with suppress(TypeError, ValueError, OverflowError):
            converted = ids.astype(dtype)
    column = array((converted if converted.is_unique else ids).to_numpy())
    at = table.schema.get_field_index(name)
    with suppress(ArrowException):
        stored = column.cast(table.schema.types[at])
        if len(stored.unique()) == len(stored):  # else two texts of one moment
            column = stored
    return table.set_column(at, name, column)


def _with_ids(raw: pd.DataFrame, path: Path, how: Reading) -> pd.DataFrame:
    """Move the ids of a table into its index."""
    if not len(raw):
        raise ValueError(f"{path} has no rows; leave it out")
    if raw.index.nlevels > 1:
        names = ", ".join(map(str, raw.index.names))
        raise ValueError(f"{path} has an index of several levels ({names}); make one id of them")
    at = _id_place(raw, path, how)
    if raw.shape[1] < (1 if at < 0 else 2):
        raise ValueError(f"{path} has no columns beside the sample ids; leave it out")
    ids = pd.Series(raw.index) if at < 0 else raw.iloc[:, at]
    if ids.dtype.kind == "f":
        if not ids.dropna().map(lambda x: x % 1 == 0 and abs(x) < 2**53).all():
            what = f"{raw.columns[0]!r}, holds values like {ids.iloc[0]}, not sample ids"
            raise ValueError(f"{path}: the first column, {what}; put ids there")
        ids = ids.astype("Int64")
    index = contents.checked_ids(ids.astype(object).where(ids.notna(), "").astype(str), path)
    frame = raw if at < 0 else raw.drop(columns=raw.columns[at])
    return frame.set_axis(index.rename(ids.name))


def chunks(path: Path, how: Reading, rows: int) -> Generator[pd.DataFrame]:
    """Read `rows` rows per chunk, columns in their own dtypes."""
    _metadata(path)
    from pyarrow import Table
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path.absolute()) as file:
        for batch in file.iter_batches(rows):
            yield _with_ids(Table.from_batches([batch]).to_pandas(), path, how)


def _stored(path: Path) -> pd.DataFrame:
    """Read a file, if its columns fit into memory."""
    metadata = _metadata(path)
    kinds = [metadata.schema.column(j).physical_type for j in range(metadata.num_columns)]
    stored = sum(metadata.row_group(g).total_byte_size for g in range(metadata.num_row_groups))
    limits.check(max(stored, metadata.num_rows * sum(VALUE_BYTES.get(k, 8) for k in kinds)), path)
    with errors_as(f"{path} is not a parquet file"):
        return pd.read_parquet(path.absolute())


def _metadata(path: Path) -> Any:
    """Read the footer of a file. Reject two columns of one name, which pandas cannot read."""
    needs_pyarrow(path)
    from pyarrow import parquet

    with errors_as(f"{path} is not a parquet file"):
        metadata = parquet.read_metadata(path.absolute())
        names = pd.Index(metadata.schema.to_arrow_schema().names)
    if not names.is_unique:
        twice = names[names.duplicated()].unique()
        raise ValueError(f"{path} has duplicated columns {listed(twice)}; rename them")
    return metadata


def _id_place(frame: pd.DataFrame, path: Path, how: Reading) -> int:
    """Position of the id column; -1 if the ids are the index."""
    named, numbered = frame.index.name == how.id, isinstance(frame.index, pd.RangeIndex)
    in_index = named if how.id is not None else not numbered
    return -1 if in_index else contents.id_column(list(frame.columns), how.id, path)


def check_writable(out: Path, specs: Sequence[ViewSpec]) -> None:
    """Reject views that do not fit a table, before any work is done."""
    needs_pyarrow(out)
    for spec in specs:
        if len(spec.shape) > 1:
            what = f"arrays of shape {spec.shape}, no rows of a table"
            raise ValueError(f"view {spec.name!r} holds {what}; leave out --format parquet")


def write_parquet(path: Path, columns: Mapping[str, Array]) -> None:
    """Write a column per name, (n,) each; a 2-D array takes one per feature."""
    needs_pyarrow(path)
    pd.DataFrame(contents.flat(columns)).to_parquet(path.absolute(), index=False)


class Writer(AbstractContextManager["Writer"]):
    """Writes blocks of rows as tables in `folder`, which exists; ids are their index."""

    def __init__(self, folder: Path, id_name: str | None) -> None:
        self.folder, self.id_name = folder, id_name or "id"
        self.open, self.files = ExitStack(), dict[str, Any]()
        self.waiting = dict[str, list[Any]]()

    def __exit__(self, *error: object) -> None:
        with self.open:
            for name in self.files:
                self._write(name)

    def add(self, views: Views, ids: Array) -> None:
        """Append rows, complete but for the ends of intervals of categories."""
        from pyarrow import Table
        from pyarrow.parquet import ParquetWriter

        index = pd.Index(ids, name=self.id_name)
        for spec, a in zip(views.specs or (), views.arrays(), strict=False):
            x, name = fill.as_fitted(a, spec), spec.name
            frame = x if isinstance(x, pd.DataFrame) else pd.DataFrame(x).rename(columns=str)
            file = self.files.get(name)
            table = Table.from_pandas(frame.set_axis(index), None if file is None else file.schema)
            if file is None:
                file = ParquetWriter(below(self.folder, name, ".parquet"), table.schema)
                self.files[name], self.waiting[name] = self.open.enter_context(file), []
            self.waiting[name].append(table)
            if sum(map(len, self.waiting[name])) * frame.shape[1] >= ROW_GROUP_VALUES:
                self._write(name)

    def _write(self, name: str) -> None:
        """Write the rows that wait as a group."""
        from pyarrow import concat_tables

        if self.waiting[name]:
            self.files[name].write_table(concat_tables(self.waiting[name]))
            self.waiting[name] = []
