"""Results with one row per sample: .csv, .parquet or .npz; in the first two, the id column is named
as in the data."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vedute.io.contents import Array
from vedute.io.csv import escaped_id
from vedute.io.files import literal
from vedute.io.parquet import needs_pyarrow


def write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def write_csv(path: Path, columns: Mapping[str, Array]) -> None:
    """Write a column per name, (n,) each; a 2-D array takes one per feature: name0, name1."""
    flat = _flat(columns)
    cells = [
        [*map(_guarded, c.tolist())] if c.dtype.kind in "UO" else c.tolist() for c in flat.values()
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(flat)
        writer.writerows(zip(*cells, strict=True))


def write_parquet(path: Path, columns: Mapping[str, Array]) -> None:
    """Write the columns of `write_csv`."""
    needs_pyarrow(path)
    pd.DataFrame(_flat(columns)).to_parquet(literal(path), index=False)


def _guarded(value: Any) -> Any:
    return escaped_id(value) if isinstance(value, str) else value


def _flat(columns: Mapping[str, Array]) -> dict[str, Array]:
    flat: dict[str, Array] = {}
    for name, a in columns.items():
        flat |= {name: a} if a.ndim == 1 else {f"{name}{d}": c for d, c in enumerate(a.T)}
    return flat


def with_ids(
    ids: Array, name: str | None, columns: Mapping[str, Array], ending: str
) -> dict[str, Array]:
    """Put the id column first, under its name; as `ids` in .npz, or if that name is taken."""
    taken = name in _flat(columns)
    return {"ids" if name is None or taken or ending == ".npz" else name: ids, **columns}


RESULT_FORMATS: Mapping[str, Callable[[Path, Mapping[str, Array]], None]] = {
    ".npz": write_npz,
    ".csv": write_csv,
    ".parquet": write_parquet,
}
