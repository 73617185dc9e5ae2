"""Files that commands write: views as .npz, one row per sample as .npz or .csv."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from vedute import io
from vedute.io import spreadsheet

Write = Callable[[io.Array | None, Mapping[str, io.Array]], None]


@contextmanager
def guarded_ids(safe: bool) -> Iterator[None]:
    """Formulas among the ids of .csv files stand behind an apostrophe where `safe`, else they are
    mentioned once."""
    with spreadsheet.guarded(safe) as found:
        yield
    if found:
        print(
            f"vedute: ids like {found[0]!r} are formulas to a spreadsheet; --safe-csv puts an "
            "apostrophe before them",
            file=sys.stderr,
        )


@contextmanager
def npz(out: Path, force: bool) -> Iterator[Path]:
    """Where to write what becomes `out`; refused before any work is done."""
    with _new(out, force, [".npz"]) as part:
        yield part


@contextmanager
def table(out: Path, force: bool) -> Iterator[Write]:
    """A function that writes ids (or row numbers) and columns."""
    with _new(out, force, list(io.TABLES)) as part:

        def write(ids: io.Array | None, columns: Mapping[str, io.Array]) -> None:
            n = len(next(iter(columns.values())))
            rows = np.arange(n) if ids is None else ids
            io.TABLES[out.suffix.lower()](part, {"ids": rows, **columns})

        yield write


@contextmanager
def _new(out: Path, force: bool, endings: list[str]) -> Iterator[Path]:
    if out.suffix.lower() not in endings:
        raise ValueError(f"OUT must end in {' or '.join(endings)}, got {out}")
    with io.atomic_file(out, force) as part:
        yield part
    print(f"wrote {out}")
