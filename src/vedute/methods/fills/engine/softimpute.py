"""Soft-impute with a bound on the rank, by alternating ridge regressions, for missing views.

    min over U (n, r), V (p, r) of 1/2 |X - U V'|_O^2 + threshold / 2 (|U|^2 + |V|^2)

Rows with the same views share the Gram matrix of their regression, as do the columns of a view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator
from torch import Tensor

from vedute.methods.fills.engine.wide_table import Array, Table

# Factor between thresholds, and the smallest, relative to the largest singular value:
STEP, MIN_THRESHOLD = 0.7, 1e-4
MIN_GAIN = 2e-3  # smaller relative gains in the hidden error do not count
# Change of U V' that ends the sweeps, and most of them:
SEARCH_SWEEPS, FINAL_SWEEPS = (3e-3, 8), (1e-3, 20)
COLUMNS_PER_BATCH = 32  # columns of a product per batch
JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)  # relative to the mean of a diagonal
HIDDEN_SHARE = 0.1  # share of entries hidden where views cannot be


class Hidden(NamedTuple):
    """Hidden values: rows (m,) of the table, their values (m, p), and a mask of hidden ones."""

    rows: Array
    truth: Array
    where: Array

    def error(self, U: Array, V: Array) -> float:
        deviation = np.where(self.where, U[self.rows] @ V.T - self.truth, 0.0)
        return float(np.vdot(deviation, deviation))


class HiddenViews(NamedTuple):
    """Hidden views: rows (m,) of the table, and a table of the hidden views only."""

    rows: Array
    truth: Table

    def error(self, U: Array, V: Array) -> float:
        """|U V' - X|^2 = sum over hidden views v of u' V_v' V_v u - 2 u' V_v' x_v + |x_v|^2"""
        U, mask = U[self.rows], self.truth.mask
        fitted = np.einsum("iv,ia,vab,ib->", mask, U, _grams(self.truth, V), U, optimize=True)
        return float(fitted - 2 * np.vdot(U, self.truth.x @ V) + self.truth.x.power())


class Best(NamedTuple):
    """A fit and its error on hidden values; threshold relative to the largest singular value."""

    error: float
    U: Array
    V: Array
    threshold: float


def search(table: Table, hidden: Hidden | HiddenViews, max_rank: int, rng: Generator) -> Best:
    """Search ranks 1, 2, 4, ... until two in a row bring no gain, and thresholds downwards in each,
    until the hidden error rises.

    Fits are warm-started; each rank starts just above the best threshold so far.
    """
    top, most = largest(table, rng), min(max_rank, *table.x.shape)
    n, p = table.x.shape
    best = Best(np.inf, np.zeros((n, 0)), np.zeros((p, 0)), STEP**2)
    rank, misses = 1, 0
    while misses < 2:
        candidate, (U, V) = Best(np.inf, *best[1:]), best[1:3]
        threshold, gain = best.threshold / STEP, True
        while gain and threshold >= MIN_THRESHOLD:
            U, V = extend(table, U, V, threshold * top, rank, rng)
            U, V = learn(table, U, V, threshold * top, *SEARCH_SWEEPS)
            error = hidden.error(U, V)
            gain = error < (1 - MIN_GAIN) * candidate.error
            if error < candidate.error:
                candidate = Best(error, U, V, threshold)
            threshold *= STEP
        gain = candidate.error < (1 - MIN_GAIN) * best.error
        best, misses = (candidate, 0) if gain else (best, misses + 1)
        if rank == most:
            break
        rank = min(2 * rank, most)
    return best


def learn(
    table: Table, U: Array, V: Array, threshold: float, tolerance: float, most: int
) -> tuple[Array, Array]:
    """Alternate ridge regressions from U (n, r), V (p, r), filling holes with the current U V'."""
    x = table.x.astype(np.float32)
    for _ in range(most):
        if table.holes is not None:
            x[table.holes] = (U @ V.T)[table.holes]
        before = U, V
        V = (x.T @ U.astype(x.dtype)).astype(np.float64)
        for v, at in enumerate(table.places):
            seen = U[table.mask[:, v]]
            V[at] = _ridge(seen.T @ seen, V[at], threshold)
        U, V = _balanced(_rows(table, x, V, threshold), V)
        if _distance(before, (U, V)) <= tolerance * np.linalg.norm(np.linalg.norm(V, axis=0) ** 2):
            break
    return U, V


def project(table: Table, V: Array, threshold: float) -> Array:
    """Scores (n, r) of each row, from its observed values."""
    U = _rows(table, table.x, V, threshold)
    if table.holes is None:
        return U
    grams, right = _grams(table, V), table.x @ V
    for i in np.flatnonzero(table.holes.any(1)):
        lost = V[table.holes[i]]
        gram = grams[table.mask[i]].sum(0) - lost.T @ lost
        U[i] = _ridge(gram, right[i], threshold)
    return U


def extend(
    table: Table, U: Array, V: Array, threshold: float, rank: int, rng: Generator
) -> tuple[Array, Array]:
    """Extend U, V to at most `rank` columns, by large singular triples of the residual."""
    room = rank - V.shape[1]
    if room <= 0:
        return U, V
    left, size, right = leading(_residual(table, U, V), room, rng)
    use = size > threshold
    use[0] |= not V.shape[1]  # keep at least one
    root = np.sqrt(np.maximum(size[use] - threshold, 1e-6 * threshold))
    return np.hstack([U, left[:, use] * root]), np.hstack([V, right[:, use] * root])


def _residual(table: Table, U: Array, V: Array) -> Any:
    """X - U V' where X is observed, zero elsewhere, (n, p)."""
    if not table.compressed:
        return np.where(table.seen(), table.x - U @ V.T, 0.0)
    views = [(table.mask[:, [v]], V[at], at) for v, at in enumerate(table.places)]

    def times(b: Array) -> Array:
        return np.asarray(table.x @ b - sum(m * (U @ (W.T @ b[at])) for m, W, at in views))

    def across(u: Array) -> Array:
        return np.asarray(table.x.T @ u - np.vstack([W @ (U.T @ (m * u)) for m, W, _ in views]))

    return LinearOperator(table.x.shape, times, matmat=times, rmatmat=across, dtype=table.x.dtype)


def largest(table: Table, rng: Generator) -> float:
    """The largest singular value of the observed table; higher thresholds give zero."""
    return max(float(leading(table.x, 1, rng)[1][0]), 1e-9)


def leading(x: Any, k: int, rng: Generator) -> tuple[Array, Array, Array]:
    """The k leading singular triples of x (n, p), by subspace iteration: (n, k), (k,), (p, k)."""
    k, wide = min(k, *x.shape), min(k + 5, *x.shape)
    basis = rng.standard_normal((x.shape[1], wide))
    for _ in range(3):
        basis = np.linalg.qr(x.T @ (x @ basis))[0]
    left, size, right = np.linalg.svd(x @ basis, full_matrices=False)
    return left[:, :k], size[:k], (basis @ right.T)[:, :k]


def axes(x: Any, k: int, rng: Generator) -> Array:
    """The k leading right singular vectors of x (n, p): (p, k), in float32.

    Iterates on the row side: for sparse and wide x, the result is the only large array.
    """
    basis = rng.standard_normal((x.shape[0], min(k + 5, *x.shape)))
    for _ in range(3):
        basis = np.linalg.qr(_by_columns(lambda u: x @ (x.T @ u), basis))[0]
    square, turn = np.linalg.eigh(basis.T @ _by_columns(lambda u: x @ (x.T @ u), basis))
    first = np.argsort(-square)[:k]
    first = first[square[first] > 1e-10 * max(square[first[0]], 1e-12)]
    left = basis @ (turn[:, first] / np.sqrt(square[first]))
    return _by_columns(lambda u: (x.T @ u).astype(np.float32), left)


def _by_columns(f: Callable[[Array], Array], x: Array) -> Array:
    """Apply f to x (n, k) in batches of columns."""
    return np.hstack(
        [f(x[:, at : at + COLUMNS_PER_BATCH]) for at in range(0, x.shape[1], COLUMNS_PER_BATCH)]
    )


def _grams(table: Table, V: Array) -> Array:
    """The Gram matrix V_v' V_v of every view, (L, r, r)."""
    return np.stack([V[at].T @ V[at] for at in table.places])


def _rows(table: Table, x: Any, V: Array, threshold: float) -> Array:
    """Ridge regression of each row of x on V, pattern by pattern; holes count as observed."""
    grams = _grams(table, V)
    U: Array = (x @ V.astype(x.dtype)).astype(np.float64)
    for pattern, rows in table.groups:
        U[rows] = _ridge(grams[pattern].sum(0), U[rows], threshold)
    return U


def _ridge(gram: Array, right: Array, threshold: float) -> Array:
    """Solve (gram + threshold I) u = right for every row of `right` (..., r)."""
    factor = factored(gram + threshold * np.eye(len(gram)))
    solved: Array = cho_solve(factor, right.T, check_finite=False).T
    return solved


def factored(S: Array, lower: bool = False) -> tuple[Array, bool]:
    """The Cholesky factor of S for `cho_solve`.

    If rounding has made S indefinite, as with equal rows, the smallest sufficient jitter is added
    to its diagonal.
    """
    for jitter in JITTERS:
        try:
            A = S + jitter * np.abs(S.diagonal()).mean() * np.eye(len(S)) if jitter else S
            factor: tuple[Array, bool] = cho_factor(A, lower=lower, check_finite=False)
            return factor
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError("a matrix that should be positive definite is not")


def _balanced(U: Array, V: Array) -> tuple[Array, Array]:
    """Rewrite U V' with orthogonal columns of length sqrt(singular value) on both sides."""
    if not (U.any() and V.any()):
        return U[:, :1], V[:, :1]
    scale, turn = np.linalg.eigh(U.T @ U)
    significant = scale > 1e-12 * scale[-1]
    root = np.sqrt(scale[significant])
    turn = turn[:, significant]
    square, axes = np.linalg.eigh(root[:, None] * (turn.T @ (V.T @ V) @ turn) * root)
    keep = square > 1e-8 * square[-1]
    size, axes = square[keep] ** 0.25, axes[:, keep]
    return U @ (turn / root @ axes * size), V @ (turn * root @ axes / size)


def _distance(a: tuple[Array, Array], b: tuple[Array, Array]) -> float:
    """The norm |U_a V_a' - U_b V_b'|, without forming either product."""
    square = sum(
        sign * float(np.vdot(p[0].T @ q[0], p[1].T @ q[1]))
        for sign, p, q in ((1, a, a), (1, b, b), (-2, a, b))
    )
    return float(np.sqrt(max(square, 0.0)))


def chosen(table: Table, max_rank: int, rng: Generator, groups: Tensor | None = None) -> Best:
    """The fit whose rank and threshold are best on hidden views, or entries, of the table."""
    hidden = table.chosen_to_hide(groups)
    if hidden is None:
        return search(*hide_entries(table, rng), max_rank, rng)
    rows = np.flatnonzero(hidden.any(1))
    truth = hidden_in(table[rows], hidden[rows], rows)
    return search(table.only(~hidden), truth, max_rank, rng)


def hidden_in(truth: Table, hidden: Array, rows: Array) -> Hidden | HiddenViews:
    """The hidden views (m, L) of a table of these rows (m,) of another one."""
    if truth.compressed:
        return HiddenViews(rows, truth.only(hidden))
    return Hidden(rows, truth.x, truth.spread(hidden) & truth.seen())


def refit(table: Table, V: Array, relative: float, rng: Generator) -> tuple[Array, float]:
    """Refit V (p, r) on the whole table; return it and the absolute threshold."""
    threshold = relative * largest(table, rng)
    U = project(table, V, threshold)
    return learn(table, U, V, threshold, *FINAL_SWEEPS)[1], threshold


def hide_entries(table: Table, rng: Generator) -> tuple[Table, Hidden]:
    """Hide random observed entries, never all of a row or a column; return the table and them."""
    table, seen = table.dense(), table.seen()
    hidden = seen & (rng.random(seen.shape) < HIDDEN_SHARE)
    hidden[(seen == hidden).all(1)] = False
    hidden[:, (seen == hidden).all(0)] = False
    holes = hidden if table.holes is None else table.holes | hidden
    part = replace(table, x=np.where(hidden, 0.0, table.x), holes=holes)
    return part, Hidden(np.arange(len(seen)), table.x, hidden)
