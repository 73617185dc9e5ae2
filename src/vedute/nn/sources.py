"""The table of latents z_ij, view j predicted from view i, with a row for each observed view i.

Half of a full table (B, L, L, D) may be predicted from missing views. Here a table is (P, L, D):
its rows are the P pairs of a sample b and an observed view i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from vedute.nn.gaussian import Gaussian, product


@dataclass(frozen=True, eq=False)
class Sources:
    """The pairs of sample and view that form the rows of a table.

    mask    (B, L), the views that are observed
    whole   with rows for missing views, so that the shape is fixed
    pairs   (P,), b L + i
    number  (B, L), the row of each pair; undefined where a view is missing and has no row
    """

    mask: Tensor
    whole: bool
    pairs: Tensor
    number: Tensor

    @classmethod
    def of(cls, mask: Tensor, whole: bool) -> Sources:
        flat = mask.flatten()
        if whole:
            pairs = torch.arange(len(flat), device=mask.device)
            return cls(mask, whole, pairs, pairs.view_as(mask))
        return cls(mask, whole, flat.nonzero()[:, 0], (flat.cumsum(0) - 1).view_as(mask))

    def spread(self, t: Tensor) -> Tensor:
        """Scatter (P, ...) -> (B, L, ...), zero where a view is missing."""
        if not self.whole:
            t = t.new_zeros(self.mask.numel(), *t.shape[1:]).index_copy(0, self.pairs, t)
        return t.view(*self.mask.shape, *t.shape[1:])

    def own(self, t: Tensor) -> Tensor:
        """Return z_ii, the latent of every view from the view itself: (P, L, D) -> (P, D)."""
        P, L, D = t.shape
        if self.whole:  # the diagonal
            return t.view(-1, L, L, D).diagonal(dim1=1, dim2=2).mT.reshape(P, D)
        rows = torch.arange(P, device=t.device)
        return take(t.flatten(0, 1), rows * L + self.pairs % L)

    def permuted(self, t: Tensor, permutations: Tensor) -> Tensor:
        """Permute the sources within every column: z_ij of sample b becomes its z_kj,
        k = permutations[b, j, i]. t (P, L, D), permutations (B, L, L), one per column j."""
        P, L, D = t.shape
        if self.whole:
            k = permutations.mT.unsqueeze(-1).expand(-1, L, L, D)
            return t.view(-1, L, L, D).gather(1, k).view(P, L, D)
        sample, columns = self.pairs // L, torch.arange(L, device=t.device)
        k = permutations.transpose(1, 2).flatten(0, 1)[self.pairs]  # (P, L)
        rows = self.number[sample[:, None], k] * L + columns
        return take(t.flatten(0, 1), rows.flatten()).view_as(t)

    def product(self, q: Gaussian, wanted: Tensor | None = None) -> Gaussian:
        """Return the product of each column over the sources, (P, L, D) -> (B, L, D).

        wanted (B, L): only these columns are needed; None: all
        """
        if wanted is None or self.whole:  # all of them, which keeps shapes static
            return product(q.map(self.spread), 1, self.mask[..., None, None])
        P, L, D = q.mean.shape
        columns = Sources.of(wanted, whole=False)  # (Q,) views
        sample, view = columns.pairs // L, (columns.pairs % L)[:, None]
        seen = self.mask[sample]  # (Q, L)
        rows = (self.number[sample] * L + view).masked_fill(~seen, P * L).flatten()
        needed = q.map(lambda t: take(t.flatten(0, 1), rows).view(-1, L, D))
        return product(needed, 1, seen.unsqueeze(-1)).map(columns.spread)


class _Take(torch.autograd.Function):
    """x[index] of a matrix (n, D), each row at most once; undefined where the index is n.

    Since no row occurs twice, gradients are copied, not added: half the time of x[index].
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.rows = len(x)
        return x.index_select(0, index.clamp(max=len(x) - 1))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (index,), (grad,) = ctx.saved_tensors, grads
        whole = grad.new_zeros(ctx.rows + 1, grad.shape[1])  # the last row collects index n
        return whole.index_copy_(0, index, grad)[: ctx.rows], None


take: Callable[[Tensor, Tensor], Tensor] = _Take.apply
