"""Records of runs, one JSON line each, appended atomically so that a killed study can continue.

A run that failed has a record, too: `failed` gives the reason, and tables leave it out.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from vedute.data.limits import plain_file
from vedute_bench.runner import lines

RunRecord = dict[str, Any]
BERNOULLI = "bernoulli"  # the protocol of records that name none
PAIR_SCORES = ("pair_score", "pair_silhouette")


def read(path: Path) -> list[RunRecord]:
    """Read the records of all successful runs."""
    return finished(read_all(path))


def read_all(path: Path) -> list[RunRecord]:
    """Read all records in a file and in its packed part."""
    if not lines.exist(path):
        raise FileNotFoundError(f"{path} does not exist; `vedute bench` writes such files")
    return [_parse(line, i, path) for i, line in enumerate(lines.raw(path))]


def finished(records: Iterable[RunRecord]) -> list[RunRecord]:
    return [r for r in records if "failed" not in r]


def append(path: Path, record: RunRecord) -> None:
    """Append a record and flush it to disk; call this under the file's lock.

    An incomplete last line is removed first.
    """
    line = lines.line(record)
    whole = plain_file(path).read_bytes().rfind(b"\n") + 1 if path.exists() else 0
    with path.open("ab") as file:
        file.truncate(whole)
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def without_nan(record: RunRecord) -> RunRecord:
    """Return the record, or the record of a failure if a score is not finite."""
    scores = record["scores"] | {k: record[k] for k in PAIR_SCORES if k in record}
    wrong = [name for name, value in scores.items() if not math.isfinite(value)]
    if not wrong:
        return record
    kept = {k: v for k, v in record.items() if k not in (*PAIR_SCORES, "subsets")}
    return kept | {"scores": {}, "failed": f"score {wrong[0]} is not finite"}


def best_pair(records: Iterable[RunRecord]) -> tuple[str, str] | None:
    """Pair of views with the highest score, or None without scores.

    Ties are broken by the silhouette, which old records lack.
    """
    tried = [
        (-r["pair_score"], -r.get("pair_silhouette", 0.0), tuple(r["pair"]))
        for r in records
        if "pair_score" in r
    ]
    return min(tried)[2] if tried else None


def _parse(line: bytes, i: int, path: Path) -> RunRecord:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or "scores" not in record:
        raise ValueError(f"line {i + 1} of {path} is not a record; `vedute bench` writes them")
    return record
