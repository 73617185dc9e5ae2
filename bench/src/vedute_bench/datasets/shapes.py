"""Shapes: generated tables, chairs, cars, airplanes and rifles, each seen from five sides.

This is an open stand-in for the rendered ShapeNet objects of the MVP paper (`mvshapenet`). It has
as many objects in the same five classes, seen from the same five azimuths by the same camera.
Images have 64 x 64 pixels on white, and four in five objects are for training. Never report results
on it as results on ShapeNet.

The objects are parametric: legs, backs with slats, armrests, cabins, wheels, wings, engines,
stocks, scopes and more vary in kind, number, proportions and color. Colors have the same
distribution in every class. An object is rotated by up to 20 degrees, scaled and shifted, in the
same way in all its views. A linear classifier of pixels has an accuracy below 90 %.

Needs no download. Making the full set takes a few minutes; it is then kept in the data folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from warnings import warn
from zipfile import BadZipFile

import numpy as np

from vedute.data.views import Views
from vedute.datasets._files import folder
from vedute.io.files import atomic_file
from vedute_bench.shapes.objects import CLASSES, FULL, Bytes, Ints, labels, pictures, split_rows

AZIMUTHS = (-90, -45, 0, 45, 90)  # degrees from the front
SIZE = 64
NAMES = tuple(CLASSES)  # of the labels 0, 1, ...
VERSION = 1  # of the objects' appearance: files of other versions are ignored


def load(n: int = FULL, seed: int = 0, split: str = "all", size: int = SIZE) -> Views:
    """Generate n objects of five classes: five views of bytes (3, size, size) named by azimuth.

    split: "train" is the first four fifths of the n objects, "test" the rest.
    """
    rows = split_rows(n, split)
    if n < 1 or size < 1:
        raise ValueError(f"n and size must be at least 1, got {n} and {size}")
    y = labels(n, seed)
    images = _kept(y, seed) if (n, size) == (FULL, SIZE) else pictures(y, seed, AZIMUTHS, size)
    views = {str(a): x[rows] for a, x in zip(AZIMUTHS, images, strict=True)}
    return Views.of(views, y=y[rows])


def _kept(y: Ints, seed: int) -> Sequence[Bytes]:
    """Read all images from the cache file, or make them and write it."""
    path = folder() / f"shapes-{seed}-v{VERSION}.npz"
    if path.is_file():
        return _read(path, (len(y), 3, SIZE, SIZE))
    images = pictures(y, seed, AZIMUTHS, SIZE)
    try:
        with atomic_file(path, force=True) as part:
            np.savez_compressed(part, **{f"view{v}": x for v, x in enumerate(images)})
    except OSError as e:
        warn(
            f"the shapes could not be written to {path.parent} ({e}) and will be made "
            "again each time; point VEDUTE_DATA to a folder that can be written",
            stacklevel=3,
        )
    return list(images)


def _read(path: Path, shape: tuple[int, ...]) -> Sequence[Bytes]:
    try:
        with np.load(path, allow_pickle=False) as file:
            images = [file[f"view{v}"] for v in range(len(AZIMUTHS))]
    except (BadZipFile, EOFError, KeyError, IndexError, ValueError):
        images = []
    if [x.shape for x in images] != [shape] * len(AZIMUTHS):
        raise ValueError(f"{path} lacks five views of shape {shape}; delete it and load again")
    return images
