"""The table of latents z_ij, view j predicted from view i, with a row for each i that is observed.

Half of a table of all (B, L, L, D) entries may be predicted from views that are missing. Here a
table is (P, L, D): its rows are the P pairs of a sample b and a view i that it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Sources:
    """Which pairs the rows are.

    mask    (B, L), the views that are observed
    pairs   (P,), b L + i
    number  (B, L), the row of each pair; anything where a view is missing and has none
    """

    mask: Tensor
    pairs: Tensor
    number: Tensor

    @classmethod
    def of(cls, mask: Tensor, whole: bool) -> Sources:
        """whole: with a row for missing views, too, so that the shape does not depend on them."""
        flat = mask.flatten()
        if whole:
            pairs = torch.arange(len(flat), device=mask.device)
            return cls(mask, pairs, pairs.view_as(mask))
        return cls(mask, flat.nonzero()[:, 0], (flat.cumsum(0) - 1).view_as(mask))

    @property
    def whole(self) -> bool:
        return len(self.pairs) == self.mask.numel()

    def spread(self, t: Tensor) -> Tensor:
        """(P, ...) -> (B, L, ...), zero where a view is missing."""
        if not self.whole:
            t = t.new_zeros(self.mask.numel(), *t.shape[1:]).index_copy(0, self.pairs, t)
        return t.view(*self.mask.shape, *t.shape[1:])

    def own(self, t: Tensor) -> Tensor:
        """z_ii, the latent of every view from the view itself: (P, L, D) -> (P, D)."""
        P, L, D = t.shape
        if self.whole:  # the diagonal
            return t.view(-1, L, L, D).diagonal(dim1=1, dim2=2).mT.reshape(P, D)
        rows = torch.arange(P, device=t.device)
        return take(t.flatten(0, 1), rows * L + self.pairs % L)

    def permuted(self, t: Tensor, permutations: Tensor) -> Tensor:
        """Exchange the sources within every column: z_ij of sample b becomes its z_kj,
        k = permutations[b, j, i]. t (P, L, D), permutations (B, L, L), one per column j."""
        P, L, D = t.shape
        if self.whole:
            k = permutations.mT.unsqueeze(-1).expand(-1, L, L, D)
            return t.view(-1, L, L, D).gather(1, k).view(P, L, D)
        sample, columns = self.pairs // L, torch.arange(L, device=t.device)
        k = permutations.transpose(1, 2).flatten(0, 1)[self.pairs]  # (P, L)
        rows = self.number[sample[:, None], k] * L + columns
        return take(t.flatten(0, 1), rows.flatten()).view_as(t)

    def column(self, t: Tensor, wanted: Tensor) -> Tensor:
        """What every source says of some views: wanted (Q,), b L + j -> z_ij (Q, L, D), anything
        where view i is missing."""
        L = t.shape[1]
        sample, j = wanted // L, (wanted % L)[:, None]
        rows = (self.number[sample] * L + j).masked_fill(~self.mask[sample], len(t) * L)
        return take(t.flatten(0, 1), rows.flatten()).view(len(wanted), L, t.shape[2])


def take(x: Tensor, index: Tensor) -> Tensor:
    """x[index] of a matrix (n, D), each row at most once; anything where the index is n.

    Since no row occurs twice, gradients are copied, not added: half the time of x[index].
    """
    found: Tensor = _Take.apply(x, index)  # type: ignore[no-untyped-call]
    return found


class _Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.rows = len(x)
        return x.index_select(0, index.clamp(max=len(x) - 1))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (index,), (grad,) = ctx.saved_tensors, grads
        whole = grad.new_zeros(ctx.rows + 1, grad.shape[1])  # the last for none
        return whole.index_copy_(0, index, grad)[: ctx.rows], None
