"""Nearest neighbours: exact, in pieces, the same on every machine.

    cosine      score = <a, b> / (|a| |b|), 0 where a or b is zero      the larger, the nearer
    euclidean   score = |a - b|                                         the smaller, the nearer

Scores are formed in float64 (what training does to the precision of products on a GPU must not
choose neighbours), and equal scores are ranked by index: equal to some twelve digits, since the
last ones depend on how many queries are multiplied at once.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

METRICS = ("cosine", "euclidean")
PAIRS_AT_ONCE = 2**24  # scores at a time, 128 MiB: never the whole (m, n) where it is larger


def nearest(
    query: Tensor,
    keys: Tensor,
    k: int,
    blocked: Tensor | None = None,
    metric: str = "cosine",
    chunk: int = PAIRS_AT_ONCE,
) -> tuple[Tensor, Tensor]:
    """The k keys (n, D) nearest to each query (m, D): scores (m, k), nearest first, and indices.

    `blocked`: (n,) bool, keys excluded for all queries; or (m,) long, the one key excluded
    for each query, itself (-1: none). Where fewer than k are left, the index is -1 and the score
    that of the farthest, -inf (cosine) or inf (euclidean). At most `chunk` scores, or those of one
    query, exist at a time.
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
    found = torch.full((m, k), -1, device=query.device)
    few = min(k, n)
    rows = max(1, chunk // max(n, 1))
    for i in range(0, m, rows) if few else ():
        near = _nearness(a[i : i + rows], b, metric)
        if blocked is not None and blocked.dtype == torch.bool:
            near[:, blocked] = -torch.inf
        elif blocked is not None:
            own = blocked[i : i + rows, None]
            near.scatter_(1, own.clamp(min=0), torch.where(own < 0, near[:, :1], -torch.inf))
        scores[i : i + rows, :few], found[i : i + rows, :few] = _largest(near, few)
    found[scores == -torch.inf] = -1
    if metric == "euclidean":
        scores = scores.neg().clamp(min=0.0).sqrt()
    return scores.to(query.dtype), found


def _nearness(a: Tensor, b: Tensor, metric: str) -> Tensor:
    """The larger, the nearer: (m, D), (n, D) -> (m, n). Squared distances, negative."""
    product = a @ b.t()
    if metric == "cosine":
        return _rounded(product, 1.0)
    size = b.square().sum(1)
    product.mul_(2).sub_(a.square().sum(1, keepdim=True)).sub_(size)
    return _rounded(product, float(size.max()))


def _rounded(scores: Tensor, unit: float) -> Tensor:
    """To 40 binary digits of the unit, a number that does not depend on the queries."""
    step = 2.0 ** (math.frexp(unit)[1] - 40)
    return scores.div_(step).round_().mul_(step)


def _largest(near: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row, (m, k) values and indices; equal ones by index."""
    values, found = near.topk(min(k + 1, near.shape[1]), dim=1)
    tied = values[:, k - 1] == values[:, -1]  # topk takes any of several equal ones
    values, found = values[:, :k], found[:, :k]
    if near.shape[1] > k and tied.any():
        ranked = near[tied].sort(dim=1, descending=True, stable=True)
        values[tied], found[tied] = ranked.values[:, :k], ranked.indices[:, :k]
    found, order = found.sort(1)
    values, order = values.gather(1, order).sort(dim=1, descending=True, stable=True)
    return values, found.gather(1, order)
