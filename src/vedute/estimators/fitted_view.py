"""One view as it was fitted: what the user has, its likelihood, scaling and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vedute.data import checks, fill, scaling
from vedute.data.frames import ViewSpec
from vedute.data.scaling import Scaler
from vedute.data.views import Views
from vedute.estimators.calibration import Calibration
from vedute.nn import likelihoods
from vedute.nn.likelihoods import Likelihood

Array = NDArray[Any]
FAR = 1e18  # scaled; squares of larger ones, and sums of these, are not finite in single precision


@dataclass(frozen=True, eq=False)
class FittedView:
    """What an estimator knows of a view.

    spec         its name, the shape of a sample, columns, categories and dtypes
    vocabulary   how many words there are, of a view of tokens; else 0
    calibration  how far to trust its decoder; None before that is known
    """

    spec: ViewSpec
    likelihood: Likelihood
    scaler: Scaler
    vocabulary: int = 0
    calibration: Calibration | None = None

    @classmethod
    def of(cls, raw: Views, v: int, likelihood: Likelihood | None, scaled: str) -> FittedView:
        """View v of raw data; its likelihood is guessed where none is given."""
        assert raw.specs is not None
        x, seen = raw.x[v], raw.seen(v)
        kind = likelihoods.guess(x, seen) if likelihood is None else likelihood
        _check_values(kind, raw, v)
        word = "tokens" if kind.text else scaled if kind.scaled else "none"
        try:
            scaler = scaling.fit(word, x, seen)
        except OverflowError as e:
            raise ValueError(f"view {raw.names[v]!r} {e}") from None
        words = int(torch.where(seen, x, 0).max()) + 1 if kind.text else 0
        return cls(raw.specs[v], kind, scaler, words)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample, in the user's data."""
        return self.spec.shape

    @property
    def output_shape(self) -> tuple[int, ...]:
        """What a network decodes: of tokens (T,) the logits of every word, (T, V)."""
        return (*self.shape, self.vocabulary) if self.vocabulary else self.shape

    @property
    def numbers(self) -> int:
        """How many a network decodes for one sample."""
        return int(np.prod(self.output_shape))

    @property
    def calibrated(self) -> Calibration:
        assert self.calibration is not None
        return self.calibration

    def shrunk(self, decoded: Array) -> Array:
        """Decoded values (..., *shape), pulled to the mean as far as hidden views advise."""
        mean = self.scaler.mean
        return (mean + self.calibrated.shrink * (decoded - mean)).astype(np.float32)

    def in_units(self, scaled: Array) -> Array:
        """Of the user. Shares of categories have none, and no constants among them: a category
        that nobody has takes nothing from the others."""
        return scaled if self.likelihood.shares else self.scaler.restore(scaled)

    def std(self, mean: Array, draws: Array, n_seen: NDArray[np.int64]) -> Array:
        """Standard deviations (n, *shape) in the user's units, of values with this mean
        (n, *shape) and these draws of it (k, n, *shape), where n_seen (n,) views are seen."""
        c = self.calibrated
        uncertain, noise = c.spread**2 * draws.var(0), c.noise_of(n_seen) ** 2
        variance = self.likelihood.variance(mean, uncertain, noise)
        return np.asarray(np.sqrt(variance) * self.scaler.scale * (self.scaler.std > 0))

    def noisy(self, mean: Array, noise: Array) -> Array:
        """A draw given the mean and the noise (n, *shape), in the user's units."""
        parts = (torch.from_numpy(np.asarray(a, dtype=np.float32)) for a in (mean, noise))
        return self.in_units(self.likelihood.draw(*parts).numpy())

    def possible(self, values: Array) -> Array:
        """Values within what the likelihood allows."""
        return values.clip(*self.likelihood.bounds)

    def chosen(self, values: Array) -> Array:
        """Probabilities as a choice, where whole numbers or booleans were fitted."""
        whole = self.likelihood.shares and fill.whole(self.spec)
        return fill.one_hot(values) if whole else values


def scaled(views: Sequence[FittedView], raw: Views) -> Views:
    """Data in scaled units; values that no fitted view can have are refused."""
    for v, view in enumerate(views):
        _check_values(view.likelihood, raw, v)
    data = scaling.transform([view.scaler for view in views], raw)
    for v, view in enumerate(views):
        _check_range(view, data.x[v], np.arange(len(data)) if data.ids is None else data.ids)
    return data


def _check_values(likelihood: Likelihood, raw: Views, v: int) -> None:
    problem = likelihood.problem(raw.x[v], raw.seen(v))
    if problem:
        raise ValueError(f"view {raw.names[v]!r} {problem}, or choose another likelihood")


def _check_range(view: FittedView, x: Tensor, ids: Array) -> None:
    """Refuse what overflows in scaled units, and words that were not there in fit."""
    far = ~(x.flatten(1).abs() < FAR).all(1) if x.is_floating_point() else None
    if far is not None and bool(far.any()):
        raise ValueError(
            f"view {view.name!r}: {checks.rows(ids[far.numpy()])} values too far from those fitted "
            "on; correct their units, or make them NaN"
        )
    strange = x[(x < 0) | (x >= view.vocabulary)] if view.vocabulary else x[:0].flatten()
    if len(strange):
        raise ValueError(
            f"view {view.name!r} holds the token {int(strange[0])}; fitted on those below "
            f"{view.vocabulary}: encode others as known"
        )
