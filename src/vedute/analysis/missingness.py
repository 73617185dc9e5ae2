"""Whether a view is missing where other views have certain values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from vedute.data.views import Views

Floats = NDArray[np.float64]
FEWEST_SAMPLES = 10  # samples with and without a view, to compare them
COMPARED_NUMBERS = 2**25  # entries of a view to compare
KEPT = 5  # features by pair of views


def missingness(data: Views, names: Sequence[Sequence[str]]) -> pd.DataFrame:
    """Compare samples that lack a view (column missing) with samples that have it, by every feature
    of every other view, in scaled units; names: those of the features of each view.

    The features that differ most have a row, by p-value: difference of the means, missing minus
    observed, in standard deviations, and p of Welch's t-test with Bonferroni correction for all
    tests: below 0.01 missingness depends on observed values.
    """
    records, tests = [], 0
    for u in range(len(data.x)):
        if data.x[u].dtype == torch.int64:  # words
            continue
        rows = max(2 * FEWEST_SAMPLES, COMPARED_NUMBERS // max(data.x[u][0].numel(), 1))
        x, seen = data.floating().x[u].flatten(1)[:rows], data.seen(u).flatten(1)[:rows]
        for v in (v for v in range(len(data.x)) if v != u):
            gone = ~data.mask[:rows, v] & data.mask[:rows, u]
            here = data.mask[:rows, v] & data.mask[:rows, u]
            if min(int(gone.sum()), int(here.sum())) < FEWEST_SAMPLES:
                continue
            difference, p = _compared(x, seen, gone, here)
            tests += int(np.isfinite(p).sum())
            for f in np.argsort(p, kind="stable")[:KEPT]:
                if np.isfinite(p[f]):
                    records.append((data.names[v], data.names[u], names[u][f], difference[f], p[f]))
    table = pd.DataFrame(records, columns=["missing", "view", "feature", "difference", "p"])
    table["p"] = np.minimum(table["p"].astype(float) * tests, 1.0)
    table["difference"] = table["difference"].astype(float)
    return table.sort_values(["p", "missing"], kind="stable", ignore_index=True)


def _compared(
    x: torch.Tensor, seen: torch.Tensor, gone: torch.Tensor, here: torch.Tensor
) -> tuple[Floats, Floats]:
    """Standardised difference of means and p-value of Welch's test by feature; NaN: undefined."""
    from scipy.stats import ttest_ind_from_stats

    stats = []
    for rows in (gone, here):
        observed, values = seen[rows], x[rows].double()
        count = observed.sum(0).double()
        mean = values.masked_fill(~observed, 0).sum(0) / count
        off = (values - mean).masked_fill(~observed, 0).square().sum(0)
        stats += [mean.numpy(), (off / (count - 1)).sqrt().numpy(), count.numpy()]
    with np.errstate(invalid="ignore", divide="ignore"):
        pooled = np.sqrt((stats[1] ** 2 + stats[4] ** 2) / 2)
        varies = (pooled > 1e-6) & (np.minimum(stats[2], stats[5]) >= FEWEST_SAMPLES)
        p = ttest_ind_from_stats(*stats, equal_var=False).pvalue
        difference = (stats[0] - stats[3]) / pooled
    return np.where(varies, difference, np.nan), np.where(varies, p, np.nan)
