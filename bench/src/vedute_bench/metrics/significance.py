"""Differences between methods over several datasets: ranks and pairwise tests (Demšar, JMLR 2006).

k methods are ranked in each of N datasets, 1 is best; ties share the mean of their ranks.

    Friedman    tests whether all average ranks R_j are equal:
                chi2 = 12 N / (k (k + 1)) (sum_j R_j^2 - k (k + 1)^2 / 4), more with ties.

    Nemenyi     average ranks differ if they lie further apart than the critical difference
                CD = q sqrt(k (k + 1) / (6 N)), q: studentized range of k groups over sqrt(2).

    Wilcoxon    signed ranks of the N differences of two methods; ranks of zeros are split.

    Holm        sorted p of all m = k (k - 1) / 2 pairs become
                max_{j <= i} min(1, (m - j + 1) p_j), i = 1 .. m.

A dataset is a block: its score is the mean over rates and seeds, which share its samples and count
once. With N datasets, the smallest possible p of a pair is 2 / 2^N.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats = NDArray[np.float64]
ALPHA = 0.05
FEWEST_LABELS, FEWEST_DATASETS = 3, 3


class Paired(NamedTuple):
    """Test of two labels, the better-ranked one first.

    It has the numbers of datasets won and lost, the mean difference, and p after Holm's correction.
    """

    better: str
    worse: str
    wins: int
    losses: int
    difference: float
    p: float


class Comparison(NamedTuple):
    """Labels sorted by average rank, best first, with tests over `datasets` datasets."""

    labels: Sequence[str]
    datasets: int
    ranks: Floats  # (k,)
    means: Floats  # (k,)
    chi2: float  # Friedman's
    p: float
    distance: float  # Nemenyi's
    tests: Sequence[Paired]  # of all pairs


def compare(scores: Mapping[str, Sequence[float]]) -> Comparison | None:
    """Compare labels by one score per dataset, higher is better; None if there are too few."""
    table = np.array(list(scores.values()), np.float64).T.round(5)  # (N, k)
    if table.ndim != 2 or table.shape[0] < FEWEST_DATASETS or table.shape[1] < FEWEST_LABELS:
        return None
    ranks = average_ranks(table)
    order = np.argsort(ranks, kind="stable")
    table, ranks = table[:, order], ranks[order]
    labels = [list(scores)[i] for i in order]
    N, k = table.shape
    chi2, p = friedman(table)
    pairs = list(combinations(range(k), 2))
    differences = [table[:, i] - table[:, j] for i, j in pairs]
    tests = []
    for (i, j), d, q in zip(pairs, differences, holm([*map(wilcoxon, differences)]), strict=True):
        wins, losses = int((d > 0).sum()), int((d < 0).sum())
        tests.append(Paired(labels[i], labels[j], wins, losses, float(d.mean()), float(q)))
    return Comparison(labels, N, ranks, table.mean(0), chi2, p, critical_difference(k, N), tests)


def average_ranks(table: ArrayLike) -> Floats:
    """Mean rank (k,) of each column of (N, k), 1 for the highest."""
    ranks: Floats = stats.rankdata(-np.asarray(table, np.float64), axis=1).mean(0)
    return ranks


def friedman(table: Floats) -> tuple[float, float]:
    """Friedman's chi2 and p of a table (N, k)."""
    if (table == table[:, :1]).all():  # nothing to rank
        return 0.0, 1.0
    result = stats.friedmanchisquare(*table.T)
    return float(result.statistic), float(result.pvalue)


def critical_difference(k: int, datasets: int, alpha: float = ALPHA) -> float:
    """Smallest significant difference between average ranks of k methods over `datasets`."""
    q = stats.studentized_range.ppf(1 - alpha, k, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(k * (k + 1) / (6 * datasets)))


def least_p(datasets: int) -> float:
    """Smallest possible p of the signed-rank test over `datasets` datasets."""
    return float(2.0 ** (1 - datasets))


def wilcoxon(differences: Floats) -> float:
    """Two-sided p of the signed-rank test of (N,) differences."""
    if not differences.any():
        return 1.0
    return float(stats.wilcoxon(differences, zero_method="zsplit").pvalue)


def holm(p: Sequence[float]) -> Floats:
    """Correct p-values (m,) of multiple tests."""
    values = np.asarray(p, np.float64)
    order = values.argsort(kind="stable")
    factors = np.arange(len(values), 0, -1)
    corrected = np.empty_like(values)
    corrected[order] = np.maximum.accumulate(np.minimum(1.0, factors * values[order]))
    return corrected


def alike(ranks: Floats, distance: float) -> list[tuple[int, int]]:
    """Maximal ranges (first, last) of sorted ranks (k,) within `distance` of each other."""
    ranges: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = int(np.searchsorted(ranks, ranks[first] + distance, side="right")) - 1
        if last > first and (not ranges or last > ranges[-1][1]):
            ranges.append((first, last))
    return ranges
