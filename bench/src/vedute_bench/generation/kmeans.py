"""k-means on any device, all starts at once: where many representations are to be clustered.

Starts are those of greedy k-means++ (Arthur & Vassilvitskii, 2007; as scikit-learn has them): of a
few samples drawn by their squared distance to the nearest center, the one that lowers it most.
"""

from __future__ import annotations

from math import log

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

ROUNDS, TOLERANCE = 300, 1e-4  # of the mean variance: a smaller move of all centers is none


def centers(z: Tensor, K: int, seed: int, starts: int = 10) -> Tensor:
    """The best centers (K, D) of z (n, D)."""
    middle = z.mean(0)
    z = z - middle
    c = _spread(z, K, starts, torch.Generator().manual_seed(seed))
    still = TOLERANCE * float(z.var(0).mean())
    for _ in range(ROUNDS):
        mine = F.one_hot(_distances(z, c).argmin(2), K).to(z.dtype)  # (S, n, K)
        count = mine.sum(1).unsqueeze(2)
        moved = torch.where(count > 0, mine.transpose(1, 2) @ z / count.clamp(min=1), c)
        shift = (moved - c).square().sum((1, 2)).max()
        c = moved
        if float(shift) <= still:
            break
    return c[_distances(z, c).amin(2).sum(1).argmin()] + middle


def _spread(z: Tensor, K: int, starts: int, rng: torch.Generator) -> Tensor:
    """Centers to start from, (S, K, D)."""
    n, each = len(z), torch.arange(starts, device=z.device)
    first = torch.randint(n, (starts,), generator=rng).to(z.device)
    c = z[first].unsqueeze(1)
    near = _distances(z, c)[..., 0].clamp(min=0)  # (S, n)
    for _ in range(1, K):
        total = near.cumsum(1)
        draw = torch.rand(starts, 2 + int(log(K)), generator=rng).to(z) * total[:, -1:]
        drawn = torch.searchsorted(total, draw).clamp(max=n - 1)  # (S, trials)
        left = torch.minimum(near.unsqueeze(2), _distances(z, z[drawn]))  # (S, n, trials)
        best = left.sum(1).argmin(1)
        near = left[each, :, best].clamp(min=0)
        c = torch.cat([c, z[drawn[each, best]].unsqueeze(1)], dim=1)
    return c


def _distances(z: Tensor, c: Tensor) -> Tensor:
    """|z - c|^2 of z (n, D) and c (S, K, D), (S, n, K)."""
    return z.square().sum(1).unsqueeze(1) - 2 * z @ c.transpose(1, 2) + c.square().sum(2)[:, None]
