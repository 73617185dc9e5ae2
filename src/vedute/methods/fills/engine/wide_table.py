"""The table of the simple fills: all views concatenated, with equal weights.

A column is (scaled value - mean) / (sqrt(width of the view) * typical deviation of the view); the
deviation is 1 under standard scaling. Zero is the mean, and the squared error summed over a view is
its mean squared error in standard deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedute.data.compressed import Compressed
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


def compressed(data: Views, scalers: Sequence[Scaler]) -> Compressed | None:
    """The table in float64 where a view is large and sparse, and none has holes, which need
    arrays."""
    sparse = [is_sparse(x) and bool(m.any()) for x, m in zip(data.parts, data.mask.T, strict=True)]
    if not any(sparse) or any(holes is not None for holes in data.hole_parts):
        return None
    data = data.floating()
    parts = [x if is_sparse(x) else x[:].flatten(1) for x in data.parts]
    zeros = [
        scaler.zeros if is_sparse(x) else np.zeros(scaler.mean.size, np.float32)
        for x, scaler in zip(data.parts, scalers, strict=True)
    ]
    shift = np.concatenate([scaler.mean.ravel() for scaler in scalers])
    factor = np.concatenate([np.full(s.mean.size, _weight(s)) for s in scalers])
    return Compressed.of(parts, zeros, data.mask).affine(shift, factor)


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
