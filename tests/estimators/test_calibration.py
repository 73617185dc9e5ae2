"""Calibration: how far hidden views let the decoders be trusted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import laplace, norm, t

import vedute
from vedute.data.scaling import Scaler
from vedute.estimators.calibration import (
    LEVELS,
    NORMAL_REACH,
    PSEUDO,
    Calibration,
    Evidence,
    calibrate,
    mostly_one_value,
    reaches,
)
from vedute.methods import find
from vedute.metrics.scores import coverage
from vedute.nn.likelihoods import LIKELIHOODS


def told_of(truth, decoded, wander=0.0, std=1.0, mean=0.0, there=None, seen=1):
    """Evidence of a view: truth and decoded (m, d), draws that deviate `wander` times."""
    draws = decoded + wander * np.random.default_rng(0).normal(size=(16, *decoded.shape))
    m, d = decoded.shape
    there = np.ones((m, d), bool) if there is None else there
    seen = np.broadcast_to(seen, m)
    scaler = Scaler(np.zeros(d), np.ones(d), np.full(d, mean), std * np.ones(d))
    return Evidence(truth, decoded, draws.var(0), there, scaler, seen)


def normal(m=400, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(m, d))


def test_the_truth_is_not_shrunk():
    x = normal()
    (c,) = calibrate([told_of(x, x)])
    assert c.shrink == 1.0
    assert (c.noise < 0.05).all()


def test_noise_is_shrunk_away():
    (c,) = calibrate([told_of(normal(), normal(seed=1))])
    assert c.shrink < 0.05
    np.testing.assert_allclose(c.noise, 1.0, atol=0.1)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_shrinkage_is_the_regression_on_what_was_told(share):
    signal, noise = normal(), normal(seed=1)
    told = signal + np.sqrt((1 - share) / share) * noise  # its variance is 1 / share
    (c,) = calibrate([told_of(signal, told)])
    assert c.shrink == pytest.approx(share, abs=0.05)
    np.testing.assert_allclose(c.noise, np.sqrt(1 - share), atol=0.08)


def test_a_decoder_is_never_stretched_nor_turned_round():
    x = normal()
    assert calibrate([told_of(x, 0.5 * x)])[0].shrink == 1.0
    assert calibrate([told_of(x, -x)])[0].shrink == 0.0


def test_where_shrinking_is_not_asked_for_there_is_none():
    (c,) = calibrate([told_of(normal(), normal(seed=1))], shrinks=False)
    assert c.shrink == 1.0
    np.testing.assert_allclose(c.noise, np.sqrt(2), atol=0.15)


def test_noise_is_the_deviation_of_the_residuals_feature_by_feature():
    x, sizes = normal(4000), np.array([0.4, 0.5, 0.5, 1.0, 2.0])
    (c,) = calibrate([told_of(x, x - sizes * normal(4000, seed=1))], shrinks=False)
    np.testing.assert_allclose(c.noise, sizes, rtol=0.08)


def test_units_do_not_matter():
    x, told = normal(), 0.7 * normal() + 0.3 * normal(seed=1)
    (one,) = calibrate([told_of(x, told, wander=0.1)])
    (two,) = calibrate([told_of(30 * x + 7, 30 * told + 7, wander=3.0, std=30.0, mean=7.0)])
    assert two.shrink == pytest.approx(one.shrink)
    np.testing.assert_allclose(two.noise, 30 * one.noise)


def test_what_the_draws_explain_is_not_counted_twice():
    x = normal(2000)
    told = x - 0.5 * normal(2000, seed=1)
    (c,) = calibrate([told_of(x, told, wander=0.3)], shrinks=False)
    np.testing.assert_allclose(c.noise**2 + c.spread**2 * 0.3**2, 0.25, rtol=0.1)
    (wild,) = calibrate([told_of(x, told, wander=5.0)], shrinks=False)
    total = wild.noise**2 + wild.spread**2 * 25
    np.testing.assert_allclose(total, 0.25, rtol=0.25)


def test_without_evidence_the_noise_is_the_standard_deviation():
    nothing = told_of(np.zeros((0, 3)), np.zeros((0, 3)), std=2.5)
    for c in calibrate([nothing, nothing]):
        np.testing.assert_array_equal(c.noise, 2.5)
        assert c.spread == 1.0
        assert 0 <= c.shrink <= 1
    unseen = told_of(normal(9), normal(9), std=2.5, there=np.zeros((9, 5), bool))
    np.testing.assert_array_equal(calibrate([unseen])[0].noise, 2.5)


def test_a_view_with_few_instances_borrows_from_the_others():
    x = normal()
    good = told_of(x, x - 0.3 * normal(seed=1))
    nothing = told_of(np.zeros((0, 3)), np.zeros((0, 3)), std=2.0)
    alone = told_of(normal(2), normal(2, seed=1))
    known, unknown, few = calibrate([good, nothing, alone])
    assert known.shrink == pytest.approx(1 / 1.09, abs=0.05)
    assert unknown.shrink > 0.9
    assert few.shrink > 0.6
    assert (unknown.noise < 1.0).all()


def test_holes_and_constant_features_say_nothing():
    x, told = normal(), normal() - 0.4 * normal(seed=1)
    there = normal(seed=2) > 0
    junk = np.where(there, x, 1e6)
    one, two = (calibrate([told_of(t, told, there=there)])[0] for t in (x, junk))
    assert one.shrink == two.shrink
    np.testing.assert_array_equal(one.noise, two.noise)
    (c,) = calibrate([told_of(x, told, std=np.array([1.0, 1.0, 0.0, 1.0, 1.0]))])
    assert c.noise[2] == 0


def test_the_less_is_seen_the_less_is_known():
    x, seen = normal(4000), 1 + np.arange(4000) % 2
    told = x - np.where(seen == 1, 1.0, 0.5)[:, None] * normal(4000, seed=1)
    views = [told_of(x, told, seen=seen), *[told_of(np.zeros((0, 3)), np.zeros((0, 3)))] * 2]
    c = calibrate(views, shrinks=False)[0]
    np.testing.assert_allclose(c.noise_of(np.array([1, 2])).mean(1), [1.0, 0.5], rtol=0.08)
    assert c.by_seen[2] == 1.0  # nobody was hidden where all three are seen


def test_a_probability_has_the_variance_of_a_coin():
    p, noise = np.array([[0.0, 0.5, 0.9]]), np.ones((1, 3))
    coin, real = LIKELIHOODS["bernoulli"], LIKELIHOODS["normal"]
    np.testing.assert_allclose(coin.variance(p, 0 * p, noise), [[0.0, 0.25, 0.09]])
    np.testing.assert_allclose(real.variance(p, 0 * p, noise), noise)


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("method", ["mean_fill", "lowrank_fill"])
def test_intervals_cover_what_they_say(method, level):
    rng = np.random.default_rng(0)
    z, loadings = rng.normal(size=(600, 3)), rng.normal(size=(3, 24))
    x = 50 + 4 * (z @ loadings + 0.7 * rng.normal(size=(600, 24)))
    truth, hidden = np.split(x, 3, axis=1), np.zeros((600, 3), bool)
    hidden[::2, 0] = hidden[1::4, 1] = True
    X = [np.where(h[:, None], np.nan, t) for t, h in zip(truth, hidden.T, strict=True)]
    _, lower, upper = find(method)(random_state=0).fit(X).impute(X, interval=level)
    assert coverage(truth, lower, upper, hidden) == pytest.approx(level, abs=0.07)


# How far intervals reach.

HEAVY = {"student": t(3, scale=3**-0.5), "laplace": laplace(scale=2**-0.5), "normal": norm}


@pytest.mark.parametrize("name", HEAVY)
def test_reach_is_that_of_the_distribution_of_errors(name):
    far = np.abs(HEAVY[name].rvs(size=(20000, 5), random_state=0))
    (reach,) = reaches([far], [False])
    np.testing.assert_allclose(reach, HEAVY[name].ppf(0.5 + LEVELS / 2), rtol=0.06, atol=0.01)
    fresh = np.abs(HEAVY[name].rvs(size=(20000, 5), random_state=1))
    covered = [(fresh <= r).mean() for r in reach]
    np.testing.assert_allclose(covered, LEVELS, atol=0.01)


def test_reach_is_a_weighted_quantile_by_hand():
    rng = np.random.default_rng(0)
    views = [np.abs(rng.laplace(size=(m, 3))) for m in (30, 7)]
    found, own = reaches(views, [False, False]), []
    for far in views:
        n = len(far) + PSEUDO
        own.append(np.quantile(far * np.sqrt((n - 1) / (n - far**2)), LEVELS))
    common = (30 * own[0] + 7 * own[1] + PSEUDO * NORMAL_REACH) / (37 + PSEUDO)
    for reach, q, m in zip(found, own, (30, 7), strict=True):
        np.testing.assert_allclose(reach, (m * q + PSEUDO * common) / (m + PSEUDO))


def test_an_error_is_measured_by_the_noise_of_the_other_instances():
    """An error looks too small in units of a variance that includes it."""
    x = normal(30, 1)
    n = len(x) + PSEUDO
    variance = ((x**2).sum() + PSEUDO) / n
    without = ((x**2).sum() - x**2 + PSEUDO) / (n - 1)
    own = np.quantile(np.abs(x) / np.sqrt(without), LEVELS)
    (reach,) = reaches([np.abs(x) / np.sqrt(variance)], [False])
    common = (30 * own + PSEUDO * NORMAL_REACH) / n
    np.testing.assert_allclose(reach, (30 * own + PSEUDO * common) / n)


def test_few_instances_leave_the_reach_normal():
    none, unknown = np.zeros((0, 4)), np.full((5, 4), np.nan)
    for reach in reaches([none, unknown], [False, True]):
        np.testing.assert_allclose(reach, NORMAL_REACH)
    two = np.random.default_rng(0).uniform(0, 1, size=(2, 4000))  # however many entries they have
    (reach,) = reaches([two], [False])
    np.testing.assert_allclose(reach, NORMAL_REACH, rtol=0.12)


def test_reach_grows_with_the_level_and_knows_all_levels():
    far = np.abs(normal(40)) ** 3
    for reach in reaches([far, far[:3], np.zeros((9, 2))], [False, False, True]):
        assert (np.diff(reach) > 0).all()
        c = Calibration(1.0, 1.0, np.ones(2), np.ones(2), reach)
        np.testing.assert_allclose([c.reach_of(p) for p in LEVELS], reach)
        fine = [c.reach_of(p) for p in np.linspace(0.001, 0.9999, 300)]
        assert (np.diff(fine) > 0).all()
        assert fine[0] > 0
    plain = Calibration(1.0, 1.0, np.ones(2), np.ones(2))
    for level in (0.01, 0.5, 0.87, 0.9999):
        assert plain.reach_of(level) == pytest.approx(norm.ppf(0.5 + level / 2))


def test_holes_change_no_reach():
    far = np.abs(normal())
    holed = np.insert(far, [0, 9], np.nan, axis=0)
    np.testing.assert_array_equal(*(reaches([a], [False])[0] for a in (far, holed)))


def test_views_that_are_mostly_zero_are_known_and_never_below_the_normal():
    rare = np.where(normal() > 1, normal(seed=1), 0.0)
    assert mostly_one_value(rare)
    assert mostly_one_value(np.where(normal(seed=2) > 1, np.nan, rare))
    assert not mostly_one_value(normal())
    assert not mostly_one_value(np.round(normal()))
    assert not mostly_one_value(np.zeros((0, 3)))
    thin, dense = np.abs(rare), np.abs(normal())
    reach, beside = reaches([thin, dense], [True, False])
    assert (reach >= NORMAL_REACH).all()
    np.testing.assert_array_equal(beside, reaches([dense], [False])[0])  # it tells others nothing


def heavy(noise, n=3000):
    """Five views with noise, each hidden from a tenth of the samples: truth, X, hidden."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 20)) + noise(rng, (n, 20))
    truth = np.split(10 + 3 * x, 5, axis=1)
    hidden = np.eye(10, dtype=bool)[rng.integers(10, size=n), :5]
    X = [np.where(h[:, None], np.nan, a) for a, h in zip(truth, hidden.T, strict=True)]
    return truth, X, hidden


NOISE = {
    "student": lambda rng, size: rng.standard_t(2.5, size),
    "laplace": lambda rng, size: rng.laplace(size=size),
}


@pytest.mark.parametrize("noise", NOISE)
def test_intervals_cover_at_every_level_where_tails_are_heavy(noise):
    truth, X, hidden = heavy(NOISE[noise])
    model = find("lowrank_fill")(random_state=0).fit(X)
    for level in (0.2, 0.5, 0.8, 0.9, 0.95, 0.99):
        _, lower, upper = model.impute(X, interval=level)
        assert coverage(truth, lower, upper, hidden) == pytest.approx(level, abs=0.025)


def test_an_interval_of_rare_words_holds_the_zero():
    rng = np.random.default_rng(0)
    rate = np.exp(rng.normal(size=(400, 2)) @ rng.normal(size=(2, 80)) - 3)
    words = np.split(rng.poisson(rate).astype(float), 2, axis=1)
    hidden = np.zeros((400, 2), bool)
    hidden[::4, 0] = hidden[1::4, 1] = True
    X = [np.where(h[:, None], np.nan, w) for w, h in zip(words, hidden.T, strict=True)]
    model = find("lowrank_fill")(random_state=0, kinds="text").fit(X)
    for level in (0.5, 0.9):
        _, lower, upper = model.impute(X, interval=level)
        assert coverage(words, lower, upper, hidden) >= level
        zero = np.hstack([(low <= 0)[h] for low, h in zip(lower, hidden.T, strict=True)])
        assert zero.mean() > 0.8


def test_reach_is_kept_with_the_model_and_the_same_every_time(tmp_path):
    _, X, _ = heavy(NOISE["student"], 200)
    model, again = (find("lowrank_fill")(random_state=0).fit(X) for _ in range(2))
    model.save(tmp_path / "model")
    loaded = vedute.load(tmp_path / "model")
    for one, other, kept in zip(model.views_, again.views_, loaded.views_, strict=True):
        np.testing.assert_array_equal(one.calibration.reach, other.calibration.reach)
        np.testing.assert_array_equal(one.calibration.reach, kept.calibration.reach)
        assert (one.calibration.reach != NORMAL_REACH).any()
    for a, b in zip(model.impute(X, 0.5).upper, loaded.impute(X, 0.5).upper, strict=True):
        np.testing.assert_array_equal(a, b)


def test_probabilities_have_no_reach_of_their_own():
    rng = np.random.default_rng(0)
    X = [(rng.random((90, 4)) < 0.4).astype(float), rng.laplace(size=(90, 3))]
    flags, numbers = find("lowrank_fill")(random_state=0).fit(X).views_
    np.testing.assert_array_equal(flags.calibration.reach, NORMAL_REACH)
    assert (numbers.calibration.reach != NORMAL_REACH).any()
