"""What `test_ranks` compares: trainings and fits that are the same on one process and on several.

python tests/ranks_together.py OUT       as torchrun would start it: RANK, WORLD_SIZE, ...
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import torch

from vedute import DCCA, MVP, Blend, Views, methods
from vedute.commands import _ranks
from vedute.nn.likelihoods import LIKELIHOODS
from vedute.training.loop import Loop, Settings

SIZES = dict(hidden=(12,), latent_dim=3, device="cpu", n_clusters=3)
CASES = {  # settings, rows of a step, and steps: 91 rows are 45 and 46, or batches of 32, 32 and 27
    "mvp": (dict(warmup=10, cooldown=10, map_hidden=(8,)), 91, 50),
    "mopoe": (dict(dropout=0.3, cooldown=10), 32, 50),
    "dimvc": (dict(pretrain=25, rounds=2), 32, 25),
    "mvae": (dict(cooldown=0, clip=1.0), 1, 3),  # fewer rows than ranks
}


def views():
    """91 samples in three groups; a third of the views is missing."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(91, 2)) + 4 * (np.arange(91) % 3)[:, None]
    X = [z @ rng.normal(size=(2, w)) + 0.1 * rng.normal(size=(91, w)) for w in (5, 4, 6)]
    mask = rng.random((91, 3)) < 0.7
    mask[np.arange(91), np.arange(91) % 3] = True
    return Views.of([x.astype(np.float32) for x in X], mask=mask)


def trained(name):
    """The terms of every epoch, the gradients of the last step, and the weights."""
    given, size, steps = CASES[name]
    hp, data = methods.find(name)(**SIZES, **given, steps=steps, batch_size=size), views()
    hp = hp.settled(data.shapes, steps, len(data))
    torch.manual_seed(0)
    model = hp.build(data.shapes, [LIKELIHOODS["normal"]] * 3, data.names, steps)
    history = Loop(model, data, Settings(steps, batch_size=size, lr=hp.lr, clip=hp.clip)).run()
    gradients = {k: p.grad for k, p in model.named_parameters() if p.grad is not None}
    return [r["terms"] for r in history], gradients, dict(model.state_dict())


def small(method, seed, **more):
    return method(random_state=seed, **SIZES | dict(steps=30, warmup=4, map_hidden=(8,)) | more)


def small_blend():
    inside = {"mvp__steps": 5, "mvp__warmup": 1}
    return Blend(experts=("mvp", "lowrank_fill"), expert_settings=inside, n_clusters=3)


def fitted(model):
    model.fit(views())
    return model.embedding_, model.labels_, list(model.impute(views()).x), model.r2_


def other_views(rank):
    """Views with equal masks and different values on every rank."""
    X = [np.where(np.isnan(x), x, x + rank) for x in views().arrays()]
    return Views.of(X)


def refused(model, X=None, groups=None):
    try:
        model.fit(
            views().pick(0, 1)[views().mask[:, :2].any(1).numpy()] if X is None else X,
            groups=groups,
        )
    except ValueError as error:
        return str(error)
    return None


def found():
    """Results of a process by name; fits without a seed take that of the first rank."""
    rank = torch.distributed.get_rank()
    known = {name: trained(name) for name in CASES}
    known["mvp fit"] = fitted(small(MVP, 0))
    known["blend fit"] = fitted(small_blend())
    known["refused"] = refused(DCCA(steps=2))
    known["other settings"] = refused(small(MVP, 0, latent_dim=3 + rank))
    known["other values"] = refused(small(MVP, 0), other_views(rank))
    known["other values of blend"] = refused(small_blend(), other_views(rank))
    groups = np.arange(91) // (3 + rank)
    known["other groups"] = refused(small(MVP, 0), views(), groups)
    return known


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with _ranks.joined():
        torch.save(found(), Path(sys.argv[1]) / f"{torch.distributed.get_rank()}.pt")
