"""One view as an array in one of two forms.

name.npy              an array (n, ...); the ids of its rows in name.ids.txt, one per line
name/p1.png, ...      a folder of images of one size, each named by the id of its sample
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vedute.data import limits
from vedute.io.contents import Array, Bools, checked_ids, errors_as, own_first
from vedute.io.files import below

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
GREY_MODES, IDS = ("1", "L", "LA"), ".ids.txt"


class Keyed(NamedTuple):
    """Values (n, ...), and the ids of their rows, as text, or None."""

    values: Array
    index: Any

    def spread(self, ids: Array) -> tuple[Array, Bools]:
        """Place rows by id (m, ...), zero without a row; and a mask of ids with one (m,)."""
        positions = self.index.get_indexer(ids.astype(str))
        observed = positions >= 0
        out = np.zeros((len(ids), *self.values.shape[1:]), self.values.dtype)
        out[observed] = self.values[positions[observed]]
        if out.dtype.kind == "f":
            observed &= ~np.isnan(out.reshape(len(out), -1)).all(1)
        return out, observed


def read_npy(path: Path) -> Keyed:
    """Read an array of numbers; never unpickle."""
    with path.open("rb") as file:
        limits.check(limits.npy_bytes(file), path)
    values = unpickled(lambda: np.load(path, allow_pickle=False), path)
    is_array = isinstance(values, np.ndarray)
    if not is_array or values.ndim < 2 or values.dtype.kind not in "biuf":
        what = f"{values.dtype} of shape {values.shape}" if is_array else "npz"
        raise ValueError(f"{path} holds {what}; a view is numbers (samples, features)")
    ids = ids_of(path)
    if ids is not None and len(ids) != len(values):
        counts = f"{len(ids)} ids, {path.name} {len(values)} rows"
        raise ValueError(f"{path.with_suffix(IDS)} has {counts}; give one each")
    return Keyed(values, ids)


def unpickled(load: Callable[[], Any], what: object) -> Any:
    """Read an array with numpy; reject one of objects, which would have to be unpickled."""
    try:
        with errors_as(f"{what} is damaged"):
            return load()
    except ValueError as e:
        if "allow_pickle" not in str(e):
            raise
        raise ValueError(f"{what} holds Python objects; save numbers or text") from None


def ids_of(path: Path) -> pd.Index | None:
    """Read the ids of the rows of an array, in their order, if a file has them."""
    names = path.with_suffix(IDS)
    if not names.is_file():
        return None
    limits.check(names.stat().st_size, names)
    with errors_as(f"{names} is not UTF-8 text", "save it as UTF-8", UnicodeError):
        lines = names.read_text(encoding="utf-8-sig").splitlines()
    ids = [line for line in lines if line.strip()]
    return checked_ids(pd.Series(ids, dtype=str), names)


def write_npy(out: Path, values: Array, ids: Array | None, source: Path | None = None) -> None:
    """Write an array and its ids; rows of `source` keep their order, others follow."""
    source_ids = None if source is None else ids_of(source)
    if source_ids is not None and ids is not None:
        order = own_first(pd.Index(ids), source_ids)
        values, ids = values[order], ids[order]
    np.save(out, np.asarray(values), allow_pickle=False)
    if ids is not None:
        broken = [str(i) for i in ids if len(str(i).splitlines()) != 1]
        if broken:
            raise ValueError(f"id {broken[0]!r} is not one line of text; rename the sample")
        out.with_suffix(IDS).write_text("".join(f"{i}\n" for i in ids), encoding="utf-8")


def read_images(folder: Path) -> Keyed:
    """Read bytes (n, channels, height, width); one channel if all images are grey, else three."""
    if find_spec("PIL") is None:
        raise ImportError(f"{folder} holds images, which need pillow: pip install 'vedute[images]'")
    files = images(folder)
    ids = checked_ids(pd.Series([f.stem for f in files], dtype=str), folder)
    area, grey, pixels = 0, True, []
    for file in files:
        with _opened(file) as image:
            area, grey = area + image.width * image.height, grey and image.mode in GREY_MODES
    limits.check(area if grey else 3 * area, folder)
    for file in files:
        with _opened(file) as image:  # (height, width), or (height, width, 3)
            pixels.append(np.asarray(image.convert("L" if grey else "RGB")))
    for file, p in zip(files, pixels, strict=True):
        if p.shape[:2] != pixels[0].shape[:2]:
            own, first = (f"{a.shape[1]} x {a.shape[0]}" for a in (p, pixels[0]))
            raise ValueError(f"{file} is {own} pixels, {files[0].name} {first}; make them alike")
    stacked = np.stack(pixels)
    return Keyed(stacked[:, None] if grey else stacked.transpose(0, 3, 1, 2), ids)


def write_images(out: Path, source: Path, values: Array, ids: Array) -> None:
    """Copy images of `source`; write the others as .png."""
    from PIL import Image

    out.mkdir()
    sources = {f.stem: f for f in images(source)}
    for name, image in zip(ids.tolist(), values, strict=True):
        if name in sources:
            shutil.copyfile(sources[name], below(out, sources[name].name))
            continue
        pixels = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
        Image.fromarray(np.ascontiguousarray(pixels)).save(below(out, name, ".png"))


def images(folder: Path) -> list[Path]:
    """List the images in a folder; none in a file."""
    inside = folder.iterdir() if folder.is_dir() else ()
    return sorted(f for f in inside if f.suffix.lower() in IMAGE_ENDINGS and f.is_file())


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
