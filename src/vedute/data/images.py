"""Images in bytes: networks see (n, channels, height, width), users may have channels last.

Axis 1 holds the channels if its length is 1, 3 or 4, else the last axis if its length is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedute.data.frames import ViewSpec

Array = NDArray[Any]
CHANNELS = (1, 3, 4)  # gray, colors, colors and opacity


def have_channels_last(name: str, shape: tuple[int, ...], fitted: ViewSpec | None = None) -> bool:
    """Whether these bytes are images (n, height, width, channels); where some were fitted, of their
    size."""
    if len(shape) != 4:
        return False
    if fitted is not None:
        moved = (shape[3], *shape[1:3])
        return shape[1:] != fitted.shape and moved == fitted.shape
    if shape[1] in CHANNELS or shape[3] in CHANNELS:
        return shape[1] not in CHANNELS
    raise ValueError(
        f"view {name!r} holds bytes of shape {shape}, and neither axis 1 nor the last has 1, 3 or "
        "4 channels of images; pass numbers that are no images as floats (x.astype('float32'))"
    )


def channels_first(a: Array) -> Array:
    """Move axes: (n, height, width, channels) -> (n, channels, height, width)."""
    return np.moveaxis(a, -1, -3)


def channels_last(a: Array) -> Array:
    """Move axes: (n, channels, height, width) -> (n, height, width, channels)."""
    return np.moveaxis(a, -3, -1)
