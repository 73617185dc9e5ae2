"""Values from decoder outputs: calibrated on hidden views, in the user's units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data.holdout import HiddenEntries, HoldOut
from vedute.data.mapped import Stack
from vedute.data.rows import slices
from vedute.data.views import Views
from vedute.estimators import progress
from vedute.estimators.calibration import (
    Calibration,
    Evidence,
    calibrate,
    evidence,
    mostly_one_value,
    reaches,
)
from vedute.estimators.fitted_view import FittedView
from vedute.nn import noise

Array = NDArray[Any]
Decode = Callable[[Views, int], list[Array]]
DECODED_ROWS = 8192  # decoded at a time, fewer where samples are wide
DECODED_NUMBERS = 2**22  # decoded at a time
TABLE = 2**24  # numbers of each of the tables that a model makes of the rows that it decodes
FEWEST, MOST = 100, 2**26  # hidden samples to calibrate on, however wide; numbers of their draws
DRAWS = 16  # of the posterior, for intervals


def batch_rows(width: int) -> int:
    """How many rows of so many numbers go through a model at a time."""
    return max(1, min(DECODED_ROWS, DECODED_NUMBERS // width))


@dataclass(frozen=True, eq=False)
class Imputer:
    """Values of all views of any samples.

    decode   (batch, draws) -> expected values of all views at the posterior mean (draws = 0) or at
             draws of it: L arrays (draws or 1, n, *shape_v), in scaled units
    table    how many numbers a row takes in the largest table of the model
    """

    decode: Decode
    views: Sequence[FittedView]
    table: int = 1

    def decoded(self, data: Views, draws: int = 0) -> list[Array]:
        """What the model decodes, batch by batch: L arrays (draws or 1, n, *shape_v)."""
        parts = [self.decode(batch, draws) for batch in self._batches(data, draws)]
        if len(parts) == 1:
            return parts[0]
        return [np.concatenate(part, axis=1) for part in zip(*parts, strict=True)]

    def variances(self, data: Views) -> list[Array]:
        """The variances of draws of what the model decodes: L arrays (n, *shape_v)."""
        parts = []
        for batch in self._batches(data, DRAWS):
            rows = np.arange(len(batch))  # copied so, equal draws have no variance of rounding
            parts.append([draws[:, rows].var(0) for draws in self.decode(batch, DRAWS)])
        return [np.concatenate(part) for part in zip(*parts, strict=True)]

    def expected(self, data: Views, draws: int = 0) -> list[Array]:
        """Calibrated values of what the model decodes: shrunk towards the mean."""
        each = zip(self.views, self.decoded(data, draws), data.holes, strict=True)
        return [view.shrunk(d, holes) for view, d, holes in each]

    def values(self, data: Views, spread: bool = False) -> tuple[list[Array], list[Array]]:
        """Expected values, and standard deviations if asked: L arrays (n, *shape_v), user units."""
        draw = self._draws_for(spread)
        means, stds = ([Stack(len(data)) for _ in self.views] for _ in range(2))
        for batch in self._batches(data, draw):
            expected, n_seen = self.expected(batch), batch.mask.sum(1).numpy()
            draws = self._draws(batch) if draw else None
            for v, view in enumerate(self.views):
                if draws is None:
                    means[v].add(view.in_units(expected[v][0], batch.size(v)))
                    continue
                about = n_seen, batch.size(v), batch.holes[v]
                mean, std = view.moments(expected[v][0], draws[v], *about)
                means[v].add(mean)
                stds[v].add(std)
            progress.advance(len(batch), "row")
        return [s.array for s in means], [s.array for s in stds] if draw else []

    def _draws_for(self, spread: bool) -> int:
        """How many draws of the posterior values need; the mean of a log-normal needs some, too."""
        return DRAWS if spread or any(view.scaler.offset is not None for view in self.views) else 0

    def rows_of_values(self, spread: bool = False) -> int:
        """The rows of which `values` are computed at a time."""
        return self.rows(self._draws_for(spread))

    def _draws(self, batch: Views) -> list[Array]:
        """Draws that only measure a spread."""
        with noise.common_to_rows():
            return self.expected(batch, DRAWS)

    def draw(self, data: Views) -> list[Array]:
        """One draw of every view, noise included: L arrays (n, *shape_v), user units."""
        drawn = [Stack(len(data)) for _ in self.views]
        for batch in self._batches(data, 1):
            expected, draws = self.expected(batch), self.expected(batch, 1)
            n_seen = batch.mask.sum(1).numpy()
            for v, view in enumerate(self.views):
                spread = view.by_entry(lambda c: c.spread, batch.holes[v])
                noise = view.noise(n_seen, batch.holes[v])
                mean = expected[v][0] + spread * (draws[v][0] - expected[v][0])
                drawn[v].add(view.noisy(mean, noise, batch.size(v)))
        return [s.array for s in drawn]

    def hidden_results(self, held: HoldOut) -> tuple[dict[str, Array], dict[str, float]]:
        """Per hidden instance its row, view, error and mean-fill's error; and R2 per view."""
        some = slices(max(len(held.hidden), 1), self.rows())
        parts = [self._errors(held.part(rows)) for rows in some]
        errors, bases = (np.concatenate(each) for each in zip(*parts, strict=True))
        rows, views = (t.numpy() for t in held.hidden.nonzero(as_tuple=True))
        error, base, r2 = errors[rows, views].astype(float), bases[rows, views].astype(float), {}
        for v, name in enumerate(held.truth.names):
            at = views == v
            r2[name] = float(1 - error[at].sum() / base[at].sum()) if base[at].sum() else np.nan
        where = held.truth.index.numpy()[rows]
        return {"row": where, "view": views, "error": error, "mean_error": base}, r2

    def _errors(self, held: HoldOut) -> tuple[Array, Array]:
        """The errors of all views of its rows, and those of mean-fill, both (m, L)."""
        values = enumerate(self.expected(held.inputs))
        errors = [held.errors(torch.from_numpy(value[0]), v) for v, value in values]
        bases = [held.errors(mean, v) for v, mean in enumerate(held.means)]
        return torch.stack(errors, 1).numpy(), torch.stack(bases, 1).numpy()

    def calibrated(self, held: HoldOut, shrink: bool) -> list[FittedView]:
        """The views with shrinkage, spread, noise and reach, measured on views hidden in `held`."""
        width, n = sum(view.scaler.mean.size for view in self.views), len(self.views)
        held = held.first(max(FEWEST, MOST // (width * DRAWS)))
        some = [v for v, view in enumerate(self.views) if not view.likelihood.text]
        each = dict(zip(some, calibrate(self._evidence(held, some), shrink, n), strict=True))
        views = [
            replace(view, calibration=each[v] if v in each else _as_is(view, n))
            for v, view in enumerate(self.views)
        ]
        for v, reach in replace(self, views=views)._reaches(held, some).items():
            views[v] = replace(views[v], calibration=replace(each[v], reach=reach))
        return views

    def calibrated_at_holes(self, held: HiddenEntries, shrink: bool) -> list[FittedView]:
        """The views with the same, measured on single hidden entries, where there are some."""
        some = [v for v in held.views if not self.views[v].likelihood.text]
        views, found = list(self.views), self._evidence(held, some)
        each = dict(zip(some, calibrate(found, shrink, len(views)), strict=True))
        for v, c in each.items():
            views[v] = replace(views[v], at_holes=c)
        for v, reach in replace(self, views=views)._reaches(held, some).items():
            views[v] = replace(views[v], at_holes=replace(each[v], reach=reach))
        return views

    def _evidence(self, held: HoldOut | HiddenEntries, some: Sequence[int]) -> list[Evidence]:
        """The evidence of some views, where they are hidden."""
        decoded, variances = self.decoded(held.inputs), self.variances(held.inputs)
        n_seen, found = held.inputs.mask.sum(1).numpy(), []
        for v in some:
            rows, truth, scaler = held.rows_of(v), held.truth_of(v), self.views[v].scaler
            mine = decoded[v][0][rows], variances[v][rows], truth.seen(0).numpy()
            about = scaler.mean, scaler.std, n_seen[rows]
            found.append(evidence(truth.x[0].numpy(), *mine, *about))
        return found

    def _reaches(self, held: HoldOut | HiddenEntries, some: Sequence[int]) -> dict[int, Array]:
        """How far intervals reach, by view, as what is hidden in `held` advises; those of
        probabilities and words stay as they are."""
        far: dict[int, list[Array]] = {v: [] for v in some if self.views[v].likelihood.scaled}
        for some_rows in slices(len(held.inputs), self.rows(DRAWS)):  # wide samples: one by one
            part = held.part(some_rows)
            means, stds = self.values(part.inputs, spread=True)
            for v, found in far.items():
                rows = part.rows_of(v)
                truth = self.truth(part, v)
                found.append(self.views[v].far(truth, means[v][rows], stds[v][rows]))
        if not len(held.inputs):
            return {}
        sparse = [mostly_one_value(self.views[v].varying(held.truth_of(v).known(0))) for v in far]
        each = reaches([np.concatenate(found) for found in far.values()], sparse)
        return dict(zip(far, each, strict=True))

    def truth(self, held: HoldOut | HiddenEntries, v: int) -> Array:
        """The values of view v where it is hidden, (m_v, *shape_v), user units; NaN: unknown."""
        mine = held.truth_of(v)
        return np.asarray(self.views[v].in_units(mine.known(0), mine.size(0)))

    def _batches(self, data: Views, draws: int = 0) -> Iterator[Views]:
        return data.batches(self.rows(draws))

    def rows(self, draws: int = 0) -> int:
        """The rows that are decoded at a time."""
        width = sum(view.numbers for view in self.views)
        return max(1, min(batch_rows(width * max(draws, 1)), TABLE // self.table))


def _as_is(view: FittedView, n_views: int) -> Calibration:
    """Tokens stay as they are decoded."""
    return Calibration(1.0, 1.0, np.zeros_like(view.scaler.mean), np.ones(n_views))
