"""Small sizes, and what each method can do."""

from dataclasses import fields

import pytest

from vedute.methods import find, of_this_package

SMALL = {  # sizes that train in a blink, set where a method has such a field
    "steps": 12,
    "warmup": 4,
    "again": 4,
    "pretrain": 4,
    "hidden": (12,),
    "map_hidden": (8,),
    "latent_dim": 3,
    "batch_size": 32,
    "n_neighbors": 5,
    "device": "cpu",
    "random_state": 0,
}

METHODS = {name: find(name) for name in of_this_package()}
IMPUTING = [name for name, cls in METHODS.items() if cls.generative]
GENERATING = [name for name in IMPUTING if METHODS[name].generates]
CLUSTERING = [name for name, cls in METHODS.items() if cls.soft]  # by a rule of their own
PAIRED = [name for name, cls in METHODS.items() if cls.two_views]
REPRESENTATIVES = ["mvp", "mopoe", "dimvc", "dccae", "knn_fill"]  # one of a kind; `all`: the rest


def each(names, others=pytest.mark.all):
    """One parameter per method; those that are no representatives are for `make test-all`, or have
    another mark."""
    return [pytest.param(k, marks=() if k in REPRESENTATIVES else others) for k in names]


def small(cls, sizes=SMALL, **settings):
    """An estimator of these settings, and of small sizes where they say nothing."""
    known = {f.name for f in fields(cls)}
    found = {k: v for k, v in sizes.items() if k in known}
    if "experts" in known:  # the sizes are those of MVP inside
        inside = {f.name for f in fields(METHODS["mvp"])} - known
        found["expert_settings"] = {f"mvp__{k}": v for k, v in sizes.items() if k in inside}
    return cls(**found | settings)
