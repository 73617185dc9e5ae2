"""Do pictures show the colors that sentences name? By hue, saturation and value of the pixels.

Every pixel has one color, by its place in HSV space:

    black          value < 0.2
    white, gray    saturation < 0.15; white from value 0.8 on
    else by hue    red 345 ... 15   orange ... 45   yellow ... 70   green ... 165   blue ... 255
                   purple ... 290   pink ... 345 degrees
    brown          red to orange that is dark: value < 0.6, but a strong red stays red
    pink           also a pale red: saturation < 0.5

A picture shows a color that covers some share of its pixels. The agreement of pictures and
sentences is the share of named colors that are shown, beside what the same pictures would have
with the sentences of others: a color that is everywhere agrees with everything.

The idea is that of MMVAE+ (Palumbo et al., ICLR 2023) for CUB image-captions: HSV colors of
generated images against what the caption says. Ranges, shares and rule are ours, since we could
not read its own: the numbers are not comparable with published ones.
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
SHOWN = 0.1  # the share of pixels that a color needs to be seen


def agreement(
    images: Tensor, sentences: Sequence[str], least: float = SHOWN, ground: str | None = None
) -> dict[str, float]:
    """The share of the colors named in sentences (B) that their images (B, 3, H, W) show, and by
    `chance`: of all sentences with all images. NaN where no color is named.

    `ground`: a color that is background, and counts neither as shown nor as a pixel.
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
    """Which colors each sentence names, as whole words: (B, 11) bool."""
    found = torch.zeros(len(sentences), len(NAMES), dtype=torch.bool)
    for row, sentence in zip(found, sentences, strict=True):
        for word in re.findall(r"[a-z]+", sentence.lower()):
            if (color := SYNONYMS.get(word, word)) in NAMES:
                row[NAMES.index(color)] = True
    return found


def shares(images: Tensor, ground: str | None = None) -> Tensor:
    """Of the pixels of each image (B, 3, H, W) that have each color: (B, 11)."""
    of = pixels(images).flatten(1)
    counts = torch.stack([(of == c).sum(1) for c in range(len(NAMES))], dim=1).double()
    if ground is not None:
        if ground not in NAMES:
            raise ValueError(f"no color {ground!r}; choose from {', '.join(NAMES)}")
        counts[:, NAMES.index(ground)] = 0
    return counts / counts.sum(1, keepdim=True).clamp(min=1)


def pixels(images: Tensor) -> Tensor:
    """The color of each pixel: (B, 3, H, W) -> (B, H, W), positions in NAMES."""
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
    """Hue in degrees [0, 360), saturation and value in [0, 1] of RGB images (B, 3, H, W), bytes or
    floats in [0, 1]: (B, H, W) each. What is gray has hue 0, what is black saturation 0."""
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
