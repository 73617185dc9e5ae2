"""Small pictures inside the page: arrays as PNG, without an image library."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIDE = 96  # pixels, at most


def picture(image: NDArray[Any], low: float, high: float) -> str:
    """A data URL of the image (h, w), (h, w, c) or (c, h, w) as PNG; low is black, high white."""
    if image.ndim == 3 and image.shape[0] in (1, 3):
        image = np.moveaxis(image, 0, -1)
    if image.ndim == 3:
        image = image[..., :3] if image.shape[-1] >= 3 else image[..., 0]
    step = -(-max(image.shape[:2]) // SIDE)
    image = np.nan_to_num(image[::step, ::step], nan=low)
    level = np.clip((image - low) / ((high - low) or 1.0), 0, 1)
    data = png(np.rint(255 * level).astype(np.uint8))
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def png(image: NDArray[np.uint8]) -> bytes:
    """Encode an image (h, w) or (h, w, 3) as a PNG file."""
    height, width = image.shape[:2]
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if image.ndim == 3 else 0, 0, 0, 0)
    lines = b"".join(b"\0" + row.tobytes() for row in image)
    parts = {b"IHDR": head, b"IDAT": zlib.compress(lines, 9), b"IEND": b""}
    file = b"\x89PNG\r\n\x1a\n"
    for kind, data in parts.items():
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        file += struct.pack(">I", len(data)) + kind + data + checksum
    return file
