"""One table in one file, whatever its ending."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vedute.io import csv, parquet
from vedute.io.contents import Only, Reading, every

TABLE_FORMATS: Mapping[str, ModuleType] = {
    ".csv": csv,
    ".tsv": csv,
    ".csv.gz": csv,
    ".tsv.gz": csv,
    ".parquet": parquet,
}


def ending(path: Path) -> str:
    """Return .csv, .csv.gz, ...; in small letters."""
    last = path.suffix.lower()
    return "".join(path.suffixes[-2:]).lower() if last == ".gz" else last


def stem(path: Path) -> str:
    """Strip the ending from a file name."""
    return path.name[: len(path.name) - len(ending(path))]


def read(path: Path, how: Reading, only: Only = every) -> pd.DataFrame:
    """Read typed columns; the index is ids, as text."""
    frame: pd.DataFrame = TABLE_FORMATS[ending(path)].read(path, how, only)
    return frame


def write(
    out: Path,
    source: Path,
    filled: pd.DataFrame,
    missing: NDArray[np.bool_],
    how: Reading,
    ends: Mapping[str, pd.DataFrame] | None = None,
) -> None:
    """Write the table of `source` with the rows of `filled`, and its values where `missing`."""
    TABLE_FORMATS[ending(source)].write(out, source, filled, missing, how, ends)


def write_new(out: Path, frame: pd.DataFrame) -> None:
    """Write a table that has no source file."""
    TABLE_FORMATS[ending(out)].write_new(out, frame)
