"""Nearest neighbours: exact, in chunks, identical on every machine.

    cosine      score = <a, b> / (|a| |b|), 0 where a or b is zero      the larger, the nearer
    euclidean   score = |a - b|                                         the smaller, the nearer

Scores are computed in float64 (the reduced precision of products in training on a GPU must not
affect neighbours). Ties are ranked by index; scores tie if they agree to some twelve digits, since
the last ones depend on the number of queries per product.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

METRICS = ("cosine", "euclidean")
PAIRS_PER_CHUNK = 2**24  # 128 MiB of scores: never the whole (m, n) where it is larger


def nearest(
    query: Tensor,
    keys: Tensor,
    k: int,
    blocked: Tensor | None = None,
    metric: str = "cosine",
    chunk: int = PAIRS_PER_CHUNK,
) -> tuple[Tensor, Tensor]:
    """Return the k keys (n, D) nearest to each query (m, D): sorted scores (m, k), and indices.

    `blocked`: (n,) bool, keys excluded for all queries; or (m,) long, the one key excluded
    for each query, itself (-1: none). Where fewer than k are left, the index is -1 and the score
    that of the farthest, -inf (cosine) or inf (euclidean). At most `chunk` scores, or those of one
    query, are in memory.
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
    m, n = len(query), len(keys)
    a, b = query.double(), keys.double()
    if metric == "cosine":
        a, b = normalize(a, dim=1), normalize(b, dim=1)
    elif n:  # a common shift changes no distance, but less is lost to rounding
        a, b = a - b.mean(0), b - b.mean(0)
    scores = query.new_full((m, k), -torch.inf, dtype=torch.float64)
    indices = torch.full((m, k), -1, device=query.device)
    most = min(k, n)
    rows = max(1, chunk // max(n, 1))
    for i in range(0, m, rows) if most else ():
        near = _nearness(a[i : i + rows], b, metric)
        if blocked is not None and blocked.dtype == torch.bool:
            near[:, blocked] = -torch.inf
        elif blocked is not None:
            key = blocked[i : i + rows, None]
            near.scatter_(1, key.clamp(min=0), torch.where(key < 0, near[:, :1], -torch.inf))
        scores[i : i + rows, :most], indices[i : i + rows, :most] = _largest(near, most)
    indices[scores == -torch.inf] = -1
    if metric == "euclidean":
        scores = scores.neg().clamp(min=0.0).sqrt()
    return scores.to(query.dtype), indices


def _nearness(a: Tensor, b: Tensor, metric: str) -> Tensor:
    """Return cosines or negative squared distances, rounded: (m, D), (n, D) -> (m, n)."""
    scores, unit = a @ b.t(), 1.0
    if metric == "euclidean":
        size = b.square().sum(1)
        scores.mul_(2).sub_(a.square().sum(1, keepdim=True)).sub_(size)
        unit = float(size.max())
    step = 2.0 ** (math.frexp(unit)[1] - 40)  # 40 digits of a unit that no query affects
    return scores.div_(step).round_().mul_(step)


def _largest(near: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest of each row, (m, k) values and indices; ties by index."""
    values, indices = near.topk(min(k + 1, near.shape[1]), dim=1)
    tied = values[:, k - 1] == values[:, -1]  # topk takes any of several equal ones
    values, indices = values[:, :k], indices[:, :k]
    if near.shape[1] > k and tied.any():
        ranked = near[tied].sort(dim=1, descending=True, stable=True)
        values[tied], indices[tied] = ranked.values[:, :k], ranked.indices[:, :k]
    indices, order = indices.sort(1)
    values, order = values.gather(1, order).sort(dim=1, descending=True, stable=True)
    return values, indices.gather(1, order)
