"""Encoders and decoders. Architecture follows the shape of a view, never the name of a dataset."""

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vedute.data.views import Views
from vedute.nn import convolutions, shards
from vedute.nn.convolutions import mlp
from vedute.nn.cuda_streams import in_parallel
from vedute.nn.gaussian import Gaussian
from vedute.nn.likelihoods import LIKELIHOODS, Likelihood

NORMAL = LIKELIHOODS["normal"]
MAX_OUTPUT = 15.0  # limit of means and log-variances that nothing else bounds
MAX_TANH_START = 0.9  # beyond it, tanh is too flat to start at


def encode(encoders: nn.ModuleList, batch: Views) -> Gaussian:
    """Encode views: q(z_v | x_v), (B, L, D), zero where one is missing and was not encoded."""
    present = batch.present()

    def encoded(v: int) -> Gaussian:
        rows = slice(None) if present is None else present[v]
        with shards.present(v):
            q: Gaussian = encoders[v](batch.x[v][rows])
        if present is None:
            return q
        zeros = q.mean.new_zeros(len(batch), q.mean.shape[1])
        return q.map(partial(zeros.index_copy, 0, present[v]))

    means, logvars = zip(*in_parallel(encoded, range(len(encoders)), batch.x), strict=True)
    return Gaussian(torch.stack(means, dim=1), torch.stack(logvars, dim=1))


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
        image = not likelihood.text and by_convolution(shape, network)
        self.register_buffer("center", torch.zeros(tuple(shape)) if image else None)
        self.net: nn.Module
        if likelihood.text:
            self.net = convolutions.TextEncoder(shape, latent_dim, dropout)
        elif image:
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
        image = not likelihood.text and by_convolution(shape, network)
        self.shape, self.tanh = shape, output == "tanh"
        self.register_buffer("center", torch.zeros(shape) if image else None)
        self.net: nn.Module
        self.linear: nn.Module | None = None
        if likelihood.text:
            self.net = convolutions.TextDecoder(latent_dim, shape)
        elif image:
            self.net = convolutions.image_decoder(latent_dim, shape, network)
        else:
            self.net = mlp(latent_dim, *reversed(hidden), prod(shape))
        if skip and not likelihood.text:  # start as a linear map; learn the rest on top
            self.linear = nn.Linear(latent_dim, prod(shape), bias=False)
            for parameter in [*self.net.children()][-1].parameters():
                nn.init.zeros_(parameter)

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
    for networks in model.children():
        if not isinstance(networks, nn.ModuleList):
            continue
        for network, mean in zip(networks, means, strict=False):  # one per view
            if isinstance(network, (Encoder, Decoder)) and network.center is not None:
                image = torch.from_numpy(mean)
                if isinstance(network, Decoder) and network.tanh:
                    image = image.clamp(-MAX_TANH_START, MAX_TANH_START).atanh()
                network.center.copy_(image)


def by_convolution(shape: Sequence[int], network: str = convolutions.AUTO) -> bool:
    """Return whether samples go through 2-D convolutions: images (C, H, W), square, with one or
    three channels, and large enough to be halved."""
    if network not in convolutions.NETWORKS:
        raise ValueError(
            f"network must be one of {', '.join(convolutions.NETWORKS)}, got {network!r}"
        )
    square = len(shape) == 3 and shape[1] == shape[2] >= convolutions.SMALLEST_SIDE
    return square and shape[0] in (1, 3) and network != "mlp"


def check_image(name: str, shape: Sequence[int], of_bytes: bool) -> None:
    """Reject what looks like images but would go through an mlp that ignores their geometry."""
    if len(shape) == 2 and of_bytes:
        channels, sides = 1, [*shape]
        fix = "add the channel axis (x[:, None])"
    elif len(shape) != 3 or by_convolution(shape):
        return
    elif shape[0] > 4:
        *sides, channels = shape
        fix = "move the channel axis (numpy.moveaxis(x, -1, 1))"
    else:
        channels, *sides = shape
        fix = "make them square, with one or three channels"
    if min(sides) >= convolutions.SMALLEST_SIDE and channels <= 4:
        raise ValueError(
            f"view {name!r} has samples of shape {tuple(shape)}; images are (n, channels, height, "
            f"width), square: {fix}, or pass network='mlp'"
        )
