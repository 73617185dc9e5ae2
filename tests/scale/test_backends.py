"""Many fits where a joblib backend says: the same as here, and a killed worker costs one task."""

from __future__ import annotations

import os
from concurrent.futures import BrokenExecutor
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_array_equal

from vedute.analysis import comparison, tuning
from vedute.analysis.comparison import Trial
from vedute.data import missing
from vedute.datasets import synthetic
from vedute.methods import find
from vedute.methods.best_pair import BestPair
from vedute.methods.deep.dcca import DCCA
from vedute.scale import backends

SHORT = dict(hidden=(8,), steps=6, device="cpu")


def two():
    """Two worker processes."""
    return parallel_config("loky", n_jobs=2)


def views():
    return missing.drop_views(synthetic.load(60), 0.4, 0)


def add(shared, task):
    return shared + task, os.getpid()


def read(shared, task):
    """What is shared; a worker that is asked to die does so."""
    if task == "die" or (isinstance(task, Path) and not task.exists() and not task.touch()):
        os._exit(1)
    return float(shared.sum())


class Counted:
    """Notes how often it is pickled."""

    def __init__(self, times):
        self.times = times

    def __reduce__(self):
        self.times.append(1)
        return sum, ([1, 2],)


# Where tasks run.


def test_nothing_is_set_so_all_runs_here():
    assert (backends.elsewhere(), backends.size()) == (False, 1)
    assert list(backends.outcomes(add, 1, [1, 2])) == [(2, os.getpid()), (3, os.getpid())]


@pytest.mark.parametrize("backend", ["threading", "sequential"])
def test_threads_would_share_random_numbers_so_they_are_not_used(backend):
    with parallel_config(backend, n_jobs=2):
        assert list(backends.outcomes(add, 1, [1])) == [(2, os.getpid())]


def test_outcomes_of_other_processes_come_in_order():
    with two():
        assert backends.size() == 2
        found = list(backends.outcomes(add, 1, range(7)))
    assert [value for value, _ in found] == [1, 2, 3, 4, 5, 6, 7]
    assert os.getpid() not in {pid for _, pid in found}


def test_what_is_shared_is_pickled_once():
    times = []
    with two():
        found = [value for value, _ in backends.outcomes(add, Counted(times), range(5))]
    assert (found, len(times)) == ([3, 4, 5, 6, 7], 1)


@pytest.mark.slow
def test_a_killed_worker_costs_its_task_only(tmp_path):
    once = tmp_path / "once"  # its first worker dies
    with two():
        found = list(backends.outcomes(read, np.ones(4), [1, "die", 3, once, 5]))
    assert isinstance(found.pop(1), BrokenExecutor)
    assert found == [4.0] * 4


def test_an_error_is_raised_as_here():
    with two(), pytest.raises(AttributeError, match="no attribute 'sum'"):
        list(backends.outcomes(read, "text", [1]))


# What goes there.


@pytest.mark.all
def test_the_best_pair_is_the_same():
    def fit():
        model = BestPair(DCCA(**SHORT), n_clusters=3, random_state=0).fit(views())
        return model.scores_, model.chosen(), model.transform(views()), model.labels_

    here = fit()
    with two():
        there = fit()
    assert here[:2] == there[:2]
    assert_array_equal(here[2], there[2])
    assert_array_equal(here[3], there[3])


def test_callbacks_hear_the_pairs():
    heard = []
    with two():
        BestPair(DCCA(**SHORT, callbacks=[heard.append]), random_state=0).fit(views())
    assert heard


@pytest.mark.all
def test_a_comparison_is_the_same():
    data = views()
    trial = Trial.of(data, 0)

    def rows():
        models = {k: find(k)(random_state=0, n_clusters=3) for k in ("mean_fill", "knn_fill")}
        models["mvp"] = find("mvp")(random_state=0, n_clusters=3, **SHORT)
        found = comparison.compare(trial, models, data.y)
        return [(r.method, r.error, r.by_view, r.scores, r.failed) for r in found]

    here = rows()
    with two():
        assert rows() == here


@pytest.mark.all
def test_tuned_settings_are_the_same(monkeypatch):
    def tune():
        heard = []
        tuned = tuning.tune(find("mvp"), views(), dict(SHORT), 4, None, 0, heard.append)
        return tuned, heard

    with two():
        there = tune()
    monkeypatch.setattr(tuning, "find_spec", lambda name: None)  # Optuna proposes one by one
    assert tune() == there
