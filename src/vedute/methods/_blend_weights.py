"""Weights of several predictions of a view, learned where the truth is known.

With e_k the deviation of expert k's prediction from the mean of the view, t that of the truth, both
in standard deviations, an instance i of the view has

    G_i = sum over features of e e' / width  (E, E)     c_i = sum over features of e t / width  (E,)

and its squared error under weights w is w' G_i w - 2 c_i' w + a constant. The weights of a view
minimise the sum of these errors. A prior shrinks them towards the weights common to all views: it
counts as PRIOR_INSTANCES more instances with the mean G_i. Weights for instances with a given
number of observed views are shrunk towards the weights of the view in the same way. w >= 0 and sum
w <= 1: the rest of the weight goes to the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from vedute.data.rows import slices

Array = NDArray[Any]
PRIOR_INSTANCES = 50.0  # strength of the prior, in instances
PREDICTED_NUMBERS = 2**22  # predictions per batch
SUM_WEIGHT = 1e4  # weight of the constraint sum w = 1 against the errors


class Moments(NamedTuple):
    """Moments of the m hidden instances of one view: gram (m, E, E), cross (m, E), and how many
    views of their samples are observed, seen (m,)."""

    gram: Array
    cross: Array
    seen: Array

    @classmethod
    def of(
        cls, truth: Array, predicted: Array, observed: Array, mean: Array, std: Array, seen: Array
    ) -> Moments:
        """Compute the moments in batches of rows.

        truth, observed (m, *shape); predicted (E, m, *shape); mean, std (*shape,); seen (m,)
        """
        size = max(1, PREDICTED_NUMBERS // max(predicted[:, :1].size, 1))
        rows = [*slices(max(len(truth), 1), size)]
        about = mean, std
        parts = [cls._of(truth[r], predicted[:, r], observed[r], *about, seen[r]) for r in rows]
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    @classmethod
    def _of(
        cls, truth: Array, predicted: Array, observed: Array, mean: Array, std: Array, seen: Array
    ) -> Moments:
        use = (observed & (std > 0)).reshape(len(observed), std.size)
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
    """The weights per view, (L, E), and per view and number of other observed views, (L, L, E)."""

    views: Array
    by_seen: Array


def weights(views: Sequence[Moments]) -> Weights:
    """Fit the weights of all views."""
    gram = sum(v.gram.sum(0) for v in views)
    common = minimum(np.asarray(gram), np.asarray(sum(v.cross.sum(0) for v in views)))
    per_view = [_shrunk(v, v, common) for v in views]
    by_seen = [
        [_shrunk(v.pick(v.seen == s), v, w) for s in range(len(views))]
        for v, w in zip(views, per_view, strict=True)
    ]
    return Weights(np.array(per_view), np.array(by_seen))


def cross_fitted(views: Sequence[Moments], folds: Sequence[Array]) -> list[Array]:
    """Cross-fitted weights of every instance: L arrays (m_v, E), each learned from other folds.

    folds: the fold of each instance, L arrays (m_v,)
    """
    results = [np.zeros(v.cross.shape) for v in views]
    for k in np.unique(np.concatenate(folds)):
        rest = weights([v.pick(fold != k) for v, fold in zip(views, folds, strict=True)])
        for v, (result, fold) in enumerate(zip(results, folds, strict=True)):
            result[fold == k] = rest.by_seen[v, views[v].seen[fold == k]]
    return results


def _shrunk(part: Moments, view: Moments, prior: Array) -> Array:
    """The weights of some instances of a view, shrunk towards `prior`."""
    if not len(part.gram):
        return prior
    gram = PRIOR_INSTANCES * view.gram.mean(0)
    return minimum(part.gram.sum(0) + gram, part.cross.sum(0) + gram @ prior)


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
        ones = np.full((1, len(w)), SUM_WEIGHT)
        w = nnls(np.vstack([a, ones]), np.append(b, SUM_WEIGHT))[0]
        w /= w.sum()
    return w
