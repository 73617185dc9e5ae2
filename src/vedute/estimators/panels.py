"""The scale of counts with few columns, such as proteins of cells, chosen on hidden views.

The view is predicted in a sample of rows from the other views by ridge regression on the remaining
rows (by the mean, if there are none). Scales are compared by the likelihood of the counts
themselves (Box & Cox, J. R. Stat. Soc. B 1964), where log(g(x + 1) - g(x)), the width of one count
on scale g, stands in for the slope:

    log p(x) = log N(g(x); prediction, variance of the column) + log(g(x + 1) - g(x))
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data import kinds
from vedute.data.holdout import HIDDEN_NUMBERS
from vedute.data.kinds import AUTO_WORD
from vedute.data.views import Views
from vedute.estimators.fitted_view import FittedView, scaled
from vedute.nn.likelihoods import LIKELIHOODS

Array = NDArray[Any]
ByView = str | Sequence[str] | Mapping[str, str]  # a setting: for all views, one each, or by name
CANDIDATES = ("log_counts", "positive", "numbers")
ROWS, FEWEST_ROWS = 1000, 100  # most predicted rows, also for wide data
PANEL_RIDGES = 10.0 ** np.arange(-2.0, 3.1, 0.5)  # times the mean eigenvalue
MARGIN = 0.02  # in log-likelihood per entry, by which other scales must be better
LEAST_STD = 1e-9  # standard deviation of residuals


def fitted(
    raw: Views, likelihood: ByView = AUTO_WORD, kind: ByView = AUTO_WORD, scaling: str = AUTO_WORD
) -> list[FittedView]:
    """Fit all views; what is `auto` follows from their values."""
    words = kinds.per_view("kinds", kind, raw.names, tuple(kinds.KINDS))
    views = []
    for v, name in enumerate(kinds.per_view("likelihood", likelihood, raw.names, LIKELIHOODS)):
        chosen = None if name == AUTO_WORD else LIKELIHOODS[name]
        views.append(FittedView.of(raw, v, chosen, scaling, words[v]))
    results = [*views]
    for v, view in enumerate(views):
        if view.kind == "log_counts" and words[v] == AUTO_WORD:
            results[v] = decided(raw, v, views)
    return results


def decided(raw: Views, v: int, views: Sequence[FittedView]) -> FittedView:
    """Fit view v, recognised as counts of few columns, on the scale with the highest likelihood at
    hidden views; `views` are all views as recognised."""
    rows = (raw.mask[:, v] & (raw.mask.sum(1) > 1)).nonzero()[:, 0]  # that have another view, too
    rows = raw.mask[:, v].nonzero()[:, 0] if len(rows) < FEWEST_ROWS else rows
    width = sum(map(math.prod, raw.shapes))
    most = min(len(rows), max(FEWEST_ROWS, min(ROWS, HIDDEN_NUMBERS // width)))
    sample = raw[rows[torch.linspace(0, len(rows) - 1, most).long()]]
    tried = [FittedView.of(raw, v, views[v].likelihood, kind=kind) for kind in CANDIDATES]
    gram = _gram(scaled(views, sample).floating(), views, v)
    likelihoods = np.array([_likelihood(view, sample, v, gram) for view in tried])
    likelihoods[0] += MARGIN
    best = tried[int(likelihoods.argmax())]
    rivals = " and ".join(k for k in CANDIDATES if k != best.kind)
    return replace(best, why=f"{views[v].why}; likelier at hidden views than {rivals}")


def _gram(data: Views, views: Sequence[FittedView], v: int) -> Array:
    """Return inner products (m, m) of rows over their other views, equally weighted; missing views
    are at their mean."""
    gram = np.zeros((len(data), len(data)))
    for u, view in enumerate(views):
        if u != v and not view.likelihood.text:
            x = data.x[u].numpy() - view.scaler.mean
            x = (x * data.seen(u).numpy()).reshape(len(data), -1)
            products = (x @ x.T).astype(np.float64)
            gram += products / max(float(np.trace(products)), 1e-12)
    return gram * len(gram) / max(float(np.trace(gram)), 1e-12)


def _likelihood(view: FittedView, raw: Views, v: int, gram: Array) -> float:
    """Return the log-likelihood of counts at the leave-one-out residuals of the best ridge,
    averaged over entries of columns that vary."""
    scaler = view.scaler
    seen = raw.seen(v).numpy() & (scaler.std > 0)
    x = raw.x[v].double()
    count = 1.0 if scaler.offset is None else np.log1p(1 / (x.numpy() + scaler.offset))
    width = np.where(seen, np.log(count / scaler.scale), 0.0)
    y = np.where(seen, (scaler.transformed(x).numpy() - scaler.shift) / scaler.scale, 0.0)
    size, Q = np.linalg.eigh(gram)
    totals = []
    for ridge in PANEL_RIDGES:
        keep = ridge / (np.maximum(size, 0.0) + ridge)
        left_out = Q @ (keep[:, None] * (Q.T @ y)) / ((Q * Q) @ keep)[:, None] * seen
        std = np.sqrt((left_out**2).sum(0) / np.maximum(seen.sum(0), 1)) + LEAST_STD
        totals.append((width - seen * np.log(std)).sum())
    return float(max(totals) / max(seen.sum(), 1))
