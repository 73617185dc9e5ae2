"""K-means, and the number of clusters, chosen by the stability of clusterings.

For every K, halve the samples at random, let k-means find K centers in each half, and give all
samples to the nearest center of either. The stability of K is the mean over such pairs of the
adjusted Rand index of the two labelings, 1 when they agree. Small K are stable for any data, so it
is compared with `chance`, the stability of Gaussian clouds of the same covariance, made monotone in
K. We choose the largest K whose advantage, stability - chance, is within one standard error of the
best.

Ben-Hur, Elisseeff & Guyon (2002); Lange, Roth, Braun & Buhmann (2004); the comparison with
clouds without clusters is that of the gap statistic, Tibshirani, Walther & Hastie (2001).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture

from vedute.data.mapped import array_pieces

Floats = NDArray[np.float64]
Curve = dict[str, NDArray[Any]]
AUTOMATIC = "auto"
MAX_CLUSTERS, MIN_SAMPLES = 20, 10  # clusters to try; samples per cluster on average
PAIRS, STARTS, SEEDS = 10, 8, 5  # halvings; k-means starts per half; candidates for a seed
SHORT, LONG = 4, 20  # iterations of every start, and of the best one
MAX_POINTS = 100_000  # rows of a representation on the disk that k-means uses
HALF, ROWS, AXES = 1000, 20_000, 32  # more rows or dimensions do not change the choice


def check(n_clusters: Any, n: int, learned: bool) -> None:
    """Reject a number of clusters that n samples cannot have; `learned`: it must be a number."""
    problem, least = "", 2 * MIN_SAMPLES
    if n_clusters == AUTOMATIC and learned:
        problem = "chooses for k-means; this method learns its clusters while it trains:"
    elif n_clusters == AUTOMATIC and n < least:
        problem = f"needs at least {least} samples, X has {n};"
    elif n_clusters not in (None, AUTOMATIC) and n_clusters > n:
        raise ValueError(f"n_clusters={n_clusters} does not fit {n} samples; choose at most {n}")
    if problem:
        raise ValueError(f"n_clusters='auto' {problem} give a number")


def require(n_clusters: Any, who: str) -> None:
    """Reject a request for clusters without `n_clusters`."""
    if n_clusters is None:
        raise ValueError(f"{who}(n_clusters=None) has no clusters; set n_clusters and fit again")


def finite(z: NDArray[Any]) -> NDArray[Any]:
    """Return a representation unchanged, or raise if it is not finite."""
    if not np.isfinite(z).all():
        raise FloatingPointError(
            "training diverged: the representation is not finite; try a smaller lr, or clip=1.0"
        )
    return z


def centers(z: NDArray[Any], K: int, seed: int, starts: int = 10) -> NDArray[Any]:
    """Return the k-means centers (K, D) of z (n, D), of a random subset if it is on the disk."""
    if isinstance(z, np.memmap):
        rows = np.random.default_rng(seed).permutation(len(z))[:MAX_POINTS]
        z = np.array(z[np.sort(rows)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct samples than K
        fitted = KMeans(K, n_init=starts, random_state=seed).fit(finite(z))
    return np.asarray(fitted.cluster_centers_)


def nearest(z: NDArray[Any], middles: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index of the nearest center (K, D) to each row of z (n, D), (n,)."""
    if isinstance(z, np.memmap):
        return np.concatenate([nearest(np.asarray(rows), middles) for rows in array_pieces(z)])
    distance = (middles**2).sum(1) - 2 * z.astype(np.float64) @ middles.T
    return np.asarray(distance.argmin(1), dtype=np.int64)


def choose(z: NDArray[Any], n_clusters: int | str, seed: int) -> tuple[int, Curve]:
    """Choose the number of clusters of z (n, D); for "auto", also return the curve it is based on.

    The curve has n_clusters, stability, error (its standard error) and chance, (tried,) each.
    """
    if n_clusters != AUTOMATIC:
        return int(n_clusters), {}
    rng = np.random.default_rng(seed)
    points = _axes(z, rng)
    distinct = len(np.unique(points.round(9), axis=0))
    tried = range(2, max(2, min(MAX_CLUSTERS, len(points) // MIN_SAMPLES, distinct)) + 1)
    half = min(len(points) // 2, HALF)
    rows = np.stack([points[rng.permutation(len(points))[: 2 * half]] for _ in range(PAIRS)])
    clouds = rng.standard_normal(rows.shape) * points.std(0)
    repeats = _agreement(rows, tried, rng)  # (tried, PAIRS)
    chance = _agreement(clouds, tried, rng).mean(1)
    curve = {
        "n_clusters": np.array(tried),
        "stability": repeats.mean(1),
        "error": repeats.std(1, ddof=1) / np.sqrt(PAIRS),
        "chance": np.maximum.accumulate(chance[::-1])[::-1],
    }
    advantage = curve["stability"] - curve["chance"]
    best = advantage.argmax()
    near = np.flatnonzero(advantage >= advantage[best] - curve["error"][best])
    return int(curve["n_clusters"][near[-1]]), curve


def stability(z: NDArray[Any], K: int, seed: int) -> float:
    """Return the agreement of halves of z (n, D) on K clusters, at most one per row of a half."""
    rng, agreed = np.random.default_rng(seed), []
    points = _axes(z, rng)
    K, half = max(1, min(K, len(points) // 2)), min(len(points) // 2, HALF)
    for _ in range(4):
        rows = points[rng.permutation(len(points))[: 2 * half]]
        seeds = rng.integers(2**31 - 1, size=2).tolist()
        parts = zip((rows[:half], rows[half:]), seeds, strict=True)
        labels = [nearest(rows, centers(part, K, seed, starts=3)) for part, seed in parts]
        agreed.append(adjusted_rand_score(*labels))
    return float(np.mean(agreed))


def separation(z: NDArray[Any], K: int, seed: int) -> float:
    """Return the silhouette of K clusters of a subset of z (n, D); 0 for too few rows."""
    rows = np.random.default_rng(seed).permutation(len(z))[: 2 * HALF]
    points = z[rows].astype(np.float64)
    labels = nearest(points, centers(points, max(1, min(K, len(points) // 2)), seed, starts=3))
    if not 2 <= len(np.unique(labels)) < len(points):
        return 0.0
    return float(silhouette_score(points, labels))


# Batched k-means: P pairs of halves, B = 2 P halves, or several starts of each.


def _agreement(rows: Floats, tried: range, rng: Generator) -> Floats:
    """Return the agreement of halves of rows (P, n, D) on K clusters of all n, (tried, P)."""
    halves = rows.reshape(2 * len(rows), rows.shape[1] // 2, -1)
    starts = np.repeat(halves, STARTS, axis=0)
    seeds = _seeds(starts, tried[-1], rng)  # the first K of them are seeds for K clusters
    agreed = []
    for K in tried:
        middles = _lloyd(starts, seeds[:, :K], SHORT)
        cost = _distances(starts, middles).min(2).sum(1).reshape(-1, STARTS)
        best = np.arange(len(halves)) * STARTS + cost.argmin(1)
        middles = _lloyd(halves, middles[best], LONG)
        labels = _distances(np.repeat(rows, 2, axis=0), middles).argmin(2)
        agreed.append(_rand_index(labels[::2], labels[1::2], K))
    return np.array(agreed)


def _seeds(x: Floats, K: int, rng: Generator) -> Floats:
    """Choose seeds by greedy k-means++, each the best of a few; x (B, n, D) -> (B, K, D)."""
    batch = np.arange(len(x))
    seeds = [x[batch, rng.integers(x.shape[1], size=len(x))]]
    far = ((x - seeds[0][:, None]) ** 2).sum(2)  # (B, n)
    while len(seeds) < K:
        total = far.cumsum(1)[:, None]
        drawn = rng.random((len(x), SEEDS, 1)) * total[..., -1:]
        rows = np.minimum((total <= drawn).sum(2), x.shape[1] - 1)  # (B, SEEDS)
        candidates = x[batch[:, None], rows]
        distance = (candidates**2).sum(2, keepdims=True) + _distances(candidates, x)
        remaining = np.minimum(far[:, None], distance.clip(min=0))  # (B, SEEDS, n)
        best = remaining.sum(2).argmin(1)
        seeds.append(candidates[batch, best])
        far = remaining[batch, best]
    return np.stack(seeds, axis=1)


def _lloyd(x: Floats, middles: Floats, iterations: int) -> Floats:
    """Run Lloyd's iterations: x (B, n, D), centers (B, K, D) -> (B, K, D)."""
    before: NDArray[np.int64] | None = None
    for _ in range(iterations):
        labels = _distances(x, middles).argmin(2)
        if before is not None and (labels == before).all():
            break
        members = _members(labels, middles.shape[1])
        size = members.sum(2, keepdims=True)
        middles = np.where(size > 0, members @ x / np.maximum(size, 1), middles)
        before = labels
    return middles


def _distances(x: Floats, middles: Floats) -> Floats:
    """Return |x - m|^2 - |x|^2, (B, n, D) and (B, K, D) -> (B, n, K)."""
    return np.asarray((middles**2).sum(2)[:, None] - 2 * x @ middles.swapaxes(1, 2))


def _members(labels: NDArray[np.int64], K: int) -> Floats:
    """Return one-hot rows per cluster: (B, n) -> (B, K, n)."""
    return np.asarray((labels[:, None] == np.arange(K)[:, None]).astype(np.float64))


def _rand_index(a: NDArray[np.int64], b: NDArray[np.int64], K: int) -> Floats:
    """Return the adjusted Rand index of labelings, (P, n) each -> (P,)."""
    table = _members(a, K) @ _members(b, K).swapaxes(1, 2)  # (P, K, K)
    both = _pairs(table).sum((1, 2))
    left, right = _pairs(table.sum(2)).sum(1), _pairs(table.sum(1)).sum(1)
    expected, most = left * right / _pairs(a.shape[1]), (left + right) / 2
    same = most == expected  # one cluster, or as many as samples
    return np.where(same, 1.0, (both - expected) / np.where(same, 1.0, most - expected))


def _pairs(n: Any) -> Any:
    return n * (n - 1) / 2


def _axes(z: NDArray[Any], rng: Generator) -> Floats:
    """Rotate a subset of z (n, D) to its principal axes, which keeps distances."""
    points = z[rng.permutation(len(z))[:ROWS]].astype(np.float64)
    points -= points.mean(0)
    vectors = np.linalg.eigh(points.T @ points)[1]
    return np.asarray(points @ vectors[:, ::-1][:, :AXES])


def mixture(rows: NDArray[Any], seed: int) -> GaussianMixture:
    """Fit a Gaussian mixture, of a size chosen by BIC, to rows (m, D), to draw rows like them."""
    covariance = "full" if len(rows) > 4 * rows.shape[1] else "diag"
    sizes = [k for k in (1, 2, 4, 8, 16) if k == 1 or 10 * k <= len(rows)]
    fits = (GaussianMixture(k, covariance_type=covariance, random_state=seed) for k in sizes)
    return min((g.fit(rows) for g in fits), key=lambda g: float(g.bic(rows)))
