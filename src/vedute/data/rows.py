"""Blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator


def slices(n: int, size: int) -> Iterator[slice]:
    """Slices of `size` rows that cover n rows, in order."""
    return (slice(start, start + size) for start in range(0, n, size))
