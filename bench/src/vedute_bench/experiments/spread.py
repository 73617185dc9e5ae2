"""Sources of the published ± of clustering accuracy: training, k-means, or the mask.

    python -m vedute_bench.experiments.spread            missing runs
    python -m vedute_bench.experiments.spread --table    standard deviations, for a page

MVP has the published settings on Handwritten, with half of the samples incomplete. There are
several masks, several trainings on each, and many runs of k-means on each representation, with one
start, as published, and with ten. The variance of the accuracy is decomposed into nested random
effects:

    k-means     Mean over trainings of the variance over seeds of k-means.

    training    Variance within masks of the means over k-means, less the contribution of k-means.

    mask        Variance of the means over trainings, less the contribution of the other two.

There is one JSON line per training in bench/results/spread/records.jsonl, or in the file `--out`,
with its `device`.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from vedute import MVP, __version__, datasets, drop_views
from vedute.estimators import clustering
from vedute.methods import presets
from vedute.metrics import scores
from vedute_bench.places import RESULTS
from vedute_bench.runner import lines, records, workers
from vedute_bench.runner.run import commit

FILE = RESULTS / "spread" / "records.jsonl"
DATASET, RATE = "handwritten", 0.5
MASKS, SEEDS = (42, 43, 44, 45, 46), (0, 1, 2, 3, 4, 5)
TIMES = {1: 20, 10: 10}  # starts of k-means -> repetitions with different seeds
PARTS = ("k-means", "training", "mask")
Record = dict[str, Any]


def measure(mask_seed: int, seed: int, settings: Mapping[str, Any]) -> Record:
    """Train once; record accuracies of its clusters: acc_1 with one start, acc_10 with ten."""
    truth = datasets.load(DATASET)
    start = perf_counter()
    model = MVP(**settings, random_state=seed).fit(drop_views(truth, RATE, mask_seed))
    seconds = perf_counter() - start
    assert truth.y is not None
    z, K = model.embedding_, len(np.unique(truth.y))
    accuracies = {}
    for starts, times in TIMES.items():
        runs = (clustering.nearest(z, clustering.centers(z, K, s, starts)) for s in range(times))
        accuracies[f"acc_{starts}"] = [
            round(100 * scores.clustering_accuracy(truth.y, labels), 5) for labels in runs
        ]
    code = {"device": _device(), "version": __version__, "commit": commit()}
    place = {"dataset": DATASET, "rate": RATE, "mask_seed": mask_seed, "seed": seed}
    return place | accuracies | {"seconds": round(seconds, 3)} | code


def run(file: Path, settings: Mapping[str, Any]) -> None:
    keys = ("mask_seed", "seed", "device")
    done = {tuple(r[k] for k in keys) for r in recorded(file)}
    file.parent.mkdir(parents=True, exist_ok=True)
    for mask_seed, seed in product(MASKS, SEEDS):
        if (mask_seed, seed, _device()) not in done:
            records.append(file, measure(mask_seed, seed, settings))


def recorded(file: Path = FILE) -> list[Record]:
    return lines.read(file)


def parts(values: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    """Variances of k-means, training and mask from accuracies (masks, trainings, times).

    The variance of masks needs at least two of them.
    """
    masks, trainings, times = values.shape
    kmeans = float(values.var(2, ddof=1).mean())
    within = float(values.mean(2).var(1, ddof=1).mean())  # of means over k-means
    variances = {"k-means": kmeans, "training": within - kmeans / times}
    if masks > 1:
        variances["mask"] = float(values.mean((1, 2)).var(ddof=1)) - within / trainings
    return {k: max(0.0, v) for k, v in variances.items()}


def table(records: Sequence[Record]) -> str:
    """Table with a line per device and number of starts: mean accuracy and standard deviations."""
    heads = ["device", "starts of k-means", "mean ACC", *PARTS, "all"]
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)]]
    for device in sorted({r["device"] for r in records}):
        for starts in TIMES:
            values = _cube([r for r in records if r["device"] == device], f"acc_{starts}")
            variances = parts(values)
            sources = [f"{variances[k] ** 0.5:.2f}" if k in variances else "–" for k in PARTS]
            spread = [*sources, f"{sum(variances.values()) ** 0.5:.2f}"]
            lines.append([device, str(starts), f"{values.mean():.2f}", *spread])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cube(records: Sequence[Record], score: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Accuracies (masks, trainings, times) of the masks with all trainings."""
    known = {(r["mask_seed"], r["seed"]): r[score] for r in records}
    seeds = sorted({seed for _, seed in known})
    masks = sorted({m for m, _ in known if all((m, seed) in known for seed in seeds)})
    return np.array([[known[m, seed] for seed in seeds] for m in masks])


def _device() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else workers.cpu_name()


def main(words: list[str] | None = None) -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--table", action="store_true", help="print the table of the records")
    parser.add_argument("--out", type=Path, default=FILE, help="the file of records")
    options = parser.parse_args(words)
    if options.table:
        print(table(recorded(options.out)))
    else:
        run(options.out, presets.find("mvp", DATASET))


if __name__ == "__main__":
    main()
