"""Comparison of z-scores, the detected kinds of views, and other kinds in their place.

    python -m vedute_bench.experiments.kinds -o records.jsonl [--methods mvp] [--sets movies617]
    python -m vedute_bench.experiments.kinds --table bench/results/kinds/records.jsonl

Half of the views are hidden as in `rivals.rivals`. The error of hidden views is in the units of the
data, the accuracy of k-means in percent.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from vedute import methods
from vedute.data import missing
from vedute.data.views import Views
from vedute.metrics import scores
from vedute_bench.rivals import real_sets
from vedute_bench.runner import lines, records

RATE, MASK_SEED, PROTOCOL, SEEDS = 0.5, 42, "bernoulli", (0, 1, 2)
VARIANTS: dict[str, dict[str, Any]] = {"z-scores": {"scaling": "standard"}, "found": {}}
OTHERS: dict[str, dict[str, dict[str, Any]]] = {  # other kinds that are equally plausible
    "movies617": {"counts": {"kinds": "counts"}},
    "movies617, presence": {"binary": {"kinds": "binary"}},
}


def load(dataset: str) -> Views:
    """Load a set of `real_sets`, or the indicators of its positive values."""
    name, _, presence = dataset.partition(", ")
    truth = real_sets.load(name)
    return replace(truth, x=tuple((x > 0).float() for x in truth.x)) if presence else truth


def variants(dataset: str) -> dict[str, dict[str, Any]]:
    return VARIANTS | OTHERS.get(dataset, {})


def measure(method: str, dataset: str, variant: str, seed: int) -> dict[str, Any]:
    """Fit once, and record the error of hidden views."""
    truth = load(dataset)
    views = missing.drop_views(truth, RATE, MASK_SEED, PROTOCOL)
    K, start = len(np.unique(truth.y)), perf_counter()
    model = methods.find(method)(n_clusters=K, random_state=seed, **variants(dataset)[variant])
    filled = [x.numpy() for x in model.fit(views).impute(views).x]
    hidden = (truth.mask & ~views.mask).numpy()
    return {
        "method": method,
        "dataset": dataset,
        "variant": variant,
        "seed": seed,
        "error": round(scores.imputation_error(truth.arrays(), filled, hidden), 5),
        "acc": round(100 * scores.clustering_scores(truth.y, model.labels_)["acc"], 2),
        "seconds": round(perf_counter() - start, 1),
    }


def table(known: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of a Markdown table of error and accuracy, means over seeds."""
    yield "| | | seeds | error | accuracy |\n|---|---|--:|--:|--:|"
    for key in dict.fromkeys((r["dataset"], r["method"], r["variant"]) for r in known):
        runs = [r for r in known if (r["dataset"], r["method"], r["variant"]) == key]
        error, acc = (np.mean([r[k] for r in runs]) for k in ("error", "acc"))
        yield f"| {key[0]}, {key[1]} | {key[2]} | {len(runs)} | {error:.4f} | {acc:.1f} |"


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--methods", nargs="+", default=["lowrank_fill", "mvp", "blend"])
    parser.add_argument(
        "--sets", nargs="+", default=[*real_sets.available(), "movies617, presence"]
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.table:
        return print("\n".join(table(lines.read(options.table))))
    for dataset in options.sets:
        for seed in options.seeds:
            for method in options.methods:
                for variant in variants(dataset):
                    record = measure(method, dataset, variant, seed)
                    print(json.dumps(record), flush=True)
                    records.append(options.out, record)


if __name__ == "__main__":
    main()
