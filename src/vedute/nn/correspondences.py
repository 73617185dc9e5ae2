"""Correspondences f_ij: the latent of view j predicted from the latent of view i.

They fill a table of latents z_ij. Half of a full table (B, L, L, D) may be predicted from missing
views. Here a table is (P, L, D): its rows are the P pairs of a sample b and an observed view i.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

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
    def of(cls, mask: Tensor, whole: bool) -> "Sources":
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
        mean = take(q.mean.flatten(0, 1), rows).view(-1, L, D)
        needed = Gaussian(mean, take(q.logvar.flatten(0, 1), rows).view(-1, L, D))
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


class StackedLinear(nn.Module):
    """G independent linear maps in one multiplication: (G, B, in) -> (G, B, out)."""

    def __init__(self, groups: int, d_in: int, d_out: int) -> None:
        super().__init__()
        std = (2.0 / (d_in + d_out)) ** 0.5  # Xavier, as for the other layers
        self.weight = nn.Parameter(torch.empty(groups, d_in, d_out).normal_(0.0, std))
        bound = d_in**-0.5
        self.bias = nn.Parameter(torch.empty(groups, 1, d_out).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)


class Correspondences(nn.Module):
    """All L(L-1) maps f_ij between view latents, for mean and log-variance, as one stacked MLP.
    f_ii is the identity. `skip` adds a linear path to the MLP that starts as the identity, so that
    the latents of untrained views already agree."""

    source: Tensor
    target: Tensor

    def __init__(self, n_views: int, dim: int, hidden: Sequence[int], skip: bool = False) -> None:
        super().__init__()
        source, target = torch.where(~torch.eye(n_views, dtype=torch.bool, device="cpu"))
        self.register_buffer("source", source)
        self.register_buffer("target", target)
        self.curve: nn.Module | None = None
        self.linear: nn.Module | None = None
        if n_views == 1:
            return
        layers: list[nn.Module] = []
        for a, b in pairwise((dim, *hidden, dim)):
            layers += [StackedLinear(2 * len(source), a, b), nn.LeakyReLU(inplace=True)]
        self.curve = nn.Sequential(*layers[:-1])
        if skip:
            self.linear = StackedLinear(2 * len(source), dim, dim)
            nn.init.zeros_(self.linear.bias)
            with torch.no_grad():
                self.linear.weight.copy_(torch.eye(dim))
            for parameter in layers[-2].parameters():
                nn.init.zeros_(parameter)

    def forward(self, q: Gaussian, sources: Sources) -> Gaussian:
        """Predict all latents, (B, L, D) -> (P, L, D): row (b, i), column j holds f_ij(z_bi)."""
        latents = torch.stack(q)  # (2, B, L, D)
        _, B, L, D = latents.shape
        pairs, mask, views = sources.pairs, sources.mask, torch.arange(L, device=latents.device)
        own = latents.flatten(1, 2).index_select(1, pairs)  # (2, P, D)
        if self.curve is None:
            return Gaussian(*own.unsqueeze(2).expand(2, -1, L, D))
        if sources.whole:  # samples (L, m) that have each view, and the place of pairs among them
            samples, place = torch.arange(B, device=pairs.device).expand(L, B), pairs // L
        else:  # padded with other samples to the same length
            order = (~mask).t().to(torch.uint8).argsort(dim=1, stable=True)
            samples = order[:, : int(mask.sum(0).max())]
            place = (mask.cumsum(0) - 1).flatten()[pairs]
        z = latents[:, samples, views[:, None]]  # (2, L, m, D)
        z = z.unsqueeze(2).expand(2, L, L - 1, *z.shape[2:]).flatten(0, 2)
        predicted = self.curve(z) if self.linear is None else self.curve(z) + self.linear(z)
        predicted = predicted.float().view(2, -1, D)
        view = (pairs % L)[:, None]
        group = view * (L - 1) + views - (views > view).long()  # (P, L)
        index = group * samples.shape[1] + place[:, None]
        index = index.masked_fill(view == views, predicted.shape[1]).flatten()
        diagonal = torch.arange(len(view), device=latents.device) * L + view[:, 0]
        (mean, logvar), (own_mean, own_logvar) = predicted, own
        mean = take(mean, index).index_copy_(0, diagonal, own_mean)
        logvar = take(logvar, index).index_copy_(0, diagonal, own_logvar)
        return Gaussian(mean.view(-1, L, D), logvar.view(-1, L, D))
