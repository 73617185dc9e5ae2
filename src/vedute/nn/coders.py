"""Encoders and decoders. Architecture follows the shape of a view, never the name of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vedute.data.views import Views
from vedute.nn import convolutions, shards
from vedute.nn.cuda_streams import parallel_streams
from vedute.nn.gaussian import Gaussian
from vedute.nn.likelihoods import LIKELIHOODS, Likelihood

NORMAL = LIKELIHOODS["normal"]
MAX_OUTPUT = 15.0  # limit of means and log-variances that nothing else bounds
MAX_TANH_START = 0.9  # beyond it, tanh is too flat to start at


def mlp(*sizes: int, dropout: float = 0.0) -> nn.Sequential:
    """Linear layers, Xavier-normal, with ReLU (and dropout) after all but the last."""
    layers: list[nn.Module] = []
    for a, b in pairwise(sizes):
        linear = nn.Linear(a, b)
        nn.init.xavier_normal_(linear.weight)
        layers += [linear, nn.ReLU(), shards.Dropout(dropout)] if dropout else [linear, nn.ReLU()]
    return nn.Sequential(*layers[: -2 if dropout else -1])


def encode(encoders: nn.ModuleList, batch: Views) -> Gaussian:
    """Encode views: q(z_v | x_v), (B, L, D), zero where one is missing and was not encoded."""
    present = batch.present()

    def one(v: int) -> Gaussian:
        x = batch.x[v]
        with shards.present(v):
            q: Gaussian = encoders[v](x if present is None else x[present[v]])
        if present is None:
            return q
        return q.map(lambda t: t.new_zeros(len(x), t.shape[1]).index_copy(0, present[v], t))

    parts = parallel_streams([partial(one, v) for v in range(len(encoders))], batch.x)
    return Gaussian(*(torch.stack(p, dim=1) for p in zip(*parts, strict=True)))


def decode(decoders: nn.ModuleList, codes: Tensor) -> list[Tensor]:
    """Decode every view from its code, (S, B, L, D) -> L tensors (S, B, *shape_v)."""
    return [decoder(code) for decoder, code in zip(decoders, codes.unbind(2), strict=True)]


class Encoder(nn.Module):
    """q(z | x): (B, *shape) -> Gaussian of shape (B, D).

    Images, minus the mean image `center`, go through 2-D convolutions, tokens (shape (T, V), V
    words) through convolutions along the text, everything else through an mlp. `bounded`: mean and
    log-variance are bounded by tanh; else they are clamped to ±MAX_OUTPUT, against outliers.
    """

    center: Tensor | None

    def __init__(
        self,
        shape: Sequence[int],
        hidden: Sequence[int],
        latent_dim: int,
        dropout: float = 0.0,
        network: str = "auto",
        likelihood: Likelihood = NORMAL,
        bounded: bool = True,
    ) -> None:
        super().__init__()
        self.bounded, self.input = bounded, likelihood.encoder_input
        _register_center(self, shape, network, likelihood)
        self.net: nn.Module
        if likelihood.text:
            self.net = convolutions.TextEncoder(shape, latent_dim, dropout)
        elif by_convolution(shape, network):
            self.net = convolutions.image_encoder(shape, latent_dim, network, dropout)
        else:
            dense = mlp(prod(shape), *hidden, 2 * latent_dim, dropout=dropout)
            self.net = dense if len(shape) == 1 else nn.Sequential(nn.Flatten(), *dense)

    def forward(self, x: Tensor) -> Gaussian:
        x = self.input(x)
        out = self.net(x if self.center is None else x - self.center).float()
        out = out.tanh() if self.bounded else out.clamp(-MAX_OUTPUT, MAX_OUTPUT)
        return Gaussian(*out.chunk(2, dim=-1))


class Decoder(nn.Module):
    """p(x | z): (..., D) -> (..., *shape), with a linear path beside the nonlinear one if `skip`.
    Images are decoded as differences from the mean image `center`."""

    center: Tensor | None

    def __init__(
        self,
        latent_dim: int,
        hidden: Sequence[int],
        shape: Sequence[int],
        output: str,
        skip: bool,
        network: str = "auto",
        likelihood: Likelihood = NORMAL,
    ) -> None:
        super().__init__()
        shape = tuple(shape) if likelihood.outputs == 1 else (*shape, likelihood.outputs)
        network = network if likelihood.outputs == 1 else "mlp"
        self.shape, self.tanh = shape, output == "tanh"
        _register_center(self, shape, network, likelihood)
        self.net: nn.Module
        self.linear: nn.Module | None = None
        if likelihood.text:
            self.net = convolutions.TextDecoder(latent_dim, shape)
        elif by_convolution(shape, network):
            self.net = convolutions.image_decoder(latent_dim, shape, network)
        else:
            self.net = mlp(latent_dim, *reversed(hidden), prod(shape))
        if skip and not likelihood.text:  # start as a linear map; learn the rest on top
            self.linear = nn.Linear(latent_dim, prod(shape), bias=False)
            zero_init(list(self.net.children())[-1])

    def forward(self, z: Tensor) -> Tensor:
        lead = z.shape[:-1]
        out: Tensor = self.net(z.reshape(prod(lead), z.shape[-1]))
        if self.linear is not None:
            out = out + self.linear(z).reshape(out.shape)
        out = out if self.center is None else out + self.center
        out = out.tanh() if self.tanh else out
        return out.reshape(*lead, *self.shape)


def start_at(model: nn.Module, means: Sequence[NDArray[np.float64]]) -> None:
    """Set the center of image networks to the mean image of their view, in [-1, 1]. Without it,
    networks for objects on white learn the background first and may ignore the latent."""
    lists = (child for child in model.children() if isinstance(child, nn.ModuleList))
    for networks in lists:  # one network per view
        for network, mean in zip(networks, means, strict=False):
            if isinstance(network, (Encoder, Decoder)) and network.center is not None:
                image = torch.from_numpy(mean)
                if isinstance(network, Decoder) and network.tanh:
                    image = image.clamp(-MAX_TANH_START, MAX_TANH_START).atanh()
                network.center.copy_(image)


def _register_center(
    owner: nn.Module, shape: Sequence[int], network: str, likelihood: Likelihood
) -> None:
    """Register a buffer for the mean image, if the view holds images."""
    images = not likelihood.text and by_convolution(shape, network)
    owner.register_buffer("center", torch.zeros(tuple(shape)) if images else None)


def by_convolution(shape: Sequence[int], network: str) -> bool:
    """Return whether a view is encoded by 2-D convolutions."""
    if network not in convolutions.NETWORKS:
        choices = ", ".join(convolutions.NETWORKS)
        raise ValueError(f"network must be one of {choices}, got {network!r}")
    return network != "mlp" and convolutions.is_image(shape)


def zero_init(layer: nn.Module) -> None:
    """Zero a last layer, so that at first only the linear path beside it has an effect."""
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
