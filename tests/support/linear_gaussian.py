"""The linear Gaussian model of `vedute.datasets.synthetic`, and its best imputation."""

from dataclasses import dataclass

import numpy as np

from vedute import Views
from vedute.datasets import synthetic


@dataclass
class LinearGaussian:
    """x_v = W_v z + b_v + noise e with z, e standard normal: n complete samples."""

    n: int
    dims: tuple[int, ...]
    latent: int
    noise: float
    seed: int

    def __post_init__(self):
        x, self.z, self.W, self.b = synthetic.linear_gaussian(
            self.n, self.dims, self.latent, self.noise, self.seed
        )
        self.views = Views.of(x)

    def expected(self, views):
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
