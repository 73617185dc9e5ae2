"""Convolutional trunks for images (C, H, W) and for token sequences (T, V).

Every layer has kernel 3, stride 2, padding 1, so a side is halved, rounded up, until it is small;
decoders go the same way back.

    mvp         the network of the MVP paper: 64 128 256 512 512 ... channels down to a side of 2
    polymnist   the smaller one of the multimodal VAE literature: 32 64 128 ... down to a side of 4
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
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
AUTO, LARGE, SMALL = "auto", "mvp", "polymnist"
NETWORKS = (AUTO, "mlp", *PLANS)
SMALLEST_SIDE = 8  # smaller images go through an mlp
EMBEDDING = 64  # numbers per token
CHANNEL_MULTIPLE = 8  # of channels that the convolutions of a GPU need


def is_image(shape: Sequence[int]) -> bool:
    """Return whether samples are images: (C, H, W), square, with one or three channels, and large
    enough to be halved."""
    return len(shape) == 3 and shape[0] in (1, 3) and shape[1] == shape[2] >= SMALLEST_SIDE


def chosen(device: str) -> str:
    """Return the network that `auto` selects for a device. On a CPU a step of the large one takes
    seconds."""
    return SMALL if device == "cpu" else LARGE


def check_image(name: str, shape: Sequence[int], of_bytes: bool) -> None:
    """Reject what looks like images but would go through an mlp that ignores their geometry."""
    if len(shape) == 2 and of_bytes:
        sides, channels, fix = shape, 1, "add the channel axis (x[:, None])"
    elif len(shape) != 3 or is_image(shape):
        return
    elif shape[0] > 4:
        sides, channels, fix = (
            shape[:2],
            shape[2],
            "move the channel axis (numpy.moveaxis(x, -1, 1))",
        )
    else:
        sides, channels, fix = shape[1:], shape[0], "make them square, with one or three channels"
    if min(sides) >= SMALLEST_SIDE and channels <= 4:
        raise ValueError(
            f"view {name!r} has samples of shape {tuple(shape)}; images are (n, channels, height, "
            f"width), square: {fix}, or pass network='mlp'"
        )


def image_encoder(
    shape: Sequence[int], latent_dim: int, network: str, dropout: float = 0.0
) -> nn.Sequential:
    """Build (B, C, H, W) -> (B, 2 D): mean and log-variance from one layer, whose initial weights
    are a little smaller than those of two would be. Dropout follows the convolutions."""
    plan = PLANS[LARGE if network == AUTO else network]
    sides, channels = _sizes(shape[1], plan)
    dense = (channels[-1] * sides[-1] ** 2, plan.dense or latent_dim, 2 * latent_dim)
    return _encoder(Conv2d, (shape[0], *channels), dense, dropout)


def image_decoder(latent_dim: int, shape: Sequence[int], network: str) -> nn.Sequential:
    """Build (B, D) -> (B, C, H, W) with a linear last layer."""
    plan = PLANS[LARGE if network == AUTO else network]
    sides, channels = _sizes(shape[1], plan)
    flat = channels[-1] * sides[-1] ** 2
    layers: list[nn.Module] = [_linear(latent_dim, flat), nn.ReLU()]
    layers.append(nn.Unflatten(1, (channels[-1], sides[-1], sides[-1])))
    widths, sizes = [*reversed(channels), shape[0]], [*reversed(sides), shape[1]]
    for (a, b), (small, large) in zip(pairwise(widths), pairwise(sizes), strict=True):
        odd = large - (2 * small - 1)  # what a transposed convolution leaves open
        layers += [ConvTranspose2d(a, b, 3, 2, padding=1, output_padding=odd), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


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
        sides, channels = _sizes(length, Plan(128, 512, 4, None))
        flat = channels[-1] * sides[-1] if channels else EMBEDDING * length
        dense = (flat, 256, 2 * latent_dim)
        self.net = _encoder(nn.Conv1d, (EMBEDDING, *channels), dense, dropout)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.net(self.embedding(x.long()).transpose(1, 2))
        return out


class TextDecoder(nn.Module):
    """Decoder of tokens: (B, D) -> logits (B, T, V)."""

    def __init__(self, latent_dim: int, shape: Sequence[int]) -> None:
        super().__init__()
        length, vocabulary = shape
        sides, channels = _sizes(length, Plan(128, 512, 4, None))
        widths = [*reversed(channels), EMBEDDING]
        sizes = [*reversed(sides), length]
        flat = widths[0] * sizes[0]
        layers: list[nn.Module] = [_linear(latent_dim, 256), nn.ReLU(), _linear(256, flat)]
        layers += [nn.ReLU(), nn.Unflatten(1, (widths[0], sizes[0]))]
        for (a, b), (small, large) in zip(pairwise(widths), pairwise(sizes), strict=True):
            odd = large - (2 * small - 1)
            layers += [nn.ConvTranspose1d(a, b, 3, 2, padding=1, output_padding=odd), nn.ReLU()]
        self.net = nn.Sequential(*layers)
        self.words = _linear(EMBEDDING, vocabulary)

    def forward(self, z: Tensor) -> Tensor:
        out: Tensor = self.words(self.net(z).transpose(1, 2))
        return out


def _sizes(side: int, plan: Plan) -> tuple[list[int], list[int]]:
    """Return the side and the channels after each layer."""
    sides: list[int] = []
    while side > plan.least:
        side = -(-side // 2)
        sides.append(side)
    return sides, [min(plan.first * 2**i, plan.most) for i in range(len(sides))]


def _encoder(
    convolution: type[nn.Module], channels: Sequence[int], dense: Sequence[int], dropout: float
) -> nn.Sequential:
    """Build convolutions between these channels, and two dense layers of these sizes."""
    layers: list[nn.Module] = []
    for a, b in pairwise(channels):
        layers += [convolution(a, b, 3, stride=2, padding=1), nn.ReLU()]
    layers += [nn.Flatten(), Dropout(dropout)] if dropout else [nn.Flatten()]
    flat, inner, out = dense
    return nn.Sequential(*layers, _linear(flat, inner), nn.ReLU(), _linear(inner, out))


def _linear(a: int, b: int) -> nn.Linear:
    layer = nn.Linear(a, b)
    nn.init.xavier_normal_(layer.weight)
    return layer
