"""From decoder outputs to values: calibrated on hidden views, in the user's units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data import scaling
from vedute.data.holdout import HoldOut
from vedute.data.scaling import Scaler
from vedute.data.views import Views
from vedute.estimators.calibration import Calibration, calibrate, evidence
from vedute.nn import likelihoods

Array = NDArray[Any]
Decode = Callable[[Views, int], list[Array]]
CHUNK = 8192  # rows at a time, fewer where samples are wide
NUMBERS = 2**24  # that draws of a chunk may hold
FEWEST = 100  # hidden samples to calibrate on, however wide they are
DRAWS = 16  # of the posterior, for intervals


def calibrate_views(
    decode: Decode, held: HoldOut, scalers: Sequence[Scaler], shrink: bool
) -> list[Calibration]:
    """Shrinkage, spread and noise of every view, from views hidden in `held`."""
    width = sum(s.mean.size for s in scalers)
    held = held.first(max(FEWEST, 4 * NUMBERS // (width * DRAWS)))
    decoded, draws = decode(held.inputs, 0), decode(held.inputs, DRAWS)
    found = []
    for v, scaler in enumerate(scalers):
        if scaler.tokens:
            continue
        rows = held.hidden[:, v].numpy()
        truth, there = held.truth.x[v].numpy(), scaling.entries_seen(held.truth, v).numpy()
        found.append(
            evidence(
                truth[rows],
                decoded[v][0][rows],
                draws[v][:, rows],
                there[rows],
                scaler.mean,
                scaler.std,
                held.inputs.mask.sum(1).numpy()[rows],
            )
        )
    numbers = iter(calibrate(found, shrink, len(scalers)))
    return [_words(s, len(scalers)) if s.tokens else next(numbers) for s in scalers]


def _words(scaler: Scaler, n_views: int) -> Calibration:
    """Tokens are told as they are."""
    return Calibration(1.0, 1.0, np.zeros_like(scaler.mean), np.ones(n_views))


@dataclass(frozen=True, eq=False)
class Teller:
    """Turns what `decode` says of all views into values."""

    decode: Decode
    kinds: Sequence[str]
    scalers: Sequence[Scaler]
    calibration: Sequence[Calibration]

    def told(self, data: Views, draws: int = 0) -> list[Array]:
        """Expected values (draws or 1, n, *shape_v), shrunk towards the mean; scaled units."""
        parts = zip(self.decode(data, draws), self.calibration, self.scalers, strict=True)
        return [(s.mean + c.shrink * (d - s.mean)).astype(np.float32) for d, c, s in parts]

    def values(self, data: Views, spread: bool = False) -> tuple[list[Array], list[Array]]:
        """Expected values, and standard deviations if asked: L arrays (n, *shape_v), user units."""
        means: list[list[Array]] = [[] for _ in data.x]
        stds: list[list[Array]] = [[] for _ in data.x]
        width = sum(s.mean.size for s in self.scalers)
        rows = min(CHUNK, max(1, NUMBERS // (width * DRAWS))) if spread else CHUNK
        for batch in data.batches(rows):
            told, seen = self.told(batch), batch.mask.sum(1).numpy()
            draws = self._draws(batch) if spread else None
            for v, (c, s) in enumerate(zip(self.calibration, self.scalers, strict=True)):
                means[v].append(self._in_units(told[v][0], v))
                if draws is not None:
                    variance = c.variance(self.kinds[v], told[v][0], draws[v], seen)
                    stds[v].append(np.sqrt(variance) * s.scale * (s.std > 0))
        return [np.concatenate(m) for m in means], [np.concatenate(s) for s in stds if s]

    def _draws(self, batch: Views) -> list[Array]:
        """Draws that only measure a spread: the same every time, nobody's generator moves."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return self.told(batch, DRAWS)

    def draw(self, data: Views) -> list[Array]:
        """One draw of every view, noise included: L arrays (n, *shape_v), user units."""
        drawn: list[list[Array]] = [[] for _ in data.x]
        for batch in data.batches(CHUNK):
            told, draw, seen = self.told(batch), self.told(batch, 1), batch.mask.sum(1).numpy()
            for v in range(len(data.x)):
                spread = self.calibration[v].spread
                mean = told[v][0] + spread * (draw[v][0] - told[v][0])
                drawn[v].append(self.noisy(mean, v, self.calibration[v].noise_of(seen)))
        return [np.concatenate(d) for d in drawn]

    def noisy(self, mean: Array, v: int, noise: Array) -> Array:
        """A draw of view v given its mean and noise (n, *shape), in user units."""
        parts = (torch.from_numpy(np.asarray(a, dtype=np.float32)) for a in (mean, noise))
        return self._in_units(likelihoods.draw(self.kinds[v], *parts).numpy(), v)

    def _in_units(self, scaled: Array, v: int) -> Array:
        """Of the user. Probabilities of categories have none, and no constants among them: one
        that nobody has takes nothing from the others."""
        return scaled if self.kinds[v] == "categorical" else self.scalers[v].restore(scaled)

    def hidden_results(self, held: HoldOut) -> tuple[dict[str, Array], dict[str, float]]:
        """Per hidden instance its row, view, error and mean-fill's error; and R2 per view."""
        values = self.told(held.inputs)
        rows, views = (t.numpy() for t in held.hidden.nonzero(as_tuple=True))
        told, base, r2 = np.zeros(len(rows)), np.zeros(len(rows)), {}
        for v, name in enumerate(held.truth.names):
            at = views == v
            told[at] = held.errors(torch.from_numpy(values[v][0]), v).numpy()[rows[at]]
            base[at] = held.errors(held.means[v], v).numpy()[rows[at]]
            r2[name] = float(1 - told[at].sum() / base[at].sum()) if base[at].sum() else np.nan
        where = held.truth.index.numpy()[rows]
        return {"row": where, "view": views, "error": told, "mean_error": base}, r2

    def left_out_errors(self, data: Views) -> tuple[float, float]:
        """Every observed view of rows with two or more left out in turn: summed error, and that
        of mean-fill."""
        told = base = 0.0
        for v in range(data.shape[1]):
            rows = data.mask[:, v] & (data.mask.sum(1) > 1)
            for batch in data[rows].bare().batches(CHUNK) if rows.any() else ():
                out = torch.zeros_like(batch.mask)
                out[:, v] = True
                held = HoldOut.of(batch, out, self.scalers)
                value = torch.from_numpy(self.told(held.inputs)[v][0])
                told += float(held.errors(value, v).sum())
                base += float(held.errors(held.means[v], v).sum())
        return told, base
