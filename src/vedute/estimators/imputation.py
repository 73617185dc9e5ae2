"""From decoder outputs to values: calibrated on hidden views, in the user's units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data.holdout import HoldOut
from vedute.data.views import Views
from vedute.estimators.calibration import Calibration, calibrate, evidence
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

    def variances(self, data: Views) -> list[Array]:
        """Of draws of what the model decodes: L arrays (n, *shape_v)."""
        parts = []
        for batch in self._batches(data, DRAWS):
            rows = np.arange(len(batch))  # copied so, equal draws have no variance of rounding
            parts.append([draws[:, rows].var(0) for draws in self.decode(batch, DRAWS)])
        return [np.concatenate(part) for part in zip(*parts, strict=True)]

    def expected(self, data: Views, draws: int = 0) -> list[Array]:
        """The same, calibrated: shrunk towards the mean."""
        decoded = self.decoded(data, draws)
        return [view.shrunk(d) for view, d in zip(self.views, decoded, strict=True)]

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
                mean, std = view.moments(expected[v][0], draws[v], n_seen, batch.size(v))
                means[v].append(mean)
                stds[v].append(std)
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
                c = view.calibrated
                mean = expected[v][0] + c.spread * (draws[v][0] - expected[v][0])
                drawn[v].append(view.noisy(mean, c.noise_of(n_seen), batch.size(v)))
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
        """The views with shrinkage, spread and noise, measured on views hidden in `held`."""
        width = sum(view.scaler.mean.size for view in self.views)
        held = held.first(max(FEWEST, MOST // (width * DRAWS)))
        decoded, variances = self.decoded(held.inputs), self.variances(held.inputs)
        n_seen, found, n = held.inputs.mask.sum(1).numpy(), [], len(self.views)
        for v, view in enumerate(self.views):
            if not view.likelihood.text:
                rows = held.hidden[:, v].numpy()
                truth, there = held.truth.x[v].numpy(), held.truth.seen(v).numpy()
                mine = (truth[rows], decoded[v][0][rows], variances[v][rows], there[rows])
                found.append(evidence(*mine, view.scaler.mean, view.scaler.std, n_seen[rows]))
        rest = iter(calibrate(found, shrink, n))
        each = [_as_is(view, n) if view.likelihood.text else next(rest) for view in self.views]
        return [replace(view, calibration=c) for view, c in zip(self.views, each, strict=True)]

    def _batches(self, data: Views, draws: int = 0) -> Iterator[Views]:
        width = sum(view.numbers for view in self.views)
        return data.batches(max(1, min(ROWS, NUMBERS // (width * max(draws, 1)))))


def _as_is(view: FittedView, n_views: int) -> Calibration:
    """Tokens stay as they are decoded."""
    return Calibration(1.0, 1.0, np.zeros_like(view.scaler.mean), np.ones(n_views))
