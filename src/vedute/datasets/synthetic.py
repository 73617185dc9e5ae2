"""Synthetic views with a known generating process. Needs no download.

clusters  x_v = tanh(A_v z / 2) + 0.1 e, z Gaussian around the center of its class
linear    x_v = W_v z + b_v + noise e, z standard normal: the best imputation has a closed form
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedute.data.views import Views

Floats = NDArray[np.float64]


def load(
    n: int = 600,
    dims: tuple[int, ...] = (20, 16, 12),
    classes: int = 5,
    kind: str = "clusters",
    seed: int = 0,
) -> Views:
    """n samples, one view per entry of dims, `classes` classes; kind "clusters" or "linear".

    Linear views have no clusters: their classes are equal parts of the first latent axis.
    """
    if kind == "clusters":
        return _clusters(n, dims, classes, seed)
    if kind == "linear":
        x, z, _, _ = linear_gaussian(n, dims, seed=seed)
        rank = z[:, 0].argsort().argsort()
        return Views.of(x, y=rank * classes // n)
    raise ValueError(f"no kind {kind!r}; choose from clusters, linear")


def linear_gaussian(
    n: int, dims: tuple[int, ...], latent: int = 4, noise: float = 0.3, seed: int = 0
) -> tuple[list[Floats], Floats, list[Floats], list[Floats]]:
    """Draw views (n, d_v), z (n, D), W_v (d_v, D) and b_v (d_v,) of a random linear model."""
    rng = np.random.default_rng(seed)
    W = [rng.standard_normal((d, latent)) / np.sqrt(latent) for d in dims]
    b = [rng.standard_normal(d) for d in dims]
    z = rng.standard_normal((n, latent))
    x = [z @ w.T + c + noise * rng.standard_normal((n, len(c))) for w, c in zip(W, b, strict=True)]
    return x, z, W, b


def _clusters(n: int, dims: tuple[int, ...], classes: int, seed: int) -> Views:
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    z = 2.0 * rng.standard_normal((classes, 4))[y] + 0.5 * rng.standard_normal((n, 4))
    x = [np.tanh(z @ rng.standard_normal((4, d)) / 2) for d in dims]
    return Views.of([a + 0.1 * rng.standard_normal(a.shape) for a in x], y=y)
