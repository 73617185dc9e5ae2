"""What all tests share: small sizes, what each method can do, and where `fit` measures."""

from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest

from vedute.commands import _pages
from vedute.methods import available, find

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
IN_A_PROCESS = _pages._in_a_process

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

METHODS = {name: find(name) for name in available()}
IMPUTING = [name for name, cls in METHODS.items() if cls.generative]
GENERATING = [name for name in IMPUTING if METHODS[name].generates]
CLUSTERING = [name for name, cls in METHODS.items() if cls.soft]  # by a rule of their own
PAIRED = [name for name, cls in METHODS.items() if cls.two_views]
REPRESENTATIVES = ["mvp", "mopoe", "dimvc", "dccae", "knn_fill"]  # one of a kind; `all`: the rest


def each(names):
    """One parameter per method; those that are no representatives are for `make test-all`."""
    return [pytest.param(k, marks=() if k in REPRESENTATIVES else pytest.mark.all) for k in names]


def pytest_collection_modifyitems(items):
    """Long tests first: at the end, one process would wait for them."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def small(cls, sizes=SMALL, **settings):
    """An estimator of these settings, and of small sizes where they say nothing."""
    known = {f.name for f in fields(cls)}
    found = {k: v for k, v in sizes.items() if k in known}
    if "experts" in known:  # the sizes are those of MVP inside
        inside = {f.name for f in fields(METHODS["mvp"])} - known
        found["expert_settings"] = {f"mvp__{k}": v for k, v in sizes.items() if k in inside}
    return cls(**found | settings)


def _measured(run, source, method):
    try:
        _pages.measure_here(run, source, method)
    except Exception as error:
        return str(error)
    return ""


@pytest.fixture(scope="session", autouse=True)
def measured_here():
    """`vedute fit` measures in this process: one of its own takes seconds to start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_pages, "_in_a_process", _measured)
        yield


@pytest.fixture(autouse=True)
def own_process(request, monkeypatch):
    """But in tests marked so, which are about that one."""
    if request.node.get_closest_marker("own_process"):
        monkeypatch.setattr(_pages, "_in_a_process", IN_A_PROCESS)


@pytest.fixture
def script_of(monkeypatch):
    """A script of the folder benchmarks, by its name."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return import_module
