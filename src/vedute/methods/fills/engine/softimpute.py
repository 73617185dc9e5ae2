"""Soft-impute with a bound on the rank, by alternating ridge regressions, for missing views.

    min over U (n, r), V (p, r) of 1/2 |X - U V'|_O^2 + threshold / 2 (|U|^2 + |V|^2)

Rows with the same views share the Gram matrix of their regression, as do the columns of a view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

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


def search(
    table: Table, rows: Array, truth: Table, max_rank: int, rng: Generator
) -> tuple[Array, float]:
    """V (p, r) and the threshold, relative to the largest singular value, whose fit to `table` is
    best on `truth`, a table of what is hidden in these rows (m,) of it.

    Ranks are 1, 2, 4, ... until two in a row bring no gain; in each, thresholds go down until the
    hidden error rises. Fits are warm-started; each rank starts just above the best threshold so
    far.
    """
    (n, p), top = table.x.shape, largest(table, rng)
    rank, most, misses = 1, min(max_rank, n, p), 0
    U, V, threshold = np.zeros((n, 0)), np.zeros((p, 0)), STEP**2
    best = np.inf, U, V, threshold
    while misses < 2:
        _, U, V, threshold = best
        candidate = np.inf, U, V, threshold
        threshold, gain = threshold / STEP, True
        while gain and threshold >= MIN_THRESHOLD:
            U, V = extend(table, U, V, threshold * top, rank, rng)
            U, V = learn(table, U, V, threshold * top, *SEARCH_SWEEPS)
            if truth.compressed:  # sum over hidden v of u' V_v' V_v u - 2 u' V_v' x_v + |x_v|^2
                grams = np.stack([V[at].T @ V[at] for at in truth.places])
                how = truth.mask, U[rows], grams, U[rows]
                fitted = np.einsum("iv,ia,vab,ib->", *how, optimize=True)
                error = float(fitted - 2 * np.vdot(U[rows], truth.x @ V) + truth.x.power())
            else:
                off = np.where(truth.seen(), U[rows] @ V.T - truth.x, 0.0)
                error = float(np.vdot(off, off))
            gain = error < (1 - MIN_GAIN) * candidate[0]
            if error < candidate[0]:
                candidate = error, U, V, threshold
            threshold *= STEP
        gain = candidate[0] < (1 - MIN_GAIN) * best[0]
        best, misses = (candidate, 0) if gain else (best, misses + 1)
        if rank == most:
            break
        rank = min(2 * rank, most)
    return best[2], best[3]


def learn(
    table: Table, U: Array, V: Array, threshold: float, tolerance: float, most: int
) -> tuple[Array, Array]:
    """Alternate ridge regressions from U (n, r), V (p, r), filling holes with the current U V'."""
    x = table.x.astype(np.float32)
    for _ in range(most):
        if table.holes is not None:
            x[table.holes] = (U @ V.T)[table.holes]
        U0, V0 = U, V
        V = (x.T @ U.astype(x.dtype)).astype(np.float64)
        for v, at in enumerate(table.places):
            seen = U[table.mask[:, v]]
            V[at] = solved(seen.T @ seen, V[at].T, threshold).T
        U = project(table, V, threshold, x)
        if not (U.any() and V.any()):
            U, V = U[:, :1], V[:, :1]
        else:  # orthogonal columns of length sqrt(singular value) on both sides
            scale, turn = np.linalg.eigh(U.T @ U)
            significant = scale > 1e-12 * scale[-1]
            root, turn = np.sqrt(scale[significant]), turn[:, significant]
            square, axes = np.linalg.eigh(root[:, None] * (turn.T @ (V.T @ V) @ turn) * root)
            keep = square > 1e-8 * square[-1]
            size, axes = square[keep] ** 0.25, axes[:, keep]
            U, V = U @ (turn / root @ axes * size), V @ (turn * root @ axes / size)
        change = np.vdot(U0.T @ U0, V0.T @ V0) + np.vdot(U.T @ U, V.T @ V)
        change -= 2 * np.vdot(U0.T @ U, V0.T @ V)  # |U0 V0' - U V'|^2
        size = np.linalg.norm(np.linalg.norm(V, axis=0) ** 2)  # |U V'|
        if np.sqrt(max(change, 0.0)) <= tolerance * size:
            break
    return U, V


def project(table: Table, V: Array, threshold: float, whole: Any = None) -> Array:
    """Scores (n, r) of each row, by ridge regression of its observed values on V.

    whole: the values (n, p) with holes filled, which then count as observed
    """
    x, r = table.x if whole is None else whole, V.shape[1]
    right = (x @ V.astype(x.dtype)).astype(np.float64)
    grams = np.empty((len(table.widths), r, r), V.dtype)
    U: Array = np.empty_like(right)
    for v, at in enumerate(table.places):
        grams[v] = V[at].T @ V[at]
    for pattern, rows in table.groups:
        U[rows] = solved(grams[pattern].sum(0), right[rows].T, threshold).T
    if table.holes is not None and whole is None:
        for i in np.flatnonzero(table.holes.any(1)):
            lost = V[table.holes[i]]
            U[i] = solved(grams[table.mask[i]].sum(0) - lost.T @ lost, right[i], threshold)
    return U


def solved(S: Array, right: Array, ridge: float) -> Array:
    """The solution b of (S + ridge I) b = right, for S symmetric and positive semidefinite."""
    if not len(S):
        return right
    factor = factored(S + ridge * np.eye(len(S)))
    return np.asarray(cho_solve(factor, right, check_finite=False))


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


def extend(
    table: Table, U: Array, V: Array, threshold: float, rank: int, rng: Generator
) -> tuple[Array, Array]:
    """Extend U, V to at most `rank` columns, by large singular triples of the residual."""
    room = rank - V.shape[1]
    if room <= 0:
        return U, V
    if table.compressed:
        residual = _compressed_residual(table, U, V)
    else:
        residual = np.where(table.seen(), table.x - U @ V.T, 0.0)
    left, size, right = leading(residual, room, rng)
    use = size > threshold
    use[0] |= not V.shape[1]  # keep at least one
    root = np.sqrt(np.maximum(size[use] - threshold, 1e-6 * threshold))
    return np.hstack([U, left[:, use] * root]), np.hstack([V, right[:, use] * root])


def _compressed_residual(table: Table, U: Array, V: Array) -> Any:
    """X - U V' where X is observed, zero elsewhere, (n, p), by its products."""
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


def chosen(
    table: Table, max_rank: int, rng: Generator, groups: Tensor | None = None
) -> tuple[Array, float]:
    """V and the threshold that are best on hidden views, or entries, of the table; see `search`."""
    hidden = table.chosen_to_hide(groups)
    if hidden is not None:
        rows = np.flatnonzero(hidden.any(1))
        truth = table[rows].only(hidden[rows])
        return search(table.only(~hidden), rows, truth, max_rank, rng)
    seen, x = table.seen(), table.x.dense() if table.compressed else table.x
    hidden = seen & (rng.random(seen.shape) < HIDDEN_SHARE)
    hidden[(seen == hidden).all(1)] = False  # never all of a row or a column
    hidden[:, (seen == hidden).all(0)] = False
    holes = table.spread(table.mask) & (hidden | ~seen)
    part = replace(table, x=np.where(hidden, 0.0, x), holes=holes)
    truth = replace(table, x=x, holes=~hidden)
    return search(part, np.arange(len(seen)), truth, max_rank, rng)


def refit(table: Table, V: Array, relative: float, rng: Generator) -> tuple[Array, float]:
    """Refit V (p, r) on the whole table; return it and the absolute threshold."""
    threshold = relative * largest(table, rng)
    U = project(table, V, threshold)
    return learn(table, U, V, threshold, *FINAL_SWEEPS)[1], threshold
