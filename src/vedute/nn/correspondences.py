"""Correspondences f_ij: the latent of view j predicted from the latent of view i."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from vedute.nn import kernels
from vedute.nn.coders import zero_init
from vedute.nn.gaussian import Gaussian


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


class StackedMlp(nn.Sequential):
    """Stacked layers; on a GPU one of them and its LeakyReLU have one gradient."""

    def forward(self, x: Tensor) -> Tensor:
        fused = kernels.of("layer", x)
        if fused is None:
            out: Tensor = super().forward(x)  # type: ignore[no-untyped-call]
            return out
        layers = list(self)
        for layer, after in zip(layers, [*layers[1:], None], strict=True):
            if isinstance(layer, StackedLinear):
                slope = after.negative_slope if isinstance(after, nn.LeakyReLU) else 1.0
                x = fused.Stacked.apply(x, layer.weight, layer.bias, slope)
        return x


class Correspondences(nn.Module):
    """All L(L-1) maps f_ij between view latents, for mean and log-variance, as one stacked MLP.

    f_ii is the identity. `kind`: mlp, linear or identity; `skip` adds a linear path to the mlp
    that starts as the identity, so that the latents of untrained views already agree.
    """

    source: Tensor
    target: Tensor

    def __init__(
        self, n_views: int, dim: int, hidden: Sequence[int], kind: str = "mlp", skip: bool = False
    ) -> None:
        super().__init__()
        source, target = torch.where(~torch.eye(n_views, dtype=torch.bool, device="cpu"))
        self.register_buffer("source", source)
        self.register_buffer("target", target)
        self.n_views = n_views
        groups = 2 * len(source)
        self.curve = self.linear = None
        if kind == "mlp" and groups:
            layers: list[nn.Module] = []
            for a, b in pairwise((dim, *hidden, dim)):
                layers += [StackedLinear(groups, a, b), nn.LeakyReLU()]
            self.curve = StackedMlp(*layers[:-1])
        if (kind == "linear" or skip) and kind != "identity" and groups:
            self.linear = StackedLinear(groups, dim, dim)
            with torch.no_grad():
                self.linear.weight.copy_(torch.eye(dim).expand(groups, dim, dim))
                self.linear.bias.zero_()
            if self.curve is not None:
                zero_init(self.curve[-1])

    def forward(self, q: Gaussian, mask: Tensor | None = None) -> Gaussian:
        """(B, L, D) -> (B, L, L, D): row i, column j holds f_ij(z_i).

        With `mask` (B, L), f_ij is computed for the samples that have view i; the rest are zero,
        but for a few that fill the groups up to one size.
        """
        rows = None if mask is None else _present_first(mask)
        own = torch.stack(q)  # (2, B, L, D)
        _, B, L, D = own.shape
        if self.curve is None and self.linear is None:
            return q.map(lambda t: t.unsqueeze(2).expand(B, L, L, D))
        views = torch.arange(L, device=own.device)
        source = own.transpose(1, 2) if rows is None else own[:, rows, views[:, None]]
        z = source.unsqueeze(2).expand(2, L, L - 1, *source.shape[2:]).flatten(0, 2)
        paths = [path(z) for path in (self.curve, self.linear) if path is not None]
        predicted = sum(paths[1:], start=paths[0]).float().view(2, L * (L - 1), -1, D)
        table = own.new_zeros(2, B, L, L, D) if rows is not None else own.new_empty(2, B, L, L, D)
        if rows is None:
            table[:, :, self.source, self.target] = predicted.transpose(1, 2)
        else:
            at = (rows[self.source], self.source[:, None], self.target[:, None])
            table[:, *at] = predicted
        table[:, :, views, views] = own
        return Gaussian(*table)


def _present_first(mask: Tensor) -> Tensor:
    """(B, L) -> (L, m): per view the rows that have it, filled up to the longest with others."""
    order = (~mask).t().to(torch.uint8).argsort(dim=1, stable=True)
    return order[:, : int(mask.sum(0).max())]
