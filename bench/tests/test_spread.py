"""The spread of accuracy by its sources, in closed form and on a small set."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def spread(script_of):
    return script_of("experiments.spread")


def test_variances_of_nested_effects_come_back(spread):
    kmeans, training, mask = np.array([-1.0, 1.0]), np.array([-3.0, 3.0]), np.array([-9.0, 9.0])
    values = 50 + kmeans + training[:, None] + mask[:, None, None]  # (2, 2, 2)
    found = spread.parts(values)
    assert found["k-means"] == pytest.approx(2.0)
    assert found["training"] == pytest.approx(18.0 - 2.0 / 2)
    assert found["mask"] == pytest.approx(162.0 - 18.0 / 2)
    alone = spread.parts(np.broadcast_to(kmeans, (3, 4, 2)))
    assert alone == {"k-means": pytest.approx(2.0), "training": 0.0, "mask": 0.0}


def test_one_mask_says_nothing_of_masks(spread):
    records = [
        {"device": "d", "mask_seed": 42, "seed": s, "acc_1": [a, a + 2], "acc_10": [a, a]}
        for s, a in ((0, 50.0), (1, 60.0))
    ]
    assert "| d | 10 | 55.00 | 0.00 | 7.07 | – | 7.07 |" in spread.table(records)


def test_the_table_leaves_out_a_mask_whose_trainings_are_not_done(spread):
    records = [
        {"device": "d", "mask_seed": m, "seed": s, "acc_1": [a, a + 2], "acc_10": [a, a]}
        for m, s, a in ((42, 0, 50.0), (42, 1, 60.0), (43, 0, 50.0), (43, 1, 60.0), (44, 0, 0.0))
    ]
    lines = spread.table(records).splitlines()
    assert [line.split(" | ")[1:3] for line in lines[2:]] == [["1", "56.00"], ["10", "55.00"]]
    assert "| d | 10 | 55.00 | 0.00 | 7.07 | 0.00 | 7.07 |" in lines


def test_what_is_recorded_is_not_trained_again(spread, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(spread, "MASKS", (42,))
    monkeypatch.setattr(spread, "SEEDS", (0, 1))
    monkeypatch.setattr(spread, "TIMES", {1: 2, 10: 1})
    monkeypatch.setattr(spread, "DATASET", "synthetic")
    settings = {"steps": 4, "warmup": 1, "cooldown": 0, "early_stopping": False, "device": "cpu"}
    file = tmp_path / "spread" / "records.jsonl"
    spread.run(file, settings)
    first = spread.recorded(file)
    assert [(r["mask_seed"], r["seed"]) for r in first] == [(42, 0), (42, 1)]
    assert all(len(r["acc_1"]) == 2 and len(r["acc_10"]) == 1 for r in first)
    spread.run(file, settings)
    assert spread.recorded(file) == first
    monkeypatch.setattr(spread.presets, "find", lambda *_: settings)
    spread.main(["--out", str(file)])
    assert spread.recorded(file) == first
    monkeypatch.setattr(spread, "TIMES", {1: 2})
    spread.main(["--out", str(file), "--table"])
    assert first[0]["device"] in capsys.readouterr().out
