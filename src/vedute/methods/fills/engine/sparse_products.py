"""Concatenated views, some of them sparse: a matrix represented by its products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data.sparse_view import Sparse

Array = NDArray[Any]


class Products(NamedTuple):
    """A matrix x given by its shape and products: x b = times(b), x' u = across(u)."""

    shape: tuple[int, int]
    times: Callable[[Array], Array]
    across: Callable[[Array], Array]

    def __matmul__(self, b: Array) -> Array:
        return self.times(b)

    @property
    def T(self) -> Products:  # noqa: N802
        return Products(self.shape[::-1], self.across, self.times)


@dataclass(frozen=True, eq=False)
class SideBySide:
    """L parts (n, width_v), concatenated to (n, p)."""

    parts: tuple[Array | Sparse, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.parts[0]), sum(part.shape[1] for part in self.parts)

    @property
    def dtype(self) -> Any:
        return np.result_type(*(p.own if isinstance(p, Sparse) else p for p in self.parts))

    @property
    def T(self) -> Products:  # noqa: N802
        return Products(self.shape[::-1], self._across, self.__matmul__)

    def astype(self, dtype: Any) -> SideBySide:
        kind = torch.float32 if dtype == np.float32 else torch.float64
        return SideBySide(
            tuple(p.to(kind) if isinstance(p, Sparse) else p.astype(dtype) for p in self.parts)
        )

    def __matmul__(self, b: Array) -> Array:
        return np.asarray(sum(_times(part, b[at]) for part, at in self._places()))

    def _across(self, u: Array) -> Array:
        return np.vstack([_across(part, u) for part in self.parts])

    def __getitem__(self, rows: Any) -> SideBySide:
        return SideBySide(tuple(part[rows] for part in self.parts))

    def view(self, v: int) -> SideBySide:
        """The part of view v."""
        return SideBySide(self.parts[v : v + 1])

    def only(self, mask: Array) -> SideBySide:
        """A copy that is zero where mask (n, L) is False."""
        parts = zip(self.parts, mask.T, strict=True)
        return SideBySide(tuple(_only(part, rows) for part, rows in parts))

    def dense(self) -> Array:
        parts = [p.dense().numpy() if isinstance(p, Sparse) else p for p in self.parts]
        return np.hstack(parts)

    def power(self) -> float:
        """The sum of squares."""
        return sum(_power(part) for part in self.parts)

    def _places(self) -> Iterator[tuple[Array | Sparse, slice]]:
        start = 0
        for part in self.parts:
            yield part, slice(start, start + part.shape[1])
            start += part.shape[1]


def _times(part: Array | Sparse, b: Array) -> Array:
    return part.times(b) if isinstance(part, Sparse) else part @ b


def _across(part: Array | Sparse, u: Array) -> Array:
    return part.across(u) if isinstance(part, Sparse) else part.T @ u


def _only(part: Array | Sparse, rows: Array) -> Array | Sparse:
    return part.only(rows) if isinstance(part, Sparse) else np.where(rows[:, None], part, 0.0)


def _power(part: Array | Sparse) -> float:
    if not isinstance(part, Sparse):
        return float(np.vdot(part, part))
    return float(part.sums(0, 2).sum()) + float(part.others() @ part.rest**2)
