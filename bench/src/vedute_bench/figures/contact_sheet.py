"""Contact sheets of small images, from arrays, without an image library."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Bytes = NDArray[np.uint8]
WHITE, RED = (255, 255, 255), (200, 30, 30)


def sheet(
    images: ArrayLike, wrong: ArrayLike | None = None, lead: int = 0, scale: int = 2, gap: int = 3
) -> Bytes:
    """Arrange images (rows, columns, C, H, W) of bytes, C = 1 or 3, as a picture (H', W', 3).

    wrong (rows, columns): images to frame in red. lead: number of first columns, such as given
    views, set apart from the others. scale: size of a pixel; gap: white border of an image.
    """
    pixels = np.asarray(images)
    if pixels.ndim != 5 or pixels.shape[2] not in (1, 3) or pixels.dtype != np.uint8:
        raise ValueError(
            f"images are {pixels.dtype} {pixels.shape}; pass bytes (rows, columns, 1 or 3, H, W)"
        )
    rows, columns = pixels.shape[:2]
    bad = np.zeros((rows, columns), bool) if wrong is None else np.asarray(wrong, bool)
    if bad.shape != (rows, columns):
        raise ValueError(f"wrong has shape {bad.shape}; pass one flag per image, {rows, columns}")
    color = np.broadcast_to(pixels, (rows, columns, 3, *pixels.shape[3:]))
    large = color.transpose(0, 1, 3, 4, 2).repeat(scale, axis=2).repeat(scale, axis=3)
    tiles = _framed(large, bad, gap)  # (rows, columns, height, width, 3)
    strips = [tiles[:, :lead], tiles[:, lead:]] if 0 < lead < columns else [tiles]
    blocks = [t.transpose(0, 2, 1, 3, 4).reshape(rows * t.shape[2], -1, 3) for t in strips]
    separator = np.full((len(blocks[0]), 3 * gap, 3), WHITE, np.uint8)
    whole = blocks[0] if len(blocks) == 1 else np.hstack([blocks[0], separator, blocks[1]])
    return np.pad(whole, ((gap, gap), (gap, gap), (0, 0)), constant_values=255)


def _framed(images: Bytes, bad: NDArray[np.bool_], gap: int) -> Bytes:
    """Add a white border of `gap` to images (..., H, W, 3), with a red frame inside if bad."""
    *lead, height, width, _ = images.shape
    tiles = np.full((*lead, height + 2 * gap, width + 2 * gap, 3), WHITE, np.uint8)
    inset = max(gap - 2, 0)  # two pixels of red
    end = -inset or None
    tiles[:, :, inset:end, inset:end][bad] = RED
    tiles[:, :, gap : gap + height, gap : gap + width] = images
    return tiles
