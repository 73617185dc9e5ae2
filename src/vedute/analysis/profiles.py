"""Profiles of clusters: the features in which they differ from the other samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch

from vedute.analysis.inspection import features
from vedute.estimators.base import Estimator


def profiles(model: Estimator, X: Any) -> pd.DataFrame:
    """The standardised mean difference of each feature (rows: view, feature) in each cluster
    (columns): mean within the cluster minus mean of the other samples, in standard deviations of
    the feature over all samples.

    Only observed values count, on the scale of the model: logarithms of counts and positive
    numbers. NaN where a feature does not vary, or the cluster or the rest was never observed. Views
    of tokens are left out.
    """
    data = model.learner.scaled(X)
    labels = model.learner.labels(data)
    clusters = np.unique(labels)
    if len(clusters) < 2:
        raise ValueError("all samples are in one cluster; two are needed to differ")
    rows, names, differences = [torch.from_numpy(labels == k) for k in clusters], [], []
    for v, view in enumerate(model.views_):
        if view.likelihood.text:
            continue
        seen = data.seen(v).flatten(1)
        x = data.floating().x[v].flatten(1).masked_fill(~seen, 0)
        count = torch.stack([seen[at].sum(0) for at in rows]).numpy().astype(np.float64)
        total, square = (
            torch.stack([a[at].sum(0, dtype=torch.float64) for at in rows]).numpy()
            for a in (x, x.square())
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = total / count
            rest = (total.sum(0) - total) / (count.sum(0) - count)
            variance = square.sum(0) / count.sum(0) - (total.sum(0) / count.sum(0)) ** 2
            varies = variance > 1e-12 * square.sum(0) / count.sum(0)
            differences.append(np.where(varies, (mean - rest) / np.sqrt(variance), np.nan))
        names += [(view.name, name) for name in features(view.spec)]
    index = pd.MultiIndex.from_tuples(names, names=["view", "feature"])
    columns = pd.Index(clusters, name="cluster")
    return pd.DataFrame(np.concatenate(differences, axis=1).T, index, columns)


def strongest(effects: pd.DataFrame, most: int) -> pd.DataFrame:
    """The features of `profiles` that differ most, balanced over clusters and sorted by these."""
    effects = effects[effects.notna().any(axis=1)]
    rank = effects.abs().rank(ascending=False, method="first").fillna(np.inf).to_numpy()
    best, cluster = rank.min(1), rank.argmin(1)
    chosen = np.argsort(best, kind="stable")[:most]
    return effects.iloc[chosen[np.lexsort((best[chosen], cluster[chosen]))]]
