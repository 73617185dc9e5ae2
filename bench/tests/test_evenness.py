"""How the scale of representations is scored: what explains their variance, and the tables."""

from __future__ import annotations

import numpy as np
import pytest

from vedute_bench.shapes import objects


@pytest.fixture
def script(script_of):
    return script_of("experiments.evenness")


def test_variance_that_is_linear_is_explained(script):
    rng = np.random.default_rng(0)
    x, other = rng.normal(size=(2, 2000, 2))
    z = np.hstack([3 * x @ rng.normal(size=(2, 2)), other])
    share = z[:, :2].var(0).sum() / z.var(0).sum()
    assert script.explained(x, z) == pytest.approx(share, abs=0.01)
    assert script.explained(x, 5 * x - 1) == pytest.approx(1)


def test_factors_are_those_of_the_test_objects(script):
    found = script.factors(30)
    y = objects.labels(objects.FULL, 0)[objects.split_rows(objects.FULL, "test")][:30]
    assert (found["class"].argmax(1) == y).all()
    assert {k: x.shape for k, x in found.items()} == {
        "class": (30, 5),
        "color": (30, 3),
        "size": (30, 1),
        "place": (30, 3),
    }
    assert found["size"].min() >= objects.SIZES[0]
    assert found["size"].max() <= objects.SIZES[1]


@pytest.mark.parametrize("dataset", ["polymnist", "shapes"])
def test_committed_tables_are_those_of_the_records(script, dataset):
    committed = (script.FOLDER / f"{dataset}.md").read_text(encoding="utf-8")
    assert committed == script.table(script.read(script.FOLDER / "records.jsonl"), dataset)


def test_the_best_power_of_a_training_is_in_bold(script):
    facts = {"dataset": "polymnist", "method": "mvp", "whole": True}
    records = [
        facts | {"power": power, "scores": dict.fromkeys(script.COLUMNS, value)}
        for power, value in ((0.0, 0.5), (0.5, 0.75))
    ]
    first, second = script.table(records, "polymnist").splitlines()[2:]
    assert first == "| mvp, whole training | 0 | 50.0 | 50.0 | 50.0 | 50.0 |"
    assert second == "| mvp, whole training | 0.5 |" + " **75.0** |" * 4
