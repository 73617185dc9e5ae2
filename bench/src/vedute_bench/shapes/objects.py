"""Objects of five classes by number: an object depends only on seed, number and class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from vedute_bench.shapes.airplanes import airplane
from vedute_bench.shapes.cars import car
from vedute_bench.shapes.furniture import chair, table
from vedute_bench.shapes.rendering import mesh_of, render
from vedute_bench.shapes.rifles import rifle
from vedute_bench.shapes.solids import Design, Floats

CLASSES = {"table": table, "chair": chair, "car": car, "airplane": airplane, "rifle": rifle}
COUNTS = (8445, 6778, 3514, 4045, 2373)  # of the ShapeNet objects in the MVP paper
FULL = sum(COUNTS)
JITTER = 20.0  # degrees that an object is turned at most
SIZES = (0.55, 0.969)  # diameters of the sphere around an object; the largest fills the picture

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]


def labels(n: int, seed: int) -> Ints:
    """Shuffled classes (n,) in the paper's proportions, by the largest remainder method."""
    share = n * np.array(COUNTS) / FULL
    counts = np.floor(share).astype(np.int64)
    counts[np.argsort(counts - share, kind="stable")[: n - counts.sum()]] += 1
    return default_rng([seed, FULL]).permutation(np.repeat(np.arange(len(COUNTS)), counts))


def design(label: int, number: int, seed: int) -> tuple[Design, Generator]:
    """Draw the object, and return it with the random generator for `place`."""
    rng = default_rng([seed, number])
    return tuple(CLASSES.values())[label](rng), rng


def picture(made: Design, rng: Generator, azimuths: Sequence[float], size: int) -> Bytes:
    """Render an object from all sides (V, 3, size, size)."""
    return render(mesh_of(made.solids, *place(rng)), azimuths, size)


def place(rng: Generator) -> tuple[float, float, Floats]:
    """Draw the rotation, size and position (3,) of an object that is completely visible."""
    turn, wide = rng.uniform(-JITTER, JITTER), rng.uniform(*SIZES)
    away = rng.normal(size=3)
    far = (SIZES[1] - wide) / 2 * rng.random() ** (1 / 3)  # uniform in a ball
    return turn, wide, far * away / np.sqrt((away**2).sum())


def pictures(y: Ints, seed: int, azimuths: Sequence[float], size: int) -> Bytes:
    """Render the objects 0, 1, ... of these classes: (V, n, 3, size, size)."""
    out = np.empty((len(azimuths), len(y), 3, size, size), np.uint8)
    for i, label in enumerate(y):
        out[:, i] = picture(*design(int(label), i, seed), azimuths, size)
    return out


def split_rows(n: int, split: str) -> slice:
    """Rows of a split: the first four fifths of n rows are "train", the others "test"."""
    cut = n * 4 // 5
    rows = {"all": slice(n), "train": slice(cut), "test": slice(cut, n)}
    if split not in rows:
        raise ValueError(f"no split {split!r}; choose from {', '.join(rows)}")
    return rows[split]
