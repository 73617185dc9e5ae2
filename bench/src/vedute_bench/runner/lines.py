"""Files of records with one JSON object per line.

Scripts append to `records.jsonl`. The repository has `records.jsonl.xz` beside it, made by
`python -m vedute_bench.runner.pack`; its records come first. An incomplete last line is ignored.
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
    """Complete lines of a file and of its packed part."""
    lines: list[bytes] = []
    if packed(path).exists():
        lines += lzma.decompress(plain_file(packed(path)).read_bytes()).split(b"\n")[:-1]
    if path.suffix != PACKED and path.exists():
        lines += plain_file(path).read_bytes().split(b"\n")[:-1]
    return [line for line in lines if line.strip()]


def read(path: Path) -> list[Line]:
    """Objects in a file; none if there is no file."""
    return [json.loads(line) for line in raw(path)]


def write(path: Path, records: Iterable[Line]) -> None:
    """Replace a file and its packed part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with io.atomic_file(path, force=True) as part:
        part.write_bytes(b"".join(map(line, records)))
    packed(path).unlink(missing_ok=True)


def pack(path: Path, records: Iterable[Line]) -> None:
    """Replace a file with a packed one; equal records give equal bytes."""
    content = lzma.compress(b"".join(map(line, records)), preset=9 | lzma.PRESET_EXTREME)
    with io.atomic_file(packed(path), force=True) as part:
        part.write_bytes(content)
    if path.suffix != PACKED:
        path.unlink(missing_ok=True)


def line(record: Line) -> bytes:
    return json.dumps(record, allow_nan=False).encode() + b"\n"
