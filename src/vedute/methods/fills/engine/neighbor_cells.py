"""Which rows of a large table may be near to a row: those in its cell and in the cells around it.

Every row has scores u, as the matrix of low rank U V' has them from what the row has (see
`_softimpute`); so rows that share no view can be compared, too. A cell is all rows whose scores are
nearest to those of one of a few rows, the landmarks.
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

SAMPLE, RANK = 5000, 32  # rows that the matrix of low rank is learned from, and its largest rank
LANDMARKS = 128
NEAR = 12_000  # rows, at least, in the cell of a row and those around it
Cells = dict[str, Array]


def learn(table: Table, rng: Generator) -> Cells:
    """The matrix of low rank, landmarks (c, r), and the cell of each row, (n,)."""
    some = np.sort(rng.permutation(len(table.x))[:SAMPLE])
    part = _rows(table, some)
    with threadpool_limits(1, "blas"):
        best = softimpute.chosen(part, RANK, rng)
        V, threshold = softimpute.refit(part, best.V, best.threshold, rng)
    cells = {"components": V, "threshold": np.array(threshold)}
    scores = _scores(cells, table)
    cells["landmarks"] = scores[np.sort(rng.permutation(len(scores))[:LANDMARKS])]
    return cells | {"cell": _nearest(scores, cells["landmarks"])}


def searches(cells: Cells, queries: Table) -> Iterator[tuple[Array, Array]]:
    """Rows of `queries`, and the learned rows that may be near to all of these."""
    own = _nearest(_scores(cells, queries), cells["landmarks"])
    far = euclidean_distances(cells["landmarks"], squared=True)
    count = np.bincount(cells["cell"], minlength=len(far))
    for c in np.unique(own):
        order = np.argsort(far[c], kind="stable")
        enough = 1 + int(np.searchsorted(count[order].cumsum(), NEAR))
        yield np.flatnonzero(own == c), np.flatnonzero(np.isin(cells["cell"], order[:enough]))


def _scores(cells: Cells, table: Table) -> Array:
    """(n, r), with the distances of U V'."""
    V = cells["components"]
    scores = softimpute.project(table, V, float(cells["threshold"]))
    return np.asarray(scores * np.linalg.norm(V, axis=0))


def _nearest(scores: Array, landmarks: Array) -> Array:
    """The nearest landmark of each row, (n,)."""
    return np.asarray(euclidean_distances(scores, landmarks, squared=True).argmin(1))


def _rows(table: Table, rows: Array) -> Table:
    holes = None if table.holes is None else table.holes[rows]
    return replace(table, x=table.x[rows], mask=table.mask[rows], holes=holes)
