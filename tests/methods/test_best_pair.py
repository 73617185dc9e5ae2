"""BestPair: which two views, what becomes of the others, and of samples with neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from shell import done
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import vedute
from vedute.data import missing
from vedute.data.views import Views
from vedute.estimators import clustering
from vedute.estimators.base import Estimator
from vedute.methods import find
from vedute.methods.best_pair import BestPair, cluster_quality, for_views
from vedute.methods.deep.completer import Completer
from vedute.methods.deep.dcca import DCCA
from vedute.methods.deep.dccae import DCCAE
from vedute.metrics import scores

SMALL = dict(latent_dim=3, hidden=(16,), steps=40, batch_size=64)
METHODS = ["dcca", "dccae", "completer"]
every_method = pytest.mark.parametrize("name", METHODS)


def small(name, **settings):
    slower = dict(map_hidden=(16,), latent_dim=8, warmup=40, steps=150, lr=3e-3)
    return find(name)(**(SMALL | (slower if name == "completer" else {}) | settings))


def blobs(n=240, seed=0, classes=2, widths=(6, 5, 4), noise=(0.3, 0.3, 0.3)):
    """Views that show the class, more or less: arrays and labels."""
    centers = 2 * np.random.default_rng(9).normal(size=(classes, sum(widths)))
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    level = np.repeat(noise, widths)
    x = centers[y] * (level < 9) + level * rng.normal(size=(n, sum(widths)))
    return np.split(x, np.cumsum(widths)[:-1], axis=1), y


def gaps(X, rate=0.5, seed=1):
    """Views with some of them missing."""
    return missing.drop_views(Views.of(X), rate, seed)


# Two views: what holds for every method that takes two.


@every_method
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_two_blobs_are_found_with_half_of_the_samples_incomplete(name, rate):
    X, y = blobs(widths=(6, 5), noise=(0.3, 0.3))
    model = small(name, n_clusters=2, random_state=0).fit(gaps(X, rate))
    assert scores.clustering_accuracy(y, model.labels_) > 0.95
    new, truth = blobs(60, seed=5, widths=(6, 5), noise=(0.3, 0.3))
    assert scores.clustering_accuracy(truth, model.predict(gaps(new, rate))) > 0.95


@every_method
def test_fewer_complete_samples_than_a_batch_will_do(name):
    X, _ = blobs(40, widths=(6, 5), noise=(0.3, 0.3))
    data = gaps(X, 0.8)
    assert int(data.mask.all(1).sum()) == 8
    model = small(name, batch_size=64, random_state=0).fit(data)
    assert np.isfinite(model.embedding_).all()


@every_method
def test_the_order_of_the_views_does_not_matter_much(name):
    X, y = blobs(widths=(6, 5), noise=(0.3, 0.3))
    data = gaps(X)
    for views in (data, data.pick(1, 0)):
        labels = small(name, n_clusters=2, random_state=0).fit(views).labels_
        assert scores.clustering_accuracy(y, labels) > 0.95


@every_method
def test_more_or_fewer_views_are_refused_with_the_way_out(name):
    cls = find(name).__name__
    X, _ = blobs()
    for some, mend in (
        (X, rf"BestPair\({cls}\(\.\.\.\)\) takes two of more"),
        (X[:1], "pass one more"),
    ):
        with pytest.raises(ValueError, match=f"{cls} takes two views, X has {len(some)}; {mend}"):
            small(name).fit(some)


# The choice.


@pytest.mark.slow
@pytest.mark.parametrize("select", ["stability", "hidden", "labels"])
@every_method
def test_a_view_of_noise_is_not_chosen(name, select):
    X, y = blobs(classes=10, noise=(0.2, 10.0, 0.2))
    model = BestPair(small(name), select=select, n_clusters=10, random_state=0)
    if name == "dcca" and select == "hidden":
        with pytest.raises(TypeError, match="DCCA cannot predict hidden views"):
            model.fit(gaps(X))
        return
    model.fit(gaps(X, 0.2), y)
    assert model.chosen() == (0, 2)
    assert list(model.scores_) == ["view0+view1", "view0+view2", "view1+view2"]
    assert max(model.scores_, key=model.scores_.get) == "view0+view2"


def test_pairs_are_judged_by_the_number_of_clusters_that_is_asked_for():
    z = np.concatenate(blobs(classes=3)[0], axis=1)
    assert cluster_quality(z, 3, 0)[0] == round(clustering.stability(z, 3, 0), 5) == 1.0
    assert cluster_quality(z, 3, 0)[1] == round(clustering.separation(z, 3, 0), 5)
    for no_number in (None, "auto"):
        assert cluster_quality(z, no_number, 0)[0] == round(clustering.stability(z, 10, 0), 5) < 1.0


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_of_equally_stable_pairs_the_best_separated_is_taken(order):
    """All are perfectly stable; whatever the order of views, the two with less noise are chosen."""
    X, _ = blobs(classes=2, noise=(0.8, 0.2, 0.2))
    data = {f"view{v}": X[v] for v in order}
    model = BestPair(small("dccae"), n_clusters=2, random_state=0).fit(data)
    assert set(model.scores_.values()) == {1.0}
    assert {list(data)[v] for v in model.chosen()} == {"view1", "view2"}


def test_hidden_views_choose_only_where_some_can_be_hidden():
    X, _ = blobs(9)
    with pytest.raises(ValueError, match="too few views can be hidden to choose by; set select="):
        BestPair(small("dccae"), select="hidden", random_state=0).fit(X)


def test_labels_choose_only_when_asked():
    X, y = blobs(classes=4)
    junk = np.random.default_rng(0).permutation(y)
    plain = BestPair(small("dcca"), n_clusters=4, random_state=0).fit(X)
    np.testing.assert_array_equal(
        BestPair(small("dcca"), n_clusters=4, random_state=0).fit(X, junk).embedding_,
        plain.embedding_,
    )
    asked = BestPair(small("dcca"), select="labels", n_clusters=4, random_state=0).fit(X, y)
    assert max(asked.scores_.values()) == scores.clustering_accuracy(y, asked.labels_)


def test_a_named_pair_is_taken_and_two_views_are_the_method_itself():
    X, _ = blobs()
    model = BestPair(small("dcca"), pair=("view2", "view0"), random_state=3).fit(X)
    assert model.chosen() == (0, 2)
    assert model.scores_ == {}
    alone = small("dcca", random_state=3).fit([X[0], X[2]])
    np.testing.assert_array_equal(model.embedding_, alone.embedding_)
    two = BestPair(small("dcca"), random_state=3).fit([X[0], X[2]])
    np.testing.assert_array_equal(two.embedding_, alone.embedding_)


def test_pairs_that_never_meet_are_passed_over():
    X, _ = blobs()
    mask = np.ones((240, 3), bool)
    mask[:120, 1] = mask[120:, 0] = False
    model = BestPair(small("dcca"), random_state=0).fit(Views.of(X, mask=mask))
    assert set(model.scores_) == {"view0+view2", "view1+view2"}
    mask = np.arange(240)[:, None] % 3 == np.arange(3)
    with pytest.raises(ValueError, match="no two views are observed together in 2 or more"):
        BestPair(small("dcca")).fit(Views.of(X, mask=mask))


# The rest: other views, samples with neither, saving.


@pytest.fixture(scope="module")
def blind():
    """A fitted model, its views, and which rows have neither view of the pair (0, 2)."""
    X, _ = blobs(classes=3)
    mask = np.ones((240, 3), bool)
    mask[:50, [0, 2]], mask[50:90, 0], mask[90:130, 2] = False, False, False
    data = Views.of(X, mask=mask)
    method = DCCAE(**SMALL | dict(steps=150, rec_weight=0.05))
    model = BestPair(method, pair=("view0", "view2"), n_clusters=3, random_state=0)
    return model.fit(data), data, np.arange(240) < 50


def test_samples_with_neither_view_get_the_mean_the_largest_cluster_and_mean_fill(blind):
    model, data, neither = blind
    z, labels = model.transform(data), model.predict(data)
    np.testing.assert_allclose(z[neither], np.tile(z[~neither].mean(0), (50, 1)), atol=1e-5)
    largest = np.bincount(labels[~neither]).argmax()
    assert (labels[neither] == largest).all()
    np.testing.assert_array_equal(labels, model.labels_)
    filled = model.impute(data)
    for v in (0, 2):
        mean = data.x[v][data.mask[:, v]].mean(0).expand(50, -1)
        torch.testing.assert_close(filled.x[v][neither].float(), mean, rtol=0, atol=1e-4)
    assert np.isfinite(model.transform(data[:3])).all()
    assert (model.predict(data[:3]) == largest).all()


def test_views_outside_the_pair_are_neither_looked_at_nor_told(blind):
    model, data, neither = blind
    less = data[~neither].hide(torch.tensor([False, True, False]).expand(190, 3))
    np.testing.assert_array_equal(model.transform(less), model.transform(data[~neither]))
    mean = data.x[1].mean(0).expand(190, -1)
    torch.testing.assert_close(model.impute(less).x[1].float(), mean, rtol=0, atol=1e-4)
    assert model.r2_["view1"] == pytest.approx(0, abs=0.1)
    assert model.r2_["view0"] > 0.3
    assert 0 < model.score(data) < 1


def test_a_loaded_pair_says_the_same(blind, tmp_path):
    model, data, _ = blind
    model.save(tmp_path)
    loaded = vedute.load(tmp_path)
    assert isinstance(loaded, BestPair)
    assert isinstance(loaded.method, DCCAE)
    assert loaded.method.get_params() == model.method.get_params()
    assert loaded.pair == ("view0", "view2")
    assert loaded.chosen() == model.chosen()
    np.testing.assert_array_equal(loaded.transform(data), model.transform(data))
    np.testing.assert_array_equal(loaded.predict(data), model.predict(data))
    for a, b in zip(loaded.impute(data).x, model.impute(data).x, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    refit = clone(loaded).fit(data)
    np.testing.assert_array_equal(refit.embedding_, model.embedding_)


@dataclass(kw_only=True, eq=False, repr=False)
class Sign(Estimator):
    """Two clusters by the sign of the first number; knows its training rows by their index."""

    two_views: ClassVar[bool] = True
    generative: ClassVar[bool] = False
    soft: ClassVar[bool] = True

    def learn(self, data, held, context):
        assert data.mask.any(1).all()
        assert data.index.tolist() == list(range(len(data)))
        self.weights_ = np.ones(1)

    def embed(self, data):
        return data.x[0][:, :1].numpy()

    def soft_labels(self, data):
        p = 1 / (1 + np.exp(-10 * self.embed(data)))
        return np.hstack([1 - p, p]).astype(np.float32)


def test_a_method_with_clusters_of_its_own_keeps_them():
    X, y = blobs()
    mask = np.ones((240, 3), bool)
    mask[:30, :2] = mask[100:160, 0] = False
    data = Views.of(X, mask=mask)
    model = BestPair(Sign(), pair=("view0", "view1"), n_clusters=2, random_state=0).fit(data)
    soft = model.predict_proba(data)
    np.testing.assert_array_equal(soft.argmax(1), model.labels_)
    np.testing.assert_array_equal(soft[:30], np.tile(soft[0], (30, 1)))
    assert soft[0].max() == 1
    assert "centers_" not in vars(model)
    seen = mask[:, 0]
    assert adjusted_rand_score(y[seen], model.labels_[seen]) > 0.9


# Settings.


def test_shared_settings_stand_beside_the_method():
    X, y = blobs(60)
    for wrong, told in (
        (BestPair(DCCA(n_clusters=3)), r"n_clusters is set beside the method: BestPair\(DCCA\("),
        (BestPair(DCCA(random_state=3)), "random_state is set beside the method"),
        (BestPair(DCCA(), select="best"), "select must be one of stability, hidden, labels"),
        (BestPair(DCCA(), pair=("view0", "sound")), "pair names two of view0, view1, view2, got"),
        (BestPair(DCCA(), select="labels", n_clusters=3), 'select="labels" takes a number of clus'),
        (BestPair(DCCA(steps=0)), "steps must be at least 1, got 0"),
        (BestPair(Completer(), scaling="standard"), "choose scaling='minmax' or output='linear'"),
    ):
        with pytest.raises(ValueError, match=told):
            wrong.fit(X)
    with pytest.raises(ValueError, match=r"y has shape \(3,\); expected one label per sample"):
        BestPair(DCCA(), select="labels", n_clusters=3).fit(X, y[:3])


def test_scaling_is_that_of_the_method_unless_it_is_set():
    X, _ = blobs(60)
    low = (
        BestPair(small("completer", steps=2), pair=("view0", "view1")).fit(X).views_[0].scaler.shift
    )
    np.testing.assert_allclose(low, X[0].min(0))
    mean = BestPair(small("dcca", steps=2), pair=("view0", "view1")).fit(X).views_[0].scaler.shift
    np.testing.assert_allclose(mean, X[0].mean(0))


def test_estimators_are_wrapped_where_there_are_more_than_two_views():
    method = DCCA(n_clusters=3, random_state=1, ridge=0.1)
    assert for_views(method, 2) is method
    assert for_views(method, 1) is method
    several = find("mvp")()
    assert for_views(several, 5) is several
    wrapped = for_views(method, 3)
    assert isinstance(wrapped, BestPair)
    assert (wrapped.n_clusters, wrapped.random_state) == (3, 1)
    assert wrapped.method.n_clusters is None
    assert wrapped.unwrapped().get_params() == method.get_params()


def test_each_pair_has_a_checkpoint_of_its_own(tmp_path):
    X, _ = blobs(60)
    method = small("dcca", steps=4, checkpoint=str(tmp_path / "c"))
    model = BestPair(method, random_state=0)
    model.keep_checkpoint = True
    model.fit(X)
    assert {p.name for p in (tmp_path / "c").iterdir()} == {
        "pair-0-1-1",
        "pair-0-2-1",
        "pair-1-2-1",
    }
    model.keep_checkpoint = False
    model.fit(X)
    assert not (tmp_path / "c").exists()  # done: nothing to go on from


# The command line.


def test_commands_wrap_by_themselves(tmp_path):
    X, _ = blobs(60)
    np.savez(tmp_path / "d.npz", **{f"view{v}": x for v, x in enumerate(X)})
    run, few = tmp_path / "run", ["--set", "steps=5", "--set", "hidden=(4,)", "--set", "device=cpu"]
    told = done("fit", tmp_path / "d.npz", "-o", run, "--method", "dccae", "--clusters", "2", *few)
    assert "best pair: view" in told
    assert isinstance(vedute.load(run), BestPair)
    assert 'method = "dccae"' in (run / "config.toml").read_text()
    done("fit", tmp_path / "d.npz", "-o", tmp_path / "again", "--config", run / "config.toml")
    done("impute", run, tmp_path / "d.npz", "-o", tmp_path / "filled.npz")
    done("embed", run, tmp_path / "d.npz", "-o", tmp_path / "z.csv")
    told = done("compare", tmp_path / "d.npz", "--methods", "dcca", "--clusters", "2", *few)
    assert "dcca" in told
    assert "failed" not in told
