"""Input that would pass for something else."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shell import done
from sklearn.model_selection import GridSearchCV, cross_val_score

import vedute
from vedute import io, methods

RNG = np.random.default_rng(0)
FEW = {"steps": 2, "latent_dim": 2, "hidden": (4,), "random_state": 0}


@pytest.mark.parametrize(
    ("shape", "mend"),
    [
        ((16, 16, 3), "move the channel axis"),
        ((16, 16, 1), "move the channel axis"),
        ((12, 16, 3), "move the channel axis"),
        ((3, 12, 16), "make them square"),
        ((4, 16, 16), "make them square"),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_images_in_another_order_or_shape_never_meet_an_mlp_in_silence(shape, mend, dtype):
    if dtype == np.uint8 and mend == "move the channel axis":  # done for bytes
        mend = "make them square"
        shape = (*shape[:1], 20, *shape[2:])
    X = [RNG.integers(0, 256, (30, *shape)).astype(dtype), RNG.normal(size=(30, 3))]
    with pytest.raises(ValueError, match=r"images are \(n, channels, height, width\)") as found:
        methods.find("mvp")(**FEW).fit(X)
    assert mend in str(found.value)
    methods.find("mvp")(network="mlp", **FEW).fit(X)


def test_grey_images_without_their_channel_never_meet_an_mlp_in_silence():
    X = [RNG.integers(0, 256, (30, 16, 16)).astype(np.uint8), RNG.normal(size=(30, 3))]
    with pytest.raises(ValueError, match=r"square: add the channel axis \(x\[:, None\]\)"):
        methods.find("mvp")(**FEW).fit(X)
    methods.find("mvp")(network="mlp", **FEW).fit(X)
    methods.find("mvp")(**FEW).fit([X[0] / 255, X[1]])  # matrices of numbers are no images


def test_images_and_small_arrays_are_taken():
    for shape in ((3, 8, 8), (2, 3, 4), (5, 5, 3)):
        X = [RNG.integers(0, 256, (30, *shape)).astype(np.uint8), RNG.normal(size=(30, 3))]
        methods.find("mvp")(**FEW).fit(X)


def test_a_number_that_no_float_holds_is_refused():
    X = [np.array([[10**400], [1]], dtype=object), RNG.normal(size=(2, 2))]
    with pytest.raises(ValueError, match=r"holds '10+\.\.\.' in row 0, which is not a number"):
        methods.find("mean_fill")().fit(X)


def test_rows_and_columns_of_frames_have_names():
    frames = [pd.DataFrame(RNG.normal(size=(3, 2)), index=[None, "p", "q"]) for _ in range(2)]
    with pytest.raises(ValueError, match="view 'view0' has a row without an id; give it one"):
        methods.find("mean_fill")().fit(frames)
    frames = [pd.DataFrame(RNG.normal(size=(3, 2)), columns=[None, "b"]) for _ in range(2)]
    with pytest.raises(ValueError, match="view 'view0' has a column without a name; name it"):
        methods.find("mean_fill")().fit(frames)


def test_columns_that_are_no_dict_are_refused():
    with pytest.raises(TypeError, match=r"columns= is a dict of views, got 3; pass"):
        methods.find("mean_fill")(columns=3).fit(RNG.normal(size=(9, 2)))


def test_values_whose_squares_overflow_are_refused():
    X = [RNG.normal(size=(9, 2)), RNG.normal(size=(9, 2))]
    with pytest.raises(ValueError, match="values too far from those fitted on"):
        methods.find("mean_fill")(scaling="none").fit([1e30 * X[0], X[1]])
    model = methods.find("lowrank_fill")().fit(X)
    with pytest.raises(ValueError, match="values too far from those fitted on"):
        model.impute([1e30 * X[0], None], interval=0.9)


def test_training_that_diverged_says_so():
    X = [RNG.normal(size=(30, 3)), RNG.normal(size=(30, 2))]
    with pytest.raises(FloatingPointError, match="try a smaller lr"):
        methods.find("cpspan")(**FEW, lr=1e12, n_clusters=2).fit(X)


def test_a_mean_is_the_same_with_and_without_an_interval():
    X = [np.array([[1, 1]] + [[np.nan] * 2] + [[0, 0]] * 4), np.full((6, 3), np.nan)]
    X[1][0], X[1][1, 0] = 2, 0
    model = methods.find("lowrank_fill")(random_state=0).fit(X)
    for a, b in zip(model.impute(X), model.impute(X, interval=0.9).mean, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_list_of_views_is_not_split_as_if_views_were_samples():
    X = [RNG.normal(size=(40, 3)) for _ in range(6)]
    model = methods.find("mean_fill")()
    search = GridSearchCV(model, {"scaling": ["standard", "none"]}, cv=2)
    with pytest.raises(ValueError, match=r"pass vedute\.Views\.of\(X\)"):
        search.fit(X)
    with pytest.raises(TypeError, match=r"pass vedute\.Views\.of\(X\)"):
        cross_val_score(model, X, cv=2, error_score="raise")
    search.fit(vedute.Views.of(X))
    assert np.isfinite(search.best_score_)
    model.fit(X)


def test_what_is_written_can_be_read_again(tmp_path, monkeypatch):
    """Dates that are one moment in parquet and two texts; a column without any decimal comma."""
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    dates = pd.date_range("2020-01-01", periods=6)
    pd.DataFrame({"a": RNG.normal(size=6)}, dates).to_parquet("d/a.parquet")
    b = pd.DataFrame({"b": 0.5 + np.arange(6), "whole": ["1e+09"] * 5 + [None]}, dates)
    b.to_csv("d/b.csv", sep=";", decimal=",")
    pd.DataFrame({"c": RNG.normal(size=6)}, dates).to_csv("d/c.csv")
    done("fit", "d", "-o", "run", "--method", "mean_fill")
    done("impute", "run", "d", "-o", "out")
    filled = io.read("out")
    assert sorted(filled.ids) == sorted(io.read("d").ids)
    assert not filled.views["b"].isna().any(axis=None)


@pytest.mark.parametrize("ids", [[0.5, 1.5], [1e30, 2e30], [np.inf, 1.0]])
def test_numbers_that_are_no_ids_are_refused(ids, tmp_path):
    pd.DataFrame({"a": [1.0, 2.0]}, ids).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="not sample ids"):
        io.read(tmp_path)
