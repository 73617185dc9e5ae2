"""Synthetic views with a known generating process. Needs no download.

clusters  x_v = tanh(A_v z / 2) + 0.1 e, z Gaussian around the center of its class
linear    x_v = W_v z + b_v + noise e, z standard normal: the best imputation has a closed form
"""

from __future__ import annotations

from typing import NamedTuple

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
        model = linear_gaussian(n, dims, seed=seed)
        rank = model.z[:, 0].argsort().argsort()
        return Views.of(model.views, y=rank * classes // n)
    raise ValueError(f"no kind {kind!r}; choose from clusters, linear")


def linear_gaussian(
    n: int, dims: tuple[int, ...], latent: int = 4, noise: float = 0.3, seed: int = 0
) -> LinearGaussian:
    """n samples of a random linear Gaussian model."""
    rng = np.random.default_rng(seed)
    W = [rng.standard_normal((d, latent)) / np.sqrt(latent) for d in dims]
    b = [rng.standard_normal(d) for d in dims]
    z = rng.standard_normal((n, latent))
    x = [z @ w.T + c + noise * rng.standard_normal((n, len(c))) for w, c in zip(W, b, strict=True)]
    return LinearGaussian(Views.of(x), z, W, b, noise)


class LinearGaussian(NamedTuple):
    """x_v = W_v z + b_v + noise e with z, e standard normal.

    views: complete; z (n, D); W: L arrays (d_v, D); b: L arrays (d_v,)
    """

    views: Views
    z: Floats
    W: list[Floats]
    b: list[Floats]
    noise: float

    def expected(self, views: Views) -> list[Floats]:
        """E[W_v z + b_v | what is observed in a row], L arrays (n, d_v), for any mask and holes.

        It is the best imputation of missing views; where a view is present, its value denoised.
        """
        n, D = len(views), self.z.shape[1]
        precision = np.tile(np.eye(D), (n, 1, 1))
        evidence = np.zeros((n, D))
        for v, (w, b) in enumerate(zip(self.W, self.b, strict=True)):
            seen = np.repeat(views.mask[:, v, None].numpy(), len(b), axis=1)
            holes = views.holes[v]
            weight = (seen if holes is None else seen & ~holes.numpy()) / self.noise**2  # (n, d)
            precision += np.einsum("nd,dk,dl->nkl", weight, w, w)
            evidence += (weight * (views.x[v].numpy().astype(np.float64) - b)) @ w
        mean = np.linalg.solve(precision, evidence[:, :, None])[:, :, 0]
        return [mean @ w.T + b for w, b in zip(self.W, self.b, strict=True)]


def _clusters(n: int, dims: tuple[int, ...], classes: int, seed: int) -> Views:
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    z = 2.0 * rng.standard_normal((classes, 4))[y] + 0.5 * rng.standard_normal((n, 4))
    x = [np.tanh(z @ rng.standard_normal((4, d)) / 2) for d in dims]
    return Views.of([a + 0.1 * rng.standard_normal(a.shape) for a in x], y=y)
