"""Facts about data: views, missing values, unusual values, settings that fit. Trains nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, compress
from timeit import repeat
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from vedute.data import kinds, missing, scaling
from vedute.data.escaping import listed
from vedute.data.frames import ViewSpec
from vedute.data.holdout import FEWEST_HIDDEN, SHARE
from vedute.data.missing import Rates, rates
from vedute.data.views import Views
from vedute.estimators import panels
from vedute.estimators.fitted_view import FittedView, scaled
from vedute.methods.blend import EXPERTS, Blend
from vedute.methods.mvp import MVP
from vedute.nn.coders import by_convolution

FAR_VALUE = 30.0  # standard deviations from the mean: such values dominate squared errors
TIMED_ROWS = 16
FEW_SAMPLES = 3  # features: rows of so few repeat by chance


@dataclass(frozen=True)
class ViewFacts:
    """Facts on one view; the range and all fields after it describe observed entries."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    observed: int  # samples
    missing: float  # share of samples that lack the view
    holes: float  # share of entries that are missing where the view is observed
    low: float | None
    high: float | None
    kind: str  # what the view would be fitted as
    why: str  # that kind
    likelihood: str
    scaling: str
    constant: list[str]  # features with one value only
    zero_rows: int  # samples that are zero throughout: data, not missing
    repeated_rows: int  # samples equal to an earlier one, those of zeros left out
    farthest: float  # largest distance from a feature's mean, in its standard deviations

    @property
    def rows_differ(self) -> bool:
        """Whether rows should differ, so that repeated ones deserve a warning."""
        return self.likelihood == "normal" and bool(np.prod(self.shape) > FEW_SAMPLES)


@dataclass(frozen=True)
class Inspection:
    """Facts on a dataset."""

    n: int
    views: list[ViewFacts]
    rates: Rates
    patterns: list[tuple[list[str], int]]  # views observed together, samples; most frequent first
    together: list[list[int]]  # (L, L): how many samples have both views
    strangers: list[tuple[str, str]]  # pairs of views without a common sample
    parts: list[list[str]]  # groups of views that samples connect; one if all are connected
    repeated_samples: int
    hideable: int  # views that can be hidden for early stopping
    device: str
    seconds: float | None  # that the default needs to learn images on a CPU, roughly

    @property
    def early_stopping(self) -> bool:
        return self.hideable >= FEWEST_HIDDEN

    def warnings(self) -> Iterator[str]:
        """Warnings to read before fitting, one sentence each."""
        for v in self.views:
            if not v.observed:
                yield f"view {v.name!r} is missing for every sample: leave it out"
                continue
            if v.constant:
                constant = listed(v.constant)
                yield f"view {v.name!r} has columns of one value, or of none: {constant}"
            if v.zero_rows:
                zeros = f"has rows of zeros ({v.zero_rows}), which count as data"
                yield f"view {v.name!r} {zeros}: if they mean missing, write NaN instead"
            if v.repeated_rows > self.repeated_samples and v.rows_differ:
                yield f"view {v.name!r} has rows that repeat an earlier one ({v.repeated_rows})"
            if v.farthest > FAR_VALUE:
                far = f"has values {v.farthest:.0f} standard deviations from the mean"
                yield f"view {v.name!r} {far}: look at them, or set its likelihood to laplace"
        home = {name: p for p, part in enumerate(self.parts) for name in part}
        for a, b in (pair for pair in self.strangers if home[pair[0]] == home[pair[1]]):
            yield f"no sample has both {a!r} and {b!r}: only other views relate them"
        if apart := missing.components_warning(self.parts):
            yield apart
        if self.repeated_samples:
            yield f"some samples repeat an earlier one in every view ({self.repeated_samples})"
        if all(len(v.shape) < 2 for v in self.views):  # of images Blend has MVP alone
            for name, reason in Blend().slow(EXPERTS, len(self.views)).items():
                yield f"Blend will leave out {name} ({reason})"
        if not self.early_stopping and len(self.views) > 1:
            few = f"only {self.hideable} views could be hidden, {FEWEST_HIDDEN} are needed"
            yield f"{few} to end training early: it will run for a fixed number of steps"


def inspect(views: Views, given: Mapping[str, str] | str = kinds.AUTO_WORD) -> Inspection:
    """Inspect raw views in the user's units; `given` sets the kinds of views."""
    specs = views.specs or ()
    seen = views.mask.numpy()
    words = kinds.per_view("kinds", given, views.names, tuple(kinds.KINDS))
    fitted = panels.fitted(views, kind=words)
    inspected = [_look(views, v, spec, fitted[v]) for v, spec in enumerate(specs)]
    codes = np.stack([code for _, code in inspected], axis=1)  # (n, L), 0 where missing
    differ = seen[:, [facts.rows_differ for facts, _ in inspected]].any(1)
    rows, meet = _mixed(codes)[differ], missing.pair_counts(seen)
    pairs = combinations(range(len(specs)), 2)
    patterns, counts = np.unique(seen, axis=0, return_counts=True)
    order = np.lexsort((-patterns.sum(1), -counts))
    names = [spec.name for spec in specs]
    return Inspection(
        n=len(views),
        views=[facts for facts, _ in inspected],
        rates=rates(seen),
        patterns=[([*compress(names, patterns[k])], int(counts[k])) for k in order],
        together=meet.tolist(),
        strangers=[(names[a], names[b]) for a, b in pairs if not meet[a, b]],
        parts=missing.components(seen, names),
        repeated_samples=len(rows) - len(np.unique(rows)),
        hideable=min(int((seen.sum(1) > 1).sum()), round(SHARE * int(seen.sum()))),
        device="cuda" if torch.cuda.is_available() else "cpu",
        seconds=_seconds(views, words),
    )


def _seconds(views: Views, words: Sequence[str]) -> float | None:
    """The duration of training MVP on images on a CPU, extrapolated from one step; else None."""
    images = any(by_convolution(shape) for shape in views.shapes)
    if not images or torch.cuda.is_available() or not views.mask.any(0).all():
        return None
    model = MVP(device="cpu")
    steps, size = model.amounts(views.shapes, len(views))
    fitted = [FittedView.of(views, v, kind=word) for v, word in enumerate(words)]
    sample = scaled(fitted, views[:TIMED_ROWS].bare()).floating()
    shapes, likelihoods = [v.output_shape for v in fitted], [v.likelihood for v in fitted]
    with torch.random.fork_rng(devices=[]):
        net = model.build(shapes, likelihoods, views.names, steps)
        zero, learn = torch.zeros(()), torch.autograd.backward
        times = repeat(lambda: learn(sum(net.loss(sample).values(), zero)), repeat=3, number=1)
    return steps * min(times) * min(size, len(views)) / len(sample)


def _look(
    views: Views, v: int, spec: ViewSpec, fitted: FittedView
) -> tuple[ViewFacts, NDArray[np.uint64]]:
    """Facts on a view, and a hash of each of its rows."""
    raw, row, observed = views.x[v].flatten(1), views.mask[:, v], views.seen(v).flatten(1)
    x, holes, codes = raw[row], views.holes[v], np.zeros(len(views), np.uint64)
    try:
        stats = scaling.fit("standard", raw, observed)
    except OverflowError as e:
        raise ValueError(f"view {spec.name!r} {e}") from None
    code = _mixed(x.numpy(), None if holes is None else holes.flatten(1)[row].numpy())
    codes[row.numpy()] = code
    zero = (x == 0).all(1) & observed[row].any(1)
    others = code[~zero.numpy()]
    values = raw if observed.all() else raw[observed]
    kind, farthest = kinds.KINDS[fitted.kind], 0.0
    scaled = "bytes" if raw.dtype == torch.uint8 else kind.scaling
    if scaled == "standard" and values.numel():
        z = (raw.double() - torch.from_numpy(stats.shift)).abs_() / torch.from_numpy(stats.scale)
        farthest = float(z.masked_fill_(~observed, 0.0).max())
    facts = ViewFacts(
        name=spec.name,
        shape=spec.shape,
        dtype=", ".join(sorted(set(spec.dtypes)) or [str(raw.dtype).removeprefix("torch.")]),
        observed=len(x),
        missing=1 - len(x) / len(views),
        holes=0.0 if holes is None or not x.numel() else float(holes.sum()) / x.numel(),
        low=float(values.min()) if values.numel() else None,
        high=float(values.max()) if values.numel() else None,
        kind=kind.name,
        why=fitted.why,
        likelihood=fitted.likelihood.name,
        scaling=scaled,
        constant=[k for k, s in zip(features(spec), stats.std.ravel(), strict=True) if s == 0],
        zero_rows=int(zero.sum()),
        repeated_rows=len(others) - len(np.unique(others)),
        farthest=farthest,
    )
    return facts, codes


def features(spec: ViewSpec) -> list[str]:
    """The name of each number of a sample: columns, their categories, or positions."""
    if spec.columns is None:
        return [",".join(map(str, i)) for i in np.ndindex(*spec.shape)]
    names = []
    for column, levels in zip(spec.columns, spec.levels or [None] * len(spec.columns), strict=True):
        wide = levels is not None and len(levels) > 2
        names += [f"{column}={level}" for level in levels or ()] if wide else [str(column)]
    return names


def _mixed(x: NDArray[Any], holes: NDArray[np.bool_] | None = None) -> NDArray[np.uint64]:
    """A hash of every row of x (n, d)."""
    cells = np.where(holes, np.nan, x) if holes is not None else x
    cells = cells + 0.0 if cells.dtype.kind == "f" else cells  # -0.0 is 0.0
    mixed = pd.util.hash_array(np.ascontiguousarray(cells).ravel(), categorize=False)
    weights = np.random.default_rng(0).integers(1, 2**63, size=x.shape[1], dtype=np.uint64)
    code: NDArray[np.uint64] = (mixed.reshape(x.shape) * (2 * weights + 1)).sum(1)
    return code
