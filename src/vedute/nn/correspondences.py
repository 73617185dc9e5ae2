"""Correspondences f_ij: the latent of view j predicted from the latent of view i."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from vedute.nn.coders import zero_init
from vedute.nn.gaussian import Gaussian
from vedute.nn.sources import Sources, take


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
        self.n_views = n_views
        self.curve: nn.Sequential | None = None
        self.linear: StackedLinear | None = None
        if n_views > 1:
            self._build(2 * len(source), dim, hidden, skip)

    def _build(self, groups: int, dim: int, hidden: Sequence[int], skip: bool) -> None:
        """Build the networks, `groups` of them stacked."""
        layers: list[nn.Module] = []
        for a, b in pairwise((dim, *hidden, dim)):
            layers += [StackedLinear(groups, a, b), nn.LeakyReLU(inplace=True)]
        self.curve = nn.Sequential(*layers[:-1])
        if skip:
            self.linear = identities(groups, dim)
            zero_init(self.curve[-1])

    def forward(self, q: Gaussian, sources: Sources | None = None) -> Gaussian:
        """Predict all latents, (B, L, D) -> (P, L, D): row (b, i), column j holds f_ij(z_bi).

        Without `sources`, the rows are all pairs, P = B L.
        """
        latents = torch.stack(q)  # (2, B, L, D)
        _, B, L, D = latents.shape
        if sources is None:
            mask = torch.ones(B, L, dtype=torch.bool, device=latents.device)
            sources = Sources.of(mask, whole=True)
        diagonal = latents.flatten(1, 2).index_select(1, sources.pairs)  # (2, P, D)
        if self.curve is None and self.linear is None:
            return Gaussian(*diagonal.unsqueeze(2).expand(2, -1, L, D))
        rows, slot = _groups(sources)
        z = latents[:, rows, torch.arange(L, device=latents.device)[:, None]]  # (2, L, m, D)
        z = z.unsqueeze(2).expand(2, L, L - 1, *z.shape[2:]).flatten(0, 2)
        paths = [path(z) for path in (self.curve, self.linear) if path is not None]
        predicted = sum(paths[1:], start=paths[0]).float().view(2, -1, D)
        view, targets = (sources.pairs % L)[:, None], torch.arange(L, device=latents.device)
        group = view * (L - 1) + targets - (targets > view).long()  # (P, L)
        index = (group * rows.shape[1] + slot[:, None]).masked_fill(
            view == targets, predicted.shape[1]
        )
        at = torch.arange(len(view), device=latents.device) * L + view[:, 0]
        table = (take(part, index.flatten()) for part in predicted.unbind(0))
        filled = (t.index_copy_(0, at, d) for t, d in zip(table, diagonal, strict=True))
        return Gaussian(*(t.view(-1, L, D) for t in filled))


def _groups(sources: Sources) -> tuple[Tensor, Tensor]:
    """Return the samples that have each view, (L, m), padded with other samples to the same length,
    and the position of each pair among them, (P,)."""
    (B, L), pairs, mask = sources.mask.shape, sources.pairs, sources.mask
    if sources.whole:
        return torch.arange(B, device=pairs.device).expand(L, B), pairs // L
    order = (~mask).t().to(torch.uint8).argsort(dim=1, stable=True)
    return order[:, : int(mask.sum(0).max())], (mask.cumsum(0) - 1).flatten()[pairs]


def identities(groups: int, dim: int) -> StackedLinear:
    """Build stacked linear maps that start as the identity."""
    linear = StackedLinear(groups, dim, dim)
    with torch.no_grad():
        linear.weight.copy_(torch.eye(dim).expand(groups, dim, dim))
        linear.bias.zero_()
    return linear


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
