"""One view as it was fitted: what the user has, its kind, likelihood, scaling and calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vedute.data import checks, fill, kinds, scaling
from vedute.data.frames import ViewSpec
from vedute.data.kinds import AUTO_WORD, KINDS, Recognised, Seen
from vedute.data.mapped import Lazy, pieces
from vedute.data.scaling import Scaler
from vedute.data.sparse_view import Part, Sparse, dense, on_demand
from vedute.data.views import Views
from vedute.estimators.calibration import Calibration
from vedute.nn.likelihoods import LIKELIHOODS, Likelihood

Array = NDArray[Any]
FREE = (-math.inf, math.inf)
OVERFLOW = 1e18  # scaled; larger squares, and sums of these, are not finite in single precision


@dataclass(frozen=True, eq=False)
class FittedView:
    """What an estimator knows of a view.

    spec         its name, the shape of a sample, columns, categories and dtypes
    vocabulary   how many words there are, of a view of tokens; else 0
    calibration  how far to trust its decoder; None before that is known
    kind, why    what it was taken for, and for what reason
    bounds       the smallest and largest possible value, in the user's units
    at_holes     the calibration of single missing entries; None: that of the view
    """

    spec: ViewSpec
    likelihood: Likelihood
    scaler: Scaler
    vocabulary: int = 0
    calibration: Calibration | None = None
    kind: str = "numbers"
    why: str = ""
    bounds: tuple[float, float] = FREE
    at_holes: Calibration | None = None

    @classmethod
    def of(
        cls,
        raw: Views,
        v: int,
        likelihood: Likelihood | None = None,
        scaled: str = AUTO_WORD,
        kind: str = AUTO_WORD,
    ) -> FittedView:
        """View v of raw data; what is not given follows from its kind, and that from its values."""
        assert raw.specs is not None
        x, seen = raw.parts[v], raw.seen_part(v)
        found = _kind(raw, v, likelihood, scaled, kind)
        likelihood = likelihood or LIKELIHOODS[found.kind.likelihood]
        own = scaled == AUTO_WORD
        word = (found.kind.scaling if own else scaled) if likelihood.scaled else "none"
        x = x if word in scaling.SIZED or isinstance(x, Lazy) else dense(x)
        _check_likelihood(raw.names[v], likelihood, x, seen)
        _refuse(raw.names[v], kinds.problem(found.kind, x, seen), "set another kind")
        try:
            scaler = scaling.fit("tokens" if likelihood.text else word, x, seen)
        except OverflowError as e:
            raise ValueError(f"view {raw.names[v]!r} {e}") from None
        words = 1 + _largest(x, seen) if likelihood.text else 0
        bounds = kinds.bounds(found.kind, x, seen) if own or kind != AUTO_WORD else FREE
        about = (found.kind.name, found.why, bounds)
        return cls(raw.specs[v], likelihood, scaler, words, None, *about)

    @property
    def sentence(self) -> str:
        """What it was taken for, why, and what is done with it."""
        return Recognised(KINDS[self.kind], self.why).sentence(self.name)

    @property
    def transformed(self) -> bool:
        """Whether its kind has a scale of its own: of logarithms, or of rows of equal size."""
        return not self.scaler.signed

    @property
    def on_its_scale(self) -> FittedView:
        """The view in the units of the scale of its kind."""
        if not self.transformed:
            return self
        offset, low = self.scaler.offset, self.bounds[0]
        low = low if offset is None else float(np.log(offset).min())
        return replace(self, scaler=self.scaler.linear, bounds=(low, math.inf))

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample, in the user's data."""
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
        if self.calibration is None:
            raise ValueError(f"view {self.name!r} has no calibration")
        return self.calibration

    def by_entry(self, f: Callable[[Calibration], Any], holes: Tensor | None) -> Any:
        """What f finds in the calibration; in that of holes where there are some, (n, *shape)."""
        found = f(self.calibrated)
        if holes is None or self.at_holes is None:
            return found
        return np.where(holes.numpy(), f(self.at_holes), found)

    def noise(self, n_seen: NDArray[np.int64], holes: Tensor | None = None) -> Array:
        """The noise of samples with n_seen (n,) observed views, (n, *shape)."""
        return np.asarray(self.by_entry(lambda c: c.noise_of(n_seen), holes))

    def shrunk(self, decoded: Array, holes: Tensor | None = None) -> Array:
        """Decoded values (..., *shape), pulled to the mean as far as hidden views advise."""
        off: Array = decoded - self.scaler.mean
        off *= self.by_entry(lambda c: c.shrink, holes)  # in place: there may be many
        off += self.scaler.mean
        return off.astype(np.float32)

    def in_units(self, scaled: Array, size: Array | float = 1.0) -> Array:
        """Scaled values in the units of the user. Shares of categories have none, and no constants
        among them: a category that nobody has takes nothing from the others. size: see
        `Views.size`."""
        return scaled if self.likelihood.shares else self.scaler.restore(scaled, size)

    def moments(
        self,
        mean: Array,
        draws: Array,
        n_seen: NDArray[np.int64],
        size: Array | float = 1.0,
        holes: Tensor | None = None,
    ) -> tuple[Array, Array]:
        """Means and standard deviations (n, *shape) in the user's units, of values with this mean
        (n, *shape) and these draws of it (k, n, *shape), where n_seen (n,) views are seen."""
        uncertain = self.by_entry(lambda c: c.spread**2, holes) * draws.var(0)
        noise = self.noise(n_seen, holes) ** 2
        std = np.sqrt(self.likelihood.variance(mean, uncertain, noise))
        value, deviation = self.scaler.moments(mean, std, size)
        return mean if self.likelihood.shares else value, deviation

    def far(self, truth: Array, mean: Array, std: Array) -> Array:
        """How many standard deviations the truth is from the mean, (n, features that vary); all
        (n, *shape) in the user's units."""
        return self.varying(self.scaler.distance(truth, mean, std))

    def varying(self, values: Array) -> Array:
        """(n, *shape) -> (n, features that are not constant)"""
        std = self.scaler.std.ravel()
        return values.reshape(len(values), std.size)[:, std > 0]

    def noisy(self, mean: Array, noise: Array, size: Array | float = 1.0) -> Array:
        """A draw given the mean and the noise (n, *shape), in the user's units."""
        parts = (torch.from_numpy(np.asarray(a, dtype=np.float32)) for a in (mean, noise))
        return self.possible(self.in_units(self.likelihood.draw(*parts).numpy(), size))

    def possible(self, values: Array, out: Array | None = None) -> Array:
        """Values within what the likelihood and the kind allow; written into `out`, if given."""
        (low, high), (least, most) = self.likelihood.bounds, self.bounds
        return values.clip(max(low, least), min(high, most), out=out)

    def chosen(self, values: Array) -> Array:
        """Probabilities as a choice, where whole numbers or booleans were fitted."""
        whole = self.likelihood.shares and fill.whole(self.spec)
        return fill.one_hot(values) if whole else values


def scaled(views: Sequence[FittedView], raw: Views) -> Views:
    """Data in scaled units; values that no fitted view can have are refused."""
    seen = [raw.seen_part(v) for v in range(len(views))]
    raw = _checked(raw, [partial(_check_values, *each) for each in zip(views, seen, strict=True)])
    data = scaling.transform([view.scaler for view in views], raw)
    ids = data.index.cpu().numpy() if data.ids is None else data.ids
    return _checked(data, [partial(_check_range, view, ids) for view in views])


def _checked(data: Views, checks: Sequence[Callable[[Part, Any], None]]) -> Views:
    """Check each view, given its values and which rows they are; rows of what is on the disk are
    checked when they are read."""
    x = list(data.parts)
    for v, check in enumerate(checks):
        part = x[v]
        if isinstance(part, Lazy):
            x[v] = part.then(partial(_passed, check))
        else:
            check(part, slice(None))
    return replace(data, x=on_demand(x)) if data.on_disk else data


def _passed(check: Callable[[Part, Any], None], x: Tensor, rows: Any) -> Tensor:
    check(x, rows)
    return x


def _check_values(view: FittedView, seen: Seen, x: Part, rows: Any) -> None:
    """Refuse what the likelihood or the scaling of a view has no place for."""
    _check_likelihood(view.name, view.likelihood, x, seen[rows])
    if not view.scaler.signed:
        _check_signs(view, x, seen[rows])


def _largest(x: Part, seen: Seen) -> int:
    return max(int(torch.where(seen[rows], dense(x[rows]), 0).max()) for rows in pieces(x))


def _kind(raw: Views, v: int, likelihood: Likelihood | None, scaled: str, kind: str) -> Recognised:
    """What a view is taken for: what the user says, else what its likelihood is for, else what its
    values look like; numbers, where the user scales them."""
    if kind != AUTO_WORD:
        return Recognised(KINDS[kind])
    if likelihood is not None and not likelihood.scaled:
        own = next(k for k in KINDS.values() if k.likelihood == likelihood.name)
        return Recognised(own, "by its likelihood")
    found = kinds.recognise(raw.parts[v], raw.seen_part(v), raw.specs[v] if raw.specs else None)
    if likelihood is not None and found.kind.likelihood != "normal":
        return Recognised(KINDS["numbers"], "by its likelihood")
    if scaled != AUTO_WORD and found.kind.likelihood == "normal" and found.kind.name != "images":
        return Recognised(KINDS["numbers"], "its scaling is given")
    return found


def _refuse(name: str, problem: str | None, otherwise: str) -> None:
    if problem:
        raise ValueError(f"view {name!r} {problem}, or {otherwise}")


def _check_likelihood(name: str, likelihood: Likelihood, x: Part, seen: Seen) -> None:
    for rows in () if likelihood.scaled else pieces(x):  # others take all numbers
        problem = likelihood.problem(dense(x[rows]), seen[rows])
        _refuse(name, problem, "choose another likelihood")


def _check_signs(view: FittedView, part: Part, seen: Tensor) -> None:
    x = part.stored if isinstance(part, Sparse) else dense(part)[seen]
    if bool((x < 0).any()):
        negative = f"holds {float(x[x < 0][0]):g} and was fitted as {view.kind}"
        _refuse(view.name, f"{negative}: correct it", "fit it as numbers")


def _check_range(view: FittedView, ids: Array, x: Part, rows: Any) -> None:
    """Refuse what overflows in scaled units, and words that were not there in fit."""
    far = _far(x)
    if far.any():
        raise ValueError(
            f"view {view.name!r}: {checks.rows(ids[rows][far])} values too far from those fitted "
            "on; correct their units, or make them NaN"
        )
    words = dense(x) if view.vocabulary else torch.zeros(0)
    strange = words[(words < 0) | (words >= view.vocabulary)]
    if len(strange):
        raise ValueError(
            f"view {view.name!r} holds the token {int(strange[0])}; fitted on those below "
            f"{view.vocabulary}: encode others as known"
        )


def _far(x: Part) -> NDArray[np.bool_]:
    """Rows with numbers that are too large, (n,)."""
    if isinstance(x, Sparse):
        return x.count(~(np.abs(x.own.data) < OVERFLOW)) > 0
    x = dense(x)
    if not x.is_floating_point():
        return np.zeros(len(x), bool)
    return (~(x.flatten(1).abs() < OVERFLOW).all(1)).numpy()
