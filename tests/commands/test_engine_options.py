"""--engine and --scheduler: mistakes in one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from shell import refused

from vedute.commands import _engine

COMPARE = ("compare", "d.npz", "--methods", "mean_fill")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("d.npz", a=rng.normal(size=(60, 3)), b=rng.normal(size=(60, 4)))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--scheduler tcp://a:1", "--scheduler is the address of an engine"),
        ("--engine moon", "no engine 'moon'; choose from loky, dask, ray, spark"),
        ("--engine loky --scheduler tcp://a:1", "loky has no scheduler"),
    ],
)
def test_a_mistake_gets_one_sentence(words, message):
    assert message in refused(*COMPARE, *words.split())


@pytest.mark.parametrize("engine", ["dask", "ray", "spark"])
def test_a_missing_package_gets_the_command_that_installs_it(engine, monkeypatch):
    monkeypatch.setattr(_engine, "find_spec", lambda name: None)
    told = refused(*COMPARE, "--engine", engine)
    assert f"--engine {engine} needs: pip install 'vedute[{engine}]'" in told
