"""Records of runs: one JSON line each, appended whole, so that a killed study goes on where it
was."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RunRecord = dict[str, Any]


def read(path: Path) -> list[RunRecord]:
    """All records in a file; a last line that was cut off while it was written does not count."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; `vedute bench` writes such files")
    lines = path.read_bytes().split(b"\n")
    return [_parse(line, i, path) for i, line in enumerate(lines[:-1]) if line.strip()]


def append(path: Path, record: RunRecord) -> None:
    """Add a record to the end of a file, on the disk when this returns."""
    line = json.dumps(record, allow_nan=False) + "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def mend(path: Path) -> None:
    """Remove a last line that was cut off."""
    whole = path.read_bytes().rfind(b"\n") + 1
    if whole < path.stat().st_size:
        os.truncate(path, whole)


def best_pair(records: Iterable[RunRecord]) -> tuple[str, str] | None:
    """The pair of views with the highest score of those that were tried; None where none was."""
    tried = [(-r["pair_score"], tuple(r["pair"])) for r in records if "pair_score" in r]
    return min(tried)[1] if tried else None


def _parse(line: bytes, i: int, path: Path) -> RunRecord:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict) or "scores" not in record:
        raise ValueError(f"line {i + 1} of {path} is no record; `vedute bench` writes them")
    return record
