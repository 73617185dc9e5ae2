"""Two-view methods as papers measure them: missing views drawn anew for every pair.

A mask of many views leaves some samples with neither view of a pair. Papers run each method on two
views at a time, with a mask of two views at the same rate, and report the pair whose clusters
agree best with the labels. That takes complete data and labels, so only a benchmark can do it.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from sklearn.base import clone

from vedute.data import missing
from vedute.data.views import Views
from vedute.estimators.base import Estimator
from vedute.metrics import scores


def fit_redrawn(
    method: Estimator, truth: Views, rate: float, seed: int, pair: tuple[str, str] | None = None
) -> tuple[Estimator, Views]:
    """The method fitted on the best pair by accuracy, or on `pair`, and the views that it saw.

    The same samples lose a view in all pairs; none loses both.
    """
    if pair is None and truth.y is None:
        raise ValueError("the data have no labels to choose a pair by; name a pair")
    best, found = -np.inf, None
    for names in combinations(truth.names, 2) if pair is None else [pair]:
        whole = truth.pick(*(truth.names.index(k) for k in names))
        views = missing.drop_views(whole, rate, seed)
        model: Estimator = clone(method).fit(views.bare())
        score = 0.0
        if pair is None and truth.y is not None:
            score = scores.clustering_accuracy(truth.y, model.labels_)
        if score > best:
            best, found = score, (model, views)
    assert found is not None
    return found
