"""Settings found on hidden views, and settings in files: `tune`, `fit --config`."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest
from shell import done, refused

import vedute
from vedute.analysis import tuning
from vedute.analysis.comparison import Trial
from vedute.analysis.tuning import Choice, Range, Search, Tried, Tuned
from vedute.data.views import Views
from vedute.estimators.base import Estimator
from vedute.methods import find, of_this_package
from vedute.methods.fills.mean_fill import MeanFill
from vedute.methods.mvp import MVP

SHORT = {"steps": 18, "warmup": 2, "cooldown": 2, "hidden": (8,), "device": "cpu"}


def views(n=90):
    """Noisy views of few latents: many neighbors tell more than few."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n, 2))
    X = [z @ rng.standard_normal((2, d)) + 1.5 * rng.standard_normal((n, d)) for d in (5, 4, 3)]
    return Views.of(X)


def search(method=MVP, fixed=SHORT, **options):
    trial = Trial.of(views(), 0)
    return Search(method, dict(fixed), trial, 0, lambda _: None, **options)


def tune(method, fixed, trials=None, minutes=None):
    told = []
    return tuning.tune(method, views(), fixed, trials, minutes, 0, told.append), told


@pytest.fixture
def no_optuna(monkeypatch):
    monkeypatch.setattr(tuning, "find_spec", lambda name: None)


# The space.


def test_what_the_user_set_is_not_tried():
    assert set(search().space()) == {"latent_dim", "dropout", "view_dropout", "lr", "beta"}
    assert "beta" not in search(fixed={"beta": 1.0}).space()
    assert list(search(find("knn_fill"), {}).space()) == ["n_neighbors"]


def test_points_become_differences_from_the_defaults():
    default = MVP().settled([(4,)], 500)
    found = search().settings({"latent_dim": default.latent_dim, "dropout": 0.4, "beta": 10.0})
    assert found == {"dropout": 0.4, "beta": 10 * default.beta}
    assert search().settings({"beta": 1.0}) == {}


@pytest.mark.parametrize("space", [Range(0.0, 0.5), Range(1e-4, 1e-1, log=True), Choice((1, 2, 3))])
def test_draws_lie_in_the_space(space):
    rng = np.random.default_rng(0)
    drawn = [space.draw(rng) for _ in range(200)]
    assert all(space.has(x) for x in drawn)
    if isinstance(space, Range) and space.log:
        assert 0.3 < np.mean(np.array(drawn) < 3e-3) < 0.7


def test_candidates_change_something():
    space = search().space()
    drawn = list(tuning._candidates(space, 50, np.random.default_rng(0)))
    assert all(1 <= len(c) <= len(space) for c in drawn)
    assert {k for c in drawn for k in c} == set(space)


def test_every_setting_tried_is_one_of_the_method():
    fields = set(MVP().get_params())
    for candidate in tuning._candidates(search().space(), 30, np.random.default_rng(1)):
        assert set(search().settings(candidate)) <= fields


# The search.


def test_halving_keeps_the_best_third(no_optuna, monkeypatch):
    worth = {}

    def error(self, settings, share=1.0, on=None):
        return worth.setdefault(repr(settings), float(len(worth))) / share

    monkeypatch.setattr(Search, "error", error)
    found = search()
    tuning._by_halving(found, 9)
    shares = [t.share for t in found.tried]
    assert shares == [1 / 9] * 9 + [1 / 3] * 3 + [1.0]
    assert [t.settings for t in found.tried[9:12]] == [t.settings for t in found.tried[:3]]
    assert found.tried[-1].settings == found.tried[0].settings


def test_shorter_training_has_the_same_shape():
    model = MVP(steps=900, warmup=90, cooldown=9)
    tuning._shorten(model, 1 / 9, views())
    assert (model.steps, model.warmup, model.cooldown) == (100, 10, 1)
    model = MVP(epochs=30)
    tuning._shorten(model, 1 / 3, views())
    assert model.epochs == 10


@pytest.mark.parametrize("name", of_this_package())
def test_every_stretch_of_training_is_shortened(name):
    lengths = {"pretrain", "warmup", "steps", "cooldown"}
    model = find(name)()
    usual = tuning._usual(model, views())
    before = {k: v for k, v in usual.get_params(deep=False).items() if k in lengths and v}
    tuning._shorten(model, 1 / 2, views())
    assert {k: getattr(model, k) for k in before} == {k: round(v / 2) for k, v in before.items()}


def test_more_neighbors_are_found(no_optuna):
    tuned, told = tune(find("knn_fill"), {}, trials=12)
    assert told == tuned.tried
    assert tuned.default == told[0]
    assert tuned.best.error == min(t.error for t in told)
    assert len({t.settings.get("n_neighbors") for t in told}) == len(told)  # none is tried twice
    assert tuned.gain == pytest.approx(1 - tuned.confirmed[1] / tuned.confirmed[0])
    assert tuned.settings() == (tuned.best.settings if tuned.gain > 0 else {})


def test_a_small_search_with_training(no_optuna):
    first, told = tune(MVP, SHORT, trials=3)
    again, _ = tune(MVP, SHORT, trials=3)
    assert first.tried == again.tried
    assert [t.share for t in told] == [1.0, 1 / 9, 1 / 9, 1 / 9, 1 / 3, 1.0]
    assert "n_clusters" not in first.best.settings


def test_with_optuna():
    pytest.importorskip("optuna")
    tuned, told = tune(MVP, SHORT, trials=4)
    assert told == tuned.tried
    assert told[0].settings == {}
    assert 1.0 in {t.share for t in told[1:]}


def test_no_time_no_search(no_optuna):
    tuned, told = tune(MVP, SHORT, minutes=1e-9)
    assert told == [tuned.default]
    assert tuned.settings() == {}


def test_a_candidate_that_fails_has_lost():
    assert search().error({"dropout": 2.0}) == float("inf")
    with pytest.raises(ValueError, match="dropout"):
        search(fixed={**SHORT, "dropout": 2.0}).error({})


def test_nothing_gained_nothing_changed():
    best = Tried({"dropout": 0.4}, 0.3)
    assert Tuned(Tried({}, 0.4), best, (0.5, 0.4), []).settings() == {"dropout": 0.4}
    assert Tuned(Tried({}, 0.4), best, (0.4, 0.5), []).settings() == {}
    assert Tuned(Tried({}, 0.0), best, (0.0, 0.0), []).gain == 0.0


class Blind(MeanFill):
    decode = Estimator.decode


def test_what_cannot_be_tuned():
    with pytest.raises(TypeError, match="cannot impute"):
        tune(Blind, {})
    with pytest.raises(ValueError, match="no setting left"):
        tune(MeanFill, {})


# The commands.


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("d.npz", **{f"view{v}": x.numpy() for v, x in enumerate(views().x)})
    return tmp_path


SETS = [w for k, v in SHORT.items() for w in ("--set", f"{k}={v}")]


def test_tune_writes_what_fit_reads(place):
    out = done("tune", "d.npz", "--method", "knn_fill", "--trials", "8")
    assert "measured" in out
    config = tomllib.loads((place / "tuned.toml").read_text())
    assert config["method"] == "knn_fill"
    done("fit", "d.npz", "-o", "run", "--config", "tuned.toml")
    model = vedute.load("run")
    assert type(model).__name__ == "KNNFill"
    assert model.n_neighbors == config["settings"].get("n_neighbors", 10)
    assert "--force" in refused("tune", "d.npz", "--method", "knn_fill")


def test_a_config_is_under_what_the_user_says(place):
    (place / "c.toml").write_text('method = "mvp"\nlatent_dim = 8\n[settings]\ndropout = 0.1\n')
    more = ["--set", "dropout=0.3", "--clusters", "2", "--save-config", "full.toml"]
    done("fit", "d.npz", "-o", "run", "--config", "c.toml", *SETS, *more)
    model = vedute.load("run")
    assert (model.latent_dim, model.dropout, model.n_clusters) == (8, 0.3, 2)
    full = tomllib.loads((place / "full.toml").read_text())
    assert full["method"] == "mvp"
    assert full["settings"]["hidden"] == [8]
    done("fit", "d.npz", "-o", "again", "--config", "full.toml")
    done("fit", "d.npz", "-o", "third", "--config", "run/config.toml")
    for other in ("again", "third"):
        assert vedute.load(other).get_params() == model.get_params()
        same = vedute.load(other).embedding_
        np.testing.assert_array_equal(same, model.embedding_)


def test_auto_clusters_from_the_command_line(place):
    done("fit", "d.npz", "-o", "run", "--method", "mean_fill", "--set", "n_clusters=auto")
    model = vedute.load("run")
    assert model.n_clusters == "auto"
    assert 2 <= model.n_clusters_ <= 9
    assert len(np.unique(model.labels_)) == model.n_clusters_


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("tune d.npz -o t.txt", "must end in .toml"),
        ("tune d.npz --time 0", "above 0"),
        ("tune d.npz --time inf", "above 0, got inf"),
        ("tune d.npz --method mean_fill", "no setting left to tune"),
        ("tune d.npz --set latentdim=3", "did you mean latent_dim"),
        ("fit d.npz -o run --config no.toml", "no.toml: No such file"),
        ("fit d.npz -o run --config bad.toml", "bad.toml is not TOML"),
        ("fit d.npz -o run --config list.toml", "settings is a table"),
        ("fit d.npz -o run --config strange.toml", "no setting 'depth'"),
        ("fit d.npz -o run --config wrong.toml", "latent_dim must be a whole number"),
        ("fit d.npz -o run --set n_clusters=some", "'auto' or None, got 'some'"),
        ("fit d.npz -o run --method mean_fill --save-config bad.toml", "--force"),
    ],
)
def test_mistakes(place, words, told):
    (place / "bad.toml").write_text("latent_dim = ")
    (place / "list.toml").write_text("settings = [1]")
    (place / "strange.toml").write_text("depth = 3")
    (place / "wrong.toml").write_text('method = "mvp"\nlatent_dim = "many"')
    before = sorted(place.iterdir())
    assert told in refused(*words.split())
    assert sorted(place.iterdir()) == before
