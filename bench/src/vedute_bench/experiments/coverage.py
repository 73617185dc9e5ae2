"""Coverage of intervals for hidden values at several levels, on real sets, in percent.

    python -m vedute_bench.experiments.coverage [--methods lowrank_fill] [--sets cub wikipedia]

Half of the views are hidden as in `rivals.rivals`. In parentheses are the minimum and the maximum
over the views with at least 100 hidden instances.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

import numpy as np

from vedute import methods
from vedute.data import missing
from vedute.metrics import scores
from vedute_bench.rivals import real_sets

SETS = ("cub", "handwritten", "reuters1200", "prokaryotic", "wikipedia", "msrc_v1", "tcga_brca")
SETS += ("scene15", "bbcsport")
LEVELS, ENOUGH = (0.5, 0.8, 0.9, 0.95), 100
RATE, MASK_SEED, PROTOCOL = 0.5, 42, "bernoulli"


def covered(method: str, dataset: str) -> Iterator[tuple[float, list[float]]]:
    """Yield by level the coverage of all hidden views, and of each with enough instances."""
    truth = real_sets.load(dataset)
    views = missing.drop_views(truth, RATE, MASK_SEED, PROTOCOL)
    hidden = (truth.mask & ~views.mask).numpy()
    model = methods.find(method)(random_state=0).fit(views)
    for level in LEVELS:
        _, lower, upper = ([x.numpy() for x in end.x] for end in model.impute(views, level))

        def share(chosen: Any, ends: Any = (lower, upper)) -> float:
            return 100 * scores.coverage(truth.arrays(), *ends, chosen)

        counted = np.flatnonzero(hidden.sum(0) >= ENOUGH)
        by_view = (hidden & (np.arange(hidden.shape[1]) == v) for v in counted)
        yield share(hidden), [share(chosen) for chosen in by_view]


def line(method: str, dataset: str) -> str:
    cells = [
        f"{whole:.1f}" + (f" ({min(views):.1f} to {max(views):.1f})" if views else "")
        for whole, views in covered(method, dataset)
    ]
    return "|".join(["", dataset, method, *cells, ""])


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="*", default=["lowrank_fill", "gaussian_fill"])
    parser.add_argument("--sets", nargs="*", default=SETS)
    options = parser.parse_args()
    print("|".join(["", "", "method", *(f"{100 * level:g} %" for level in LEVELS), ""]))
    print("|---|---" + "|--:" * len(LEVELS) + "|")
    for dataset in options.sets:
        for method in options.methods:
            print(line(method, dataset), flush=True)


if __name__ == "__main__":
    main()
