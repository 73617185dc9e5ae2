"""One view as a folder of images of one size, each named by the id of its sample."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vedute.data import limits
from vedute.io.contents import Array, checked_ids, errors_as
from vedute.io.files import below
from vedute.io.npy import Keyed

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
GREY_MODES = ("1", "L", "LA")


def are_in(folder: Path) -> bool:
    return folder.is_dir() and any(True for _ in _files(folder))


def read(folder: Path) -> Keyed:
    """Read bytes (n, channels, height, width); one channel if all images are grey, else three."""
    if find_spec("PIL") is None:
        raise ImportError(f"{folder} holds images, which need pillow: pip install 'vedute[images]'")
    files = _files(folder)
    ids = checked_ids(pd.Series([f.stem for f in files], dtype=str), folder)
    limits.check(sum(_size(f) for f in files), folder)
    pixels = [_pixels(f) for f in files]
    color = any(p.ndim == 3 for p in pixels)
    for file, p in zip(files, pixels, strict=True):
        if p.shape[:2] != pixels[0].shape[:2]:
            sizes = [f"{a.shape[1]} x {a.shape[0]}" for a in (p, pixels[0])]
            raise ValueError(
                f"{file} is {sizes[0]} pixels, {files[0].name} {sizes[1]}; bring all images of a "
                "view to one size"
            )
    if color:
        pixels = [p if p.ndim == 3 else np.repeat(p[..., None], 3, 2) for p in pixels]
        return Keyed(np.stack(pixels).transpose(0, 3, 1, 2), ids)
    return Keyed(np.stack(pixels)[:, None], ids)


def write(out: Path, source: Path, values: Array, ids: Array) -> None:
    """Copy images of `source`; write the others as .png."""
    from PIL import Image

    out.mkdir()
    sources = {f.stem: f for f in _files(source)}
    for name, image in zip(ids.tolist(), values, strict=True):
        if name in sources:
            shutil.copyfile(sources[name], below(out, sources[name].name))
            continue
        pixels = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
        Image.fromarray(np.ascontiguousarray(pixels)).save(below(out, name, ".png"))


def _files(folder: Path) -> list[Path]:
    return sorted(f for f in folder.iterdir() if f.suffix.lower() in IMAGE_ENDINGS and f.is_file())


def _size(file: Path) -> int:
    """Bytes of its pixels, according to the header."""
    with _opened(file) as image:
        return int(image.width * image.height * (1 if image.mode in GREY_MODES else 3))


def _pixels(file: Path) -> Array:
    """Decode to (height, width) or (height, width, 3), in bytes."""
    with _opened(file) as image:
        return np.asarray(image.convert("L" if image.mode in GREY_MODES else "RGB"))


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """Open an image whose pixels are not read yet; raise errors inside as messages."""
    from PIL import Image

    with (
        errors_as(f"{file} cannot be read as an image", "save it again"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # see `limits`
        with Image.open(file) as image:
            if image.mode in ("I", "F") or image.mode.startswith("I;"):
                raise ValueError(f"more than 8 bits per pixel (mode {image.mode})")
            yield image
