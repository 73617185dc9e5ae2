"""Properties of answers, on drawn data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Context, Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.random import Generator
from pyarrow import parquet

from soak.inputs import pick
from vedute import io
from vedute.data.views import Entry

SIZE = 40
BATCHES, QUICK = 25, range(3)
ROWS = 12
EXACT = Context(prec=100)
SCALES = (1e-30, 1e-3, 1.0, 1e6, 1e30)
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
KINDS = (*INTEGERS, "float16", "float32", "float64", "decimal", "bool", "text", "kind")


def cases(batch: int) -> Iterator[tuple[str, Callable[[Path], str]]]:
    for seed in range(batch * SIZE, (batch + 1) * SIZE):
        for name, holds in PROPERTIES.items():
            yield f"{name}-{seed}", partial(holds, seed)


def observed_cells_stay(seed: int, place: Path) -> str:
    """Whatever is written into gaps, each observed cell comes back as it was, in its type."""
    rng = np.random.default_rng([7, seed])
    kind = pick(
        rng, (*INTEGERS, "float16", "float32", "float64", "decimal", "bool", "text", "kind")
    )
    gaps = rng.random(ROWS) < 0.4
    gaps[:2] = False, True
    array = _column(rng, kind, gaps)
    table = pa.table({"id": [f"p{i}" for i in range(ROWS)], "x": array, "y": rng.normal(size=ROWS)})
    door = pick(rng, [*DOORS])
    after = DOORS[door](rng, table, place)
    for old, new in zip(array.to_pylist(), after, strict=True):
        assert not pd.isna(new), f"{kind} of {door}: a cell is still missing"
        same = old is None or (type(old), repr(old)) == (type(new), repr(new))
        assert same, f"{kind} of {door}: {old!r} became {new!r}"
    return f"{door}: kept"


def _column(rng: Generator, kind: str, gaps: Any) -> pa.Array:
    """Cells over the whole range of a type."""
    if kind in INTEGERS:
        info = np.iinfo(kind)
        return pa.array(rng.integers(info.min, info.max, ROWS, kind, endpoint=True), mask=gaps)
    if kind == "decimal":
        digits = int(rng.integers(3, 39))
        places = int(rng.integers(0, digits))
        whole = [int("".join(map(str, rng.integers(0, 10, digits)))) for _ in gaps]
        cells = [Decimal(pick(rng, (1, -1)) * x).scaleb(-places, EXACT) for x in whole]
        return _with(cells, gaps, pa.decimal128(digits, places))
    if kind == "bool":
        return pa.array(rng.random(ROWS) < 0.5, mask=gaps)
    if kind == "kind":
        return _with([pick(rng, "abc") for _ in gaps], gaps).dictionary_encode()
    values = rng.normal(size=ROWS) * pick(rng, SCALES[1:3])
    if kind == "text":
        return _with([f"{x:.5f}0" for x in values], gaps)
    return pa.array(values.astype(kind), mask=gaps)


def _with(cells: list[Any], gaps: Any, kind: Any = None) -> pa.Array:
    return pa.array([None if gap else x for gap, x in zip(gaps, cells, strict=True)], kind)


def _filled(rng: Generator, entry: Entry) -> Any:
    """A copy with anything in its gaps."""
    return entry.filled([rng.normal(size=x.shape) * pick(rng, SCALES) for x in entry.views.x])


def _arrow(rng: Generator, table: Any, place: Path) -> list[Any]:
    filled = _filled(rng, Entry.of(table.drop(["id"])))
    assert filled.schema == table.drop(["id"]).schema, "another schema"
    return filled["x"].to_pylist()


def _polars(rng: Generator, table: Any, place: Path) -> list[Any]:
    X = pl.from_arrow(table.drop(["id"]))
    filled = _filled(rng, Entry.of(X))
    assert filled.schema == X.schema, "another schema"
    return filled["x"].to_list()


def _pandas(rng: Generator, table: Any, place: Path) -> list[Any]:
    """Columns of arrow in a frame, but for categories."""
    known = {} if pa.types.is_dictionary(table["x"].type) else {"types_mapper": pd.ArrowDtype}
    X = table.drop(["id"]).to_pandas(**known)
    filled = _filled(rng, Entry.of(X))
    assert (filled.dtypes == X.dtypes).all(), "another type"
    return filled["x"].tolist()


def _objects(rng: Generator, table: Any, place: Path) -> list[Any]:
    X = pd.DataFrame({"x": pd.Series(table["x"].to_pylist(), dtype=object), "y": table["y"]})
    X = X.astype({"x": "category"}) if pa.types.is_dictionary(table["x"].type) else X
    return _filled(rng, Entry.of(X))["x"].tolist()


def _parquet(rng: Generator, table: Any, place: Path) -> list[Any]:
    parquet.write_table(table, place / "d.parquet")
    data = io.read(place / "d.parquet", io.Reading({"v": ["x", "y"]}, one_hot=True))
    io.write_views(place / "out.parquet", data, _filled(rng, io.enter(data)))
    filled = parquet.read_table(place / "out.parquet")
    assert filled.schema.types == table.schema.types, "another schema"
    return filled["x"].to_pylist()


DOORS: dict[str, Callable[[Generator, Any, Path], list[Any]]] = {
    "arrow": _arrow, "polars": _polars, "pandas": _pandas, "objects": _objects, "parquet": _parquet,
}  # fmt: skip
PROPERTIES: dict[str, Callable[[int, Path], str]] = {"observed_cells_stay": observed_cells_stay}
