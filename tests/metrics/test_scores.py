"""Scores against closed forms and brute force."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm

from vedute.metrics.scores import (
    clustering_accuracy,
    clustering_scores,
    coverage,
    crps,
    imputation_error,
    imputation_errors_by_view,
    instance_errors,
    normal_crps,
    sample_crps,
)


def test_accuracy_is_the_best_over_all_matchings() -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        y, labels = rng.integers(4, size=(2, 30))
        best = max((np.array(p)[labels] == y).mean() for p in permutations(range(4)))
        assert clustering_accuracy(y, labels) == pytest.approx(best)


@pytest.mark.parametrize(
    ("y", "labels", "accuracy"),
    [
        ([0, 0, 1, 1], [0, 1, 2, 3], 0.5),  # more clusters than classes
        ([0, 0, 0, 1, 2, 3], [5, 5, 5, 5, 5, 5], 0.5),  # fewer
        ([10, 10, 30, 30], [-1, -1, 7, 7], 1.0),  # gaps
        (["a", "a", "b"], [True, True, False], 1.0),
        (["a", "a", "b"], ["b", "b", "a"], 1.0),
        ([0.5, 0.5, 2.5], np.array(["x", "x", "y"], object), 1.0),
    ],
)
def test_accuracy_of_any_number_and_kind_of_labels(
    y: list[object], labels: list[object], accuracy: float
) -> None:
    assert clustering_accuracy(y, labels) == accuracy


def test_scores_are_one_for_renamed_classes_and_near_zero_for_chance() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=2000)
    assert clustering_scores(y, np.array(list("vwxyz"))[y]) == pytest.approx(
        {"acc": 1.0, "nmi": 1.0, "ari": 1.0}
    )
    chance = clustering_scores(y, rng.integers(5, size=2000))
    assert chance["acc"] < 0.3
    assert chance["nmi"] < 0.02
    assert abs(chance["ari"]) < 0.02


def test_labels_must_be_one_per_sample() -> None:
    for y, labels in (([0, 1], [0]), ([], []), ([[0], [1]], [[0], [1]])):
        with pytest.raises(ValueError, match="one class and one cluster per sample"):
            clustering_accuracy(y, labels)


def test_filling_with_the_mean_has_error_one() -> None:
    rng = np.random.default_rng(0)
    truth = [rng.normal(5, s, size=(50, d)) for s, d in ((1, 3), (100, 4))]
    means = [np.broadcast_to(x.mean(0), x.shape) for x in truth]
    everything = np.ones((50, 2), bool)
    assert imputation_error(truth, means, everything) == pytest.approx(1.0)
    assert imputation_errors_by_view(truth, means, everything) == pytest.approx([1.0, 1.0])
    assert imputation_error(truth, truth, everything) == 0.0


def test_error_is_free_of_units_and_weighs_every_instance_equally() -> None:
    rng = np.random.default_rng(0)
    truth = [rng.normal(size=(9, 3)), rng.normal(size=(9, 2, 2))]
    filled = [x + rng.normal(size=x.shape) for x in truth]
    hidden = rng.random((9, 2)) < 0.5
    slow = []
    for i, v in zip(*np.nonzero(hidden), strict=True):
        std = truth[v].std(0)
        slow.append((((filled[v][i] - truth[v][i]) / std) ** 2).mean())
    error = imputation_error(truth, filled, hidden)
    assert error == pytest.approx(np.mean(slow))
    scaled = [[1e6 + 1000 * x for x in views] for views in (truth, filled)]
    assert imputation_error(*scaled, hidden) == pytest.approx(error)
    stds = [x.std(0) for x in truth]
    assert imputation_error(truth, filled, hidden, stds) == pytest.approx(error)
    assert imputation_error(truth, filled, hidden, [2 * s for s in stds]) == pytest.approx(
        error / 4
    )


def test_only_hidden_instances_count() -> None:
    truth = [np.array([[0.0], [2.0], [4.0]]), np.array([[1.0], [2.0], [3.0]])]
    filled = [np.array([[np.nan], [99.0], [4.0]]), truth[1]]
    hidden = np.array([[False, True], [False, True], [True, False]])
    assert imputation_error(truth, filled, hidden) == 0.0
    errors = instance_errors(truth, filled, hidden)
    assert (np.isnan(errors) == ~hidden).all()


def test_constant_features_and_unknown_truth_are_left_out() -> None:
    truth = np.array([[0.1, 0.0, np.nan], [0.1, 2.0, np.nan], [0.1, np.nan, np.nan]], np.float32)
    filled = np.array([[7.0, 1.0, 5.0], [7.0, 2.0, 5.0], [7.0, 3.0, 5.0]])
    errors = instance_errors([truth], [filled], np.ones((3, 1)))
    assert errors[:, 0] == pytest.approx([1.0, 0.0, np.nan], nan_ok=True)
    assert imputation_error([truth], [filled], np.ones((3, 1))) == pytest.approx(0.5)


def test_nothing_hidden_has_no_error() -> None:
    x = [np.eye(3), np.eye(3)]
    nothing = np.zeros((3, 2), bool)
    assert np.isnan(imputation_error(x, x, nothing))
    nothing[0, 1] = True
    by_view = imputation_errors_by_view(x, x, nothing)
    assert np.isnan(by_view[0])
    assert by_view[1] == 0


def test_what_cannot_be_scored_is_refused() -> None:
    x, hidden = [np.eye(3)], np.ones((3, 1), bool)
    with pytest.raises(ValueError, match="filled view 0 is NaN where it was hidden; impute"):
        imputation_error(x, [np.full((3, 3), np.nan)], hidden)
    with pytest.raises(ValueError, match=r"hidden has shape \(3, 2\)"):
        imputation_error(x, x, np.ones((3, 2)))
    with pytest.raises(ValueError, match="equal shapes"):
        imputation_error(x, [np.ones((3, 2))], hidden)
    with pytest.raises(ValueError, match="pass L arrays"):
        coverage(x, x, [], hidden)


def test_coverage_of_exact_intervals_is_their_level() -> None:
    rng = np.random.default_rng(0)
    truth = [rng.normal(size=(2000, 3)), rng.normal(size=(2000, 5))]
    low, high = ([np.full_like(x, s * 1.6449) for x in truth] for s in (-1, 1))
    hidden = rng.random((2000, 2)) < 0.5
    assert coverage(truth, low, high, hidden) == pytest.approx(0.90, abs=0.01)


def test_coverage_weighs_instances_not_entries() -> None:
    truth = [np.zeros((1, 4)), np.array([[5.0, np.nan]])]
    low, high = [np.zeros((1, 4)), -np.ones((1, 2))], [np.zeros((1, 4)), np.ones((1, 2))]
    assert coverage(truth, low, high, np.ones((1, 2))) == 0.5
    unbounded = [np.full((1, 4), np.inf), np.full((1, 2), np.inf)]
    assert coverage(truth, [-x for x in unbounded], unbounded, np.ones((1, 2))) == 1.0


def test_dicts_are_compared_by_name() -> None:
    truth = {"a": np.arange(6.0).reshape(3, 2), "b": np.arange(3.0)[:, None]}
    turned = {"b": truth["b"] + 1, "a": truth["a"]}
    hidden = np.ones((3, 2), bool)
    error = imputation_error(truth, turned, hidden)
    assert error == imputation_error(list(truth.values()), [truth["a"], truth["b"] + 1], hidden) > 0
    assert coverage(truth, turned, turned, hidden) == 0.5
    with pytest.raises(ValueError, match=r"views are a; the true ones differ, pass the same"):
        imputation_error(truth, {"a": truth["a"]}, hidden)


def test_crps_of_a_normal_is_its_integral_and_that_of_its_draws() -> None:
    grid = np.linspace(-30, 30, 60_001)
    rng = np.random.default_rng(0)
    for x, mean, std in ((0.3, 0.0, 1.0), (-2.0, 1.0, 0.5), (4.0, 1.0, 3.0)):
        # the definition: the squared distance of both distribution functions
        squared = (norm.cdf(grid, mean, std) - (grid >= x)) ** 2
        score = normal_crps(x, mean, std)
        assert score == pytest.approx(trapezoid(squared, grid), abs=1e-3)
        draws = rng.normal(mean, std, size=200_000)
        assert sample_crps(x, draws) == pytest.approx(float(score), abs=0.01)
    assert normal_crps(3.0, 1.0, 0.0) == 2.0


def test_crps_of_draws_is_the_mean_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    x, draws = rng.normal(size=(4, 3)), rng.normal(size=(7, 4, 3))
    apart = np.abs(draws[:, None] - draws).mean((0, 1))
    slow = np.abs(draws - x).mean(0) - apart / 2
    np.testing.assert_allclose(sample_crps(x, draws), slow, atol=1e-12)


def test_crps_of_intervals_is_that_of_their_normals_whatever_the_units() -> None:
    rng = np.random.default_rng(0)
    truth = [rng.normal(5, 2, size=(4000, 3)), rng.normal(0, 1e6, size=(4000, 2))]
    mean = [np.full_like(x, x.mean()) for x in truth]
    wide = [norm.ppf(0.95) * x.std() for x in truth]
    low, high = ([m + k * w for m, w in zip(mean, wide, strict=True)] for k in (-1, 1))
    hidden = rng.random((4000, 2)) < 0.5
    known = crps(truth, mean, low, high, hidden, 0.9)
    assert known == pytest.approx(1 / np.sqrt(np.pi), abs=0.01)
    cut = [np.maximum(a, m) for a, m in zip(low, mean, strict=True)]  # to what is possible
    assert crps(truth, mean, cut, high, hidden, 0.9) == pytest.approx(known)
    poisoned = [np.where(h[:, None], m, 1e9) for m, h in zip(mean, hidden.T, strict=True)]
    assert crps(truth, poisoned, low, high, hidden, 0.9) == known
    truth[0][hidden[:, 0], 0] = np.nan
    assert np.isfinite(crps(truth, mean, low, high, hidden, 0.9))
