"""Missing views borrowed from neighbours: the mean of the donors' own values.

A donor of view v to sample i is near to i in some view w that i has, and has both v and w.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vedute.nn.neighbors import nearest


def donors(h: Tensor, mask: Tensor, v: int, rows: Tensor, k: int) -> Tensor:
    """Donors of view v for each of `rows` (m,), which lack it: (m, k (L - 1)) long, -1 for none.

    h (n, L, H) are features of the samples in every view, mask (n, L). The views w of a row are
    searched in order. The first ones contribute their nearest donors until there are k; a later
    one contributes its nearest sample only, if that is a donor.
    """
    others = [w for w in range(mask.shape[1]) if w != v]
    found = torch.full((len(rows), len(others), k), -1, device=h.device)
    count = torch.zeros(len(rows), 1, dtype=torch.long, device=h.device)
    for slot, w in enumerate(others):
        have_w = mask[rows, w].nonzero()[:, 0]
        owners = mask[:, w].nonzero()[:, 0]
        able = mask[owners, v].nonzero()[:, 0]
        query, keys = h[rows[have_w], w], h[owners, w]
        _, near = nearest(query, keys[able], k)
        near = _named(near, able)
        itself = torch.searchsorted(owners, rows[have_w])
        _, first = nearest(query, keys, 1, itself)
        missing = k - count[have_w]
        place = torch.arange(k, device=h.device)
        chosen = torch.where(missing > 0, place < missing, (place == 0) & (near == first))
        found[have_w, slot] = _named(torch.where(chosen, near, -1), owners)
        count[have_w] += (found[have_w, slot] >= 0).sum(1, keepdim=True)
    return found.flatten(1)


def borrowed(x: Tensor, seen: Tensor, donor: Tensor, whole: bool = False) -> Tensor:
    """The mean of x (n, *shape) over the donors (m, s), -1 for none: (m, *shape).

    Without a donor, the mean over the samples `seen` (n,). `whole`: the value of the first donor
    as it is, for values that cannot be averaged.
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


def _named(found: Tensor, names: Tensor) -> Tensor:
    """Positions in `names` replaced by its entries; -1 stays."""
    if not len(names):
        return found
    return torch.where(found >= 0, names[found.clamp(min=0)], -1)
