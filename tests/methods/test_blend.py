"""Blend: weights of experts by hidden views, and what is made of them."""

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

import numpy as np
import pytest
import torch
from every_method import METHODS, small
from joblib import Parallel, delayed
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import vedute
from vedute.data.views import Views
from vedute.methods import blend
from vedute.methods.blend import Moments
from vedute.methods.fills.engine.components import narrowed
from vedute.methods.fills.engine.wide_table import Table

Blend = METHODS["blend"]


def views(n=120, seed=0):
    """Two views of the same three numbers, one of them linear; a third of each is missing."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    x = [z @ rng.normal(size=(3, 6)), np.tanh(z @ rng.normal(size=(3, 5)))]
    x = [a + 0.1 * rng.normal(size=a.shape) for a in x]
    for v, rows in enumerate(np.array_split(rng.permutation(n)[: 2 * n // 3], 2)):
        x[v][rows] = np.nan
    return x


def moments(seed, m=40, experts=3, width=4):
    """Moments of one view, with its truth and predictions."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(m, width))
    guess = truth + rng.normal(size=(experts, m, width)) * np.arange(1, experts + 1)[:, None, None]
    there, mean, std = np.ones((m, width), bool), np.zeros(width), np.ones(width)
    seen = np.zeros(m, int)
    return Moments.of(truth, guess, there, mean, std, seen), truth, guess


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_the_constrained_minimum(seed):
    rng = np.random.default_rng(seed)
    root, cross = rng.normal(size=(6, 3)), rng.normal(size=3) * 3
    gram = root.T @ root
    found = blend.minimum(gram, cross)
    assert (found >= 0).all()
    assert found.sum() <= 1 + 1e-9

    def loss(w):
        return w @ gram @ w - 2 * cross @ w

    room = {"type": "ineq", "fun": lambda w: 1 - w.sum()}
    tries = [minimize(loss, s, bounds=[(0, None)] * 3, constraints=room) for s in np.eye(3) / 2]
    assert loss(found) <= min(t.fun for t in tries) + 1e-6


def test_moments_give_the_squared_error_of_any_weights():
    found, truth, guess = moments(0)
    w = np.array([0.2, 0.3, 0.1])
    error = ((np.einsum("k,kmd->md", w, guess) - truth) ** 2).mean(1)
    by_moments = np.einsum("k,mkl,l->m", w, found.gram, w) - 2 * found.cross @ w
    assert_allclose(by_moments + (truth**2).mean(1), error)


def test_what_is_missing_or_constant_does_not_count():
    truth, guess = np.ones((2, 3)), np.ones((1, 2, 3))
    there = np.array([[True, False, True], [True, True, True]])
    poisoned = np.where(there, truth, 1e9)
    std = np.array([1.0, 1.0, 0.0])
    rest = guess, there, np.zeros(3), std, np.ones(2, int)
    plain, other = (Moments.of(t, *rest) for t in (truth, poisoned))
    assert_allclose(plain.cross, other.cross)
    assert_allclose(plain.gram[:, 0, 0], 1.0)


def test_the_better_expert_weighs_more_and_noise_nothing():
    found, truth, _ = moments(1, m=400)
    w = blend.fitted_weights([found])[0][0]
    assert w[0] > w[1] > w[2] >= 0
    noise = np.random.default_rng(2).normal(size=(1, *truth.shape))
    there, seen = np.ones_like(truth, bool), np.ones(len(truth), int)
    only = Moments.of(truth, noise, there, np.zeros(4), np.ones(4), seen)
    assert blend.fitted_weights([only])[0][0, 0] < 0.1


def test_a_view_without_evidence_has_the_weights_of_all():
    found, _, _ = moments(3)
    empty = Moments(*(part[:0] for part in found))
    weights, by_seen = blend.fitted_weights([found, empty])
    assert_allclose(weights[0], weights[1], rtol=1e-6)
    assert_allclose(by_seen[1], weights[[1, 1]])


def test_weights_by_the_number_of_observed_views():
    """One expert is right where one view is observed, the other where two are; where there is no
    evidence the weights are those of the view."""
    rng = np.random.default_rng(5)
    truth, seen = rng.normal(size=(600, 4)), np.repeat([1, 2], 300)
    wrong = rng.normal(size=(2, 600, 4))
    right = np.stack([seen == 1, seen == 2])[..., None]
    guess = np.where(right, truth, wrong)
    whole = np.ones_like(truth, bool), np.zeros(4), np.ones(4)
    found = Moments.of(truth, guess, *whole, seen)
    nothing = Moments(*(part[:0] for part in found))
    weights, by_seen = blend.fitted_weights([found, nothing, nothing])
    assert_allclose(weights[0], [0.5, 0.5], atol=0.05)
    assert by_seen[0, 1, 0] > 0.8 > 0.3 > by_seen[0, 1, 1]
    assert by_seen[0, 2, 1] > 0.8 > 0.3 > by_seen[0, 2, 0]
    assert_allclose(by_seen[0, 0], weights[0])


def test_cross_fitted_weights_do_not_depend_on_their_own_instance():
    found, _, _ = moments(4)
    other = found._replace(cross=found.cross.copy())
    other.cross[0] += 100.0
    fold = np.arange(len(found.gram)) % 5
    assert_allclose(*(blend.cross_fitted([m], [fold])[0][0] for m in (found, other)))


def test_values_are_the_weighted_ones_of_the_experts():
    x = views()
    model = small(Blend).fit(x)
    data = model.learner.scaled(x)
    parts = {name: expert.decode(data) for name, expert in model.experts_.items()}
    for v, (name, w) in enumerate(model.weights_.items()):
        assert set(w) == set(model.experts_), name
        assert sum(w.values()) <= 1 + 1e-9, name
        other = data.mask[:, 1 - v].long().numpy()
        each = enumerate(parts.values())
        mixed = sum(model.by_seen_[v, other, k][:, None] * p[v][0] for k, p in each)
        assert_allclose(model.decode(data)[v][0], mixed, atol=1e-5)  # means are zero


def test_it_is_no_worse_than_its_experts_on_views_that_nobody_saw():
    whole, seen = views(300), views(300)
    rng = np.random.default_rng(9)
    rows = np.flatnonzero(~np.isnan(seen[0]).any(1) & ~np.isnan(seen[1]).any(1))[:60]
    for i in rows:
        seen[rng.integers(2)][i] = np.nan
    hidden = [np.isnan(s) & ~np.isnan(w) for s, w in zip(seen, whole, strict=True)]

    def error(model):
        filled = model.fit(seen).impute(seen)
        return sum(((f - w)[h] ** 2).sum() for f, w, h in zip(filled, whole, hidden, strict=True))

    experts = ("lowrank_fill", "kernel_fill", "gaussian_fill")
    singles = [error(METHODS[k](random_state=0)) for k in experts]
    assert error(Blend(experts=experts, random_state=0)) <= 1.02 * min(singles)


def test_settings_of_experts_have_names_of_their_own():
    model = Blend().set_params(mvp__latent_dim=5, random_state=0)
    assert model.get_params()["mvp__latent_dim"] == 5
    assert model.expert_settings == {"mvp__latent_dim": 5}
    fitted = small(Blend).set_params(mvp__latent_dim=5).fit(views())
    assert fitted.embedding_.shape[1] == 5


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"experts": ("dcca",)}, "dcca cannot be an expert"),
        ({"experts": ("mvp", "mvp")}, "each once"),
        ({"expert_settings": {"mvp__depth": 3}}, "no such setting"),
        ({"expert_settings": {"knn_fill__n_neighbors": 3}}, "a setting of no expert"),
        ({"expert_settings": {"mvp__latent_dim": -1}}, "mvp__latent_dim: latent_dim must be"),
    ],
)
def test_wrong_experts_are_refused(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        Blend(**wrong).fit(views())


def test_a_saved_blend_imputes_the_same(tmp_path):
    x = views()
    model = small(Blend, n_clusters=3).fit(x)
    model.save(tmp_path / "m")
    again = vedute.load(tmp_path / "m")
    for a, b in zip(model.impute(x), again.impute(x), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(model.predict(x), again.predict(x))
    assert again.weights_ == model.weights_


def test_of_images_the_first_expert_alone_is_asked():
    rng = np.random.default_rng(0)
    x = [rng.integers(0, 255, (40, 8, 8), dtype=np.uint8) for _ in range(2)]
    missing = vedute.drop_views(x, 0.5, 0)
    model = small(Blend, expert_settings={"mvp__steps": 3, "mvp__network": "mlp"}).fit(missing)
    assert list(model.experts_) == ["mvp"]


def test_regressions_start_from_what_the_first_expert_infers():
    x = views()
    model = small(Blend).fit(x)
    first, kernel = model.experts_["mvp"], model.experts_["kernel_fill"]
    assert kernel.warm_start is first
    data = model.learner.scaled(x)
    small_table = narrowed(Table.of_views(data, kernel.scalers), kernel.bases_)
    started, seen = kernel._initialized(small_table), small_table.seen()
    assert_allclose(started[seen], small_table.x[seen])
    parts = []
    for v, decoded in enumerate(first.decode(data)):  # views are narrow: no components, mean 0
        scaler = model.views_[v].scaler
        typical = np.sqrt((scaler.std**2).mean() * scaler.std.size)
        parts.append((decoded[0] - scaler.mean) / typical)
    assert_allclose(started[~seen], np.hstack(parts)[~seen], atol=1e-5)


def holed(n=200, seed=0):
    """Two views of four numbers, with a tenth of the entries gone; and complete."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 4))
    truth = [z @ rng.normal(size=(4, 7)) + 0.2 * rng.normal(size=(n, 7)) for _ in range(2)]
    return [np.where(rng.random(x.shape) < 0.1, np.nan, x) for x in truth], truth


def test_holes_have_weights_and_intervals_of_their_own(tmp_path):
    X, truth = holed()
    model = Blend(experts=("mean_fill", "gaussian_fill"), random_state=0).fit(X)
    assert model.hole_weights_.keys() == model.weights_.keys()
    for row in model.hole_weights_.values():
        assert row["gaussian_fill"] > 0.8 > 0.2 > row["mean_fill"]
    mean, low, high = (np.hstack(end) for end in model.impute(X, interval=0.9))
    hole, whole = np.isnan(np.hstack(X)), np.hstack(truth)
    assert ((mean - whole)[hole] ** 2).mean() < 0.15 * whole.var()
    assert 0.84 < ((low <= whole) & (whole <= high))[hole].mean() < 0.96
    model.save(tmp_path / "model")
    again = vedute.load(tmp_path / "model")
    assert again.hole_weights_ == model.hole_weights_
    for a, b in zip(again.impute(X, interval=0.9), model.impute(X, interval=0.9), strict=True):
        np.testing.assert_array_equal(np.hstack(a), np.hstack(b))


def test_without_holes_there_are_no_weights_for_them():
    model = Blend(experts=("mean_fill", "lowrank_fill"), random_state=0).fit(views())
    assert model.hole_weights_ == {}
    assert all(view.at_holes is None for view in model.views_)


def test_what_is_in_holes_changes_nothing():
    X, _ = holed(80)
    clean = vedute.Views.of(X)
    poison = tuple(a.masked_fill(h, 1e4) for a, h in zip(clean.x, clean.holes, strict=True))
    settings = dict(experts=("lowrank_fill", "kernel_fill"), random_state=0)
    one, two = (Blend(**settings).fit(d) for d in (clean, replace(clean, x=poison)))
    assert one.hole_weights_ == two.hole_weights_
    for a, b in zip(one.impute(X), two.impute(X), strict=True):
        np.testing.assert_array_equal(a, b)


# Experts that learn beside this process.


@pytest.fixture
def apart(monkeypatch):
    """Simulate large data and a process with two threads."""
    monkeypatch.setattr(blend, "pays", lambda data: True)


@pytest.mark.slow
def test_experts_in_processes_of_their_own_learn_the_same(apart):
    X = views()
    beside = small(Blend).fit(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blend, "pays", lambda data: False)
        here = small(Blend).fit(X)
    for a, b in zip(beside.impute(X), here.impute(X), strict=True):
        assert_allclose(a, b, atol=1e-6)


def test_experts_learn_here_where_their_processes_are_killed(apart, monkeypatch):
    class Killed:
        def __iter__(self):
            raise BrokenProcessPool("killed")

    X = views()
    parallel = lambda **_: lambda tasks: Killed()  # noqa: E731
    monkeypatch.setattr(blend, "Parallel", parallel)
    model = small(Blend).fit(X)
    assert not np.isnan(model.impute(X)[0]).any()


def test_callbacks_hear_an_expert_that_would_have_learned_elsewhere(apart):
    heard = []
    model = small(Blend, experts=("lowrank_fill", "mvp"), callbacks=[heard.append]).fit(views())
    kept = [r["terms"] for r in model.experts_["mvp"].history_]
    assert [r["terms"] for r in heard] == kept


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.all)])
def test_fits_inside_workers_of_joblib_are_the_same(apart, backend):
    X = views()
    fits = [delayed(_imputed)(X, True), delayed(_imputed)(X, True)]
    both = Parallel(n_jobs=1 if backend == "threading" else 2, backend=backend)(fits)
    with ThreadPoolExecutor(1) as threads:
        both.append(threads.submit(_imputed, X, True).result())
    for found in both:
        assert_allclose(found, _imputed(X, False), atol=1e-6)


def _imputed(X, beside):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blend, "pays", lambda data: beside)
        return small(Blend).fit(X).impute(X)[0]


def test_one_thread_means_one_process():
    large, tiny = (Views.of([np.zeros((1000, w))] * 2) for w in (500, 5))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert not blend.pays(large)
        torch.set_num_threads(2)
        assert blend.pays(large)
        assert not blend.pays(tiny)
    finally:
        torch.set_num_threads(before)


# Experts that fail.


def failing(monkeypatch, *names, times=1, verb="learn", error=np.linalg.LinAlgError):
    """Make a verb of these methods fail from its n-th call on; subclasses count separately."""
    calls = dict.fromkeys(names, 0)
    for name in names:
        cls, works = METHODS[name], getattr(METHODS[name], verb)

        def fails(self, *given, name=name, works=works):
            calls[name] += 1
            if calls[name] >= times:
                raise error(f"{name} cannot")
            return works(self, *given)

        monkeypatch.setattr(cls, verb, fails)


@pytest.mark.parametrize(
    ("name", "verb", "error"),
    [
        ("mvp", "learn", FloatingPointError),
        ("mvp", "decode", RuntimeError),
        ("kernel_fill", "learn", MemoryError),
        ("gaussian_fill", "learn", ValueError),
        ("gaussian_fill", "decode", np.linalg.LinAlgError),
    ],
)
def test_an_expert_that_fails_is_left_out(name, verb, error, monkeypatch, tmp_path):
    X = views()
    failing(monkeypatch, name, verb=verb, error=error)
    with pytest.warns(UserWarning, match=f"goes on without {name} .*{name} cannot"):
        model = small(Blend, n_clusters=2).fit(X)
    assert name not in model.experts_
    assert len(model.experts_) == 3
    assert model.left_out_ == {name: f"{error.__name__}: {name} cannot"}
    assert all(name not in weights for weights in model.weights_.values())
    filled = model.impute(X)
    assert all(np.isfinite(a).all() for a in filled)
    model.save(tmp_path / "model")
    again = vedute.load(tmp_path / "model")
    assert again.left_out_ == model.left_out_
    for a, b in zip(again.impute(X), filled, strict=True):
        assert_allclose(a, b)


@pytest.mark.parametrize("many", [False, True])
def test_the_others_are_those_of_a_blend_without_the_failed_one(many, monkeypatch):
    monkeypatch.setattr(blend, "pays", lambda data: many)
    X, experts = views(), ("lowrank_fill", "kernel_fill", "gaussian_fill")
    without = small(Blend, experts=experts[:2], expert_settings=None).fit(X).impute(X)
    failing(monkeypatch, "gaussian_fill")
    with pytest.warns(UserWarning, match="without gaussian_fill"):
        found = small(Blend, experts=experts, expert_settings=None).fit(X).impute(X)
    for a, b in zip(found, without, strict=True):
        assert_allclose(a, b)


def test_values_that_are_not_finite_are_a_failure(monkeypatch):
    plain = METHODS["kernel_fill"].decode
    broken = lambda self, *given: [np.full_like(a, np.nan) for a in plain(self, *given)]  # noqa: E731
    monkeypatch.setattr(METHODS["kernel_fill"], "decode", broken)
    with pytest.warns(UserWarning, match=r"without kernel_fill .*not finite"):
        model = small(Blend).fit(views())
    assert "kernel_fill" not in model.experts_


def test_an_expert_that_fails_to_learn_again_stays_as_it_was(monkeypatch):
    X = views()
    failing(monkeypatch, "gaussian_fill", times=2)
    with pytest.warns(UserWarning, match="gaussian_fill could not be refitted .*first fit"):
        model = small(Blend, experts=("lowrank_fill", "gaussian_fill"), expert_settings=None).fit(X)
    assert [*model.experts_] == ["lowrank_fill", "gaussian_fill"]
    assert model.left_out_ == {}
    assert np.isfinite(model.impute(X)[0]).all()


def test_where_all_experts_fail_one_sentence_says_why(monkeypatch):
    names = ("lowrank_fill", "gaussian_fill")
    failing(monkeypatch, *names)
    sentence = "no expert of Blend could learn: .*lowrank_fill cannot.*gaussian_fill cannot"
    with pytest.raises(ValueError, match=sentence):
        small(Blend, experts=names, expert_settings=None).fit(views())
    with pytest.raises(np.linalg.LinAlgError, match="lowrank_fill cannot"):
        small(Blend, experts=names[:1], expert_settings=None).fit(views())


def test_errors_that_are_the_users_are_raised(tmp_path):
    def call(record):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        small(Blend, callbacks=[call]).fit(views())
    with pytest.raises(ValueError, match="checkpoint needs random_state"):
        small(Blend, checkpoint=tmp_path, random_state=None).fit(views())
    with pytest.raises(ValueError, match="hidden names"):
        small(Blend, expert_settings={"mvp__hidden": {"a": [8]}}).fit(views())


def test_a_view_whose_entries_cannot_be_hidden():
    """Each row has one value of it, which is its last."""
    x = views(60)
    columns = np.arange(60)[:, None] % 2 == np.arange(2)
    rare = np.where(columns & np.isfinite(x[1]).all(1, keepdims=True), x[1][:, :2], np.nan)
    model = small(Blend).fit([x[0], rare])
    assert all(np.isfinite(a).all() for a in model.impute([x[0], rare]))
