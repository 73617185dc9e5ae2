"""The contract: what a user may rely on, whatever the method. A new method is tested at once; what
all have from one place, with `make test-all`."""

from __future__ import annotations

import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from functools import cache
from hashlib import sha256
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from every_method import CLUSTERING, GENERATING, IMPUTING, METHODS, PAIRED, each, small
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import vedute
from vedute.data.views import Views
from vedute.estimators import clustering
from vedute.estimators.base import Estimator
from vedute.estimators.imputation import Imputer
from vedute.methods import find
from vedute.methods.best_pair import BestPair, for_views
from vedute.training.model import Clusterer, Generative

WIDTHS = (4, 6, 5)
JUNK = (np.nan, np.inf, 1e30, -7.0)


def methods(names=METHODS, without=()):
    """Parametrised over these methods."""
    return pytest.mark.parametrize("name", [k for k in names if k not in without])


one_of_a_kind = pytest.mark.parametrize("name", each(METHODS))  # what all have from one place


def make(name, **settings):
    """A small model; a method for two views gets those that are best."""
    return for_views(small(METHODS[name], **{"n_clusters": 3} | settings), len(WIDTHS))


def pair(model):
    """The names of the two views that were chosen."""
    return tuple(model.views_[v].name for v in model.chosen())


def params(model):
    """All settings, those of a method inside another included."""
    found = model.get_params()
    return {k: v for k, v in found.items() if not isinstance(v, Estimator)}


def whole(n, seed=0):
    """L complete arrays that know of each other."""
    loadings = np.random.default_rng(9).normal(size=(2, sum(WIDTHS)))
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) @ loadings + 0.3 * rng.normal(size=(n, sum(WIDTHS)))
    return np.split(2 * x + 3, np.cumsum(WIDTHS)[:-1], axis=1)


def patterns(n):
    """Every pattern of views in turn, the complete one most often; (n, L) bool."""
    kinds = [p for p in product([True, False], repeat=len(WIDTHS)) if any(p)]
    return np.array([kinds[i // 2 % len(kinds)] if i % 2 else kinds[0] for i in range(n)])


def gaps(X, mask):
    """X with NaN: views, and a hole in every view."""
    X = [np.where(m[:, None], x, np.nan) for x, m in zip(X, mask.T, strict=True)]
    for v, x in enumerate(X):
        x[2 * v, v] = np.nan
    return X


def data(n=84, seed=0):
    return gaps(whole(n, seed), patterns(n))


def new(n=14):
    return data(n, seed=1)


@cache
def fitted(name):
    return make(name).fit(data())


@cache
def fitted_on_views(name):
    return make(name).fit(Views.of(data()))


def filled(model, X):
    """Imputations (n, width) of all views."""
    out = model.impute(X)
    return np.hstack([np.asarray(x) for x in (out.x if isinstance(out, Views) else out)])


def outputs(model, X):
    """All that a fitted model can say of X, as arrays."""
    out = [model.transform(X), model.predict(X)]
    if model.generative:
        out += [filled(model, X), *model.reconstruct(X), np.float64(model.score(X))]
        out += [a for end in model.impute(X, interval=0.9) for a in end]
        out += model.sample_imputations(X, 2)[1]
    if model.generative and model.generates:
        out += model.generate(5).values()
    return [np.asarray(a) for a in out]


def all_bytes(model, X):
    """Digests of all that it can say of X, byte by byte."""
    return [sha256(a.tobytes()).hexdigest()[:8] for a in outputs(model, X)]


def generators():
    """The state of all that are global."""
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    return torch.get_rng_state().tolist(), (kind, keys.tolist(), *rest), random.getstate()


def same_values(model, X, other, Y):
    """`model` says the same of X as `other` of Y."""
    np.testing.assert_array_equal(model.transform(X), other.transform(Y))
    if model.generative:
        np.testing.assert_array_equal(filled(model, X), filled(other, Y))


# The verbs.


@methods()
def test_abilities_are_those_of_the_model(name):
    inside = vars(fitted(name)).get("best_", fitted(name))
    if hasattr(inside, "model_"):  # a network, and no simple fill
        assert isinstance(inside.model_, Generative) == inside.generative
        assert isinstance(inside.model_, Clusterer) == inside.soft
    assert hasattr(fitted(name), "predict_proba") == fitted(name).soft


@methods()
def test_every_new_row_has_a_representation_and_a_cluster(name):
    model = fitted(name)
    z, labels = model.transform(new()), model.predict(new())
    assert z.dtype == np.float32
    assert z.shape == (14, model.embedding_.shape[1])
    assert np.isfinite(z).all()
    assert labels.dtype.kind == "i"
    assert set(labels) <= {0, 1, 2}
    assert model.embedding_.shape[0] == model.labels_.shape[0] == 84


@methods(CLUSTERING)
def test_soft_labels_are_probabilities_of_the_clusters(name):
    soft = fitted(name).predict_proba(new())
    assert soft.shape == (14, 3)
    assert (soft >= 0).all()
    np.testing.assert_allclose(soft.sum(1), 1, atol=1e-5)
    np.testing.assert_array_equal(soft.argmax(1), fitted(name).predict(new()))


@methods(IMPUTING)
def test_what_was_observed_stays_and_the_rest_is_filled(name):
    X, model = new(), fitted(name)
    for X_filled in (model.impute(X), *model.sample_imputations(X, 2)):
        for x, y in zip(X, X_filled, strict=True):
            np.testing.assert_array_equal(y[~np.isnan(x)], x[~np.isnan(x)])
            assert np.isfinite(y).all()


@methods(IMPUTING)
def test_every_view_is_reconstructed_and_left_out_ones_are_scored(name):
    X, model = new(), fitted(name)
    for x, y in zip(X, model.reconstruct(X), strict=True):
        assert y.shape == x.shape
        assert np.isfinite(y).all()
    assert -np.inf < model.score(X) <= 1


@methods(GENERATING, without=PAIRED)
def test_new_samples_have_every_view(name):
    generated = fitted(name).generate(5)
    assert [a.shape for a in generated.values()] == [(5, w) for w in WIDTHS]
    assert all(np.isfinite(a).all() for a in generated.values())


@methods(without=IMPUTING)
def test_who_cannot_impute_says_so(name):
    model = fitted(name)
    for verb in (
        model.impute,
        model.reconstruct,
        model.score,
        lambda X: model.sample_imputations(X, 2),
        lambda X: model.impute(X, interval=0.9),
    ):
        with pytest.raises(TypeError, match=r"cannot .*`vedute list methods` shows which"):
            verb(new())


@methods(without={*GENERATING} - {*PAIRED})
def test_who_cannot_generate_says_so(name):
    with pytest.raises(TypeError, match="cannot generate"):
        fitted(name).generate(5)


@methods(IMPUTING)
def test_intervals_enclose_the_imputation_and_widen_with_their_level(name):
    X, model = new(), fitted(name)
    half, most = model.impute(X, interval=0.5), model.impute(X, interval=0.95)
    for v, x in enumerate(X):
        missing = np.isnan(x)
        for ends in (half, most):
            assert (ends.lower[v][missing] < ends.mean[v][missing]).all()
            assert (ends.mean[v][missing] < ends.upper[v][missing]).all()
            for end in ends:
                np.testing.assert_array_equal(end[v][~missing], x[~missing])
        narrow, wide = ((ends.upper[v] - ends.lower[v])[missing] for ends in (half, most))
        assert wide.mean() > narrow.mean()
    with pytest.raises(ValueError, match="between 0 and 1, got 90"):
        model.impute(X, interval=90)


@methods(IMPUTING)
def test_draws_differ_and_scatter_round_the_imputation(name):
    X, model = new(), fitted(name)
    many = np.stack([np.hstack(d) for d in model.sample_imputations(X, 40)])
    missing, spread = np.isnan(np.hstack(X)), many.std(0)
    assert (spread[missing] > 0).all()
    assert (many == many[0])[:, ~missing].all()
    off = (many.mean(0) - filled(model, X))[missing] / (spread[missing] / np.sqrt(40))
    assert np.abs(off).mean() < 1.5


@methods()
def test_training_rows_are_rows_like_others(name):
    model = fitted(name)
    np.testing.assert_allclose(model.transform(data()), model.embedding_, atol=1e-5)
    np.testing.assert_array_equal(model.predict(data()), model.labels_)


# Randomness, labels, and what lies under missing entries.


@methods()
def test_same_seed_same_bytes(name):
    """A clone, through `fit_predict`; asking changes nothing."""
    model, again = fitted(name), clone(fitted(name))
    first = all_bytes(model, new())
    np.testing.assert_array_equal(again.fit_predict(data()), model.labels_)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    assert all_bytes(again, new()) == first == all_bytes(model, new())


@one_of_a_kind
def test_the_generators_of_the_caller_stay_where_they_are(name):
    before = generators()
    all_bytes(make(name, random_state=None).fit(data()), new())
    assert generators() == before


@methods()
def test_any_thread_gives_the_same_bytes_from_generators_of_its_own(name, tmp_path, monkeypatch):
    def used(*_, **__):
        raise AssertionError("the global generators are for fit")

    def loaded(_):
        return all_bytes(vedute.load(tmp_path / "model"), new())

    before, alone = generators(), all_bytes(fitted(name), new())
    fitted(name).save(tmp_path / "model")
    for seeds in ("torch.manual_seed", "torch.random.fork_rng", "torch.set_rng_state"):
        monkeypatch.setattr(seeds, used)
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(loaded, range(4))) == [alone] * 4
    assert generators() == before


@one_of_a_kind
def test_fits_in_threads_are_those_of_one_alone(name):
    with ThreadPoolExecutor(3) as threads:
        models = list(threads.map(lambda _: make(name).fit(data()), range(3)))
    assert [all_bytes(m, new()) for m in models] == [all_bytes(fitted(name), new())] * 3


@methods()
def test_labels_never_reach_training(name):
    """Neither those of views nor those given to `fit_transform`."""
    model, labelled = make(name), Views.of(data(), y=np.arange(84) % 3)
    z = model.fit_transform(labelled, np.arange(84) % 2)
    np.testing.assert_array_equal(z, fitted_on_views(name).transform(labelled))
    assert all_bytes(model, new()) == all_bytes(fitted_on_views(name), new())


@methods()
def test_nothing_under_a_missing_view_gets_in(name):
    mask, clean = patterns(84), Views.of(data())
    dirty = gaps(whole(84), np.ones_like(mask))  # the same holes
    for x, m in zip(dirty, mask.T, strict=True):
        x[~m] = np.resize(JUNK, x[~m].shape)
    poisoned = Views.of(dirty, mask=mask)
    one, two = fitted_on_views(name), make(name).fit(poisoned)
    same_values(one, clean, one, poisoned)
    same_values(two, poisoned, one, clean)


@methods()
def test_nothing_under_a_missing_entry_matters_inside(name):
    clean = Views.of(data())
    rng = np.random.default_rng(2)
    x = []
    for v, a in enumerate(clean.x):
        gone = ~clean.mask[:, [v]].expand_as(a) | clean.holes[v]
        x.append(torch.where(gone, torch.from_numpy(1e3 * rng.normal(size=a.shape)).float(), a))
    poisoned = replace(clean, x=tuple(x))
    one, two = fitted_on_views(name), make(name).fit(poisoned)
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
    same_values(one, clean, one, poisoned)
    same_values(two, poisoned, one, clean)


@one_of_a_kind
@pytest.mark.parametrize(("offset", "within"), [(100.0, 1e-2), (1e6, 1.0)])
def test_an_offset_of_a_view_changes_nothing_else(name, offset, within):
    def moved(X):
        return [X[0] + offset, *X[1:]]

    here, there = fitted(name), make(name).fit(moved(data()))
    np.testing.assert_allclose(there.transform(moved(new())), here.transform(new()), atol=within)
    if here.generative:
        off = filled(there, moved(new())) - filled(here, new())
        np.testing.assert_allclose(off[:, :4], offset, rtol=0, atol=within)
        np.testing.assert_allclose(off[:, 4:], 0, atol=within)


# Saving.


@methods()
def test_saved_and_loaded_says_the_same(name, tmp_path, monkeypatch):
    model = fitted(name)
    model.save(tmp_path / "model")
    assert {p.suffix for p in (tmp_path / "model").iterdir()} == {".safetensors", ".json", ".md"}

    def refuse(*_, **__):
        raise AssertionError("loading unpickles")

    for module, word in (
        (pickle, "load"),
        (pickle, "loads"),
        (pickle, "Unpickler"),
        (torch, "load"),
    ):
        monkeypatch.setattr(module, word, refuse)
    loaded = vedute.load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert params(loaded) == params(model)
    assert all_bytes(loaded, new()) == all_bytes(model, new())
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    assert loaded.specs == model.specs


@methods()
def test_a_pickled_model_is_the_same_too(name):
    again = pickle.loads(pickle.dumps(fitted(name)))
    assert all_bytes(again, new()) == all_bytes(fitted(name), new())


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda f: (f / "model.json").unlink(), "holds no saved model"),
        (lambda f: (f / "model.json").write_text("{"), "is damaged"),
        (lambda f: (f / "model.json").write_text("{}"), "is damaged"),
        (lambda f: (f / "model.json").write_text('{"format": 99}'), "has format 99"),
        (lambda f: next(f.glob("*.safetensors")).write_bytes(pickle.dumps([1])), "not as it was"),
        (lambda f: next(f.glob("*.safetensors")).unlink(), "is gone"),
    ],
)
def test_what_is_no_saved_model_is_refused(damage, sentence, tmp_path):
    fitted("mean_fill").save(tmp_path)
    damage(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError), match=sentence):
        vedute.load(tmp_path)


# What an interruption leaves.


def interrupt(*_):
    raise KeyboardInterrupt


def interrupted_fit(model, X, module, word):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, word, interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)


@one_of_a_kind
def test_a_refit_interrupted_after_learning_leaves_the_model_before(name):
    leaves_the_model_before(name, clustering, "finite")


@pytest.mark.parametrize(("module", "word"), [(clustering, "finite"), (Imputer, "hidden_results")])
def test_an_interrupted_blend_leaves_the_model_before(module, word):
    leaves_the_model_before("blend", module, word)


def leaves_the_model_before(name, module, word):
    model = make(name).fit(data())
    before, labels = all_bytes(model, new()), model.labels_
    interrupted_fit(model, [x[:60] for x in data(seed=2)], module, word)
    assert all_bytes(model, new()) == before
    assert model.labels_ is labels
    assert len(model.embedding_) == len(labels)


@one_of_a_kind
def test_an_interrupted_first_fit_leaves_an_unfitted_model(name, tmp_path):
    model = make(name)
    interrupted_fit(model, data(), clustering, "finite")
    for use in (model.transform, model.predict, model.impute, model.save):
        with pytest.raises(NotFittedError):
            use(tmp_path if use == model.save else new())
    assert all_bytes(model.fit(data()), new()) == all_bytes(fitted(name), new())


@one_of_a_kind
def test_refused_data_leave_the_model_before(name):
    model = make(name).fit(data())
    before = all_bytes(model, new())
    with pytest.raises(ValueError, match="missing for every sample"):
        model.fit([x if v else np.full_like(x, np.nan) for v, x in enumerate(whole(30))])
    assert all_bytes(model, new()) == before


# The face of scikit-learn.


@methods()
def test_parameters_are_the_fields_and_a_clone_is_unfitted(name):
    model = fitted(name)
    copy = clone(model)
    assert params(copy) == params(model)
    assert set(model.get_params(deep=False)) == {f.name for f in fields(type(model))}
    for verb in ("transform", "predict", "impute", "score", "reconstruct"):
        with pytest.raises(NotFittedError):
            getattr(copy, verb)(new())
    with pytest.raises(NotFittedError):
        copy.save("nowhere")


@methods()
def test_the_representation_has_names_and_comes_as_a_frame_where_asked(name):
    ids = [f"s{i}" for i in range(14)]
    frames = [pd.DataFrame(x, index=ids) for x in new()]
    model = pickle.loads(pickle.dumps(fitted(name))).set_output(transform="pandas")
    z = model.transform(frames)
    names = model.get_feature_names_out()
    assert len(set(names)) == len(names) == z.shape[1]
    assert z.columns.tolist() == names.tolist()
    assert z.index.tolist() == ids
    np.testing.assert_array_equal(z.to_numpy(), fitted(name).transform(new()))


@one_of_a_kind
def test_frames_say_the_same_as_arrays(name):
    frames = [pd.DataFrame(x).add_prefix("c") for x in data()]
    model = make(name).fit([f.dropna(how="all") for f in frames])
    np.testing.assert_allclose(
        model.transform(frames)[:14], model.transform(data())[:14], atol=1e-5
    )
    if model.generative:
        assert [f.index.tolist() for f in model.impute(frames)] == [list(range(84))] * 3
        np.testing.assert_allclose(
            filled(model, frames)[:14], filled(model, data())[:14], atol=1e-5
        )


@methods(CLUSTERING)
def test_clusters_that_are_learned_need_a_number(name):
    with pytest.raises(ValueError, match=r"n_clusters=None.* set n_clusters"):
        make(name, n_clusters=None).fit(data())


@methods(without=CLUSTERING)
def test_clusters_can_be_left_to_others(name):
    model = make(name, n_clusters=None)
    if isinstance(model, BestPair):  # which chooses a pair by the clusters that are asked for
        model.set_params(pair=pair(fitted(name)))
    model.fit(data())
    same_values(model, new(), fitted(name), new())
    for verb in (model.predict, model.fit_predict):
        with pytest.raises(ValueError, match=r"n_clusters=None.* set n_clusters"):
            verb(data())


@methods()
def test_more_clusters_than_samples_are_refused(name):
    with pytest.raises(ValueError, match="n_clusters=85 does not fit 84 samples"):
        make(name, n_clusters=85).fit(data())


# Views nobody has, other views, little data.


@methods()
def test_fit_refuses_a_view_nobody_has_and_the_other_verbs_take_it(name):
    a, b, c = (np.nan_to_num(x) for x in whole(14, seed=1))
    nan = np.full_like(b, np.nan)
    for X in ({"a": a, "b": nan, "c": c}, {"a": a, "b": None, "c": c}):
        with pytest.raises(ValueError, match="'b' is missing for every sample; leave it out"):
            make(name).fit(X)
    model = make(name).fit(dict(zip("abc", data(), strict=True)))
    same_values(model, [a, None, c], model, [a, nan, c])
    for X in ({"a": a, "b": None, "c": c}, {"c": c, "a": a}):
        np.testing.assert_array_equal(model.transform(X), model.transform([a, nan, c]))
    if model.generative:
        assert model.impute([a, None, c])[1].shape == b.shape


@methods()
def test_other_views_than_fitted_are_refused(name):
    model = fitted(name)
    a, b, c = new()
    for wrong, sentence in (
        ({"view0": a, "sound": b}, "unknown view 'sound'"),
        ([a, b], "X has 2 views, fitted on 3"),
        ([a, c, b], r"'view1' has samples of shape \(5,\), fitted on \(6,\)"),
    ):
        for verb in (model.transform, model.predict, model.impute, model.score):
            with pytest.raises(ValueError, match=sentence):
                verb(wrong)


def one_view():
    return [x[~np.isnan(x).all(1)] for x in data()[:1]]


@methods(PAIRED)
def test_one_view_is_not_two(name):
    with pytest.raises(ValueError, match="two of several views, X has 1"):
        make(name).fit(one_view())


@methods(without=PAIRED)
def test_one_view_will_do(name):
    X = one_view()
    model = make(name).fit(X)
    assert np.isfinite(model.transform(X)).all()
    assert len(set(model.labels_)) == 3
    if model.generative:
        assert all(
            np.isfinite(x).all() for x in (*model.impute(X), *model.sample_imputations(X, 1))
        )
        with pytest.raises(ValueError, match="two or more observed views"):
            model.score(X)


@methods()
def test_eight_samples_will_do(name):
    model = make(name, n_clusters=2).fit(data(8))
    assert set(model.predict(data(8))) == {0, 1}
    assert all(np.isfinite(a).all() for a in outputs(model, new()))


@one_of_a_kind
def test_a_table_is_cut_into_the_same_views(name):
    cuts = np.cumsum([0, *WIDTHS])
    columns = {f"view{v}": slice(*cuts[v : v + 2]) for v in range(3)}
    model, table = make(name, columns=columns).fit(np.hstack(data())), np.hstack(new())
    np.testing.assert_array_equal(model.transform(table), fitted(name).transform(new()))
    if model.generative:
        np.testing.assert_array_equal(model.impute(table), filled(fitted(name), new()))


@one_of_a_kind
def test_quiet_unless_asked(name, capsys):
    make(name).fit(data())
    assert capsys.readouterr() == ("", "")


@methods(IMPUTING)
def test_the_hidden_views_are_scored_view_by_view(name):
    assert list(fitted(name).r2_) == ["view0", "view1", "view2"]


@methods([name for name, cls in METHODS.items() if hasattr(cls, "build")])
def test_training_leaves_a_record(name):
    assert fitted(name).history_
    for record in fitted(name).history_:
        assert {"step", "epoch", "stage", "terms", "hidden_error"} <= set(record)


def test_an_unknown_method_is_refused_with_those_there_are():
    with pytest.raises(KeyError, match=r"no method 'mvpp'; choose from .*mean_fill"):
        find("mvpp")


def test_fit_refuses_a_column_nobody_has():
    X = [np.ones((9, 2)) * np.arange(9)[:, None], np.arange(9.0)]
    X[0][:, 1] = np.nan
    with pytest.raises(ValueError, match="view 'view0' has no finite value in column 1; drop"):
        find("mean_fill")().fit(X)


COUNTS = [
    (dict(steps=2.5), "steps must be a whole number or None, got 2.5"),
    (dict(steps="10"), "steps must be a whole number or None, got '10'"),
    (dict(latent_dim=2.5), "latent_dim must be a whole number or None, got 2.5"),
    (dict(hidden=(0,)), r"each of hidden must be at least 1, got \(0,\)"),
    (dict(hidden=16), "hidden must be a tuple of whole numbers or a dict by view, got 16"),
    (dict(device="mps"), "device 'mps' is not available; choose auto or cpu"),
    (dict(hidden={"a": (8,)}), r"hidden names \['a'\]; give the sizes of each of \['view0', 'vi"),
    (dict(clip=-1), "clip must be above 0, got -1"),
    (dict(n_clusters=2.5), "n_clusters must be a whole number, 'auto' or None, got 2.5"),
    (dict(likelihood="bernoulli"), "holds .*; bernoulli values lie between 0 and 1"),
]


@pytest.mark.parametrize(("settings", "sentence"), COUNTS)
def test_settings_that_make_no_sense_are_refused(settings, sentence):
    X = np.random.default_rng(0).normal(size=(2, 20, 3))
    with pytest.raises(ValueError, match=sentence):
        vedute.MVP(**{"steps": 3} | settings).fit(list(X))


def test_numbers_of_draws_and_samples_are_refused_in_a_sentence():
    X = list(np.random.default_rng(0).normal(size=(2, 20, 3)))
    model = vedute.MVP(steps=3, hidden=(4,), random_state=0).fit(X)
    for call, sentence in (
        (lambda: model.generate(0), "n must be positive, got 0"),
        (lambda: model.generate(2.5), "n is a whole number, got 2.5"),
        (lambda: model.sample_imputations(X, -1), "m must be positive, got -1"),
        (lambda: model.impute(X, interval="0.9"), "interval is a probability .*, got '0.9'"),
        (lambda: model.transform([X[0] * 1e50, X[1]]), "view0.* too far from those fitted on"),
        (lambda: model.fit([X[0] * 1e300, X[1]]), "view 'view0' holds numbers whose squares over"),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()
