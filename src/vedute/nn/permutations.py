"""Permutations of the observed views: the combinatorics behind MVP."""

import torch
from torch import Tensor

from vedute.nn import noise


def random_cycles(mask: Tensor, count: int) -> Tensor:
    """Draw `count` permutations per sample, each a single cycle through its observed views.

    Shuffle the observed views into a ring; each view maps to its neighbour on the ring.
    A uniform shuffle of m views gives a uniform draw from the (m-1)! cycles.
    Missing views map to themselves.

    mask (B, L) bool -> (B, count, L) long
    """
    B, L = mask.shape
    order = noise.like(torch.empty(B, count, L, device=mask.device), Tensor.uniform_)
    ring = order.masked_fill(~mask[:, None], 2.0).argsort(-1)  # missing views last
    m = mask.sum(-1).view(-1, 1, 1)
    slot = torch.arange(L, device=mask.device).expand_as(ring)
    neighbour = torch.where(slot < m, (slot + 1) % m.clamp(min=1), slot)
    return torch.empty_like(ring).scatter_(-1, ring, ring.gather(-1, neighbour))
