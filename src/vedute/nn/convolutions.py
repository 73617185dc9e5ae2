"""Trunks of encoders and decoders: mlps, and convolutions for images (C, H, W) and for token
sequences (T, V).

Every convolution has kernel 3, stride 2, padding 1, so a side is halved, rounded up, until it is
small; decoders go the same way back.

    mvp         the network of the MVP paper: 64 128 256 512 512 ... channels down to a side of 2
    polymnist   the smaller one of the multimodal VAE literature: 32 64 128 ... down to a side of 4
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

from torch import Tensor, nn
from torch.nn.functional import conv2d, conv_transpose2d, pad

from vedute.nn.shards import Dropout


class Plan(NamedTuple):
    """Channels of the first layer, most channels, smallest side, width of the dense layer (None:
    that of the latent)."""

    first: int
    most: int
    least: int
    dense: int | None


PLANS = {"mvp": Plan(64, 512, 2, None), "polymnist": Plan(32, 128, 4, 512)}
TEXT = Plan(128, 512, 4, None)
AUTO, LARGE, SMALL = "auto", "mvp", "polymnist"
NETWORKS = (AUTO, "mlp", *PLANS)
SMALLEST_SIDE = 8  # smaller images go through an mlp
EMBEDDING = 64  # numbers per token
CHANNEL_MULTIPLE = 8  # of channels that the convolutions of a GPU need


def mlp(*sizes: int, dropout: float = 0.0) -> nn.Sequential:
    """Linear layers, Xavier-normal, with ReLU (and dropout) after all but the last."""
    layers: list[nn.Module] = []
    for a, b in pairwise(sizes):
        linear = nn.Linear(a, b)
        nn.init.xavier_normal_(linear.weight)
        layers += [linear, nn.ReLU(), Dropout(dropout)] if dropout else [linear, nn.ReLU()]
    return nn.Sequential(*layers[: -2 if dropout else -1])


def chosen(device: str) -> str:
    """Return the network that `auto` selects for a device. On a CPU a step of the large one takes
    seconds."""
    return SMALL if device == "cpu" else LARGE


def image_encoder(shape: Sequence[int], dim: int, network: str, dropout: float) -> nn.Sequential:
    """Build (B, C, H, W) -> (B, 2 D): mean and log-variance from one layer, whose initial weights
    are a little smaller than those of two would be. Dropout follows the convolutions."""
    plan = PLANS[LARGE if network == AUTO else network]
    sides, channels = _sizes(shape[1], shape[0], plan)
    layers, flat = _halving(Conv2d, channels, dropout), channels[-1] * sides[-1] ** 2
    return nn.Sequential(*layers, *mlp(flat, plan.dense or dim, 2 * dim))


def image_decoder(latent_dim: int, shape: Sequence[int], network: str) -> nn.Sequential:
    """Build (B, D) -> (B, C, H, W) with a linear last layer."""
    sides, channels = _sizes(shape[1], shape[0], PLANS[LARGE if network == AUTO else network])
    start = channels[-1], sides[-1], sides[-1]
    dense = [*mlp(latent_dim, prod(start)), nn.ReLU(), nn.Unflatten(1, start)]
    return nn.Sequential(*dense, *_doubling(ConvTranspose2d, channels, sides)[:-1])


class Conv2d(nn.Conv2d):
    """A convolution that, on a GPU, pads its input with zeros to CHANNEL_MULTIPLE channels: cuDNN
    otherwise pads by itself, several times, in separate kernels."""

    def forward(self, x: Tensor) -> Tensor:
        extra = -self.in_channels % CHANNEL_MULTIPLE
        if not (extra and x.is_cuda):
            return super().forward(x)
        x, weight = (pad(t, (0, 0, 0, 0, 0, extra)) for t in (x, self.weight))
        return conv2d(x, weight, self.bias, self.stride, self.padding)


class ConvTranspose2d(nn.ConvTranspose2d):
    """The transposed counterpart of `Conv2d`: it drops the padding channels."""

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        extra = -self.out_channels % CHANNEL_MULTIPLE
        if not (extra and x.is_cuda) or self.bias is None:
            return super().forward(x, output_size)
        weight, bias = pad(self.weight, (0, 0, 0, 0, 0, extra)), pad(self.bias, (0, extra))
        out = conv_transpose2d(x, weight, bias, 2, 1, self.output_padding)
        return out[:, : self.out_channels]


class TextEncoder(nn.Module):
    """Encoder of tokens: (B, T), from a vocabulary of V -> (B, 2 D)."""

    def __init__(self, shape: Sequence[int], latent_dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        length, vocabulary = shape
        self.embedding = nn.Embedding(vocabulary, EMBEDDING)
        sides, channels = _sizes(length, EMBEDDING, TEXT)
        layers = _halving(nn.Conv1d, channels, dropout)
        self.net = nn.Sequential(*layers, *mlp(channels[-1] * sides[-1], 256, 2 * latent_dim))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.net(self.embedding(x.long()).transpose(1, 2))
        return out


class TextDecoder(nn.Module):
    """Decoder of tokens: (B, D) -> logits (B, T, V)."""

    def __init__(self, latent_dim: int, shape: Sequence[int]) -> None:
        super().__init__()
        length, vocabulary = shape
        sides, channels = _sizes(length, EMBEDDING, TEXT)
        start = channels[-1], sides[-1]
        dense = [*mlp(latent_dim, 256, prod(start)), nn.ReLU(), nn.Unflatten(1, start)]
        self.net = nn.Sequential(*dense, *_doubling(nn.ConvTranspose1d, channels, sides))
        self.words = mlp(EMBEDDING, vocabulary)[0]

    def forward(self, z: Tensor) -> Tensor:
        out: Tensor = self.words(self.net(z).transpose(1, 2))
        return out


def _sizes(side: int, channels: int, plan: Plan) -> tuple[list[int], list[int]]:
    """Return the side and the channels of the input and after each layer."""
    sides = [side]
    while sides[-1] > plan.least:
        sides.append(-(-sides[-1] // 2))
    widths = [min(plan.first * 2**i, plan.most) for i in range(len(sides) - 1)]
    return sides, [channels, *widths]


def _halving(kind: type[nn.Module], channels: list[int], dropout: float) -> list[nn.Module]:
    """Build convolutions between these channels, flattened at the end."""
    layers: list[nn.Module] = []
    for a, b in pairwise(channels):
        layers += [kind(a, b, 3, stride=2, padding=1), nn.ReLU()]
    return [*layers, nn.Flatten(), Dropout(dropout)] if dropout else [*layers, nn.Flatten()]


def _doubling(kind: type[nn.Module], channels: list[int], sides: list[int]) -> list[nn.Module]:
    """Build transposed convolutions, from the last of these channels and sides to the first."""
    layers: list[nn.Module] = []
    for (a, b), (small, large) in zip(pairwise(channels[::-1]), pairwise(sides[::-1]), strict=True):
        odd = large - (2 * small - 1)  # what a transposed convolution leaves open
        layers += [kind(a, b, 3, 2, padding=1, output_padding=odd), nn.ReLU()]
    return layers
