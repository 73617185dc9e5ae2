"""From decoder outputs to values: calibrated on hidden views, in the user's units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data.holdout import HiddenEntries, HoldOut
from vedute.data.views import Views
from vedute.estimators import progress
from vedute.estimators.calibration import (
    Calibration,
    calibrate,
    evidence,
    mostly_one_value,
    reaches,
)
from vedute.estimators.fitted_view import FittedView
from vedute.nn import noise

Array = NDArray[Any]
Decode = Callable[[Views, int], list[Array]]
ROWS = 8192  # decoded at a time, fewer where samples are wide
NUMBERS = 2**22  # decoded at a time
FEWEST, MOST = 100, 2**26  # hidden samples to calibrate on, however wide; numbers of their draws
DRAWS = 16  # of the posterior, for intervals


@dataclass(frozen=True, eq=False)
class Imputer:
    """Values of all views of any samples.

    decode   (batch, draws) -> expected values of all views at the posterior mean (draws = 0) or at
             draws of it: L arrays (draws or 1, n, *shape_v), in scaled units
    """

    decode: Decode
    views: Sequence[FittedView]

    def decoded(self, data: Views, draws: int = 0) -> list[Array]:
        """What the model decodes, batch by batch: L arrays (draws or 1, n, *shape_v)."""
        parts = [self.decode(batch, draws) for batch in self._batches(data, draws)]
        if len(parts) == 1:
            return parts[0]
        return [np.concatenate(part, axis=1) for part in zip(*parts, strict=True)]

    def expected(self, data: Views, draws: int = 0) -> list[Array]:
        """The same, calibrated: shrunk towards the mean."""
        each = zip(self.views, self.decoded(data, draws), data.holes, strict=True)
        return [view.shrunk(d, holes) for view, d, holes in each]

    def values(self, data: Views, spread: bool = False) -> tuple[list[Array], list[Array]]:
        """Expected values, and standard deviations if asked: L arrays (n, *shape_v), user units."""
        means: list[list[Array]] = [[] for _ in data.x]
        stds: list[list[Array]] = [[] for _ in data.x]
        draw = spread or any(view.scaler.offset is not None for view in self.views)
        for batch in self._batches(data, DRAWS if draw else 0):
            expected, n_seen = self.expected(batch), batch.mask.sum(1).numpy()
            draws = self._draws(batch) if draw else None
            for v, view in enumerate(self.views):
                if draws is None:
                    means[v].append(view.in_units(expected[v][0], batch.size(v)))
                    continue
                about = n_seen, batch.size(v), batch.holes[v]
                mean, std = view.moments(expected[v][0], draws[v], *about)
                means[v].append(mean)
                stds[v].append(std)
            progress.advance(len(batch), "row")
        return [np.concatenate(m) for m in means], [np.concatenate(s) for s in stds if s]

    def _draws(self, batch: Views) -> list[Array]:
        """Draws that only measure a spread."""
        with noise.common_to_rows():
            return self.expected(batch, DRAWS)

    def draw(self, data: Views) -> list[Array]:
        """One draw of every view, noise included: L arrays (n, *shape_v), user units."""
        drawn: list[list[Array]] = [[] for _ in data.x]
        for batch in self._batches(data, 1):
            expected, draws = self.expected(batch), self.expected(batch, 1)
            n_seen = batch.mask.sum(1).numpy()
            for v, view in enumerate(self.views):
                spread = view.by_entry(lambda c: c.spread, batch.holes[v])
                noise = view.noise(n_seen, batch.holes[v])
                mean = expected[v][0] + spread * (draws[v][0] - expected[v][0])
                drawn[v].append(view.noisy(mean, noise, batch.size(v)))
        return [np.concatenate(d) for d in drawn]

    def hidden_results(self, held: HoldOut) -> tuple[dict[str, Array], dict[str, float]]:
        """Per hidden instance its row, view, error and mean-fill's error; and R2 per view."""
        values = self.expected(held.inputs)
        rows, views = (t.numpy() for t in held.hidden.nonzero(as_tuple=True))
        error, base, r2 = np.zeros(len(rows)), np.zeros(len(rows)), {}
        for v, name in enumerate(held.truth.names):
            at = views == v
            error[at] = held.errors(torch.from_numpy(values[v][0]), v).numpy()[rows[at]]
            base[at] = held.errors(held.means[v], v).numpy()[rows[at]]
            r2[name] = float(1 - error[at].sum() / base[at].sum()) if base[at].sum() else np.nan
        where = held.truth.index.numpy()[rows]
        return {"row": where, "view": views, "error": error, "mean_error": base}, r2

    def left_out_errors(self, data: Views) -> tuple[float, float]:
        """Every observed view of rows with two or more left out in turn: summed error, and that
        of mean-fill."""
        error = base = 0.0
        for v in range(data.shape[1]):
            rows = data.mask[:, v] & (data.mask.sum(1) > 1)
            for batch in self._batches(data[rows].bare()) if rows.any() else ():
                out = torch.zeros_like(batch.mask)
                out[:, v] = True
                held = HoldOut.of(batch, out, [view.scaler for view in self.views])
                value = torch.from_numpy(self.expected(held.inputs)[v][0])
                error += float(held.errors(value, v).sum())
                base += float(held.errors(held.means[v], v).sum())
        return error, base

    def calibrated(self, held: HoldOut, shrink: bool) -> list[FittedView]:
        """The views with shrinkage, spread, noise and reach, measured on views hidden in `held`."""
        width = sum(view.scaler.mean.size for view in self.views)
        held = held.first(max(FEWEST, MOST // (width * DRAWS)))
        decoded, draws = self.decoded(held.inputs), self.decoded(held.inputs, DRAWS)
        n_seen, found, n = held.inputs.mask.sum(1).numpy(), [], len(self.views)
        for v, view in enumerate(self.views):
            if not view.likelihood.text:
                rows = held.hidden[:, v].numpy()
                truth, there = held.truth.x[v].numpy(), held.truth.seen(v).numpy()
                mine = (truth[rows], decoded[v][0][rows], draws[v][:, rows], there[rows])
                found.append(evidence(*mine, view.scaler.mean, view.scaler.std, n_seen[rows]))
        rest = iter(calibrate(found, shrink, n))
        each = [_as_is(view, n) if view.likelihood.text else next(rest) for view in self.views]
        views = [replace(view, calibration=c) for view, c in zip(self.views, each, strict=True)]
        return Imputer(self.decode, views)._reaching(held)

    def _reaching(self, held: HoldOut) -> list[FittedView]:
        """The views with the reach of their intervals, as those hidden in `held` advise; those of
        probabilities and words stay as they are."""
        hidden = {v: h.numpy() for v, h in enumerate(held.hidden.T)}
        parts = {v: (rows, held.truth.known(v)) for v, rows in hidden.items()}
        views = list(self.views)
        for v, reach in self._reaches(held, parts).items():
            views[v] = replace(views[v], calibration=replace(views[v].calibrated, reach=reach))
        return views

    def _reaches(
        self, held: HoldOut | HiddenEntries, parts: Mapping[int, tuple[Array, Array]]
    ) -> dict[int, Array]:
        """By view, how far intervals reach. parts: by view, the rows in which something of it is
        hidden, and the truth (n, *shape_v), scaled, NaN where it is not known."""
        if not len(held.inputs):
            return {}
        means, stds = self.values(held.inputs, spread=True)
        far, sparse = {}, []
        for v, (rows, known) in parts.items():
            view = self.views[v]
            if view.likelihood.scaled:
                truth = np.asarray(view.in_units(known, held.truth.size(v)))[rows]
                far[v] = view.far(truth, means[v][rows], stds[v][rows])
                sparse.append(mostly_one_value(view.varying(known[rows])))
        return dict(zip(far, reaches(list(far.values()), sparse), strict=True))

    def truth(self, held: HoldOut, v: int) -> Array:
        """Of view v where it is hidden, (m_v, *shape_v), user units; NaN where it is not known."""
        known = self.views[v].in_units(held.truth.known(v), held.truth.size(v))
        return np.asarray(known[held.hidden[:, v].numpy()])

    def calibrated_at_holes(self, held: HiddenEntries, shrink: bool) -> list[FittedView]:
        """The views with the same, measured on single hidden entries, where there are some."""
        decoded, draws = self.decoded(held.inputs), self.decoded(held.inputs, DRAWS)
        n_seen, found = held.inputs.mask.sum(1).numpy(), []
        some = [v for v in held.views if not self.views[v].likelihood.text]
        for v in some:
            (rows, truth, there), scaler = held.of_view(v), self.views[v].scaler
            mine = (truth, decoded[v][0][rows], draws[v][:, rows], there)
            found.append(evidence(*mine, scaler.mean, scaler.std, n_seen[rows]))
        views = list(self.views)
        each = dict(zip(some, calibrate(found, shrink, len(views)), strict=True))
        for v, c in each.items():
            views[v] = replace(views[v], at_holes=c)
        parts = {v: (held.of_view(v)[0], held.known(v)) for v in some}
        for v, reach in Imputer(self.decode, views)._reaches(held, parts).items():
            views[v] = replace(views[v], at_holes=replace(each[v], reach=reach))
        return views

    def _batches(self, data: Views, draws: int = 0) -> Iterator[Views]:
        width = sum(view.numbers for view in self.views)
        return data.batches(max(1, min(ROWS, NUMBERS // (width * max(draws, 1)))))


def _as_is(view: FittedView, n_views: int) -> Calibration:
    """Tokens stay as they are decoded."""
    return Calibration(1.0, 1.0, np.zeros_like(view.scaler.mean), np.ones(n_views))
