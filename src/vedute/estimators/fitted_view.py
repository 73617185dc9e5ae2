"""A fitted view: its data types, kind, likelihood, scaling and calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vedute.data import checks, fill, kinds, scaling
from vedute.data.frames import ViewSpec
from vedute.data.kinds import AUTO_WORD, KINDS, Recognised, Seen
from vedute.data.rows import Part, by_row, pieces, then
from vedute.data.scaling import Scaler
from vedute.data.views import Views
from vedute.estimators.calibration import Calibration
from vedute.nn.likelihoods import LIKELIHOODS, Likelihood

Array = NDArray[Any]
FREE = (-math.inf, math.inf)
OVERFLOW = 1e18  # of scaled values; squares of larger ones overflow in single precision


@dataclass(frozen=True, eq=False)
class FittedView:
    """The properties of a view that an estimator keeps."""

    spec: ViewSpec
    likelihood: Likelihood
    scaler: Scaler
    vocabulary: int = 0  # number of words of a view of tokens
    calibration: Calibration | None = None  # None before it is measured
    kind: str = "numbers"
    why: str = ""  # the reason for its kind
    bounds: tuple[float, float] = FREE  # the smallest and largest possible value, in user's units
    at_holes: Calibration | None = None  # of single missing entries; None: that of the view
    name: str = field(init=False)
    shape: tuple[int, ...] = field(init=False)  # of a sample, in the user's data
    output_shape: tuple[int, ...] = field(init=False)  # of decoders; for tokens (T,) logits (T, V)

    def __post_init__(self) -> None:
        name, shape, likelihood = self.spec.name, self.spec.shape, self.likelihood
        known = {"name": name, "shape": shape, "likelihood": likelihood.for_view(shape)}
        known["output_shape"] = (*shape, self.vocabulary) if self.vocabulary else shape
        for attribute, value in known.items():
            object.__setattr__(self, attribute, value)

    @classmethod
    def of(
        cls,
        raw: Views,
        v: int,
        likelihood: Likelihood | None = None,
        scaled: str = AUTO_WORD,
        kind: str = AUTO_WORD,
    ) -> FittedView:
        """Fit view v of raw data; defaults follow from its kind, and its kind from its values."""
        assert raw.specs is not None
        x, seen = raw.parts[v], raw.seen_part(v)
        recognised = _kind(raw, v, likelihood, scaled, kind)
        likelihood = likelihood or LIKELIHOODS[recognised.kind.likelihood]
        automatic = scaled == AUTO_WORD
        word = (recognised.kind.scaling if automatic else scaled) if likelihood.scaled else "none"
        x = x[:] if x.is_sparse and word not in scaling.SIZED else x
        if not likelihood.scaled:
            _check_likelihood(raw.names[v], likelihood, x, seen)
        if problem := kinds.problem(recognised.kind, x, seen):
            raise ValueError(f"view {raw.names[v]!r} {problem}, or set another kind")
        try:
            scaler = scaling.fit("tokens" if likelihood.text else word, x, seen)
        except OverflowError as e:
            raise ValueError(f"view {raw.names[v]!r} {e}") from None
        words = 0
        if likelihood.text:
            words = 1 + max(int(torch.where(seen[r], x[r], 0).max()) for r in pieces(x))
        known = automatic or kind != AUTO_WORD
        bounds = kinds.bounds(recognised.kind, x, seen) if known else FREE
        about = recognised.kind.name, recognised.why, bounds
        return cls(raw.specs[v], likelihood, scaler, words, None, *about)

    @property
    def on_its_scale(self) -> FittedView:
        """The view in the units of the scale of its kind."""
        if self.scaler.signed:
            return self
        offset, low = self.scaler.offset, self.bounds[0]
        low = low if offset is None else float(np.log(offset).min())
        plain = replace(self.scaler, power=0, profile=None, offset=None)
        return replace(self, scaler=plain, bounds=(low, math.inf))

    def by_entry(self, f: Callable[[Calibration], Any], holes: Tensor | None) -> Any:
        """Apply f to the calibration, and to that of single entries at holes (n, *shape)."""
        if self.calibration is None:
            raise ValueError(f"view {self.name!r} has no calibration")
        of_view = f(self.calibration)
        if holes is None or self.at_holes is None:
            return of_view
        return np.where(holes.numpy(), f(self.at_holes), of_view)

    def shrunk(self, decoded: Array, holes: Tensor | None = None) -> Array:
        """Shrink decoded values (..., *shape) to the mean, as calibrated on hidden views."""
        off: Array = decoded - self.scaler.mean
        off *= self.by_entry(attrgetter("shrink"), holes)  # in place, as arrays may be large
        off += self.scaler.mean
        return off.astype(np.float32)

    def in_units(self, scaled: Array, size: Array | float = 1.0) -> Array:
        """Convert scaled values to the user's units; probabilities of categories are unchanged.
        size: see `Views.size`."""
        return scaled if self.likelihood.shares else self.scaler.restore(scaled, size)

    def moments(
        self, mean: Array, draws: Array, n_seen: Array, size: Array | float, holes: Tensor | None
    ) -> tuple[Array, Array]:
        """Return means and standard deviations in the user's units of values with this mean
        (n, *shape) and draws of it (k, n, *shape), for n_seen (n,) observed views."""
        uncertain = self.by_entry(lambda c: c.spread**2, holes) * draws.var(0)
        noise = self.by_entry(methodcaller("noise_of", n_seen), holes)
        std = np.sqrt(self.likelihood.variance(mean, uncertain, noise**2))
        value, deviation = self.scaler.moments(mean, std, size)
        return mean if self.likelihood.shares else value, deviation

    def varying(self, values: Array) -> Array:
        """Select features that are not constant: (n, *shape) -> (n, features)."""
        return values.reshape(len(values), self.scaler.std.size)[:, self.scaler.std.ravel() > 0]

    def noisy(self, mean: Array, noise: Array, size: Array | float = 1.0) -> Array:
        """Draw values given the mean and the noise (n, *shape), in the user's units."""
        parts = (torch.from_numpy(np.asarray(a, dtype=np.float32)) for a in (mean, noise))
        return self.possible(self.in_units(self.likelihood.draw(*parts).numpy(), size))

    def possible(self, values: Array, out: Array | None = None) -> Array:
        """Clip values to the range of the likelihood and the kind; `out` as in numpy."""
        (low, high), (least, most) = self.likelihood.bounds, self.bounds
        return values.clip(max(low, least), min(high, most), out=out)

    def chosen(self, values: Array) -> Array:
        """Turn probabilities into a choice, if whole numbers or booleans were fitted."""
        whole = self.likelihood.shares and fill.whole(self.spec)
        return np.eye(values.shape[-1])[values.argmax(-1)] if whole else values


def scaled(views: Sequence[FittedView], raw: Views) -> Views:
    """Scale every float view to float32, zero where it is missing; bytes are unchanged. Values that
    no fitted view can have are rejected when they are read."""
    x, sizes = list(raw.parts), list[Tensor | None]()
    ids = raw.index.cpu().numpy() if raw.ids is None else raw.ids
    for v, view in enumerate(views):
        seen = raw.seen_part(v)
        part = then(x[v], partial(_accepted, view, seen))
        sizes.append(view.scaler.sizes(part, seen))
        if part.dtype != torch.uint8:
            part = part[:] if part.is_sparse and sizes[v] is None else part
            scale = partial(_scaled, view, seen, sizes[v], raw.mask[:, v], ids)
            part = then(part, scale, torch.int64 if view.scaler.tokens else torch.float32)
        x[v] = part
    return replace(raw, x=x, sizes=sizes)


def _accepted(view: FittedView, seen: Seen, x: Tensor, rows: Any) -> Tensor:
    """Reject values outside the range of the likelihood or the scaling."""
    if not view.likelihood.scaled:
        _check_likelihood(view.name, view.likelihood, x, seen[rows])
    if not view.scaler.signed and bool((negative := (x < 0) & seen[rows]).any()):
        value = f"view {view.name!r} holds {float(x[negative][0]):g} and was fitted as {view.kind}"
        raise ValueError(f"{value}: correct it, or fit it as numbers")
    return x


def _scaled(
    view: FittedView,
    seen: Seen,
    sizes: Tensor | None,
    mask: Tensor,
    ids: Array,
    x: Tensor,
    rows: Any,
) -> Tensor:
    """Scale rows of a view; reject values that overflow in scaled units, and words not in fit."""
    x = view.scaler.transform(x, seen[rows], None if sizes is None else sizes[rows])
    x = x.masked_fill_(~by_row(mask[rows], x), 0)
    far = x.is_floating_point() and ~(x.flatten(1).abs() < OVERFLOW).all(1).numpy()
    if np.any(far):
        raise ValueError(
            f"view {view.name!r}: {checks.rows(ids[rows][far])} values too far from those fitted "
            "on; correct their units, or make them NaN"
        )
    unknown = x[(x < 0) | (x >= view.vocabulary)] if view.vocabulary else x[:0]
    if len(unknown):
        raise ValueError(
            f"view {view.name!r} holds the token {int(unknown[0])}; fitted on those below "
            f"{view.vocabulary}: encode others as known"
        )
    return x


def _kind(raw: Views, v: int, likelihood: Likelihood | None, scaled: str, kind: str) -> Recognised:
    """Return the kind set by the user, that of the likelihood, or one recognised from values."""
    if kind != AUTO_WORD:
        return Recognised(KINDS[kind])
    if likelihood is not None and not likelihood.scaled:
        own = (kind for kind in KINDS.values() if kind.likelihood == likelihood.name)
        return Recognised(next(own, KINDS["numbers"]), "by its likelihood")
    result = kinds.recognise(raw.parts[v], raw.seen_part(v), raw.specs[v] if raw.specs else None)
    if likelihood is not None and result.kind.likelihood != "normal":
        return Recognised(KINDS["numbers"], "by its likelihood")
    if scaled != AUTO_WORD and result.kind.likelihood == "normal" and result.kind.name != "images":
        return Recognised(KINDS["numbers"], "its scaling is given")
    return result


def _check_likelihood(name: str, likelihood: Likelihood, x: Part, seen: Seen) -> None:
    """Reject values outside the range of a likelihood that does not take all numbers."""
    for rows in pieces(x):
        if problem := likelihood.problem(x[rows], seen[rows]):
            raise ValueError(f"view {name!r} {problem}, or choose another likelihood")
