"""How much faster one training is on two ranks than on one, on this machine: one thread each, gloo.

    python -m vedute_bench.speed.ranks >> bench/results/ranks/records.jsonl

One JSON line per measurement: steps per second of MVP with its defaults on handwritten, and of a
larger MVP with larger batches, and the seconds of a core that a rank takes for one step, which
other processes on the machine change little; and the time of one all_reduce by its number of
float32. `load` is that of the machine at the start: measure where it is below 0.5.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from torch import distributed, multiprocessing

from vedute import MVP, Views, datasets
from vedute.estimators.neural_training import thread_settings
from vedute.nn.likelihoods import LIKELIHOODS
from vedute.training.loop import Loop, Settings

CASES: dict[str, dict[str, Any]] = {
    "handwritten, defaults": {"batch_size": 256, "steps": 40},
    "4 views of 1000, hidden 1024, batches of 1024": {
        "hidden": (1024,),
        "latent_dim": 64,
        "batch_size": 1024,
        "steps": 6,
    },
}
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)  # numbers in an all_reduce


def data(case: str) -> Views:
    """Views of this case, scaled, a tenth of them missing."""
    if case.startswith("handwritten"):
        X = [x.numpy() for x in datasets.load("handwritten").x]
        X = [(x - x.mean(0)) / np.maximum(x.std(0), 1e-6) for x in X]
    else:
        X = list(np.random.default_rng(0).normal(size=(4, 4096, 1000)))
    rng = np.random.default_rng(1)
    mask = rng.random((len(X[0]), len(X))) < 0.9
    mask[np.arange(len(mask)), rng.integers(len(X), size=len(mask))] = True
    return Views.of([np.asarray(x, np.float32) for x in X], mask=mask)


def speed(case: str) -> dict[str, float]:
    """Steps per second, after a few that do not count."""
    settings, views = CASES[case], data(case)
    hp = MVP(warmup=0, cooldown=0, **settings)
    torch.manual_seed(0)
    likelihoods = [LIKELIHOODS["normal"]] * len(views.x)
    model = hp.build(views.shapes, likelihoods, views.names, settings["steps"])
    how = {"batch_size": settings["batch_size"], "lr": 1e-3}
    steps = settings["steps"]
    with thread_settings(model, views, settings["batch_size"]):  # as in `fit`
        Loop(model, views, Settings(steps=4, **how)).run()
        start, busy = perf_counter(), process_time()
        Loop(model, views, Settings(steps=steps, **how)).run()
        taken, busy = perf_counter() - start, process_time() - busy
    numbers = sum(p.numel() for p in model.parameters())
    speeds = {"steps_per_second": steps / taken, "core_seconds_per_step": busy / steps}
    return {"parameters": numbers} | speeds


def all_reduce(numbers: int) -> float:
    """Seconds, the median of some."""
    t, taken = torch.ones(numbers), []
    for _ in range(12):
        distributed.barrier()
        start = perf_counter()
        distributed.all_reduce(t)
        taken.append(perf_counter() - start)
    return float(np.median(taken[2:]))


def measure(rank: int, ranks: int, place: str) -> None:
    """What one rank does; the first prints."""
    torch.set_num_threads(1)
    if ranks > 1:
        distributed.init_process_group(
            "gloo", init_method=f"file://{place}", rank=rank, world_size=ranks
        )
    machine = {"cpu": platform.processor() or platform.machine(), "torch": torch.__version__}
    machine |= {"cores": os.cpu_count() or 0, "load": os.getloadavg()[0]}
    for case in CASES:
        found = {"case": case, "ranks": ranks} | CASES[case] | speed(case) | machine
        say(rank, found)
    for numbers in SIZES if ranks > 1 else ():
        say(rank, {"all_reduce": numbers, "ranks": ranks, "seconds": all_reduce(numbers)} | machine)
    if ranks > 1:
        distributed.destroy_process_group()


def say(rank: int, record: dict[str, Any]) -> None:
    if rank == 0:
        print(json.dumps(record))
        sys.stdout.flush()


if __name__ == "__main__":
    for ranks in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            place = str(Path(folder) / "store")
            multiprocessing.spawn(measure, (ranks, place), nprocs=ranks)
