"""Cost of a fit by the numbers of rows and views, on this machine.

    python -m vedute_bench.speed.cost [--rows 250 500 1000 2000] [--views 2 6 12 20]

By rows: seconds of a whole fit with the defaults on some digits of Handwritten (six views, half of
them missing). By views: milliseconds of a step of MVP with 256 rows of views of 50 columns, half of
them missing, from fits of 20 and of 60 steps.
"""

from __future__ import annotations

from argparse import ArgumentParser
from time import perf_counter

import numpy as np
import torch

from vedute import datasets, drop_views, methods
from vedute.data.views import Views
from vedute_bench.runner import workers

ROWS, WIDTH, FEW, MORE = 1000, 50, 20, 60


def seconds(method: str, views: Views, **settings: int) -> float:
    start = perf_counter()
    methods.find(method)(random_state=0, **settings).fit(views)
    return perf_counter() - start


def by_rows(method: str, rows: int) -> float:
    digits = datasets.load("handwritten")
    chosen = np.random.default_rng(0).permutation(len(digits))[:rows]
    return seconds(method, drop_views(digits[np.sort(chosen)], 0.5, 42))


def by_views(n_views: int) -> float:
    """Milliseconds of a step of MVP."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(ROWS, 10))
    x = [np.tanh(z @ rng.normal(size=(10, WIDTH))) for _ in range(n_views)]
    views = drop_views(Views.of(x), 0.5, 42)
    few, more = (seconds("mvp", views, steps=n, warmup=0, cooldown=0) for n in (FEW, MORE))
    return 1000 * (more - few) / (MORE - FEW)


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", nargs="*", type=int, default=(250, 500, 1000, 2000))
    parser.add_argument("--views", nargs="*", type=int, default=(2, 6, 12, 20))
    options = parser.parse_args()
    print(f"{workers.cpu_name()}, {workers.cores()} cores, {torch.get_num_threads()} threads")
    by_rows("blend", 100)  # a first fit loads libraries
    print("\n| rows | blend, s | mvp, s |\n|--:|--:|--:|")
    for n in options.rows:
        print(f"| {n} | {by_rows('blend', n):.0f} | {by_rows('mvp', n):.0f} |", flush=True)
    print("\n| views | a step of MVP, ms |\n|--:|--:|")
    for n in options.views:
        print(f"| {n} | {by_views(n):.0f} |", flush=True)


if __name__ == "__main__":
    main()
