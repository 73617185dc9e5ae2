"""Speed of one training on two ranks and on one, on this machine, with one thread each and gloo.

    python -m vedute_bench.speed.ranks >> bench/results/ranks/records.jsonl

There is one JSON line per measurement. Trainings are MVP with its defaults on handwritten, and a
larger MVP with larger batches. Their records have steps per second, and CPU seconds of a rank per
step, which other processes on the machine hardly change. Further records have the time of one
all_reduce by its number of float32. `load` is that of the machine at the start; it should be below
0.5.
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
    """Scaled views of a case, a tenth of them missing."""
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
    """Steps per second and CPU seconds per step, after a few steps that are not timed."""
    settings, views = CASES[case], data(case)
    hp = MVP(warmup=0, cooldown=0, **settings)
    hp = hp.settled(views.shapes, settings["steps"], len(views))
    torch.manual_seed(0)
    likelihoods = [LIKELIHOODS["normal"]] * len(views.x)
    model = hp.build(views.shapes, likelihoods, views.names, settings["steps"])
    options = {"batch_size": settings["batch_size"], "lr": 1e-3}
    steps = settings["steps"]
    with thread_settings(model, views, settings["batch_size"]):  # as in `fit`
        Loop(model, views, Settings(steps=4, **options)).run()
        start, busy = perf_counter(), process_time()
        Loop(model, views, Settings(steps=steps, **options)).run()
        taken, busy = perf_counter() - start, process_time() - busy
    numbers = sum(p.numel() for p in model.parameters())
    speeds = {"steps_per_second": steps / taken, "core_seconds_per_step": busy / steps}
    return {"parameters": numbers} | speeds


def all_reduce(numbers: int) -> float:
    """Median seconds of an all_reduce."""
    t, taken = torch.ones(numbers), []
    for _ in range(12):
        distributed.barrier()
        start = perf_counter()
        distributed.all_reduce(t)
        taken.append(perf_counter() - start)
    return float(np.median(taken[2:]))


def measure(rank: int, ranks: int, place: str) -> None:
    """Measure in one rank; the first prints."""
    torch.set_num_threads(1)
    if ranks > 1:
        distributed.init_process_group(
            "gloo", init_method=f"file://{place}", rank=rank, world_size=ranks
        )
    machine = {"cpu": platform.processor() or platform.machine(), "torch": torch.__version__}
    machine |= {"cores": os.cpu_count() or 0, "load": os.getloadavg()[0]}
    for case in CASES:
        say(rank, {"case": case, "ranks": ranks} | CASES[case] | speed(case) | machine)
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
