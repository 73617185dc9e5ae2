"""Methods side by side on hidden views, and views hidden on purpose: `compare` and `ampute`."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import loadmat, savemat
from shell import done, refused

from vedute import io, methods
from vedute.analysis import comparison
from vedute.analysis.comparison import MethodScores, Trial
from vedute.data import missing
from vedute.data.views import Views
from vedute.datasets import load
from vedute.io.contents import known_labels
from vedute.methods import find
from vedute.metrics import scores as scoring

RNG = np.random.default_rng(0)


def three(n=80):
    """Three linear views of three classes; some missing, one hole."""
    y = RNG.integers(3, size=n)
    z = np.array([[0, 4], [4, 0], [-4, -4]])[y] + RNG.standard_normal((n, 2))
    X = {k: z @ RNG.standard_normal((2, d)) for k, d in {"a": 5, "b": 4, "c": 3}.items()}
    X["a"][:10] = X["b"][10:20] = np.nan
    X["c"][40, 0] = np.nan
    return X, y


# Hidden views.


def test_a_trial_hides_a_tenth_and_never_a_last_view():
    views = missing.drop_views(load("synthetic"), 0.5, 42)
    trial = Trial.of(views, seed=0)
    assert trial.hidden.sum() == round(0.1 * int(views.mask.sum()))
    assert (trial.hidden.sum(1) <= 1).all()
    assert trial.views.mask.any(1).all()
    assert not (trial.hidden & ~views.mask.numpy()).any()
    assert trial.views.y is None
    assert all(
        np.isnan(t[~m]).all() for t, m in zip(trial.truth, views.mask.T.numpy(), strict=True)
    )
    again, other = Trial.of(views, seed=0), Trial.of(views, seed=1)
    assert (again.hidden == trial.hidden).all()
    assert (other.hidden != trial.hidden).any()


def test_the_error_is_that_of_the_metrics():
    X, _ = three()
    views = Views.of(X)
    trial = Trial.of(views, seed=0)
    model = find("knn_fill")(random_state=0).fit(trial.views)
    filled = [x.numpy() for x in model.impute(trial.views).x]
    error = scoring.imputation_error(list(X.values()), filled, trial.hidden)
    assert trial.error(model) == pytest.approx(error, rel=1e-5)


def test_a_view_is_never_hidden_altogether():
    X = [RNG.standard_normal((30, 2)), np.full((30, 2), np.nan)]
    X[1][0] = 1.0
    X.append(RNG.standard_normal((30, 2)))
    for seed in range(30):
        assert Trial.of(Views.of(X), seed).views.mask.any(0).all()


def test_nothing_to_hide():
    with pytest.raises(ValueError, match="two views or more"):
        Trial.of(Views.of([RNG.standard_normal((30, 2))]), 0)


# Rows.


def compared(models, y=None, X=None):
    trial = Trial.of(Views.of(X or three()[0]), seed=0)
    return comparison.compare(trial, models, y)


def test_better_methods_have_smaller_errors():
    X, y = three()
    models = {k: find(k)(n_clusters=3, random_state=0) for k in methods.baselines()}
    rows = {r.method: r for r in compared(models, y, X)}
    assert rows["lowrank_fill"].error < rows["mean_fill"].error
    assert 0.7 < rows["mean_fill"].error < 1.4
    assert list(rows["mean_fill"].by_view) == ["a", "b", "c"]
    assert rows["lowrank_fill"].scores["acc"] > 0.8


def test_labels_may_be_missing():
    X, y = three()
    some = y.astype(object)
    some[::4] = ""
    assert (known_labels(some) == (np.arange(80) % 4 != 0)).all()
    assert (known_labels(np.array([1.0, np.nan])) == [True, False]).all()
    models = {"mean_fill": find("mean_fill")(n_clusters=3, random_state=0)}
    (all_of_them,), (known,) = compared(models, y, X), compared(models, some, X)
    assert 0 < known.scores["acc"] <= 1
    assert known.error == all_of_them.error


def test_a_method_that_fails_does_not_end_the_comparison():
    models = {"a": find("knn_fill")(n_neighbors=0), "b": find("mean_fill")()}
    rows = comparison.ranked(compared(models))
    assert [r.method for r in rows] == ["b", "a"]
    assert "n_neighbors" in rows[1].failed
    assert rows[0].scores == {}


def test_ranked_and_written():
    rows = [
        MethodScores("blind", scores={"acc": 0.9, "nmi": 0.8, "ari": 0.7}),
        MethodScores("far", 0.9, {"a": 0.9}, {"acc": 0.5, "nmi": 0.5, "ari": 0.5}),
        MethodScores("lost", failed="no"),
        MethodScores("near", 0.1, {"a": 0.1}),
    ]
    ranked = comparison.ranked(rows)
    assert [r.method for r in ranked] == ["near", "far", "blind", "lost"]
    table = comparison.columns(ranked)
    assert list(table) == ["method", "error", "error_a", "acc", "nmi", "ari", "seconds"]
    assert {a.shape for a in table.values()} == {(4,)}


@pytest.mark.parametrize("labeled", [False, True])
def test_the_figure_is_drawn(tmp_path, labeled):
    pytest.importorskip("matplotlib")
    scores = {"acc": 0.5, "nmi": 0.5, "ari": 0.5} if labeled else {}
    rows = [MethodScores("x", 0.5, {"a": 0.4, "b": 0.6}, scores), MethodScores("y", scores=scores)]
    comparison.figure(rows).savefig(tmp_path / "f.png", dpi=40)
    assert len(comparison.figure(rows).axes) == 1 + labeled


# compare


@pytest.mark.slow
def test_compare_writes_a_table_and_a_figure(tmp_path):
    pytest.importorskip("matplotlib")
    X, y = three()
    np.savez(tmp_path / "d.npz", **X, y=y)
    few = ("steps=10", "warmup=2", "cooldown=2", "hidden=(8,)")
    settings = [*(f"mvp__{k}" for k in few), "experts=('mvp', 'mean_fill')"]
    short = [w for k in settings for w in ("--set", k)]
    out = done("compare", tmp_path / "d.npz", "-o", tmp_path / "out", *short)
    with (tmp_path / "out" / "scores.csv").open() as file:
        rows = {r["method"]: r for r in csv.DictReader(file)}
    assert set(rows) == {"blend", "lowrank_fill", "knn_fill", "mean_fill"}
    assert float(rows["lowrank_fill"]["acc"]) > 0.5
    assert all(k in out for k in (*rows, "ACC %", "22 views hidden", "expert weights"))
    assert (tmp_path / "out" / "scores.png").exists()
    assert f"{float(rows['blend']['error']):.3f}" in done("compare", tmp_path / "d.npz", *short)


def test_compare_without_labels(tmp_path):
    np.savez(tmp_path / "d.npz", **three()[0])
    assert "ACC" not in done("compare", tmp_path / "d.npz", "--methods", "mean_fill")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--methods nope", "no method 'nope'"),
        ("--methods mean_fill --set n_neighbours=3", "n_neighbours"),
        ("--methods mean_fill --clusters many", "whole number or auto"),
    ],
)
def test_mistakes_in_compare(tmp_path, words, message):
    np.savez(tmp_path / "d.npz", **three()[0])
    assert message in refused("compare", tmp_path / "d.npz", "-o", tmp_path / "out", *words.split())
    assert [p.name for p in tmp_path.iterdir()] == ["d.npz"]


# ampute


def load_npz(path):
    with np.load(path, allow_pickle=False) as file:
        return {k: file[k] for k in file.files}


def test_ampute_hides_and_keeps_the_truth(tmp_path):
    X, y = three()
    X["c"] = RNG.integers(0, 9, size=(80, 3))
    ids = np.array([f"s{i}" for i in range(80)])
    np.savez(tmp_path / "d.npz", **X, y=y, ids=ids)
    words = ("--rate", ".5", "--protocol", "uniform", "--seed", "1", "-o", tmp_path / "half.npz")
    out = done("ampute", tmp_path / "d.npz", *words)
    half, truth = load_npz(tmp_path / "half.npz"), load_npz(tmp_path / "half.truth.npz")
    before = io.enter(io.read(tmp_path / "d.npz")).views
    left = missing.drop_views(before, 0.5, 1, "uniform").mask.numpy()
    assert (half["mask"] == left).all()
    for v, name in enumerate(X):
        np.testing.assert_array_equal(half[name][left[:, v]], X[name][left[:, v]])
        np.testing.assert_array_equal(truth[name], X[name])
        assert half[name].dtype == X[name].dtype
    assert np.isnan(half["a"][~left[:, 0]]).all()
    assert (half["y"] == y).all()
    views = io.enter(io.read(tmp_path / "half.npz")).views
    assert (views.mask.numpy() == left).all()
    assert (missing.load_mask(tmp_path / "half.mask.npz", views) == left).all()
    rates = missing.rates(left)
    for word in (f"{100 * rates.rows:.1f} %", f"{100 * rates.slots:.1f} %", "before: 25.0 %"):
        assert word in out
    assert missing.fingerprint(left) in out


def tables(folder: Path):
    """Three files by id with a label column; the cells are text that must not change."""
    folder.mkdir()
    (folder / "a.csv").write_text(
        "id,x,y,group\n" + "".join(f"p{i},{i}.50,{i * i},{i % 2}\n" for i in range(30))
    )
    (folder / "b.tsv").write_text("id\tz\n" + "".join(f"p{i}\t{i}e-1\n" for i in range(10, 40)))
    frame = pd.DataFrame({"w": range(40)}, index=[f"p{i}" for i in range(40)])
    frame.to_parquet(folder / "c.parquet")
    np.save(folder / "d.npy", RNG.integers(0, 255, (20, 1, 2, 2)).astype(np.uint8))
    (folder / "d.ids.txt").write_text("".join(f"p{i}\n" for i in range(20)))


def test_ampute_a_folder(tmp_path):
    pytest.importorskip("pyarrow")
    tables(tmp_path / "d")
    done("ampute", tmp_path / "d", "--label", "group", "--rate", ".6", "-o", tmp_path / "half")
    how = io.Reading(label="group")
    before, after = io.read(tmp_path / "d", how), io.read(tmp_path / "half", how)
    old, new = io.enter(before).views, io.enter(after).views
    at = [before.ids.tolist().index(i) for i in new.ids.tolist()]
    left = missing.load_mask(tmp_path / "half.mask.npz", old)
    assert (new.mask.numpy() == left[at]).all()
    assert left.sum() < old.mask.sum()
    for v in range(4):
        seen = left[at, v]
        np.testing.assert_array_equal(new.x[v].numpy()[seen], old.x[v].numpy()[at][seen])
    assert (pd.Series(new.y).dropna() == pd.Series(old.y)[at].reset_index(drop=True).dropna()).all()
    lines = (tmp_path / "d" / "a.csv").read_text().splitlines()
    assert set((tmp_path / "half" / "a.csv").read_text().splitlines()) < set(lines)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_ampute_one_table(tmp_path, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    frame = pd.DataFrame(RNG.standard_normal((40, 4)), columns=["a1", "a2", "b1", "b2"])
    frame["b2"] = range(40)
    frame.insert(0, "who", [f"p{i}" for i in range(40)])
    frame["note"] = "é"
    path, out = tmp_path / f"t{ending}", tmp_path / f"half{ending}"
    frame.to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path)
    (tmp_path / "v.toml").write_text('id = "who"\n[views]\na = "a"\nb = "b"\n')
    done("ampute", path, "--views", tmp_path / "v.toml", "--rate", ".5", "-o", out)
    new = pd.read_csv(out) if ending == ".csv" else pd.read_parquet(out)
    assert list(new.columns) == list(frame.columns)
    assert (new["note"] == "é").all()
    gone = new["b2"].isna()
    assert (new["b1"].isna() == gone).all()
    assert (new["a1"].isna() | gone).sum() == 20
    np.testing.assert_array_equal(new["b2"][~gone], frame["b2"][~gone])


def test_ampute_a_mat(tmp_path):
    cells = np.empty((1, 2), object)
    cells[0, 0], cells[0, 1] = RNG.standard_normal((30, 4)), RNG.integers(0, 9, size=(30, 3))
    savemat(tmp_path / "d.mat", {"X": cells, "Y": np.arange(30) % 3})
    done("ampute", tmp_path / "d.mat", "--rate", ".5", "-o", tmp_path / "half.mat")
    after = loadmat(tmp_path / "half.mat")["X"]
    gone = [np.isnan(x).all(1) for x in after.flat]
    assert (gone[0] | gone[1]).sum() == 15
    for old, new, g in zip(cells.flat, after.flat, gone, strict=True):
        np.testing.assert_array_equal(old[~g], new[~g])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--rate 2 -o half.npz", "must lie in [0, 1]"),
        ("--rate .5 --protocol coin -o half.npz", "no protocol 'coin'"),
        ("--rate .5 -o half.csv", "must end in .npz"),
        ("--rate .5 -o half.h5mu", "end in .npz"),
    ],
)
def test_mistakes_in_ampute(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    np.savez("d.npz", **three()[0])
    assert message in refused("ampute", "d.npz", *words.split())
    assert [p.name for p in tmp_path.iterdir()] == ["d.npz"]
