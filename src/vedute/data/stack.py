"""Arrays in memory whose rows come some at a time: written where they stay, never held twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Stack:
    """An array (n, *shape); what comes first says its shape and dtype, and is taken as it is where
    it is all."""

    def __init__(self, n: int) -> None:
        self.n, self.written = n, 0
        self._array: Array | None = None

    def add(self, rows: Array) -> None:
        """The next rows."""
        start, self.written = self.written, self.written + len(rows)
        if self._array is None and len(rows) == self.n:
            self._array = rows
            return
        if self._array is None:
            self._array = np.empty((self.n, *rows.shape[1:]), rows.dtype)
        self._array[start : self.written] = rows

    @property
    def array(self) -> Array:
        """All rows, once they were added."""
        assert self._array is not None
        return self._array


def stacked(n: int, parts: Iterable[Array]) -> Array:
    """Parts (n_i, *shape) of an array of n rows, one below the other; at least one."""
    whole = Stack(n)
    for part in parts:
        whole.add(part)
    return whole.array
