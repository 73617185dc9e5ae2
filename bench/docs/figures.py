"""Pictures of datasets: python bench/docs/figures.py. Needs MNIST and scikit-image."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vedute.datasets import polymnist as digits
from vedute.figures.png import png
from vedute_bench.datasets import shapes as objects
from vedute_bench.figures.contact_sheet import sheet

HERE = Path(__file__).parent / "images"


def polymnist() -> None:
    """Two samples of every digit, one row per view."""
    views = digits.load("test", n=400)
    assert views.y is not None
    rows = [i for digit in range(10) for i in np.flatnonzero(views.y == digit)[:2]]
    images = np.stack([x[rows].numpy() for x in views.x])  # (5, 20, 3, 28, 28)
    (HERE / "polymnist.png").write_bytes(png(sheet(images)))


def shapes() -> None:
    """Two objects of every class, each from five sides."""
    views = objects.load(n=100)
    assert views.y is not None
    rows = [i for k in range(5) for i in np.flatnonzero(views.y == k)[:2]]
    images = np.stack([x[rows].numpy() for x in views.x], axis=1)  # (10, 5, 3, 64, 64)
    (HERE / "shapes.png").write_bytes(png(sheet(images.reshape(5, 10, 3, 64, 64), lead=5)))


if __name__ == "__main__":
    polymnist()
    shapes()
