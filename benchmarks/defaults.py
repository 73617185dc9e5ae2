"""MVP's settings compared by the error of hidden views on the real sets in VEDUTE_DATA.

    python benchmarks/defaults.py -o records.jsonl [--jobs 2] [--sets cub,msrc_v1] [--variants base]
    python benchmarks/defaults.py --table benchmarks/results/defaults/records.jsonl

Masks are bernoulli at rate .5 with seeds 7 and 8, none of which any study uses. Labels are only
read to record `acc`, which chooses nothing.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")
LIGHT = {"steps": 700, "cooldown": 250, "lr": 6e-3, "batch_size": 256}
FIRST = {"steps": 2300, "cooldown": 300, "lr": 2e-3, "batch_size": 128, "patience": 400}
VARIANTS: dict[str, dict[str, Any]] = {
    "base": FIRST | {"weight_decay": 0.0},  # the defaults of the first release
    "now": {},
    "s1200": FIRST | {"steps": 1200, "cooldown": 250},
    "s700lr4": LIGHT | {"lr": 4e-3, "batch_size": 128},
    "s700lr6b256": LIGHT | {"weight_decay": 0.0, "patience": 400},
    "hid256": {"hidden": (256, 256)},
    "rec300": {"rec_weight": 300.0},
    "drop1": {"dropout": 0.1},
    "drop5": {"dropout": 0.5},
    "lat64": {"latent_dim": 64},
    "vd.5": {"view_dropout": 0.5},
    "wide": {"components": None},
    "pca32": {"components": 32},
}
DRAWS = ((0, 7), (1, 8))  # random_state, seed of the mask


def measure(dataset: str, variant: str, seed: int, mask_seed: int) -> dict[str, Any]:
    """One fit, and the error of what was hidden."""
    import real_sets

    from vedute import MVP, drop_views, io
    from vedute.metrics import scores

    truth = real_sets.load(dataset)
    views = drop_views(truth, 0.5, mask_seed)
    hidden = (truth.mask & ~views.mask).numpy()
    classes = len(np.unique(truth.y))
    model = MVP(n_clusters=classes, random_state=seed, **VARIANTS[variant]).fit(views)
    filled = [x.numpy() for x in model.impute(views).x]
    error = scores.imputation_error(list(io.of_views(truth).views.values()), filled, hidden)
    acc = 100 * scores.clustering_scores(truth.y, model.labels_)["acc"]
    found = {"error": round(error, 4), "acc": round(acc, 1), "steps": model.history_[-1]["step"]}
    return {"set": dataset, "variant": variant, "seed": seed, "mask": mask_seed, **found}


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: per variant the geometric mean over sets of its error over that of `base`."""
    errors = defaultdict(list)
    for r in records:
        errors[r["variant"], r["set"]].append(r["error"])
    mean = {key: float(np.mean(values)) for key, values in errors.items()}
    rows = ["| variant | sets | error / base |", "|---|--:|--:|"]
    for variant in dict.fromkeys(r["variant"] for r in records):
        sets = [s for v, s in mean if v == variant and ("base", s) in mean]
        ratio = np.exp(np.mean([np.log(mean[variant, s] / mean["base", s]) for s in sets]))
        rows.append(f"| {variant} | {len(sets)} | {ratio:.4f} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--sets", type=lambda text: text.split(","))
    parser.add_argument("--variants", type=lambda text: text.split(","), default=[*VARIANTS])
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.table:
        return print(table([json.loads(line) for line in options.table.open()]))
    import real_sets

    sets = options.sets or real_sets.available()
    tasks = [(s, v, *draw) for draw in DRAWS for v in options.variants for s in sets]
    with ProcessPoolExecutor(options.jobs) as pool, options.out.open("a") as file:
        for record in pool.map(measure, *zip(*tasks, strict=True)):
            file.write(json.dumps(record) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
