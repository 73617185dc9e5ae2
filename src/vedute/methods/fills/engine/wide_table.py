"""The table of the simple fills: all views concatenated, with equal weights.

A column is (scaled value - mean) / (sqrt(width of the view) * typical deviation of the view); the
deviation is 1 under standard scaling. Zero is the mean, and the squared error summed over a view is
its mean squared error in standard deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress, pairwise, starmap
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data.compressed import Compressed
from vedute.data.holdout import choose
from vedute.data.scaling import Scaler
from vedute.data.views import Views

Array = NDArray[Any]


class Part(NamedTuple):
    """One view in the table."""

    x: Array  # (n, width) float32, zero where missing
    seen: Array  # (n, 1) bool, or (n, width) where the view has holes


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


@dataclass(eq=False)
class Table:
    """x (n, p) float64, zero where missing; mask (n, L); holes (n, p) or None; widths (L,); places
    (L,), the columns of each view.

    If views are large and sparse, and have no holes, x is represented by its products.
    """

    x: Any  # Array | Compressed
    mask: Array
    holes: Array | None
    widths: tuple[int, ...]
    places: list[slice] = field(init=False)
    compressed: bool = field(init=False)

    def __post_init__(self) -> None:
        self.places = [*starmap(slice, pairwise(np.cumsum([0, *self.widths]).tolist()))]
        self.compressed = isinstance(self.x, Compressed)

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Table:
        x, mask, widths, holed = [], [], [], False
        for view, seen in parts:
            x.append(view)
            mask.append(seen.any(1))
            widths.append(view.shape[1])
            holed |= seen.shape[1] > 1
        table = cls(np.hstack(x, dtype=np.float64), np.stack(mask, axis=1), None, tuple(widths))
        if not holed:
            return table
        seen = np.hstack([np.broadcast_to(seen, view.shape) for view, seen in parts])
        return replace(table, holes=table.spread(table.mask) & ~seen)

    @classmethod
    def of_views(cls, data: Views, scalers: Sequence[Scaler]) -> Table:
        """The table of `data`; by products where a view is large and sparse, and none has holes,
        which need arrays."""
        present = compress(data.parts, data.mask.any(0))
        holed = data.hole_parts.count(None) < len(data.hole_parts)
        if holed or not any(map(attrgetter("is_sparse"), present)):
            return cls.of(parts(data, scalers))
        data = data.floating()
        x, zeros, shift, factor = [], [], [], []
        for part, scaler in zip(data.parts, scalers, strict=True):
            thin, mean = part.is_sparse, scaler.mean.ravel()
            x.append(part if thin else part[:].flatten(1))
            zeros.append(scaler.zeros if thin else np.zeros(mean.size, np.float32))
            shift.append(mean)
            factor.append(np.full(mean.size, _weight(scaler)))
        table = Compressed.of(x, zeros, data.mask)
        table = table.affine(np.concatenate(shift), np.concatenate(factor))
        return cls(table, table.mask, None, table.widths)

    def __getitem__(self, rows: Array | slice) -> Table:
        holes = None if self.holes is None else self.holes[rows]
        return replace(self, x=self.x[rows], mask=self.mask[rows], holes=holes)

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
        groups = []
        for k, pattern in enumerate(patterns):
            groups.append((pattern, np.flatnonzero(kind.ravel() == k)))
        return groups


def values(table: Array, scalers: Sequence[Scaler], draws: int = 0) -> list[Array]:
    """The table (n, p) -> L arrays (draws or 1, n, *shape_v) in scaled units."""
    out, start = [], 0
    for scaler in scalers:
        mean, end = scaler.mean, start + scaler.mean.size
        flat = table[:, start:end] / _weight(scaler) + mean.ravel()
        view = flat.astype(np.float32).reshape(1, len(table), *mean.shape)
        out.append(view if draws < 2 else np.broadcast_to(view, (draws, *view.shape[1:])))
        start = end
    return out


def _weight(scaler: Scaler) -> float:
    varying = scaler.std[scaler.std > 0]
    typical = np.sqrt((varying**2).mean()) if varying.size else 1.0
    return float(1.0 / (typical * np.sqrt(scaler.std.size)))
