"""The method in docs/own-methods.md is complete: dropped into the folder of methods, it works."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from capture import losses_captured
from every_method import small

import vedute
from vedute import methods

PAGE = Path(__file__).parents[2] / "docs" / "own-methods.md"


@pytest.fixture
def average(tmp_path, monkeypatch):
    """The example as a file in a folder that methods are looked for in."""
    code, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    (tmp_path / "average.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    yield methods.find("average")
    del sys.modules["vedute.methods.average"]


def data(n, seed=0):
    """Three views of two hidden numbers, some missing."""
    rng, loadings = np.random.default_rng(seed), np.random.default_rng(9).normal(size=(2, 12))
    table = rng.normal(size=(n, 2)) @ loadings + 0.1 * rng.normal(size=(n, 12))
    X = np.split(table, [4, 7], axis=1)
    for v, x in enumerate(X):
        x[v::4] = np.nan
    return X


def test_the_example_is_found_and_is_a_method_like_others(average, tmp_path):
    assert "average" in methods.available()
    assert methods.facts("average")["missing views"] == "left out of the mean"
    learns = {"steps": 300, "hidden": (32,), "device": "cpu", "random_state": 0, "n_clusters": 3}
    model = average(**learns).fit(data(200))
    X = data(40, seed=1)
    assert model.transform(X).shape == (40, 16)
    assert set(model.predict(X)) <= {0, 1, 2}
    assert model.score(X) > 0.3  # better than means
    for x, y in zip(X, model.impute(X), strict=True):
        np.testing.assert_array_equal(y[~np.isnan(x)], x[~np.isnan(x)])
        assert np.isfinite(y).all()
    assert len(model.sample_imputations(X, 2)) == 2
    assert [a.shape for a in model.generate(5).values()] == [(5, 4), (5, 3), (5, 5)]
    model.save(tmp_path / "model")
    again = vedute.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_the_example_can_be_captured_on_a_gpu(average, monkeypatch):
    assert losses_captured(small(average), data(60), monkeypatch) == {"loss"}
