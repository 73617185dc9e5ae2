"""Peak memory of fit, transform and impute with a view that is given as scipy.sparse.

    python -m vedute_bench.speed.sparse_memory [--rows 1000] [--width 50000] [--dense]

Each method runs in a separate process, which prints the increase of its peak resident memory over
Python with torch (Linux, ru_maxrss). The first increase is that of the library after a small fit,
the others are those of each verb, data included. The samples of `impute` are half as many, and all
lack the sparse view. With --dense, the same numbers are passed as an array, for comparison.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
from time import perf_counter
from typing import Any

METHODS = {
    "MVP": {"steps": 300},
    "LowRankFill": {},
    "Blend": {"expert_settings": {"mvp__steps": 300}},
}


def peak() -> float:
    """Peak memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def data(rows: int, width: int, density: float) -> tuple[Any, Any]:
    """Generate bags of words from eight topics, and 20 numbers that depend on the topics."""
    import numpy as np
    from scipy import sparse

    rng = np.random.default_rng(0)
    topic, words, per_topic = rng.integers(8, size=rows), round(width * density), width // 16
    columns = rng.integers(width, size=(rows, words))
    on_topic = rng.random((rows, words)) < 0.5
    columns = np.where(on_topic, topic[:, None] * per_topic + columns % per_topic, columns)
    at = np.repeat(np.arange(rows), words), columns.ravel()
    counts = sparse.coo_array((np.ones(rows * words), at), shape=(rows, width)).tocsr()
    return counts, rng.normal(size=(8, 20))[topic] + rng.normal(size=(rows, 20))


def measure(method: str, settings: dict[str, Any], args: argparse.Namespace) -> None:
    import torch

    torch.set_num_threads(1)
    start = peak()
    import vedute

    model = getattr(vedute, method)(random_state=0, **settings)
    small, numbers = data(60, 300, 0.1)
    model.fit({"a": small, "b": numbers})
    print(f"{method:12} {'import':10} {peak() - start:7.0f} MiB", flush=True)
    text, numbers = data(args.rows, args.width, args.density)
    X = {"a": text.toarray() if args.dense else text, "b": numbers}
    lacking = {"b": numbers[: args.rows // 2]}
    for verb, argument in (("fit", X), ("transform", X), ("impute", lacking)):
        began = perf_counter()
        getattr(model, verb)(argument)
        took = perf_counter() - began
        print(f"{method:12} {verb:10} {peak() - start:7.0f} MiB {took:7.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--width", type=int, default=50_000)
    parser.add_argument("--density", type=float, default=0.01)
    parser.add_argument("--dense", action="store_true")
    args = parser.parse_args()
    for method, settings in METHODS.items():
        process = multiprocessing.get_context("spawn").Process(
            target=measure, args=(method, settings, args)
        )
        process.start()
        process.join()


if __name__ == "__main__":
    main()
