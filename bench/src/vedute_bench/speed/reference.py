"""Comparison of MVP's loss with that of the slow reference of the tests."""

from __future__ import annotations

import sys
from typing import Any
from unittest.mock import patch

import torch

from vedute.data.views import Views
from vedute.methods import mvp
from vedute.methods.mvp import MVPModel
from vedute.nn import gaussian, shards
from vedute_bench.places import SUPPORT
from vedute_bench.speed.stopwatch import Job

sys.path.append(str(SUPPORT))
sys.path.append(str(SUPPORT.parent))

from oracles.mvp import draw
from oracles.slow_mvp import SlowMVP


def agreement(job: Job, slow: SlowMVP) -> tuple[str, float]:
    """Kind of comparison, and largest relative difference of a term from the reference's."""
    job.model.eval(), slow.eval()  # no dropout inside the networks
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    batch = job.data[job.rows()].floating()
    try:
        ours, theirs = _same_noise(job.model, slow, batch)
        comparison = "same noise"
    except (AttributeError, StopIteration, RuntimeError):  # the draws of the code have changed
        ours, theirs = (_expected(m, batch) for m in (job.model, slow))
        comparison = "mean of 64 draws"
    torch.set_float32_matmul_precision(precision)
    return comparison, max(abs(ours[k] - theirs[k]) / max(abs(theirs[k]), 1e-9) for k in theirs)


@torch.no_grad()
def _same_noise(
    model: MVPModel, slow: SlowMVP, batch: Views
) -> tuple[dict[str, float], dict[str, float]]:
    hp = model.hp
    draws = draw(batch.mask, model.shared, hp.latent_dim, hp.view_dropout)
    kinds = [draws.w, draws.z, draws.agreed, draws.told][: 4 if hp.view_dropout > 0 else 2]
    noise = iter([n[a] for a in range(2) for n in kinds])
    cycles = patch.object(mvp, "random_cycles", lambda _mask, _count: draws.cycles)
    hidden = patch.object(shards, "hide", lambda batch, _: batch.hide(draws.hidden))
    sample = patch.object(gaussian, "sample", lambda q: q.mean + (q.logvar / 2).exp() * next(noise))
    with cycles, hidden, sample:
        ours = model.loss(batch)
    theirs = slow.terms(batch, draws)
    return {k: float(t) for k, t in ours.items()}, {k: float(t) for k, t in theirs.items()}


@torch.no_grad()
def _expected(model: Any, batch: Views) -> dict[str, float]:
    draws = [model.loss(batch) for _ in range(64)]
    return {k: sum(float(d[k]) for d in draws) / len(draws) for k in draws[0]}
