"""Profile of a training step of MVP with its defaults on Handwritten, by torch's profiler.

    python -m vedute_bench.speed.profile_step [--preset handwritten]

Prints the table and writes bench/results/profile-<device>.txt. (A file named profile.py would
shadow Python's module for all scripts in this folder.)
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from vedute import datasets
from vedute.data.missing import drop_views
from vedute.methods import presets
from vedute_bench.places import RESULTS
from vedute_bench.speed import stopwatch
from vedute_bench.speed.stopwatch import Job


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--preset", help="with these published settings instead of the defaults")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_float32_matmul_precision("high")  # as training does
    settings = {} if options.preset is None else presets.find("mvp", options.preset)
    views = drop_views(datasets.load("handwritten"), 0.5, 42)
    job = Job.of(views, options.device, settings)
    step, kinds = job.step(), [ProfilerActivity.CPU]
    kinds += [ProfilerActivity.CUDA] if options.device == "cuda" else []
    for _ in range(3):
        step(job.rows())
    stopwatch.synchronize()
    with profile(activities=kinds) as profiler:
        for _ in range(options.steps):
            step(job.rows())
        stopwatch.synchronize()
    order = "self_cuda_time_total" if options.device == "cuda" else "self_cpu_time_total"
    table = profiler.key_averages().table(sort_by=order, row_limit=25, max_name_column_width=60)
    name, chosen = stopwatch.device_name(options.device), options.preset or "defaults"
    text = f"{options.steps} steps of MVP ({chosen}), batch {job.batch}, on {name}\n{table}\n"
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"profile-{stopwatch.slug(f'{chosen} {name}')}.txt"
    path.write_text(text, encoding="utf-8")
    print(f"{text}wrote {path}")


if __name__ == "__main__":
    main()
