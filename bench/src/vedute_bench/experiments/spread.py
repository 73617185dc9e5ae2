"""What the published ± of clustering accuracy is: the training, k-means, or the mask.

    python -m vedute_bench.experiments.spread            goes on with what is not recorded yet
    python -m vedute_bench.experiments.spread --table    standard deviations, for a page

MVP with the published settings on Handwritten, half of the samples incomplete: some masks, some
trainings on each, and k-means many times on each representation, with one start, as published, and
with ten. The variance of an accuracy is taken apart as that of nested random effects:

    k-means     the mean over trainings of the variance over seeds of k-means
    training    that of the means over k-means, within masks, less what k-means adds to it
    mask        that of the means over trainings, less what the others add to it

One JSON line per training in bench/results/spread/records.jsonl, or in the file after `--out`;
`device` says where it ran.
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
TIMES = {1: 20, 10: 10}  # starts of k-means -> how often, each with another seed
PARTS = ("k-means", "training", "mask")
Record = dict[str, Any]


def measure(mask_seed: int, seed: int, settings: Mapping[str, Any]) -> Record:
    """One training, and the accuracies of its clusters: acc_1 with one start, acc_10 with ten."""
    truth = datasets.load(DATASET)
    start = perf_counter()
    model = MVP(**settings, random_state=seed).fit(drop_views(truth, RATE, mask_seed))
    seconds = perf_counter() - start
    assert truth.y is not None
    z, K = model.embedding_, len(np.unique(truth.y))
    found = {}
    for starts, times in TIMES.items():
        labels = (clustering.nearest(z, clustering.centers(z, K, s, starts)) for s in range(times))
        found[f"acc_{starts}"] = [
            round(100 * scores.clustering_accuracy(truth.y, each), 5) for each in labels
        ]
    where = {"device": _device(), "version": __version__, "commit": commit()}
    place = {"dataset": DATASET, "rate": RATE, "mask_seed": mask_seed, "seed": seed}
    return place | found | {"seconds": round(seconds, 3)} | where


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
    """The variances of k-means, training and mask from accuracies (masks, trainings, times); one
    mask has none."""
    masks, trainings, times = values.shape
    kmeans = float(values.var(2, ddof=1).mean())
    within = float(values.mean(2).var(1, ddof=1).mean())  # of means over k-means
    found = {"k-means": kmeans, "training": within - kmeans / times}
    if masks > 1:
        found["mask"] = float(values.mean((1, 2)).var(ddof=1)) - within / trainings
    return {k: max(0.0, v) for k, v in found.items()}


def table(records: Sequence[Record]) -> str:
    """A line per device and number of starts: the mean accuracy, and standard deviations."""
    heads = ["device", "starts of k-means", "mean ACC", *PARTS, "all"]
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)]]
    for device in sorted({r["device"] for r in records}):
        for starts in TIMES:
            values = _cube([r for r in records if r["device"] == device], f"acc_{starts}")
            found = parts(values)
            sources = [f"{found[k] ** 0.5:.2f}" if k in found else "–" for k in PARTS]
            spread = [*sources, f"{sum(found.values()) ** 0.5:.2f}"]
            lines.append([device, str(starts), f"{values.mean():.2f}", *spread])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cube(records: Sequence[Record], score: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Accuracies (masks, trainings, times), of the masks that have all trainings."""
    known = {(r["mask_seed"], r["seed"]): r[score] for r in records}
    seeds = sorted({seed for _, seed in known})
    masks = sorted({m for m, _ in known if all((m, seed) in known for seed in seeds)})
    return np.array([[known[m, seed] for seed in seeds] for m in masks])


def _device() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else workers.cpu_name()


def main(words: list[str] | None = None) -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--table", action="store_true", help="print the table of what is recorded")
    parser.add_argument("--out", type=Path, default=FILE, help="the file of records")
    options = parser.parse_args(words)
    if options.table:
        print(table(recorded(options.out)))
    else:
        run(options.out, presets.find("mvp", DATASET))


if __name__ == "__main__":
    main()
