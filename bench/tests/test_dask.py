"""Runs on a Dask cluster of two processes: equal results; a killed worker loses only its run."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from threading import Thread

import pytest
from joblib import parallel_config
from shell import done
from sklearn.model_selection import GridSearchCV

from vedute.analysis import comparison
from vedute.analysis.comparison import Trial
from vedute.data import missing
from vedute.datasets import synthetic
from vedute.methods import find
from vedute_bench.runner import records

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")  # Dask's own

STUDY = """
datasets = ["synthetic"]
rates = [0.5]
seeds = [1, 2]

[[runs]]
label = "small mvp"
method = "mvp"
settings = { hidden = [16], steps = 40, device = "cpu" }

[[runs]]
label = "mean_fill"
method = "mean_fill"
"""


@pytest.fixture(scope="module")
def address():
    """Address of the scheduler."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(STUDY)


def bench(out, *words):
    return done("bench", "tiny.toml", "-o", out, *words)


def measured(path):
    """What a study is run for: scores, by label and seed."""
    return {(r["label"], r["seed"]): r["scores"] for r in records.read_all(Path(path))}


def kill_the_first(folder, killed):
    """Ends the first process that holds a claim, as the system does when memory is full."""
    until = time.monotonic() + 60
    while not killed and time.monotonic() < until:
        for claim in folder.glob("*.json"):
            try:
                pid = json.loads(claim.read_text())["pid"]
            except (OSError, ValueError):  # it is being written
                continue
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
            return
        time.sleep(0.01)


def test_records_are_those_of_this_process_though_a_worker_is_killed(study, address):
    bench("here.jsonl", "--jobs", "1")
    killed = []
    killer = Thread(target=kill_the_first, args=(Path("there.jsonl.claims"), killed))
    killer.start()
    told = bench("there.jsonl", "--engine", "dask", "--scheduler", address)
    killer.join()
    assert killed[0] != os.getpid()
    assert "4 new records" in told
    assert len(records.read_all(Path("there.jsonl"))) == 4
    assert measured("there.jsonl") == measured("here.jsonl")


def test_methods_are_compared_and_searched_there(address):
    views = missing.drop_views(synthetic.load(60), 0.4, 0)
    trial = Trial.of(views, 0)
    small = dict(hidden=(8,), steps=6, device="cpu", random_state=0)

    def found():
        models = {"mvp": find("mvp")(**small), "mean_fill": find("mean_fill")()}
        rows = comparison.compare(trial, models, None)
        search = GridSearchCV(find("mvp")(**small), {"latent_dim": [2, 4]}, cv=2)
        search.fit(views)
        return [(r.method, r.error) for r in rows], search.cv_results_["mean_test_score"].tolist()

    rows, scores = found()
    with distributed.Client(address), parallel_config("dask"):
        there = found()
    assert there[0] == rows
    assert there[1] == pytest.approx(scores, abs=1e-4)
