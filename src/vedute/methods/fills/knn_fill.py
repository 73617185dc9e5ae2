"""kNN-fill: missing values as means over the nearest samples that have them.

Troyanskaya et al., "Missing value estimation methods for DNA microarrays" (2001), as in
scikit-learn's `KNNImputer` on all views concatenated, z-scored and divided by sqrt(width):

    d(i, j)^2 = p / |O_ij| * sum over c in O_ij of (x_ic - x_jc)^2
    x_ic = mean of x_jc over the n_neighbors nearest j that have c

with O_ij the features, among p, that both samples have; the feature's mean if no such j shares a
feature with i. Since whole views are missing, distances are sums of matrix products. Beyond 20 000
training samples, only rows in nearby cells are searched. Every row has scores u, its projection
onto the matrix of low rank U V' (see `softimpute`), so rows that share no view can be compared; a
cell contains all rows whose scores are nearest to the same landmark, one of a few sampled rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from sklearn.metrics.pairwise import euclidean_distances
from threadpoolctl import threadpool_limits

from vedute.data.holdout import HoldOut
from vedute.data.rows import slices
from vedute.data.views import Views
from vedute.estimators.base import Estimator
from vedute.estimators.context import FitContext
from vedute.estimators.settings import estimator
from vedute.methods.deep.shared import hyperparameters
from vedute.methods.fills.engine import softimpute, wide_table
from vedute.methods.fills.engine.wide_table import Array, Part, Table

EXACT_DONORS = 20_000  # donors; beyond, a row is compared with donors in nearby cells only
DISTANCES = 2**22  # numbers in a block of the distance matrix, 32 MiB
AHEAD = 4  # candidates per neighbor, if donors have holes
CELL_SAMPLE, CELL_RANK = 5000, 32  # rows to fit the matrix of low rank, and its largest rank
LANDMARKS = 128
NEAR_ROWS = 12_000  # least number of rows in a cell and the cells around it
Cells = dict[str, Array]


@estimator
class KNNFill(Estimator):
    """A missing value is the mean over the nearest samples with it."""

    n_neighbors: int = hyperparameters.n_neighbors(10, "Samples whose mean fills a missing value.")

    attributes: ClassVar = {
        "donors_": "Per view, the training samples, centered.",
        "donors_seen_": "Per view, which of their values are observed.",
        "n_neighbors_": "The number of samples in a mean.",
        "cells_": "The cells that restrict the search; empty: search all samples.",
    }
    paper = "Troyanskaya et al., Bioinformatics 2001"
    absent = "filled from the nearest samples"
    relearns = True
    keeps_samples = True
    baseline = "kNN fill"
    shrinks = False

    def learn(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        parts = wide_table.parts(data, self.scalers)
        self.donors_, self.donors_seen_ = [p.x for p in parts], [p.seen for p in parts]
        self.n_neighbors_ = self.n_neighbors
        rng, many = np.random.default_rng(self.seed_), len(data) > EXACT_DONORS
        self.cells_: Cells = learn_cells(Table.of(parts), rng) if many else {}

    def decode(self, data: Views, draws: int = 0) -> list[Array]:
        return wide_table.values(self.embed(data), self.scalers, draws)

    def embed(self, data: Views) -> Array:
        """The completed table."""
        donors = [Part(*p) for p in zip(self.donors_, self.donors_seen_, strict=True)]
        parts = wide_table.parts(data, self.scalers)
        filled = [p.x.copy() for p in parts]
        pairs = zip(parts, donors, strict=True)
        holed = [max(p.seen.shape[1], q.seen.shape[1]) > 1 for p, q in pairs]
        lacking = np.flatnonzero(~np.hstack([p.seen.all(1, keepdims=True) for p in parts]).all(1))
        searches: Iterable[tuple[Array, Array | slice]] = [(lacking, slice(None))]
        if self.cells_ and len(lacking):
            table = Table.of(rows_of(parts, lacking))
            searches = ((lacking[rows], near) for rows, near in search_cells(self.cells_, table))
        for rows, near in searches:  # rows, and the donors to compare them with
            among = rows_of(donors, near)
            side = Side.of(among, holed, query=False)
            for part in slices(len(rows), max(1, DISTANCES // len(among[0].x))):
                subset = rows[part]
                queries = rows_of(parts, subset)
                distance = distances(Side.of(queries, holed, query=True), side)
                for x, query, donor in zip(filled, queries, among, strict=True):
                    incomplete, has = ~query.seen.all(1), donor.seen.any(1)
                    nearest = distance[np.ix_(incomplete, has)], donor.x[has], donor.seen[has]
                    means, at = averages(*nearest, self.n_neighbors_), subset[incomplete]
                    x[at] = np.where(query.seen[incomplete], x[at], means)
        return np.hstack(filled)


def rows_of(parts: Sequence[Part], rows: Array | slice) -> list[Part]:
    """Select rows of all views."""
    return [Part(p.x[rows], p.seen[rows]) for p in parts]


class Side(NamedTuple):
    """One side, queries or donors, of a distance matrix, in float64.

    A unit is a view, or a feature of a view with holes. x is zero where missing, x^2 is summed over
    units, and `seen` is (n, units). The matrix is [-2 x, x^2, seen] for queries and [x, seen, x^2]
    for donors, so their product is the squared distance over jointly observed features.
    `size` (units,): features per unit.
    """

    matrix: Array
    seen: Array
    size: Array

    @classmethod
    def of(cls, parts: Sequence[Part], holed: Sequence[bool], query: bool) -> Side:
        values, seen, square, size = [], [], [], []
        for (x, observed), fine in zip(parts, holed, strict=True):
            power = x.astype(np.float64) ** 2
            values.append(-2.0 * x if query else x)
            seen.append(np.broadcast_to(observed, x.shape) if fine else observed)
            square.append(power if fine else power.sum(1, keepdims=True))
            size.append(np.full(seen[-1].shape[1], x.shape[1] / seen[-1].shape[1]))
        matrix = [*values, *square, *seen] if query else [*values, *seen, *square]
        wide, observed = (np.hstack(part, dtype=np.float64) for part in (matrix, seen))
        return cls(wide, observed, np.concatenate(size))


def distances(queries: Side, donors: Side) -> Array:
    """Squared distances (m, n) over jointly observed features, times all / joint; inf if none.

    Rounded, and ties broken in favor of the first, so that they do not depend on rounding errors.
    """
    distance = queries.matrix @ donors.matrix.T
    joint = (queries.seen * queries.size) @ donors.seen.T
    disjoint = joint == 0
    joint[disjoint] = 1.0
    distance *= donors.size.sum()
    distance /= joint
    np.round(distance, 9, out=distance)
    distance += np.linspace(0.0, 5e-10, distance.shape[1])
    distance[disjoint] = np.inf
    return distance


def averages(distance: Array, x: Array, seen: Array, k: int) -> Array:
    """Means over the k nearest donors that have an entry; zero if none has.

    distance (m, n), x (n, width), seen (n, 1) or (n, width) -> (m, width)
    """
    (m, n), holed = distance.shape, seen.shape[1] > 1
    total, count = np.zeros((m, x.shape[1])), np.zeros((m, seen.shape[1]), int)
    if n == 0:
        return total
    reach = min(n, AHEAD * k if holed else k)
    near = np.argpartition(distance, reach - 1, axis=1)[:, :reach]
    near = np.take_along_axis(near, np.take_along_axis(distance, near, 1).argsort(1), 1)
    for j in near.T:
        take = seen[j] & (count < k) & np.isfinite(distance[np.arange(m), j])[:, None]
        total += np.where(take, x[j], 0.0)
        count += take
    mean = total / np.maximum(count, 1)
    if holed and reach < n:
        for c in np.flatnonzero((count < k).any(0)):  # too few candidates have it: search all
            rows, has = count[:, c] < k, seen[:, c]
            among = distance[np.ix_(rows, has)]
            mean[rows, c] = averages(among, x[has, c, None], seen[has, c, None], k)[:, 0]
    return mean


# Cells, which restrict the search for the nearest rows of large data.


def learn_cells(table: Table, rng: Generator) -> Cells:
    """Fit the matrix of low rank, choose landmarks (c, r), and assign a cell to each row, (n,)."""
    part = table[np.sort(rng.permutation(len(table.x))[:CELL_SAMPLE])]
    with threadpool_limits(1, "blas"):
        V, threshold = softimpute.refit(part, *softimpute.chosen(part, CELL_RANK, rng), rng)
    cells = {"components": V, "threshold": np.array(threshold)}
    scores = _scores(cells, table)
    cells["landmarks"] = scores[np.sort(rng.permutation(len(scores))[:LANDMARKS])]
    return cells | {"cell": euclidean_distances(scores, cells["landmarks"], squared=True).argmin(1)}


def search_cells(cells: Cells, queries: Table) -> Iterator[tuple[Array, Array]]:
    """Batches of rows of `queries`, each with the training rows that may be near to all of them."""
    scores = _scores(cells, queries)
    cell_of = euclidean_distances(scores, cells["landmarks"], squared=True).argmin(1)
    squared = euclidean_distances(cells["landmarks"], squared=True)
    count = np.bincount(cells["cell"], minlength=len(squared))
    for c in np.unique(cell_of):
        order = np.argsort(squared[c], kind="stable")
        enough = 1 + int(np.searchsorted(count[order].cumsum(), NEAR_ROWS))
        yield np.flatnonzero(cell_of == c), np.flatnonzero(np.isin(cells["cell"], order[:enough]))


def _scores(cells: Cells, table: Table) -> Array:
    """Scores (n, r), scaled to have the distances of U V'."""
    V = cells["components"]
    scores = softimpute.project(table, V, float(cells["threshold"]))
    return np.asarray(scores * np.linalg.norm(V, axis=0))
