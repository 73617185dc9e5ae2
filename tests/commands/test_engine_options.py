"""--engine and --scheduler: the same records as in this process, and mistakes in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import refused

from vedute.commands import _engine
from vedute_bench.runner import records

STUDY = """
datasets = ["synthetic"]
rates = [0.3, 0.5]
seeds = [1]

[[runs]]
label = "mean_fill"
method = "mean_fill"
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(STUDY)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--scheduler tcp://a:1", "--scheduler is the address of an engine"),
        ("--engine moon", "no engine 'moon'; choose from loky, dask, ray, spark"),
        ("--engine loky --scheduler tcp://a:1", "loky has no scheduler"),
        ("--engine loky --gpu-jobs 2", "--gpu-jobs is for GPUs of this machine"),
        ("--engine dask --scheduler tcp://a:1 --jobs 2", "the one at tcp://a:1 has its own"),
    ],
)
def test_a_mistake_gets_one_sentence(words, message):
    assert message in refused("bench", "tiny.toml", "-o", "r.jsonl", *words.split())


@pytest.mark.parametrize("engine", ["dask", "ray", "spark"])
def test_a_missing_package_gets_the_command_that_installs_it(engine, monkeypatch):
    monkeypatch.setattr(_engine, "find_spec", lambda name: None)
    told = refused("bench", "tiny.toml", "-o", "r.jsonl", "--engine", engine)
    assert f"--engine {engine} needs: pip install 'vedute[{engine}]'" in told
    assert not records.read_all(Path("r.jsonl")) if Path("r.jsonl").exists() else True
