"""Missing views borrowed from neighbours: the mean of the donors' own values.

A donor of view v to sample i stands near to i in some view w that i has, and has both v and w.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vedute.nn.neighbors import nearest


def donors(h: Tensor, mask: Tensor, v: int, rows: Tensor, k: int) -> Tensor:
    """Who gives view v to each of `rows` (m,), which lack it: (m, k (L - 1)) long, -1 for nobody.

    h (n, L, H) places the samples in every view, mask (n, L). The views w of a row are asked in
    order. The first ones give their nearest donors until there are k; a later one gives its very
    nearest sample only, if that is a donor.
    """
    others = [w for w in range(mask.shape[1]) if w != v]
    found = torch.full((len(rows), len(others), k), -1, device=h.device)
    have = torch.zeros(len(rows), 1, dtype=torch.long, device=h.device)
    for slot, w in enumerate(others):
        asks = mask[rows, w].nonzero()[:, 0]
        owners = mask[:, w].nonzero()[:, 0]
        able = mask[owners, v].nonzero()[:, 0]
        query, keys = h[rows[asks], w], h[owners, w]
        _, near = nearest(query, keys[able], k)
        near = _named(near, able)
        itself = torch.searchsorted(owners, rows[asks])
        _, first = nearest(query, keys, 1, itself)
        missing = k - have[asks]
        place = torch.arange(k, device=h.device)
        gives = torch.where(missing > 0, place < missing, (place == 0) & (near == first))
        found[asks, slot] = _named(torch.where(gives, near, -1), owners)
        have[asks] += (found[asks, slot] >= 0).sum(1, keepdim=True)
    return found.flatten(1)


def borrowed(x: Tensor, seen: Tensor, givers: Tensor, whole: bool = False) -> Tensor:
    """The mean of x (n, *shape) over the givers (m, s), -1 for nobody: (m, *shape).

    Where nobody gives, the mean over those `seen` (n,). `whole`: the first giver's value as it is
    (what cannot be averaged).
    """
    lead = (-1, *[1] * (x.ndim - 1))
    total = x.new_zeros(len(givers), *x.shape[1:])
    count = torch.zeros(len(givers), dtype=torch.long, device=x.device)
    for column in givers.unbind(1):
        gives = (column >= 0) & ((count == 0) | (not whole))
        total += torch.where(gives.view(lead), x[column.clamp(min=0)], 0.0)
        count += gives
    mean = x[seen].mean(0)
    return torch.where((count > 0).view(lead), total / count.clamp(min=1).view(lead), mean)


def _named(found: Tensor, names: Tensor) -> Tensor:
    """Positions in a list as what stands there; -1 stays."""
    if not len(names):
        return found
    return torch.where(found >= 0, names[found.clamp(min=0)], -1)
