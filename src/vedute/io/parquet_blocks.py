"""A folder with one .parquet file per view, written some rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vedute.data import fill
from vedute.data.frames import ViewSpec
from vedute.data.views import Views
from vedute.io.data import Array
from vedute.io.parquet import needs_pyarrow
from vedute.io.paths import below

NUMBERS = 2**22  # that wait for others, to be written as one group of rows


def check(out: Path, specs: Sequence[ViewSpec]) -> None:
    """Refuse what cannot be written, before any work is done."""
    needs_pyarrow(out)
    for spec in specs:
        if len(spec.shape) > 1:
            raise ValueError(
                f"view {spec.name!r} holds arrays of shape {spec.shape}, which are no rows of a "
                "table; leave out --format parquet to write a store"
            )


class Writer:
    """Blocks of rows become tables in `folder`, which exists; ids are their index."""

    def __init__(self, folder: Path, id_name: str | None) -> None:
        self.folder, self.id_name = folder, id_name or "id"
        self.files, self.tables = ExitStack(), dict[str, _Table]()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self.files.close()

    def add(self, views: Views, ids: Array) -> None:
        """The next rows, which lack nothing but the ends of intervals of categories."""
        index = pd.Index(ids, name=self.id_name)
        for v, spec in enumerate(views.specs or ()):
            if spec.name not in self.tables:
                path = below(self.folder, spec.name, ".parquet")
                self.tables[spec.name] = self.files.enter_context(_Table(path))
            self.tables[spec.name].add(_frame(views.filled(v), spec).set_axis(index))


def _frame(x: Array, spec: ViewSpec) -> pd.DataFrame:
    """The columns, dtypes and categories of the data; columns without names are numbered."""
    found = fill.as_fitted(x, spec)
    return found if isinstance(found, pd.DataFrame) else pd.DataFrame(found).rename(columns=str)


class _Table:
    """One file; the first rows say which columns it has."""

    def __init__(self, path: Path) -> None:
        self.path, self.waiting, self.numbers = path, list[Any](), 0
        self.file: Any = None

    def __enter__(self) -> _Table:
        return self

    def __exit__(self, *error: object) -> None:
        self._write()
        if self.file is not None:
            self.file.close()

    def add(self, frame: pd.DataFrame) -> None:
        from pyarrow import Table

        schema = self.waiting[0].schema if self.waiting else None
        schema = schema if self.file is None else self.file.schema
        self.waiting.append(Table.from_pandas(frame, schema))
        self.numbers += int(np.prod(frame.shape))
        if self.numbers >= NUMBERS:
            self._write()

    def _write(self) -> None:
        from pyarrow import concat_tables
        from pyarrow.parquet import ParquetWriter

        if not self.waiting:
            return
        table = concat_tables(self.waiting)
        if self.file is None:
            self.file = ParquetWriter(self.path, table.schema)
        self.file.write_table(table)
        self.waiting, self.numbers = [], 0
