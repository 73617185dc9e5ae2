"""How far to trust each of several predictions of a view, learned where the truth is known.

With e_k the deviation of expert k's prediction from the mean of the view, t that of the truth, both
in standard deviations, an instance i of the view has

    G_i = sum over features of e e' / width  (E, E)     c_i = sum over features of e t / width  (E,)

and its squared error under weights w is w' G_i w - 2 c_i' w + a constant. The weights of a view
minimise the sum of these, with the mean of its G_i as BELIEF more instances that want the weights
common to all views; those for instances with a certain number of observed views, with as many that
want the weights of the view. w >= 0 and sum w <= 1: what is not trusted goes to the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from vedute.data.rows import slices

Array = NDArray[Any]
BELIEF = 50.0  # instances' worth of belief in the weights of the larger whole
PREDICTED_NUMBERS = 2**22  # of predictions, at a time
FIRM = 1e4  # how much a sum of one weighs against the errors


class Moments(NamedTuple):
    """Moments of the m hidden instances of one view: gram (m, E, E), cross (m, E), and how many
    views of their samples are observed, seen (m,)."""

    gram: Array
    cross: Array
    seen: Array

    @classmethod
    def of(
        cls, truth: Array, predicted: Array, there: Array, mean: Array, std: Array, seen: Array
    ) -> Moments:
        """truth, there (m, *shape); predicted (E, m, *shape); mean, std (*shape,); seen (m,). Some
        rows at a time, where they are wide."""
        size = max(1, PREDICTED_NUMBERS // max(predicted[:, :1].size, 1))
        rows = [*slices(max(len(truth), 1), size)]
        about = mean, std
        parts = [cls._of(truth[r], predicted[:, r], there[r], *about, seen[r]) for r in rows]
        return cls(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    @classmethod
    def _of(
        cls, truth: Array, predicted: Array, there: Array, mean: Array, std: Array, seen: Array
    ) -> Moments:
        use = (there & (std > 0)).reshape(len(there), std.size)
        unit = np.where(std > 0, std, 1.0)
        count = np.maximum(use.sum(1), 1)
        t = np.where(use, ((truth - mean) / unit).reshape(use.shape), 0.0)
        e = np.where(use, ((predicted - mean) / unit).reshape(len(predicted), *use.shape), 0.0)
        gram = np.einsum("kmd,lmd->mkl", e, e, optimize=True)
        cross = np.einsum("kmd,md->mk", e, t, optimize=True)
        return cls(gram / count[:, None, None], cross / count[:, None], seen)

    def pick(self, rows: Array) -> Moments:
        return Moments(*(a[rows] for a in self))


class Weights(NamedTuple):
    """The weights of each view, (L, E), and where so many others are observed,
    (L, 0 to L - 1, E)."""

    views: Array
    by_seen: Array


def weights(views: Sequence[Moments]) -> Weights:
    gram = sum(v.gram.sum(0) for v in views)
    common = minimum(np.asarray(gram), np.asarray(sum(v.cross.sum(0) for v in views)))
    each = [_of(v, v, common) for v in views]
    by_seen = [
        [_of(v.pick(v.seen == s), v, own) for s in range(len(views))]
        for v, own in zip(views, each, strict=True)
    ]
    return Weights(np.array(each), np.array(by_seen))


def cross_fitted(views: Sequence[Moments], folds: Sequence[Array]) -> list[Array]:
    """The weights of every instance of every view, L arrays (m_v, E): learned from the other folds,
    of which
    each instance has one, L arrays (m_v,)."""
    found = [np.zeros(v.cross.shape) for v in views]
    for k in np.unique(np.concatenate(folds)):
        rest = weights([v.pick(fold != k) for v, fold in zip(views, folds, strict=True)])
        for v, (each, fold) in enumerate(zip(found, folds, strict=True)):
            each[fold == k] = rest.by_seen[v, views[v].seen[fold == k]]
    return found


def _of(part: Moments, view: Moments, wanted: Array) -> Array:
    """The weights of some instances of a view, pulled to the wanted ones."""
    if not len(part.gram):
        return wanted
    prior = BELIEF * view.gram.mean(0)
    return minimum(part.gram.sum(0) + prior, part.cross.sum(0) + prior @ wanted)


def minimum(gram: Array, cross: Array) -> Array:
    """argmin of w' gram w - 2 cross' w over w >= 0, sum w <= 1."""
    size = float(np.trace(gram))
    if size <= 0:
        return np.zeros(len(cross))
    value, axes = np.linalg.eigh(gram / size + 1e-9 * np.eye(len(cross)))
    root = np.sqrt(np.maximum(value, 1e-12))
    a, b = root[:, None] * axes.T, (axes / root).T @ (cross / size)  # |a w - b|^2
    w: Array = nnls(a, b)[0]
    if w.sum() > 1:
        ones = np.full((1, len(w)), FIRM)
        w = nnls(np.vstack([a, ones]), np.append(b, FIRM))[0]
        w /= w.sum()
    return w
