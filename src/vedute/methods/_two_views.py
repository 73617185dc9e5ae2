"""Two of many views: their samples, the hidden views they predict, and their clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data.holdout import HoldOut
from vedute.data.views import Views
from vedute.estimators.base import Estimator

Pair = tuple[int, int]


def part(data: Views, pair: Pair) -> tuple[NDArray[np.bool_], Views]:
    """Which rows have one of the two views, (n,) bool, and these rows of the two."""
    both = data.pick(*pair)
    rows = both.mask.any(1)
    some = both[rows]
    index = torch.arange(len(some), device=some.mask.device)
    return rows.cpu().numpy(), replace(some, index=index)


def hidden_in(held: HoldOut, pair: Pair) -> HoldOut:
    """The hidden views of the pair whose other view is observed."""
    hidden, inputs = held.hidden[:, list(pair)], held.inputs.pick(*pair)
    rows = hidden.any(1) & inputs.mask.any(1)
    means, weights = (tuple(each[v] for v in pair) for each in (held.means, held.weights))
    return HoldOut(inputs[rows], held.truth.pick(*pair)[rows], hidden[rows], means, weights)


def explained(model: Estimator, pair: Pair, held: HoldOut) -> float:
    """1 - error / error of mean-fill, over all hidden views; those outside the pair get means."""
    some, gain = hidden_in(held, pair), 0.0
    for v, out in enumerate(model.decode(some.inputs) if len(some.hidden) else ()):
        better = some.errors(some.means[v], v) - some.errors(torch.from_numpy(out[0]), v)
        gain += float(better[some.hidden[:, v]].sum())
    means = (held.errors(m, v)[held.hidden[:, v]].sum() for v, m in enumerate(held.means))
    return gain / max(float(sum(means)), 1e-12)


def clustered(model: Estimator, pair: Pair, data: Views) -> NDArray[np.int64]:
    """Clusters by the method's rule, (n,); rows with neither view are in the largest."""
    rows, some = part(data, pair)
    model.embedding_ = model.embed(some)
    model.learner.cluster(some)
    labels = np.full(len(data), np.bincount(model.labels_).argmax(), np.int64)
    labels[rows] = model.labels_
    del model.embedding_, model.labels_
    return labels
