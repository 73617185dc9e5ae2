"""Imputed values from decoder outputs, calibrated on hidden views, in the user's units."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter, methodcaller
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
    mostly_one_value,
    reaches,
)
from vedute.estimators.fitted_view import FittedView
from vedute.nn import noise

Array = NDArray[Any]
Decode = Callable[[Views, int], list[Array]]
DECODED_ROWS = 8192  # rows per decoded batch, fewer for wide samples
DECODED_NUMBERS = 2**22  # numbers per decoded batch
TABLE = 2**24  # numbers of the largest table of a model per decoded batch
MIN_HIDDEN, MAX_NUMBERS = 100, 2**26  # hidden samples to calibrate on; numbers of their draws
DRAWS = 16  # of the posterior, for intervals


def batch_rows(width: int, table: int = 1) -> int:
    """Return the batch size of a model for rows of `width` numbers; table: see `Imputer`."""
    return max(1, min(DECODED_ROWS, DECODED_NUMBERS // width, TABLE // table))


@dataclass(frozen=True, eq=False)
class Imputer:
    """Imputes all views of any samples.

    decode   (batch, draws) -> expected values of all views at the posterior mean (draws = 0) or at
             draws of it: L arrays (draws or 1, n, *shape_v), in scaled units
    table    numbers per row of the largest table of the model
    """

    decode: Decode
    views: Sequence[FittedView]
    table: int = 1

    def decoded(self, data: Views, draws: int = 0) -> list[Array]:
        """Decode data batch by batch: L arrays (draws or 1, n, *shape_v)."""
        parts = []
        for batch in data.batches(self.rows(draws)):
            parts.append(self.decode(batch, draws))
        whole = partial(np.concatenate, axis=1)
        return parts[0] if len(parts) == 1 else [*map(whole, zip(*parts, strict=True))]

    def variances(self, data: Views) -> list[Array]:
        """Return the variances of draws of decoded values: L arrays (n, *shape_v)."""
        parts = []
        for batch in data.batches(self.rows(DRAWS)):
            rows = np.arange(len(batch))  # a copy, so that equal draws have variance zero
            parts.append([draws[:, rows].var(0) for draws in self.decode(batch, DRAWS)])
        return [np.concatenate(part) for part in zip(*parts, strict=True)]

    def expected(self, data: Views, draws: int = 0) -> list[Array]:
        """Return decoded values with calibrated shrinkage to the mean."""
        results = []
        for v, decoded in enumerate(self.decoded(data, draws)):
            results.append(self.views[v].shrunk(decoded, data.holes[v]))
        return results

    def values(self, data: Views, spread: bool = False) -> tuple[list[Array], list[Array]]:
        """Return expected values in the user's units, L arrays, and stds if `spread`."""
        draw = self.draws_for(spread)
        n, results = len(data), list[tuple[Stack, Stack]]()
        for _ in self.views:
            results.append((Stack(n), Stack(n)))
        for batch in data.batches(self.rows(draw)):
            expected, n_seen = self.expected(batch), batch.mask.sum(1).numpy()
            draws: list[Array] = []
            if draw:  # to measure a spread
                with noise.seeded(0, common=True):
                    draws = self.expected(batch, draw)
            for v, (view, (means, stds)) in enumerate(zip(self.views, results, strict=True)):
                mean, size = expected[v][0], batch.size(v)
                if draw:
                    mean, std = view.moments(mean, draws[v], n_seen, size, batch.holes[v])
                    stds.add(std)
                means.add(mean if draw else view.in_units(mean, size))
            progress.advance(len(batch), "row")
        all_means, all_stds = zip(*results, strict=True)
        stds_of_views = [*map(attrgetter("array"), all_stds)] if draw else []
        return [*map(attrgetter("array"), all_means)], stds_of_views

    def draws_for(self, spread: bool = False) -> int:
        """Return the number of posterior draws for values; means of log-normals need draws, too."""
        for view in self.views:
            spread = spread or view.scaler.offset is not None
        return DRAWS if spread else 0

    def draw(self, data: Views) -> list[Array]:
        """Draw every view, noise included: L arrays (n, *shape_v) in the user's units."""
        drawn = [Stack(len(data)) for _ in self.views]
        for batch in data.batches(self.rows(1)):
            expected, draws = self.expected(batch), self.expected(batch, 1)
            n_seen = batch.mask.sum(1).numpy()
            for v, view in enumerate(self.views):
                spread = view.by_entry(attrgetter("spread"), batch.holes[v])
                noise = view.by_entry(methodcaller("noise_of", n_seen), batch.holes[v])
                mean = expected[v][0] + spread * (draws[v][0] - expected[v][0])
                drawn[v].add(view.noisy(mean, noise, batch.size(v)))
        return [s.array for s in drawn]

    def hidden_results(self, held: HoldOut) -> tuple[dict[str, Array], dict[str, float]]:
        """Return row, view, error and error of mean imputation per hidden instance; R2 per view."""
        which, r2 = held.hidden.int().argmax(1).numpy(), {}
        error, base = np.zeros((2, len(which)))
        for rows in slices(len(which), self.rows()):
            part = held.part(rows)
            for v, value in enumerate(self.expected(part.inputs)):
                at = part.rows_of(v)
                error[rows][at] = part.errors(torch.from_numpy(value[0]), v).numpy()[at]
                base[rows][at] = part.errors(part.means[v], v).numpy()[at]
        for v, name in enumerate(held.truth.names):
            at = which == v
            r2[name] = float(1 - error[at].sum() / base[at].sum()) if base[at].sum() else np.nan
        row = held.truth.index.numpy()
        return {"row": row, "view": which, "error": error, "mean_error": base}, r2

    def calibrated(self, held: HoldOut | HiddenEntries, shrink: bool) -> list[FittedView]:
        """Return the views calibrated on hidden views, or their holes on hidden entries."""
        views, n, field, evidence = list(self.views), len(self.views), "at_holes", []
        hidden = range(n) if isinstance(held, HoldOut) else held.views
        subset = [v for v in hidden if not views[v].likelihood.text]
        if isinstance(held, HoldOut):
            width, field = sum(view.scaler.mean.size for view in views), "calibration"
            held = held.part(slice(max(MIN_HIDDEN, MAX_NUMBERS // (width * DRAWS))))
            for v in set(hidden) - set(subset):  # words stay as they are decoded
                plain = Calibration(1.0, 1.0, np.zeros_like(views[v].scaler.mean), np.ones(n))
                views[v] = replace(views[v], calibration=plain)
        decoded, variances = self.decoded(held.inputs), self.variances(held.inputs)
        n_seen = held.inputs.mask.sum(1).numpy()
        for v in subset:
            rows, truth, scaler = held.rows_of(v), held.truth_of(v), views[v].scaler
            values = truth.x[0].numpy(), decoded[v][0][rows], variances[v][rows]
            evidence.append(Evidence(*values, truth.seen(0).numpy(), scaler, n_seen[rows]))
        del decoded, variances  # which may be large
        calibrations = calibrate(evidence, shrink, n)
        measured: dict[int, Any] = dict(zip(subset, calibrations, strict=True))
        for v, c in measured.items():
            views[v] = replace(views[v], **{field: c})
        for v, reach in replace(self, views=views)._reaches(held, subset).items():
            views[v] = replace(views[v], **{field: replace(measured[v], reach=reach)})
        return views

    def _reaches(self, held: HoldOut | HiddenEntries, subset: Sequence[int]) -> dict[int, Array]:
        """Return the reach of intervals by view of numbers, measured on `held`."""
        numeric, far = [v for v in subset if self.views[v].likelihood.scaled], defaultdict(list)
        for rows_of_batch in slices(len(held.inputs), self.rows(DRAWS)):  # samples may be wide
            part = held.part(rows_of_batch)
            means, stds = self.values(part.inputs, spread=True)
            for v in numeric:
                rows, view, truth = part.rows_of(v), self.views[v], self.truth(part, v)
                away = view.scaler.distance(truth, means[v][rows], stds[v][rows])
                far[v].append(view.varying(away))
        sparse = [mostly_one_value(self.views[v].varying(held.truth_of(v).known(0))) for v in far]
        by_view = reaches([np.concatenate(parts) for parts in far.values()], sparse)
        return dict(zip(far, by_view, strict=True))

    def truth(self, held: HoldOut | HiddenEntries, v: int) -> Array:
        """Return view v where it is hidden, (m_v, *shape_v), in the user's units; NaN: unknown."""
        hidden = held.truth_of(v)
        return np.asarray(self.views[v].in_units(hidden.known(0), hidden.size(0)))

    def rows(self, draws: int = 0) -> int:
        """Return the number of rows per decoded batch."""
        return batch_rows(self.numbers * max(draws, 1), self.table)

    @property
    def numbers(self) -> int:
        """The number of decoder outputs for one sample."""
        return int(sum(map(np.prod, map(attrgetter("output_shape"), self.views))))
