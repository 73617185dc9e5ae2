"""The face of every estimator: what it gives back is as it was given, in whatever order, and a fit
that is refused, interrupted, repeated or saved leaves what it should."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from every_method import small
from sklearn.exceptions import NotFittedError

from vedute import MVP, BestPair, Views, load
from vedute.methods.deep.cpspan import CPSPAN
from vedute.methods.deep.dccae import DCCAE
from vedute.methods.deep.mopoe import MoPoE
from vedute.methods.fills.knn_fill import KNNFill
from vedute.methods.fills.mean_fill import MeanFill
from vedute.metrics.scores import imputation_error

NAN = np.nan


def patients(n=90):
    """Two frames of other people each, and a stage of four."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 2))
    a = pd.DataFrame(z @ rng.normal(size=(2, 3)), columns=list("abc"))
    b = pd.DataFrame(z @ rng.normal(size=(2, 2)), columns=list("xy"))
    a["stage"] = pd.Categorical.from_codes(
        np.digitize(z[:, 0], (-0.7, 0, 0.7)), ["I", "II", "III", "IV"], ordered=True
    )
    for frame in (a, b):
        frame.index = pd.Index([f"p{i}" for i in range(n)])
    return {"A": a.iloc[: n - 20], "B": b.iloc[20:]}


def test_rows_come_in_the_order_of_the_frames_given_not_of_those_fitted():
    X = patients()
    turned = {"B": X["B"], "A": X["A"]}
    model = MeanFill(n_clusters=3, random_state=0).fit(X)
    told = pd.DataFrame(model.transform(turned), index=Views.of(turned).ids)
    known = pd.DataFrame(model.embedding_, index=Views.of(X).ids)
    pd.testing.assert_frame_equal(told.loc[known.index], known, atol=1e-6)
    filled = model.impute(turned)
    assert list(filled) == ["B", "A"]
    pd.testing.assert_frame_equal(filled["A"].loc[X["A"].index], X["A"])


def test_a_views_remembers_its_columns_and_categories():
    X = patients()
    model = MeanFill(random_state=0).fit(Views.of(X))
    assert model.specs[0].columns == ("a", "b", "c", "stage")
    same = model.transform({"A": X["A"][["stage", "c", "b", "a"]], "B": X["B"]})  # by their names
    np.testing.assert_allclose(same, model.embedding_, atol=1e-6)
    filled = model.impute({"B": X["B"]})
    assert list(filled["A"].columns) == ["a", "b", "c", "stage"]
    turned = Views.of({"A": X["A"][["stage", "c", "b", "a"]], "B": X["B"]})
    with pytest.raises(ValueError, match=r"has columns 'stage', 'c', .* fitted on 'a', 'b'"):
        model.transform(turned)
    fewer = X["A"].assign(stage=X["A"]["stage"].cat.rename_categories(list("1234")))
    with pytest.raises(ValueError, match="has categories"):
        model.transform(Views.of({"A": fewer, "B": X["B"]}))
    assert Views.of(X).pick(1).specs[0].columns == ("x", "y")


def test_a_views_does_not_insist_on_what_it_no_longer_holds():
    rng = np.random.default_rng(0)
    X = [rng.integers(0, 256, (30, 3, 8, 8), dtype=np.uint8), rng.normal(size=(30, 4))]
    model = MeanFill(random_state=0).fit(X)
    whole = model.impute(Views.of([X[0], None]))  # of a view without columns one of four
    assert MeanFill(random_state=0).fit(whole).views_[1].shape == (4,)
    floats = MeanFill(random_state=0).fit(Views.of(X).floating())
    assert floats.specs[0].dtypes == ()
    told = floats.transform([X[0] / 127.5 - 1, X[1]])
    np.testing.assert_allclose(told, floats.embedding_, atol=1e-5)


def test_of_three_or_more_categories_there_is_no_interval():
    X = patients()
    model = MVP(steps=40, random_state=0).fit(X)
    mean, lower, upper = model.impute(X, interval=0.9)
    for end in (lower, upper):
        assert end["A"]["stage"].dtype == X["A"]["stage"].dtype
        pd.testing.assert_series_equal(end["A"]["stage"].iloc[:70], X["A"]["stage"])
        assert end["A"]["stage"].iloc[70:].isna().all()
        assert end["A"][list("abc")].notna().all(axis=None)
    assert mean["A"]["stage"].notna().all()
    assert (lower["A"]["a"] < upper["A"]["a"]).any()
    ends = model.impute(Views.of(X), interval=0.9)[1:]
    for end in ends:
        stage = end.known(0)[:, 3:]
        assert (np.isnan(stage).all(1) == (np.arange(90) >= 70)).all()
        assert end.x[0].isfinite().all()


def test_whole_numbers_that_are_one_hot_have_floats_with_gaps_as_ends():
    rng = np.random.default_rng(0)
    x, pick = rng.normal(size=(60, 3)), rng.integers(4, size=60)
    one, mask = np.eye(4, dtype=int)[pick], np.ones((60, 2), bool)
    mask[:10, 1] = False
    data = Views.of([x, one], mask=mask)
    model = MVP(steps=20, random_state=0).fit(data)
    frames = [pd.DataFrame(x), pd.DataFrame(one[10:], range(10, 60), list("abcd"))]
    assert model.impute(data).x[1].unique().tolist() == [0, 1]
    for end in model.impute(data, interval=0.8)[1:]:
        found = end.known(1)
        assert np.isnan(found[:10]).all()
        np.testing.assert_array_equal(found[10:], one[10:])
    for end in MeanFill(random_state=0).fit(frames).impute(frames, interval=0.8)[1:]:
        assert end[1].iloc[:10].isna().all(axis=None)
        np.testing.assert_array_equal(end[1].iloc[10:], one[10:])


def test_clusters_of_an_earlier_fit_are_forgotten():
    X = patients()
    model = MeanFill(n_clusters=3, random_state=0).fit(X)
    model.set_params(n_clusters=None).fit({k: v.iloc[:50] for k, v in X.items()})
    assert not hasattr(model, "labels_")
    with pytest.raises(ValueError, match="set n_clusters and fit again"):
        model.set_params(n_clusters=3).predict(X)


def test_a_refused_fit_leaves_the_model_as_it_was():
    X = patients()
    model = MeanFill(random_state=0).fit(X)
    with pytest.raises(ValueError, match="missing for every sample"):
        model.fit({**X, "C": X["B"] * NAN})
    assert len(model.transform(X)) == 90


@pytest.mark.parametrize("cls", [MVP, CPSPAN])
def test_an_interruption_ends_all_learning(cls, caplog):
    steps = []

    def stop(record):
        steps.append(record["step"])
        if record["step"] >= 20:
            raise KeyboardInterrupt

    model = cls(steps=60, random_state=0)
    if cls is CPSPAN:
        model.set_params(n_clusters=3)
    model.callbacks = [stop]
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(120, 4)) for _ in range(2)]
    views[0][::7] = NAN
    model.fit(views)
    assert caplog.text.count("interrupted") == 1
    assert steps == sorted(steps)  # it was not begun again
    assert len(model.transform(views)) == 120


def test_what_is_set_after_a_fit_is_not_saved_as_its_settings(tmp_path):
    X = patients()
    model = MVP(steps=20, latent_dim=6, random_state=0).fit(X)
    model.set_params(latent_dim=4, device="cuda")
    model.save(tmp_path / "run")
    if torch.cuda.is_available():
        pytest.skip("a GPU is there")
    again = load(tmp_path / "run")  # where there is no GPU
    assert again.latent_dim == 6
    np.testing.assert_array_equal(again.transform(X), model.set_params(device="cpu").transform(X))
    again.set_params(latent_dim=3).save(tmp_path / "again")
    assert load(tmp_path / "again").latent_dim == 6


@pytest.mark.parametrize(
    ("model", "later"),
    [
        (MVP(steps=3), {"variant": "images", "beta": 3.0}),
        (MVP(steps=3, variant="images"), {"variant": None}),
        (MoPoE(steps=3), {"latent_dim": 3}),
        (KNNFill(), {"n_neighbors": 2}),
    ],
)
def test_what_is_set_after_a_fit_is_for_the_next_one(model, later):
    X = patients()
    model.set_params(random_state=0).fit(X)
    known, filled = model.transform(X), model.impute(X)
    model.set_params(**later)
    np.testing.assert_array_equal(model.transform(X), known)
    pd.testing.assert_frame_equal(model.impute(X)["B"], filled["B"])
    assert model.fit(X).transform(X).shape != known.shape or (model.transform(X) != known).any()


@pytest.mark.parametrize("name", ["beta", "view_dropout", "cooldown", "warmup"])
@pytest.mark.parametrize(
    ("value", "problem"),
    [(-1, "at least 0"), ("much", "a (whole )?number"), (float("nan"), "(at least 0|a whole)")],
)
def test_numbers_that_make_no_sense_are_refused(name, value, problem):
    with pytest.raises(ValueError, match=f"{name} must be {problem}.*, got {value!r}"):
        MVP(**{name: value}).fit(patients())


def test_layers_by_the_names_of_views_are_for_methods_that_have_them():
    hidden = {"A": (4,), "B": (6,)}
    assert len(MVP(hidden=hidden, steps=5, random_state=0).fit(patients()).embedding_) == 90
    with pytest.raises(ValueError, match="hidden must be a tuple of whole numbers, got"):
        MoPoE(hidden=hidden).fit(patients())


def test_a_device_may_be_that_of_torch():
    model = MVP(steps=5, random_state=0, device=torch.device("cpu")).fit(patients())
    assert len(model.embedding_) == 90


def test_values_refused_by_fit_are_refused_later():
    rng = np.random.default_rng(0)
    X = [rng.integers(0, 2, (60, 5)).astype(float), rng.normal(size=(60, 3))]
    model = MeanFill(random_state=0).fit(X)
    with pytest.raises(ValueError, match="holds 7; bernoulli values lie between 0 and 1"):
        model.transform([X[0] * 7, X[1]])


def test_views_that_never_meet_are_told_of():
    X = patients()
    X["B"].index = "other " + X["B"].index
    with pytest.warns(UserWarning, match="no sample has two views"):
        MeanFill(random_state=0).fit(X)


def test_a_mask_with_names_is_read_by_them():
    X = {"A": np.ones((4, 2)), "B": np.ones((4, 1))}
    mask = pd.DataFrame({"B": [False, True, True, True], "A": True})
    assert Views.of(X, mask=mask).mask[0].tolist() == [True, False]
    assert Views.of(Views.of(X), mask=mask).mask[0].tolist() == [True, False]
    assert Views.of(list(X.values()), mask=mask).mask[0].tolist() == [False, True]  # no names


def test_errors_of_frames_are_of_the_same_samples():
    truth = patients()
    both = truth["A"].index.intersection(truth["B"].index)
    truth = {k: v.drop(columns="stage", errors="ignore").loc[both] for k, v in truth.items()}
    turned = {k: v.iloc[::-1] for k, v in truth.items()}
    hidden = np.ones((len(both), 2), bool)
    assert imputation_error(truth, turned, hidden) == 0.0
    others = {k: v.rename(index=str.upper) for k, v in turned.items()}
    with pytest.raises(ValueError, match="other samples"):
        imputation_error(truth, others, hidden)
    whole = Views.of(truth)
    assert imputation_error(whole, MeanFill(random_state=0).fit(whole).impute(whole), hidden) == 0.0


def test_who_cannot_generate_says_so():
    with pytest.raises(NotFittedError):
        MVP().generate(2)
    with pytest.raises(TypeError, match="BestPair cannot generate"):
        BestPair(DCCAE()).generate(2)


def test_new_samples_are_of_the_dtype_that_was_fitted():
    rng = np.random.default_rng(0)
    X = [rng.integers(0, 256, (40, 3, 8, 8), dtype=np.uint8), rng.poisson(3.0, (40, 4))]
    made = MVP(steps=20, random_state=0).fit(X).generate(6)
    assert [a.dtype for a in made.values()] == [np.uint8, np.int64]
    assert made["view1"].shape == (6, 4)


def test_new_samples_are_frames_where_frames_were_fitted():
    X = patients()
    X["A"]["count"] = np.arange(len(X["A"])) % 7
    made = MVP(steps=20, random_state=0).fit(X).generate(6)
    for name, frame in made.items():
        assert len(frame) == 6
        assert [str(d) for d in frame.dtypes] == [str(d) for d in X[name].dtypes]
        assert list(frame.columns) == list(X[name].columns)
        assert frame.notna().all().all()
    assert list(made["A"]["stage"].cat.categories) == ["I", "II", "III", "IV"]


def test_the_mean_of_words_is_the_commonest():
    rng = np.random.default_rng(0)
    words = np.array([[4, 7, 1]] * 50 + [[2, 7, 3]] * 30)
    words[:, 2] = rng.integers(0, 5, 80)
    X = [words.astype(float), rng.normal(size=(80, 2))]
    model = MeanFill(likelihood=["tokens", "normal"], random_state=0).fit(X)
    assert model.impute([None, X[1]])[0][:, :2].tolist() == [[4.0, 7.0]] * 80


def test_axes_in_another_order_are_named():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(20, 3, 8, 8))
    model = MeanFill(random_state=0).fit([images, rng.normal(size=(20, 2))])
    with pytest.raises(ValueError, match=r"\(8, 8, 3\), fitted on \(3, 8, 8\); bring the axes"):
        model.transform([images.transpose(0, 2, 3, 1), None])


def test_other_draws_for_another_random_state():
    rng = np.random.default_rng(0)
    X = list(rng.normal(size=(2, 40, 3)))
    X[1][:10] = np.nan
    model = small(MVP).fit(X)
    for draw in (lambda s: model.sample_imputations(X, 1, s)[0][1], lambda s: model.generate(5, s)):
        first, same, one, again, two = (str(draw(s)) for s in (None, None, 1, 1, 2))
        assert first == same
        assert one == again
        assert len({first, one, two}) == 3


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_fit_learns_also_where_gradients_are_off(mode):
    X = patients()
    known = MVP(steps=5, random_state=0).fit(X)
    with mode():
        model = MVP(steps=5, random_state=0).fit(X)
        same = model.transform(X)
    assert np.array_equal(same, known.transform(X))
    assert model.fit(X).transform(X).shape == same.shape  # again, and with gradients
