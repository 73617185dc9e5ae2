"""Networks. Architecture follows the shape of a view, never the name of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vedute.data.views import Views
from vedute.nn.convolutions import (
    NETWORKS,
    TextDecoder,
    TextEncoder,
    image_decoder,
    image_encoder,
    is_image,
)
from vedute.nn.cuda_streams import side_by_side
from vedute.nn.gaussian import Gaussian
from vedute.nn.likelihoods import LIKELIHOODS, Likelihood

NORMAL = LIKELIHOODS["normal"]
WIDEST = 15.0  # of means and log-variances that nothing else bounds
STEEP = 0.9  # beyond, tanh is too flat to start at


def mlp(*sizes: int, dropout: float = 0.0) -> nn.Sequential:
    """Linear layers, Xavier-normal, with ReLU (and dropout) after all but the last."""
    layers: list[nn.Module] = []
    for a, b in pairwise(sizes):
        linear = nn.Linear(a, b)
        nn.init.xavier_normal_(linear.weight)
        layers += [linear, nn.ReLU(), nn.Dropout(dropout)] if dropout else [linear, nn.ReLU()]
    return nn.Sequential(*layers[: -2 if dropout else -1])


def encode(encoders: nn.ModuleList, batch: Views) -> Gaussian:
    """q(z_v | x_v) of every view, (B, L, D); zero where the view was spared."""
    found = batch.present()

    def one(v: int) -> Gaussian:
        x = batch.x[v]
        q: Gaussian = encoders[v](x if found is None else x[found[v]])
        return q if found is None else q.map(_spread(found[v], len(x)))

    parts = side_by_side([partial(one, v) for v in range(len(encoders))], batch.x)
    return Gaussian(*(torch.stack(p, dim=1) for p in zip(*parts, strict=True)))


def _spread(rows: Tensor, n: int) -> Callable[[Tensor], Tensor]:
    """(m, D) -> (n, D): each to its row, zero elsewhere."""
    return lambda t: t.new_zeros(n, t.shape[1]).index_copy(0, rows, t)


class Encoder(nn.Module):
    """q(z | x): (B, *shape) -> Gaussian of shape (B, D).

    Images are seen by convolutions, less the mean image `center`; tokens (shape (T, V), V words) by
    convolutions along the text; the rest by an mlp. `bounded`: statistics bounded by tanh; else
    only kept within ±WIDEST, the means like the log-variances, against samples far outside.
    """

    center: Tensor | None

    def __init__(
        self,
        shape: Sequence[int],
        hidden: Sequence[int],
        latent_dim: int,
        dropout: float = 0.0,
        network: str = "auto",
        kind: Likelihood = NORMAL,
        bounded: bool = True,
    ) -> None:
        super().__init__()
        self.bounded = bounded
        _leave_room(self, shape, network, kind)
        self.net: nn.Module
        if kind.text:
            self.net = TextEncoder(shape, latent_dim, dropout)
        elif by_convolution(shape, network):
            self.net = image_encoder(shape, latent_dim, network, dropout)
        else:
            dense = mlp(prod(shape), *hidden, 2 * latent_dim, dropout=dropout)
            self.net = dense if len(shape) == 1 else nn.Sequential(nn.Flatten(), *dense)

    def forward(self, x: Tensor) -> Gaussian:
        out = self.net(x if self.center is None else x - self.center).float()
        out = out.tanh() if self.bounded else out.clamp(-WIDEST, WIDEST)
        return Gaussian(*out.chunk(2, dim=-1))


class Decoder(nn.Module):
    """p(x | z): (..., D) -> (..., *shape), with a linear path beside the nonlinear one if asked.

    Images are told as what they differ in from `center`.
    """

    center: Tensor | None

    def __init__(
        self,
        latent_dim: int,
        hidden: Sequence[int],
        shape: Sequence[int],
        output: str,
        skip: bool,
        network: str = "auto",
        kind: Likelihood = NORMAL,
    ) -> None:
        super().__init__()
        self.shape, self.tanh = tuple(shape), output == "tanh"
        _leave_room(self, shape, network, kind)
        self.net: nn.Module
        self.linear: nn.Module | None = None
        if kind.text:
            self.net = TextDecoder(latent_dim, shape)
        elif by_convolution(shape, network):
            self.net = image_decoder(latent_dim, shape, network)
        else:
            self.net = mlp(latent_dim, *reversed(hidden), prod(shape))
        if skip and not kind.text:  # start at the linear map: the curve is learned on top
            self.linear = nn.Linear(latent_dim, prod(shape), bias=False)
            _silence(list(self.net.children())[-1])

    def forward(self, z: Tensor) -> Tensor:
        lead = z.shape[:-1]
        out: Tensor = self.net(z.reshape(prod(lead), z.shape[-1]))
        if self.linear is not None:
            out = out + self.linear(z).reshape(out.shape)
        out = out if self.center is None else out + self.center
        out = out.tanh() if self.tanh else out
        return out.reshape(*lead, *self.shape)


def start_at(model: nn.Module, means: Sequence[NDArray[np.float64]]) -> None:
    """Image networks begin at the mean image of their view, in [-1, 1]: on a white ground they
    would else learn white first, and with it to say nothing."""
    each = (networks for networks in model.children() if isinstance(networks, nn.ModuleList))
    for networks in each:  # one network per view
        for network, mean in zip(networks, means, strict=False):
            if isinstance(network, (Encoder, Decoder)) and network.center is not None:
                image = torch.from_numpy(mean)
                told = isinstance(network, Decoder) and network.tanh
                network.center.copy_(image.clamp(-STEEP, STEEP).atanh() if told else image)


def _leave_room(owner: nn.Module, shape: Sequence[int], network: str, kind: Likelihood) -> None:
    """For the mean image, if the view is one of images."""
    images = not kind.text and by_convolution(shape, network)
    owner.register_buffer("center", torch.zeros(tuple(shape)) if images else None)


def by_convolution(shape: Sequence[int], network: str) -> bool:
    """Whether a view is seen as a picture."""
    if network not in NETWORKS:
        raise ValueError(f"network must be one of {', '.join(NETWORKS)}, got {network!r}")
    return network != "mlp" and is_image(shape)


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

    f_ii is the identity. `kind`: mlp, linear or identity; `skip` adds a linear path to the mlp
    that starts as the identity, so that untrained views already agree.
    """

    source: Tensor
    target: Tensor

    def __init__(
        self, n_views: int, dim: int, hidden: Sequence[int], kind: str = "mlp", skip: bool = False
    ) -> None:
        super().__init__()
        source, target = torch.where(~torch.eye(n_views, dtype=torch.bool))
        self.register_buffer("source", source)
        self.register_buffer("target", target)
        self.n_views = n_views
        groups = 2 * len(source)
        self.curve = self.linear = None
        if kind == "mlp" and groups:
            layers: list[nn.Module] = []
            for a, b in pairwise((dim, *hidden, dim)):
                layers += [StackedLinear(groups, a, b), nn.LeakyReLU()]
            self.curve = nn.Sequential(*layers[:-1])
        if (kind == "linear" or skip) and kind != "identity" and groups:
            self.linear = StackedLinear(groups, dim, dim)
            with torch.no_grad():
                self.linear.weight.copy_(torch.eye(dim).expand(groups, dim, dim))
                self.linear.bias.zero_()
            if self.curve is not None:
                _silence(self.curve[-1])

    def forward(self, q: Gaussian, mask: Tensor | None = None) -> Gaussian:
        """(B, L, D) -> (B, L, L, D): row i, column j holds f_ij(z_i).

        With `mask` (B, L), only samples that have view i are asked for f_ij; the rest are zero,
        but for a few that make the groups of one size.
        """
        rows = None if mask is None else _present_first(mask)
        own = torch.stack(q)  # (2, B, L, D)
        _, B, L, D = own.shape
        if self.curve is None and self.linear is None:
            return q.map(lambda t: t.unsqueeze(2).expand(B, L, L, D))
        views = torch.arange(L, device=own.device)
        asked = own.transpose(1, 2) if rows is None else own[:, rows, views[:, None]]
        z = asked.unsqueeze(2).expand(2, L, L - 1, *asked.shape[2:]).flatten(0, 2)
        paths = [path(z) for path in (self.curve, self.linear) if path is not None]
        told = sum(paths[1:], start=paths[0]).float().view(2, L * (L - 1), -1, D)
        table = own.new_zeros(2, B, L, L, D) if rows is not None else own.new_empty(2, B, L, L, D)
        if rows is None:
            table[:, :, self.source, self.target] = told.transpose(1, 2)
        else:
            at = (rows[self.source], self.source[:, None], self.target[:, None])
            table[:, *at] = told
        table[:, :, views, views] = own
        return Gaussian(*table)


@contextmanager
def compiled(model: nn.Module, methods: Sequence[str]) -> Iterator[None]:
    """Inside, the networks of a model and these methods of its own run compiled; a step that was
    captured there stays so."""
    networks = [m for m in model.modules() if isinstance(m, (Encoder, Decoder, Correspondences))]
    parts = [*((network, "forward") for network in networks), *((model, name) for name in methods)]
    for owner, name in parts:
        setattr(owner, name, torch.compile(getattr(owner, name), dynamic=False))
    try:
        yield
    finally:
        for owner, name in parts:
            delattr(owner, name)


def _present_first(mask: Tensor) -> Tensor:
    """(B, L) -> (L, m): per view the rows that have it, filled up to the longest with others."""
    order = (~mask).t().to(torch.uint8).argsort(dim=1, stable=True)
    return order[:, : int(mask.sum(0).max())]


def _silence(layer: nn.Module) -> None:
    """A last layer that starts at zero: only the linear path speaks at first."""
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
