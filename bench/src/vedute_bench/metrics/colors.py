"""Agreement between the colors of images, by hue, saturation and value, and those of sentences.

Every pixel has one color, by its place in HSV space:

    black          value < 0.2.
    white, gray    saturation < 0.15; white from value 0.8 on.

    else by hue    red 345 ... 15   orange ... 45   yellow ... 70   green ... 165   blue ... 255
                   purple ... 290   pink ... 345 degrees

    brown          dark red to orange: value < 0.6, but a saturated red stays red.
    pink           also a pale red: saturation < 0.5.

An image shows a color that covers some share of its pixels. The agreement of images and sentences
is the share of named colors that are shown. It is compared with the agreement by chance, of the
same images with all sentences: a color that is everywhere agrees with everything.

The idea is that of MMVAE+ (Palumbo et al., ICLR 2023) for CUB image-captions: compare HSV colors of
generated images with the caption. Ranges, shares and rule are our own, because theirs are not
published: the numbers are not comparable with published ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch import Tensor

NAMES = (
    *("red", "orange", "yellow", "green", "blue", "purple", "pink"),
    *("brown", "black", "gray", "white"),
)
SYNONYMS = {"grey": "gray", "tan": "brown", "violet": "purple"}
ENDS = (15.0, 45.0, 70.0, 165.0, 255.0, 290.0, 345.0)  # degrees, of red, orange, ..., pink
RED, ORANGE, PINK, BROWN, BLACK, GRAY, WHITE = (
    NAMES.index(n) for n in ("red", "orange", "pink", "brown", "black", "gray", "white")
)
SHOWN = 0.1  # minimum share of pixels of a color that an image shows


def agreement(
    images: Tensor, sentences: Sequence[str], least: float = SHOWN, ground: str | None = None
) -> dict[str, float]:
    """Share of the colors named in sentences (B) that their images (B, 3, H, W) show.

    `chance` is the share over all pairs of a sentence and an image. Both are NaN if no color is
    named. Pixels of the background color `ground` are ignored.
    """
    if len(images) != len(sentences):
        raise ValueError(f"{len(images)} images and {len(sentences)} sentences; pass one for each")
    names, shown = named(sentences), shares(images, ground).cpu() >= least
    pairs = int(names.sum())
    if not pairs:
        return {"agreement": float("nan"), "chance": float("nan")}
    by_chance = names.double().sum(0) @ shown.double().mean(0)
    return {"agreement": int((names & shown).sum()) / pairs, "chance": float(by_chance) / pairs}


def named(sentences: Sequence[str]) -> Tensor:
    """Flags (B, 11) of the colors that each sentence names as whole words."""
    flags = torch.zeros(len(sentences), len(NAMES), dtype=torch.bool)
    for row, sentence in zip(flags, sentences, strict=True):
        for word in re.findall(r"[a-z]+", sentence.lower()):
            if (color := SYNONYMS.get(word, word)) in NAMES:
                row[NAMES.index(color)] = True
    return flags


def shares(images: Tensor, ground: str | None = None) -> Tensor:
    """Shares (B, 11) of the pixels of images (B, 3, H, W) that have each color."""
    color = pixels(images).flatten(1)
    counts = torch.stack([(color == c).sum(1) for c in range(len(NAMES))], dim=1).double()
    if ground is not None:
        if ground not in NAMES:
            raise ValueError(f"no color {ground!r}; choose from {', '.join(NAMES)}")
        counts[:, NAMES.index(ground)] = 0
    return counts / counts.sum(1, keepdim=True).clamp(min=1)


def pixels(images: Tensor) -> Tensor:
    """Color of each pixel, as a position in NAMES: (B, 3, H, W) -> (B, H, W)."""
    hue, saturation, value = hsv(images)
    ends = torch.tensor(ENDS, device=hue.device, dtype=hue.dtype)
    color = torch.bucketize(hue, ends, right=True) % len(ENDS)  # past the last end: red again
    red = color == RED
    dark, pale = value < 0.6, saturation < 0.5
    color = torch.where((color == ORANGE) & dark | red & dark & pale, BROWN, color)
    color = torch.where(red & pale & ~dark, PINK, color)
    color = torch.where(saturation < 0.15, torch.where(value < 0.8, GRAY, WHITE), color)
    return torch.where(value < 0.2, BLACK, color)


def hsv(images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue in degrees [0, 360), saturation and value in [0, 1] of RGB images, (B, H, W) each.

    Images (B, 3, H, W) are bytes or floats in [0, 1]. Gray has hue 0, black has saturation 0.
    """
    if images.ndim != 4 or images.shape[1] != 3:
        raise ValueError(f"images have shape {tuple(images.shape)}; pass colors, (B, 3, H, W)")
    x = images.double() / 255 if images.dtype == torch.uint8 else images.double()
    if x.numel() and not (x.min() >= 0 and x.max() <= 1):
        span = f"[{float(x.min()):.3g}, {float(x.max()):.3g}]"
        raise ValueError(f"images have values in {span}; pass bytes, or floats in [0, 1]")
    red, green, blue = x.unbind(1)
    value, low = x.amax(1), x.amin(1)
    spread = value - low
    step = torch.where(spread > 0, spread, 1.0)
    sixths = torch.where(
        value == red,
        ((green - blue) / step) % 6,
        torch.where(value == green, (blue - red) / step + 2, (red - green) / step + 4),
    )
    return 60 * sixths % 360, spread / torch.where(value > 0, value, 1.0), value
