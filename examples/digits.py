"""Incomplete digits: cluster 2000 handwritten digits, half of which lack some of their six views.

    python examples/digits.py            about two minutes on two cores
    python examples/digits.py --quick    a few seconds, and worse numbers

The data come with the package. Labels are used for the scores only.
"""

from __future__ import annotations

import argparse
from time import perf_counter

from vedute import MVP, datasets, drop_views
from vedute.data.missing import rates
from vedute.estimators.base import Estimator
from vedute.methods.fills.knn_fill import KNNFill
from vedute.methods.fills.lowrank_fill import LowRankFill
from vedute.methods.fills.mean_fill import MeanFill
from vedute.metrics.scores import clustering_accuracy, coverage, imputation_error


def main() -> None:
    quick = arguments().quick
    digits = datasets.load("handwritten")
    if quick:
        digits = digits[::20]
    half = drop_views(digits, rate=0.5, seed=42, protocol="bernoulli")
    gone, hidden = rates(half.mask), (~half.mask).numpy()
    print(half)
    print(f"{gone.rows:.0%} of the rows lack a view, {gone.slots:.0%} of all views are missing\n")

    common = {"n_clusters": 10, "random_state": 0}
    mvp = MVP(**common, steps=20, cooldown=5, hidden=(32,)) if quick else MVP(**common)
    methods: list[Estimator] = [mvp, LowRankFill(**common), KNNFill(**common), MeanFill(**common)]

    print(f"{'method':12}  accuracy  error of missing views  seconds")
    for model in methods:
        start = perf_counter()
        filled = model.fit(half).impute(half)
        accuracy = clustering_accuracy(digits.y, model.labels_)
        error = imputation_error(digits.x, filled.x, hidden)  # 1 is what the mean gets
        seconds = perf_counter() - start
        print(f"{type(model).__name__:12}  {accuracy:8.1%}  {error:22.3f}  {seconds:7.1f}")

    told = mvp.impute(half, interval=0.9)
    inside = coverage(digits.x, told.lower.x, told.upper.x, hidden)
    print(f"\n{inside:.0%} of the missing values lie inside MVP's 90 % intervals")
    print("explained, on views hidden from training:", end=" ")
    print(", ".join(f"{name} {share:.0%}" for name, share in mvp.r2_.items()))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few samples, few steps")
    return parser.parse_args()


if __name__ == "__main__":
    main()
