"""Imputation of missing views by the mean of neighbours, the donors.

A donor of view v for sample i has v and another view w that i has, and is near to i in w.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vedute.nn.neighbors import nearest


def donors(h: Tensor, mask: Tensor, v: int, rows: Tensor, k: int) -> Tensor:
    """Donors of view v for each of `rows` (m,), which lack it: (m, k (L - 1)) long, -1 for none.

    h (n, L, H) are features of the samples in every view, mask (n, L). The views w of a row are
    searched in order. The first ones contribute their nearest donors until k are reached; a later
    one contributes only its nearest sample, if that is a donor.
    """
    others = [w for w in range(mask.shape[1]) if w != v]
    result = torch.full((len(rows), len(others), k), -1, device=h.device)
    count = torch.zeros(len(rows), 1, dtype=torch.long, device=h.device)
    for slot, w in enumerate(others):
        have_w = mask[rows, w].nonzero()[:, 0]
        owners = mask[:, w].nonzero()[:, 0]
        able = mask[owners, v].nonzero()[:, 0]
        query, keys = h[rows[have_w], w], h[owners, w]
        _, near = nearest(query, keys[able], k)
        near = _global(near, able)
        itself = torch.searchsorted(owners, rows[have_w])
        _, first = nearest(query, keys, 1, itself)
        missing = k - count[have_w]
        place = torch.arange(k, device=h.device)
        chosen = torch.where(missing > 0, place < missing, (place == 0) & (near == first))
        result[have_w, slot] = _global(torch.where(chosen, near, -1), owners)
        count[have_w] += (result[have_w, slot] >= 0).sum(1, keepdim=True)
    return result.flatten(1)


def borrowed(x: Tensor, seen: Tensor, donor: Tensor, whole: bool = False) -> Tensor:
    """The mean of x (n, *shape) over the donors (m, s), -1 for none: (m, *shape).

    Without a donor, the mean over the samples `seen` (n,).
    whole: copy the value of the first donor, for values that cannot be averaged
    """
    lead = (-1, *[1] * (x.ndim - 1))
    total = x.new_zeros(len(donor), *x.shape[1:])
    count = torch.zeros(len(donor), dtype=torch.long, device=x.device)
    for column in donor.unbind(1):
        use = (column >= 0) & ((count == 0) | (not whole))
        total += torch.where(use.view(lead), x[column.clamp(min=0)], 0.0)
        count += use
    mean = x[seen].mean(0)
    return torch.where((count > 0).view(lead), total / count.clamp(min=1).view(lead), mean)


def _global(positions: Tensor, rows: Tensor) -> Tensor:
    """Map positions in `rows` to these rows; -1 stays."""
    if not len(rows):
        return positions
    return torch.where(positions >= 0, rows[positions.clamp(min=0)], -1)
