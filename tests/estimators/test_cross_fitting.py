"""Predictions of hidden views: calibrated by others, bounded, and made without anybody's luck."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from every_method import small

from vedute import methods
from vedute.data.holdout import HoldOut, choose
from vedute.estimators import cross_fitting
from vedute.metrics.scores import normal_crps


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 2))
    X = [z @ rng.normal(size=(2, d)) + 0.3 * rng.normal(size=(300, d)) for d in (6, 4)]
    return small(methods.find("lowrank_fill")).fit(X), X


def held_out(model, X):
    data = model.learner.scaled(X)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        hidden = choose(data.mask)
    return HoldOut.of(data, hidden, model.scalers)


def test_a_hidden_view_that_is_nonsense_does_not_widen_its_own_interval(model):
    model, X = model
    held = held_out(model, X)
    rows = held.hidden[:, 0].nonzero().flatten()
    x = held.truth.x[0].clone()
    x[rows[0]] += 1e3
    wild = replace(held, truth=replace(held.truth, x=(x, held.truth.x[1])))
    calm, after = (
        cross_fitting.predictions(model.learner.imputer(), h, True) for h in (held, wild)
    )
    np.testing.assert_array_equal(after["std0"][0], calm["std0"][0])
    np.testing.assert_array_equal(after["mean0"][0], calm["mean0"][0])
    np.testing.assert_array_equal(after["reach0"][0], calm["reach0"][0])
    assert np.median(after["std0"][1:] / calm["std0"][1:]) > 2


def test_predictions_are_bounded_and_move_no_generator(model, monkeypatch):
    model, X = model
    held, state = held_out(model, X), torch.random.get_rng_state()
    monkeypatch.setattr(cross_fitting, "NUMBERS", 10 * 25)
    found = cross_fitting.predictions(model.learner.imputer(), held, True)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert len(found["at"]) == len(found["error"]) == 25
    assert len(found["mean0"]) + len(found["mean1"]) == 25
    monkeypatch.setattr(cross_fitting, "NUMBERS", 10)  # one has no other to be calibrated on
    assert len(cross_fitting.predictions(model.learner.imputer(), held, True)["at"]) == 0


def test_fewer_are_among_more():
    assert set(cross_fitting.sample_positions(100, 10)) < set(
        cross_fitting.sample_positions(100, 30)
    )
    np.testing.assert_array_equal(cross_fitting.sample_positions(5, 10), np.arange(5))


def test_what_was_never_hidden_has_no_honest_prediction(model):
    _, X = model
    seen = small(methods.find("mvp"), early_stopping=False).fit(X)
    assert seen.hidden_predictions_ == {}
    assert not seen.learned_again_
    assert small(methods.find("mvp")).fit(X).learned_again_  # few rows


def test_crps_is_that_of_the_predictions(model):
    model, X = model
    found = cross_fitting.predictions(model.learner.imputer(), held := held_out(model, X), True)
    for v in range(2):
        rows = held.truth.index[held.hidden[:, v]].numpy()
        score = normal_crps(X[v][rows], found[f"mean{v}"], found[f"std{v}"]) / X[v].std(0)
        assert found["crps"][v] == pytest.approx(score.mean(), rel=1e-4)
        assert 0 < found["crps"][v] < 0.5


def test_a_group_is_in_one_fold():
    rng = np.random.default_rng(0)
    groups, which = rng.integers(30, size=200), rng.integers(3, size=200)
    fold = cross_fitting.folds(which, torch.from_numpy(groups))
    assert set(fold) == set(range(cross_fitting.FOLDS))
    assert all(len(set(fold[groups == g])) == 1 for g in np.unique(groups))


@pytest.mark.parametrize("name", ["lowrank_fill", "mean_fill", "mvp"])
def test_repeated_patients_are_never_on_both_sides(model, name):
    _, X = model
    rng = np.random.default_rng(1)
    patients = rng.integers(100, size=300)
    fitted = small(methods.find(name)).fit(X, groups=patients)
    hidden = np.zeros((300, 2), bool)
    hidden[fitted.hidden_["row"], fitted.hidden_["view"]] = True
    assert 30 < hidden.sum() <= 60
    for p in np.unique(patients):
        assert len(np.unique(hidden[patients == p], axis=0)) == 1
    assert len(fitted.hidden_predictions_["at"]) == hidden.sum()
    assert "_groups" not in vars(fitted)
    with pytest.raises(ValueError, match=r"shape \(5,\); pass one group for each of 300 samples"):
        fitted.fit(X, groups=range(5))


def test_one_group_leaves_nothing_to_hide(model):
    _, X = model
    fitted = small(methods.find("lowrank_fill")).fit(X, groups=["all"] * 300)
    assert len(fitted.hidden_["row"]) == 0
