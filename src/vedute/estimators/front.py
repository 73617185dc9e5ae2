"""Principal components of wide sparse views, the input of networks for text and counts.

Most of thousands of words are rare and carry little information; a network with all of them as
inputs overfits the noise of few samples. With m the mean, B (width, k) the
leading components of the scaled view and s the root of their mean variance,

    narrow = (x - m) B / s          wide = m + s narrow B'

Components keep their sizes: the leading ones stay the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import qr
from sklearn.utils.extmath import randomized_svd
from torch import Tensor

from vedute.data.compressed import Compressed
from vedute.data.holdout import HoldOut
from vedute.data.rows import in_file, pieces
from vedute.data.views import Views
from vedute.estimators.fitted_view import FittedView

Array = NDArray[Any]
MIN_RATIO = 2  # of columns to components
OVERSAMPLING = 10  # extra directions
MAX_SAMPLES = 20_000  # samples on the disk that components are learned from


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components: mean (width,), basis (width, k), scale."""

    mean: Array
    basis: Array
    scale: float

    @classmethod
    def of(cls, x: Array | Compressed, most: int, seed: int) -> Components:
        """Find at most `most` components of x (n, width), whose rows are all observed, with a size
        above rounding."""
        if isinstance(x, np.ndarray):
            mean = x.mean(0)
            _, size, axes = randomized_svd(x - mean, most, random_state=seed)
        else:
            mean = x.mean()
            size, axes = _decomposed(replace(x, rest=x.rest - mean), most, seed)
        kept = size > 1e-6 * max(float(size[0]), 1e-12)
        scale = float(np.sqrt((size[kept] ** 2).mean() / x.shape[0])) if kept.any() else 1.0
        basis = axes[kept].T if kept.any() else axes[:1].T
        return cls(mean.astype(np.float32), np.ascontiguousarray(basis, np.float32), scale)

    def narrow(self, x: Tensor) -> Tensor:
        """Project (n, width) -> (n, k)."""
        mean, basis = (torch.from_numpy(a).to(x) for a in (self.mean, self.basis))
        return (x - mean) @ basis / self.scale

    def widen(self, x: Array) -> Array:
        """Reconstruct (..., k) -> (..., width)."""
        return np.asarray(self.mean + self.scale * (x @ self.basis.T), np.float32)


def _decomposed(x: Compressed, k: int, seed: int) -> tuple[Array, Array]:
    """Return the k leading singular values and right vectors (k, width), as `randomized_svd` from
    the same start in as many iterations, without making x dense."""
    n, width = x.shape
    forward, back = (x.across, x.__matmul__) if n < width else (x.__matmul__, x.across)
    start = np.random.RandomState(seed).normal(size=(min(n, width), k + OVERSAMPLING))
    basis = start.astype(np.float32)
    for _ in range(7 if k < 0.1 * min(n, width) else 4):
        basis = _orthonormal(back(_orthonormal(forward(basis))))
    basis = _orthonormal(forward(basis))
    short, size, turn = np.linalg.svd(back(basis), full_matrices=False)
    left, right = (short, basis @ turn.T) if n < width else (basis @ turn.T, short)
    signs = np.sign(left[np.abs(left).argmax(0), np.arange(len(size))])
    return size[:k], (right * signs).T[:k]


def _orthonormal(x: Array) -> Array:
    return np.asarray(qr(x, mode="economic", check_finite=False)[0])


Front = Sequence[Components | None]  # one per view; None: the view itself


def learn(views: Sequence[FittedView], data: Views, most: int | None, seed: int) -> list[Any]:
    """Learn components of wide views whose rows were divided by their size."""
    front: list[Components | None] = [None] * len(views)
    for v, view in enumerate(views):
        rows, scaler = data.mask[:, v], view.scaler
        wide = most is not None and scaler.power and scaler.mean.size > MIN_RATIO * most
        if most is not None and wide and int(rows.sum()) > 1:
            rows = rows.nonzero()[:MAX_SAMPLES, 0] if data.on_disk else rows
            x = data.pick(v)[rows].parts[0]
            k, all_rows = min(most, len(x)), torch.ones(len(x), 1, dtype=torch.bool)
            known = Compressed.of([x], [scaler.zeros], all_rows) if x.is_sparse else x[:].numpy()
            front[v] = Components.of(known, k, seed % 2**32)
    return front


def narrow(front: Front, data: Views) -> Views:
    """Convert data to the input of networks; holes of narrow views are at the mean."""
    if not any(front):
        return data
    x, holes = list(data.parts), list(data.hole_parts)
    for v, part in enumerate(front):
        if part is not None:
            view, project = data.parts[v], partial(_narrowed, part, data.mask[:, [v]])
            if in_file(view):
                x[v] = view.then(project, None, part.basis.shape[1])
            else:
                x[v] = torch.cat([project(view[rows], rows) for rows in pieces(view)])
            holes[v] = None
    return replace(data, x=x, holes=holes, specs=None)


def _narrowed(part: Components, seen: Tensor, x: Tensor, rows: Any) -> Tensor:
    """Project x (n, width) -> (n, k), zero where it is not observed (n, 1)."""
    return part.narrow(x).masked_fill(~seen[rows], 0.0)


def narrow_held(front: Front, held: HoldOut, device: torch.device) -> HoldOut:
    """Convert hidden views to their components, on a device and without groups."""
    means, weights = list(held.means), list(held.weights)
    for v, part in enumerate(front):
        if part is not None:
            means[v], weights[v] = torch.zeros(part.basis.shape[1]), torch.ones(part.basis.shape[1])
        means[v], weights[v] = means[v].to(device), weights[v].to(device)
    inputs, truth = narrow(front, held.inputs).to(device), narrow(front, held.truth).to(device)
    return HoldOut(inputs, truth, None, tuple(means), tuple(weights))
