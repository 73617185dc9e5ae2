"""Paired differences over the records of a study, with 95 % intervals.

A contrast is a weighted sum over labels with weights that sum to zero: "mlp" - "mlp + cyclic". It
is computed for each seed, whose runs share data and mask. Errors are compared as logarithms, so
that a difference is a ratio; percentages are compared directly.

    in a dataset     Mean over seeds, with Student's interval.

    over datasets    Mean of these means. Its interval is from 10 000 bootstrap draws, of datasets
                     and then of seeds within each, with a fixed random state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import exp, log
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

Record = dict[str, Any]
Weights = Mapping[str, float]
Cells = dict[tuple[str, int], dict[str, float]]  # (dataset, seed) -> label -> score
ALL = "all"
DRAWS, LEVEL = 10_000, 0.95


class Estimate(NamedTuple):
    """Difference of scores or ratio of errors; runs: number of paired seeds over all datasets."""

    value: float
    low: float
    high: float
    runs: int


def cells(records: Iterable[Record], rate: float, score: str) -> Cells:
    """Latest score of each run at a rate, without runs that lack the score."""
    scores: Cells = {}
    for r in records:
        if r["rate"] == rate and r["scores"].get(score) is not None:
            value = r["scores"][score]
            place = scores.setdefault((r["dataset"], r["seed"]), {})
            place[r["label"]] = log(value) if score == "error" else value
    return scores


def estimates(cells: Cells, weights: Weights, score: str) -> dict[str, Estimate]:
    """Estimate a contrast in every dataset with all its labels; over several datasets, as `ALL`."""
    by_dataset: dict[str, list[float]] = {}
    for (dataset, _), scores in sorted(cells.items()):
        if all(label in scores for label in weights):
            value = sum(w * scores[label] for label, w in weights.items())
            by_dataset.setdefault(dataset, []).append(value)
    means = {k: within(values) for k, values in by_dataset.items()}
    if len(means) > 1:
        means[ALL] = across(list(by_dataset.values()))
    return {k: _as_ratio(e) for k, e in means.items()} if score == "error" else means


def within(values: Sequence[float]) -> Estimate:
    """Mean over seeds with Student's interval, which is NaN for one seed."""
    n, mean = len(values), fmean(values)
    if n < 2:
        return Estimate(mean, float("nan"), float("nan"), n)
    reach = stats.t.ppf((1 + LEVEL) / 2, n - 1) * np.std(values, ddof=1) / n**0.5
    return Estimate(mean, mean - float(reach), mean + float(reach), n)


def across(datasets: Sequence[Sequence[float]]) -> Estimate:
    """Mean of the means of datasets, with a bootstrap interval."""
    rng, D = np.random.default_rng(0), len(datasets)
    drawn = rng.integers(D, size=(DRAWS, D))
    means = np.empty((DRAWS, D))
    for d, values in enumerate(datasets):
        times = int((drawn == d).sum())
        seeds = rng.integers(len(values), size=(times, len(values)))
        means[drawn == d] = np.asarray(values)[seeds].mean(1)
    low, high = np.quantile(means.mean(1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    mean = fmean(fmean(values) for values in datasets)
    return Estimate(mean, float(low), float(high), sum(map(len, datasets)))


def _as_ratio(e: Estimate) -> Estimate:
    return Estimate(exp(e.value), exp(e.low), exp(e.high), e.runs)


# Contrasts.


def against(reference: str, labels: Iterable[str]) -> dict[str, Weights]:
    """Contrasts of each label minus the reference."""
    return {label: {label: 1.0, reference: -1.0} for label in labels if label != reference}


def label_of(levels: Iterable[str]) -> str:
    """Label of a run with these ingredients."""
    return " + ".join(level for level in levels if level) or "neither"


def effects(factors: Mapping[str, Sequence[str]]) -> dict[str, Weights]:
    """Contrasts that measure the effects of ingredients.

    Main effects: omitting an ingredient, level "", or replacing it with another level of its
    factor, averaged over all others. For two ingredients that can be omitted: the effect of each
    with and without the other, and their interaction.
    """
    contrasts = {}
    for name, (first, *others) in factors.items():
        for level in others:
            words = f"no {name}" if level == "" else f"{level} for {first} {name}"
            contrasts[words] = _difference(factors, name, first, level, {})
    for a, b in _pairs([k for k, levels in factors.items() if "" in levels]):
        present = factors[a][0], factors[b][0]
        for one, other, other_level in ((a, b, present[1]), (b, a, present[0])):
            for level, words in ((other_level, "with"), ("", "without")):
                weights = _difference(factors, one, factors[one][0], "", {other: level})
                contrasts[f"no {one}, {words} {other}"] = weights
        with_b, without = contrasts[f"no {a}, with {b}"], contrasts[f"no {a}, without {b}"]
        labels = dict.fromkeys((*with_b, *without))
        contrasts[f"{a} × {b}"] = {k: without.get(k, 0.0) - with_b.get(k, 0.0) for k in labels}
    return contrasts


def _difference(
    factors: Mapping[str, Sequence[str]],
    name: str,
    first: str,
    level: str,
    fixed: Mapping[str, str],
) -> Weights:
    """Contrast of a factor's `level` minus its first, averaged over factors that are not fixed."""
    free = [
        [first] if k == name else [fixed[k]] if k in fixed else levels
        for k, levels in factors.items()
    ]
    settings, weights = list(product(*free)), {}
    at = list(factors).index(name)
    for levels in settings:
        other = (*levels[:at], level, *levels[at + 1 :])
        weights[label_of(other)] = 1.0 / len(settings)
        weights[label_of(levels)] = -1.0 / len(settings)
    return weights


def _pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
