"""The table of the simple fills: all views concatenated, with equal weights.

A column is (scaled value - mean) / (sqrt(width of the view) * typical deviation of the view); the
deviation is 1 under standard scaling. Zero is the mean, and the squared error summed over a view is
its mean squared error in standard deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data.compressed import Compressed
from vedute.data.holdout import choose
from vedute.data.rows import is_sparse
from vedute.data.scaling import Scaler
from vedute.data.views import Views

Array = NDArray[Any]


class Part(NamedTuple):
    """One view in the table.

    x     (n, width) float32, zero where missing
    seen  (n, 1) bool, or (n, width) where the view has holes
    """

    x: Array
    seen: Array

    @property
    def holed(self) -> bool:
        return self.seen.shape != (len(self.x), 1)


def parts(data: Views, scalers: Sequence[Scaler]) -> list[Part]:
    """The table of `data`, view by view."""
    data, table = data.floating(), []
    for v, scaler in enumerate(scalers):
        flat = len(data), scaler.mean.size
        observed = data.seen(v).numpy().reshape(flat)
        centered = (data.x[v].numpy().reshape(flat) - scaler.mean.ravel()) * _weight(scaler)
        seen = data.mask[:, [v]].numpy() if data.holes[v] is None else observed
        table.append(Part(np.where(observed, centered, 0.0).astype(np.float32), seen))
    return table


@dataclass(frozen=True, eq=False)
class Table:
    """x (n, p) float64, zero where missing; mask (n, L); holes (n, p) or None; widths (L,).

    If views are large and sparse, and have no holes, x is represented by its products.
    """

    x: Any  # Array | Compressed
    mask: Array
    holes: Array | None
    widths: tuple[int, ...]

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Table:
        mask = np.stack([p.seen.any(1) for p in parts], axis=1)
        x = np.hstack([p.x for p in parts], dtype=np.float64)
        table = cls(x, mask, None, tuple(p.x.shape[1] for p in parts))
        if not any(p.holed for p in parts):
            return table
        seen = np.hstack([np.broadcast_to(p.seen, p.x.shape) for p in parts])
        return replace(table, holes=table.spread(mask) & ~seen)

    @classmethod
    def of_views(cls, data: Views, scalers: Sequence[Scaler]) -> Table:
        """The table of `data`; by products where a view is large and sparse, and none has holes,
        which need arrays."""
        sparse = [
            is_sparse(x) and bool(m.any()) for x, m in zip(data.parts, data.mask.T, strict=True)
        ]
        if not any(sparse) or any(holes is not None for holes in data.hole_parts):
            return cls.of(parts(data, scalers))
        data = data.floating()
        x = [x if is_sparse(x) else x[:].flatten(1) for x in data.parts]
        zeros = [
            scaler.zeros if is_sparse(x) else np.zeros(scaler.mean.size, np.float32)
            for x, scaler in zip(data.parts, scalers, strict=True)
        ]
        shift = np.concatenate([scaler.mean.ravel() for scaler in scalers])
        factor = np.concatenate([np.full(s.mean.size, _weight(s)) for s in scalers])
        table = Compressed.of(x, zeros, data.mask).affine(shift, factor)
        return cls(table, table.mask, None, table.widths)

    @property
    def compressed(self) -> bool:
        return isinstance(self.x, Compressed)

    def __getitem__(self, rows: Array | slice) -> Table:
        holes = None if self.holes is None else self.holes[rows]
        return replace(self, x=self.x[rows], mask=self.mask[rows], holes=holes)

    def dense(self) -> Table:
        return replace(self, x=self.x.dense()) if self.compressed else self

    def of_view(self, v: int) -> Any:
        """x of view v, (n, width_v)."""
        return self.x.view(v) if self.compressed else self.x[:, self.places[v]]

    def spread(self, flags: Array) -> Array:
        """Repeat flags of views (n, L) for their features, (n, p)."""
        return np.repeat(flags, self.widths, axis=1)

    def seen(self) -> Array:
        observed = self.spread(self.mask)
        return observed if self.holes is None else observed & ~self.holes

    def only(self, mask: Array) -> Table:
        """The table without the views where mask (n, L) is False."""
        mask = self.mask & mask
        if self.compressed:
            return replace(self, x=self.x.only(mask), mask=mask)
        observed = self.spread(mask)
        holes = None if self.holes is None else self.holes & observed
        return replace(self, x=np.where(observed, self.x, 0.0), mask=mask, holes=holes)

    def without(self, v: int, rows: Array) -> Table:
        """Rows with view v missing."""
        return self[rows].only(np.arange(len(self.widths)) != v)

    def chosen_to_hide(self, groups: torch.Tensor | None = None) -> Array | None:
        """A tenth of the observed views to hide, (n, L); None if none can be."""
        holes = None if self.holes is None else torch.from_numpy(self.holes)
        by_view = () if holes is None else [holes[:, at] for at in self.places]
        hidden = choose(torch.from_numpy(self.mask), 1, groups=groups, holes=by_view)
        return None if hidden is None else hidden.numpy()

    @cached_property
    def groups(self) -> list[tuple[Array, Array]]:
        """Patterns of observed views (L,), each with its rows."""
        patterns, kind = np.unique(self.mask, axis=0, return_inverse=True)
        return [(p, np.flatnonzero(kind.ravel() == k)) for k, p in enumerate(patterns)]

    @cached_property
    def places(self) -> list[slice]:
        """The columns of each view."""
        ends = np.cumsum(self.widths).tolist()
        return [slice(end - width, end) for end, width in zip(ends, self.widths, strict=True)]


def values(table: Array, scalers: Sequence[Scaler], draws: int = 0) -> list[Array]:
    """The table (n, p) -> L arrays (draws or 1, n, *shape_v) in scaled units."""
    out, edges = [], np.cumsum([s.mean.size for s in scalers])[:-1]
    for x, scaler in zip(np.split(table, edges, axis=1), scalers, strict=True):
        flat = x / _weight(scaler) + scaler.mean.ravel()
        view = flat.astype(np.float32).reshape(1, len(x), *scaler.mean.shape)
        out.append(view if draws < 2 else np.broadcast_to(view, (draws, *view.shape[1:])))
    return out


def _weight(scaler: Scaler) -> float:
    varying = scaler.std[scaler.std > 0]
    typical = np.sqrt((varying**2).mean()) if varying.size else 1.0
    return float(1.0 / (typical * np.sqrt(scaler.std.size)))
