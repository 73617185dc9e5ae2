"""Correspondences f_ij: the latent of view j predicted from the latent of view i."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from vedute.nn.gaussian import Gaussian
from vedute.nn.sources import Sources, take


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
