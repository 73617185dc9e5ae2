"""Costs of the MVP paper's objectives and priors by the number of views.

    python -m vedute_bench.speed.complexity [--device cuda] [--turns 5]

    eq2, cyclic     The warm-up: every view is decoded from its own latent.

    eq3, cyclic     Both tables are decoded, and each is the other's prior.

    eq3, fusion     Both tables are decoded, with products over the observed views as priors.

    eq3, all_pairs  Both tables are decoded, with every other observed view as a prior.

The data are 1000 rows of views of 50 columns, half of the rows incomplete; D = 16, and networks
have the same widths for every number of views. Time is CPU time of one thread, or wall time on a
GPU; the kinds run in turns, and a ratio is the median over turns. Operations are those of matrix
products. Memory is that of tensors saved for the backward pass, without weights. Records go to
bench/results/paper-complexity and replace those of the same device.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from vedute import drop_views
from vedute.data.views import Views
from vedute.training.step import Step
from vedute_bench.paper_mvp import PaperMVP
from vedute_bench.places import RESULTS
from vedute_bench.runner import lines, records, run
from vedute_bench.speed import stopwatch
from vedute_bench.speed.stopwatch import Job, Loss

ROWS, WIDTH, RATE, MASK_SEED = 1000, 50, 0.5, 42
FILE = RESULTS / "paper-complexity" / "records.jsonl"
SETTINGS: dict[str, Any] = {
    "latent_dim": 16,
    "hidden": (256, 256),
    "map_hidden": (64, 64),
    "view_dropout": 0.0,
    "dropout": 0.0,
    "linear_paths": False,
    "batch_size": 64,
    "steps": 100,
}
KINDS = (("eq2", "cyclic"), ("eq3", "cyclic"), ("eq3", "fusion"), ("eq3", "all_pairs"))


class Kind(NamedTuple):
    """An objective with a prior, on a separate model."""

    job: Job
    loss: Loss
    step: Step

    @classmethod
    def of(cls, views: Views, device: str, objective: str, prior: str) -> Kind:
        job = Job.of(views, device, SETTINGS | {"prior": prior}, PaperMVP)
        loss = job.model.warmup_loss if objective == "eq2" else job.model.loss
        return cls(job, loss, job.step(loss=loss))

    def milliseconds(self, rows: Tensor) -> float:
        clock = perf_counter if self.job.data.mask.is_cuda else process_time
        stopwatch.synchronize()
        start = clock()
        self.step(rows)
        stopwatch.synchronize()
        return 1e3 * (clock() - start)

    def gflop(self) -> float:
        torch.manual_seed(0)  # equal rows for all kinds
        return self.job.flops(self.loss) / 1e9

    def kept(self) -> float:
        """MiB of the tensors saved by a forward pass, each storage once."""
        torch.manual_seed(0)
        weights = {p.untyped_storage().data_ptr() for p in self.job.model.parameters()}
        sizes: dict[int, int] = {}
        alive: list[Tensor] = []  # so that no storage is freed and its address reused

        def keep(t: Tensor) -> Tensor:
            storage = t.untyped_storage()
            if storage.data_ptr() not in weights:
                sizes[storage.data_ptr()] = storage.nbytes()
                alive.append(t)
            return t

        batch = self.job.data[self.job.rows()].floating()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
            terms = self.loss(batch)
            torch.stack(list(terms.values())).sum()
        return sum(sizes.values()) / stopwatch.MIB


def made(n_views: int) -> Views:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(ROWS, 10))
    x = [np.tanh(z @ rng.normal(size=(10, WIDTH))) for _ in range(n_views)]
    return drop_views(Views.of(x), RATE, MASK_SEED)


def measure(n_views: int, device: str, turns: int) -> list[records.RunRecord]:
    """Records per kind; `time` is relative to eq2 with the cyclic prior."""
    views = made(n_views)
    kinds = {names: Kind.of(views, device, *names) for names in KINDS}
    times: dict[tuple[str, str], list[float]] = {names: [] for names in kinds}
    for turn in range(turns + 1):
        rows = kinds[KINDS[0]].job.rows()
        for names, kind in kinds.items():
            took = kind.milliseconds(rows)
            if turn > 0:  # the first includes initialization
                times[names].append(took)
    results = []
    for (objective, prior), kind in kinds.items():
        ms = times[objective, prior]
        ratio = median(a / b for a, b in zip(ms, times[KINDS[0]], strict=True))
        scores = {"ms": median(ms), "time": ratio, "mib": kind.kept(), "gflop": kind.gflop()}
        facts = {"objective": objective, "prior": prior, "views": n_views, "turns": turns}
        results.append(facts | {"scores": {k: round(v, 4) for k, v in scores.items()}})
    return results


def main(words: list[str] | None = None) -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--views", nargs="*", type=int, default=(2, 4, 8, 16, 32))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")  # as training does
    device = stopwatch.device_name(options.device)
    about = {"device": device, "rate": RATE, "settings": SETTINGS, **run.code()}
    out: Path = options.out
    old = lines.read(out)
    known = [r for r in old if r["device"] != device]
    for n in options.views:
        known += [r | about for r in measure(n, options.device, options.turns)]
        print(f"{n} views", *(f"{r['scores']['ms']:.1f} ms" for r in known[-len(KINDS) :]))
    lines.write(out, known)


if __name__ == "__main__":
    main()
