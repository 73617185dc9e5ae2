"""k-means on any device with all starts in parallel, to cluster many representations.

Starts are those of greedy k-means++ (Arthur & Vassilvitskii, 2007), as in scikit-learn: among a few
samples drawn by squared distance to the nearest center, take the one that lowers the cost most.
"""

from __future__ import annotations

from math import log

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

ROUNDS, TOLERANCE = 300, 1e-4  # smallest squared shift of all centers, times the mean variance


def centers(z: Tensor, K: int, seed: int, starts: int = 10) -> Tensor:
    """Best centers (K, D) of z (n, D) over all starts."""
    middle = z.mean(0)
    z = z - middle
    c = _spread(z, K, starts, torch.Generator().manual_seed(seed))
    still = TOLERANCE * float(z.var(0).mean())
    for _ in range(ROUNDS):
        nearest = F.one_hot(_distances(z, c).argmin(2), K).to(z.dtype)  # (S, n, K)
        count = nearest.sum(1).unsqueeze(2)
        moved = torch.where(count > 0, nearest.transpose(1, 2) @ z / count.clamp(min=1), c)
        shift = (moved - c).square().sum((1, 2)).max()
        c = moved
        if float(shift) <= still:
            break
    return c[_distances(z, c).amin(2).sum(1).argmin()] + middle


def _spread(z: Tensor, K: int, starts: int, rng: torch.Generator) -> Tensor:
    """Initial centers (S, K, D) by greedy k-means++."""
    n, start = len(z), torch.arange(starts, device=z.device)
    first = torch.randint(n, (starts,), generator=rng).to(z.device)
    c = z[first].unsqueeze(1)
    near = _distances(z, c)[..., 0].clamp(min=0)  # (S, n)
    for _ in range(1, K):
        total = near.cumsum(1)
        draw = torch.rand(starts, 2 + int(log(K)), generator=rng).to(z) * total[:, -1:]
        drawn = torch.searchsorted(total, draw).clamp(max=n - 1)  # (S, trials)
        left = torch.minimum(near.unsqueeze(2), _distances(z, z[drawn]))  # (S, n, trials)
        best = left.sum(1).argmin(1)
        near = left[start, :, best].clamp(min=0)
        c = torch.cat([c, z[drawn[start, best]].unsqueeze(1)], dim=1)
    return c


def _distances(z: Tensor, c: Tensor) -> Tensor:
    """Squared distances (S, n, K) of z (n, D) and c (S, K, D)."""
    return z.square().sum(1).unsqueeze(1) - 2 * z @ c.transpose(1, 2) + c.square().sum(2)[:, None]
