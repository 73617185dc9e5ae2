"""Files of records: one JSON object a line.

Scripts append to `records.jsonl`. What is kept in the repository is `records.jsonl.xz` beside it,
made by `python -m vedute_bench.runner.pack`; its records come first. A last line that was cut off
while it was written does not count.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from vedute import io
from vedute.data.limits import plain_file

Line = dict[str, Any]
PACKED = ".xz"


def packed(path: Path) -> Path:
    """records.jsonl -> records.jsonl.xz"""
    return path if path.suffix == PACKED else path.with_name(path.name + PACKED)


def exist(path: Path) -> bool:
    return path.exists() or packed(path).exists()


def raw(path: Path) -> list[bytes]:
    """The whole lines of a file and of its packed part."""
    found: list[bytes] = []
    if packed(path).exists():
        found += lzma.decompress(plain_file(packed(path)).read_bytes()).split(b"\n")[:-1]
    if path.suffix != PACKED and path.exists():
        found += plain_file(path).read_bytes().split(b"\n")[:-1]
    return [line for line in found if line.strip()]


def read(path: Path) -> list[Line]:
    """The objects in a file; none where there is no file."""
    return [json.loads(line) for line in raw(path)]


def write(path: Path, records: Iterable[Line]) -> None:
    """Replace a file and its packed part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with io.atomic_file(path, force=True) as part:
        part.write_bytes(b"".join(map(line, records)))
    packed(path).unlink(missing_ok=True)


def pack(path: Path, records: Iterable[Line]) -> None:
    """Replace a file by a packed one: the same records give the same bytes."""
    content = lzma.compress(b"".join(map(line, records)), preset=9 | lzma.PRESET_EXTREME)
    with io.atomic_file(packed(path), force=True) as part:
        part.write_bytes(content)
    if path.suffix != PACKED:
        path.unlink(missing_ok=True)


def line(record: Line) -> bytes:
    return json.dumps(record, allow_nan=False).encode() + b"\n"
