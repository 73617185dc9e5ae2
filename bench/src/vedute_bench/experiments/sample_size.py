"""Error of hidden views by the number of rows.

    python -m vedute_bench.experiments.sample_size            missing runs
    python -m vedute_bench.experiments.sample_size --table    the table in docs/costs.md

A method is fitted to some rows of a set, half of which lack views (mask seed 42). The error of the
hidden views is in standard deviations of each feature: 1 for the mean. There are three draws of
rows per size. Runs use one thread; records are in bench/results/sample-size.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from itertools import product
from statistics import mean, stdev
from time import perf_counter

import numpy as np
import torch

from vedute import __version__, drop_views, methods
from vedute.data.views import Views
from vedute.datasets import synthetic
from vedute.metrics.scores import imputation_error
from vedute_bench.places import RESULTS
from vedute_bench.rivals import real_sets
from vedute_bench.runner import lines, workers

FILE = RESULTS / "sample-size" / "records.jsonl"
ROWS, SETS, SEEDS = (
    (20, 50, 100, 200, 500, 1000),
    ("handwritten", "scene15", "synthetic"),
    (0, 1, 2),
)
METHODS = ("mean_fill", "knn_fill", "ridge_fill", "lowrank_fill", "kernel_fill")


def load(name: str) -> Views:
    return synthetic.load(max(ROWS)) if name == "synthetic" else real_sets.load(name)


def measure(name: str, whole: Views, rows: int, method: str, seed: int) -> dict[str, object]:
    """Fit once, and return the record."""
    truth = whole[np.sort(np.random.default_rng(seed).permutation(len(whole))[:rows])]
    given = drop_views(truth, 0.5, 42)
    start = perf_counter()
    filled = methods.find(method)(random_state=0).fit(given).impute(given)
    seconds = perf_counter() - start
    hidden = (truth.mask & ~given.mask).numpy()
    return {
        "dataset": name,
        "rows": rows,
        "method": method,
        "seed": seed,
        "error": imputation_error(truth.x, filled.x, hidden),
        "seconds": seconds,
        "version": __version__,
        "device": workers.cpu_name(),
        "threads": torch.get_num_threads(),
    }


def recorded() -> list[dict[str, object]]:
    return lines.read(FILE)


def run() -> None:
    done = {tuple(r[k] for k in ("dataset", "rows", "method", "seed")) for r in recorded()}
    FILE.parent.mkdir(parents=True, exist_ok=True)
    with FILE.open("a", encoding="utf-8") as file:
        for name in SETS:
            whole = load(name)
            for rows, method, seed in product(ROWS, METHODS, SEEDS):
                if rows <= len(whole) and (name, rows, method, seed) not in done:
                    record = measure(name, whole, rows, method, seed)
                    file.write(json.dumps(record) + "\n")
                    file.flush()


def table() -> str:
    """Table of means and standard deviations over draws."""
    errors: dict[tuple[object, object], dict[object, list[float]]] = {}
    for r in recorded():
        row = errors.setdefault((r["dataset"], r["method"]), {})
        row.setdefault(r["rows"], []).append(float(str(r["error"])))
    heads = ["data", "method", *map(str, ROWS)]
    lines = [heads, ["---", "---", *["--:"] * len(ROWS)]]
    for (name, method), row in errors.items():
        cells = [f"{mean(row[n]):.2f} ± {stdev(row[n]):.2f}" if n in row else "–" for n in ROWS]
        lines.append([str(name), f"`{method}`", *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--table", action="store_true", help="print the table of the records")
    if parser.parse_args().table:
        print(table())
    else:
        torch.set_num_threads(1)
        run()


if __name__ == "__main__":
    main()
