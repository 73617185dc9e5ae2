"""Cells of a large table, to search the nearest rows in a row's cell and the cells around it.

Every row has scores u, its projection onto the matrix of low rank U V' (see `softimpute`), so rows
that share no view can be compared. A cell contains all rows whose scores are nearest to the same
landmark, one of a few sampled rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.random import Generator
from sklearn.metrics.pairwise import euclidean_distances
from threadpoolctl import threadpool_limits

from vedute.methods.fills.engine import softimpute
from vedute.methods.fills.engine.softimpute import Table
from vedute.methods.fills.engine.wide_table import Array

SAMPLE, RANK = 5000, 32  # rows to fit the matrix of low rank, and its largest rank
LANDMARKS = 128
NEAR = 12_000  # least number of rows in a cell and the cells around it
Cells = dict[str, Array]


def learn(table: Table, rng: Generator) -> Cells:
    """Fit the matrix of low rank, choose landmarks (c, r), and assign a cell to each row, (n,)."""
    subset = np.sort(rng.permutation(len(table.x))[:SAMPLE])
    part = _rows(table, subset)
    with threadpool_limits(1, "blas"):
        best = softimpute.chosen(part, RANK, rng)
        V, threshold = softimpute.refit(part, best.V, best.threshold, rng)
    cells = {"components": V, "threshold": np.array(threshold)}
    scores = _scores(cells, table)
    cells["landmarks"] = scores[np.sort(rng.permutation(len(scores))[:LANDMARKS])]
    return cells | {"cell": _nearest(scores, cells["landmarks"])}


def searches(cells: Cells, queries: Table) -> Iterator[tuple[Array, Array]]:
    """Batches of rows of `queries`, each with the training rows that may be near to all of them."""
    cell_of = _nearest(_scores(cells, queries), cells["landmarks"])
    far = euclidean_distances(cells["landmarks"], squared=True)
    count = np.bincount(cells["cell"], minlength=len(far))
    for c in np.unique(cell_of):
        order = np.argsort(far[c], kind="stable")
        enough = 1 + int(np.searchsorted(count[order].cumsum(), NEAR))
        yield np.flatnonzero(cell_of == c), np.flatnonzero(np.isin(cells["cell"], order[:enough]))


def _scores(cells: Cells, table: Table) -> Array:
    """Scores (n, r), scaled to have the distances of U V'."""
    V = cells["components"]
    scores = softimpute.project(table, V, float(cells["threshold"]))
    return np.asarray(scores * np.linalg.norm(V, axis=0))


def _nearest(scores: Array, landmarks: Array) -> Array:
    """The nearest landmark of each row, (n,)."""
    return np.asarray(euclidean_distances(scores, landmarks, squared=True).argmin(1))


def _rows(table: Table, rows: Array) -> Table:
    holes = None if table.holes is None else table.holes[rows]
    return replace(table, x=table.x[rows], mask=table.mask[rows], holes=holes)
