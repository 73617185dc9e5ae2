"""CPU milliseconds of a step of MVP with its defaults by the number of views, on one thread.

    python -m vedute_bench.speed.step_by_views [--views 2 6 12 20 32] [--turns 4]

A batch has 256 rows of views of 50 columns, half of the rows incomplete. The result is the minimum
over turns of two steps for all numbers of views: on a busy machine it varies least. Run the script
again with the PYTHONPATH of another commit to compare.
"""

from __future__ import annotations

from argparse import ArgumentParser
from time import process_time

import numpy as np
import torch

from vedute import drop_views
from vedute.data.views import Views
from vedute.estimators.neural_training import thread_settings
from vedute.training.step import Step
from vedute_bench.runner import workers
from vedute_bench.speed.stopwatch import Job

ROWS, WIDTH, BATCH = 1000, 50, 256


def made(n_views: int) -> tuple[Job, Step]:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(ROWS, 10))
    x = [np.tanh(z @ rng.normal(size=(10, WIDTH))) for _ in range(n_views)]
    views = drop_views(Views.of(x), 0.5, 42)
    job = Job.of(views, "cpu", {"batch_size": BATCH, "steps": 100})
    return job, job.step()


def milliseconds(job: Job, step: Step) -> float:
    with thread_settings(job.model, job.data, BATCH):  # as training does
        rows, start = job.rows(), process_time()
        step(rows)
        return 1000 * (process_time() - start)


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--views", nargs="*", type=int, default=(2, 6, 12, 20, 32))
    parser.add_argument("--turns", type=int, default=4)
    options = parser.parse_args()
    torch.set_num_threads(1)
    steps = {n: made(n) for n in options.views}
    times_of: dict[int, list[float]] = {n: [] for n in steps}
    for _ in range(options.turns):
        for n, (job, step) in steps.items():
            times_of[n] += [milliseconds(job, step) for _ in range(2)]
    print(f"{workers.cpu_name()}, one thread\n\n| views | a step, ms of CPU |\n|--:|--:|")
    for n, times in times_of.items():
        print(f"| {n} | {min(times):.0f} |")


if __name__ == "__main__":
    main()
