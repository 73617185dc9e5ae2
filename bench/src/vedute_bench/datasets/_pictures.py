"""Read one picture from a file at a given size."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def need_pillow(name: str) -> None:
    if find_spec("PIL") is None:
        raise ImportError(f"{name} reads images, which needs pillow: pip install 'vedute[images]'")


def read(path: Path, size: int) -> Bytes:
    """Read an image as (3, size, size), distorted if not square; white where transparent."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            image.draft("RGB", (2 * size, 2 * size))  # large photographs: decode what is needed
            if image.has_transparency_data:
                ground = Image.new("RGBA", image.size, "white")
                opaque = Image.alpha_composite(ground, image.convert("RGBA")).convert("RGB")
            else:
                opaque = image.convert("RGB")
            if opaque.size != (size, size):
                opaque = opaque.resize((size, size), Image.Resampling.BILINEAR)
            return np.asarray(opaque).transpose(2, 0, 1)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as e:
        raise ValueError(f"{path} cannot be read as an image ({e}); replace it") from None
