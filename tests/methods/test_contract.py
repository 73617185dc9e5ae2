"""The contract: what a user may rely on, whatever the method. A new method is tested at once."""

from __future__ import annotations

import pickle
import random
from dataclasses import fields, replace
from functools import cache
from hashlib import sha256
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import vedute
from vedute.data.views import Views
from vedute.estimators.base import Estimator
from vedute.methods import available, find
from vedute.methods._best_pair import for_views

WIDTHS = (4, 6, 5)
SMALL = {  # set where a method has such a field
    "steps": 12,
    "warmup": 4,
    "pretrain": 4,
    "hidden": (12,),
    "map_hidden": (8,),
    "latent_dim": 3,
    "batch_size": 32,
    "n_neighbors": 5,
    "device": "cpu",
}

every_method = pytest.mark.parametrize("name", available())


def make(name, **settings):
    """A small model; a method for two views gets those that are best."""
    cls = find(name)
    known = {f.name for f in fields(cls)}
    small = {k: v for k, v in SMALL.items() if k in known}
    model = cls(**{**small, "random_state": 0, "n_clusters": 3, **settings})
    return for_views(model, len(WIDTHS))


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


def can(verb):
    """What the verb gives, or None where the method says that it cannot."""
    try:
        return verb()
    except TypeError as told:
        if "cannot" not in str(told):
            raise
        return None


def filled(model, X):
    """Imputations (n, width) of all views; nothing for a method that cannot impute."""
    out = can(lambda: model.impute(X))
    if out is None:
        return np.zeros((0, 0))
    return np.hstack([np.asarray(x) for x in (out.x if isinstance(out, Views) else out)])


def all_bytes(model, X):
    """Digests of everything a fitted model has to say of X, byte by byte."""
    told = [model.transform(X), model.predict(X), filled(model, X)]
    for verb in (
        lambda: [a for end in model.impute(X, interval=0.9) for a in end],
        lambda: model.sample_imputations(X, 2)[1],
        lambda: model.reconstruct(X),
        lambda: list(model.generate(5).values()),
        lambda: [np.float64(model.score(X))],
    ):
        told += can(verb) or []
    return [sha256(np.asarray(a).tobytes()).hexdigest()[:8] for a in told]


# The verbs.


@every_method
def test_the_verbs_on_rows_never_seen(name):
    X, mask = new(), patterns(14)
    model = fitted(name)
    z, labels = model.transform(X), model.predict(X)
    assert z.dtype == np.float32
    assert z.shape == (14, model.embedding_.shape[1])
    assert np.isfinite(z).all()
    assert labels.dtype.kind == "i"
    assert set(labels) <= {0, 1, 2}
    assert model.embedding_.shape[0] == model.labels_.shape[0] == 84
    for X_filled in [
        can(lambda: model.impute(X)),
        *(can(lambda: model.sample_imputations(X, 2)) or []),
    ]:
        for x, y in zip(X, X_filled or X, strict=True):
            seen = ~np.isnan(x)
            np.testing.assert_array_equal(y[seen], x[seen])
            assert np.isfinite(y).all() or X_filled is None
    told = can(lambda: model.reconstruct(X))
    for x, y in zip(X, told or X, strict=True):
        assert y.shape == x.shape
        assert np.isfinite(y).all() or told is None
    generated = can(lambda: model.generate(5)) or {}
    assert [a.shape for a in generated.values()] in ([], [(5, w) for w in WIDTHS])
    score = can(lambda: model.score(X))
    assert score is None or -np.inf < score <= 1
    assert mask.sum(1).min() == 1


@every_method
def test_intervals_enclose_the_imputation_and_widen_with_their_level(name):
    X, model = new(), fitted(name)
    if can(lambda: model.impute(X, interval=0.5)) is None:
        return
    half, most = model.impute(X, interval=0.5), model.impute(X, interval=0.95)
    for v, x in enumerate(X):
        gap = np.isnan(x)
        for ends in (half, most):
            assert (ends.lower[v][gap] < ends.mean[v][gap]).all()
            assert (ends.mean[v][gap] < ends.upper[v][gap]).all()
            for end in ends:
                np.testing.assert_array_equal(end[v][~gap], x[~gap])
        assert (most.upper[v] - most.lower[v])[gap].mean() > (half.upper[v] - half.lower[v])[
            gap
        ].mean()
    with pytest.raises(ValueError, match="between 0 and 1, got 90"):
        model.impute(X, interval=90)


@every_method
def test_draws_differ_and_scatter_round_the_imputation(name):
    X, model = new(), fitted(name)
    draws = can(lambda: model.sample_imputations(X, 40))
    if draws is None:
        return
    many = np.stack([np.hstack(d) for d in draws])
    gap, spread = np.isnan(np.hstack(X)), many.std(0)
    assert (spread[gap] > 0).all()
    assert (many == many[0])[:, ~gap].all()
    off = (many.mean(0) - filled(model, X))[gap] / (spread[gap] / np.sqrt(40))
    assert np.abs(off).mean() < 1.5


@every_method
def test_a_row_does_not_hang_on_its_company(name):
    X, model = new(), fitted(name)
    rows = [[x[i : i + 1] for x in X] for i in range(14)]
    for verb in (model.transform, lambda x: filled(model, x)):
        np.testing.assert_allclose(verb(X), np.vstack([verb(r) for r in rows]), atol=1e-4)
    np.testing.assert_array_equal(model.predict(X), [model.predict(r)[0] for r in rows])


@every_method
def test_training_rows_are_rows_like_others(name):
    model = fitted(name)
    np.testing.assert_allclose(model.transform(data()), model.embedding_, atol=1e-5)
    np.testing.assert_array_equal(model.predict(data()), model.labels_)
    other = make(name)
    np.testing.assert_array_equal(other.fit_predict(data()), model.labels_)
    np.testing.assert_array_equal(other.labels_, model.labels_)
    np.testing.assert_array_equal(make(name).fit_transform(data()), model.transform(data()))


# Randomness, labels, and what lies under missing entries.


@every_method
def test_same_seed_same_bytes(name):
    again = clone(fitted(name)).fit(data())
    told = all_bytes(fitted(name), new())
    assert all_bytes(again, new()) == told
    assert all_bytes(fitted(name), new()) == told  # and asking changes nothing


@every_method
def test_the_generators_of_the_caller_stay_where_they_are(name):
    def state():
        kind, keys, *rest = np.random.get_state()  # noqa: NPY002
        return torch.get_rng_state().tolist(), (kind, keys.tolist(), *rest), random.getstate()

    before = state()
    all_bytes(make(name, random_state=None).fit(data()), new())
    assert state() == before


@every_method
def test_labels_never_reach_training(name):
    y = np.arange(84) % 3
    told = all_bytes(make(name).fit(Views.of(data())), new())
    for labels in (y, y[::-1]):
        assert all_bytes(make(name).fit(Views.of(data(), y=labels)), new()) == told
        assert all_bytes(make(name).fit(Views.of(data()), labels), new()) == told


@every_method
@pytest.mark.parametrize("junk", [np.nan, np.inf, 1e30, -7.0])
def test_nothing_under_a_missing_view_gets_through_the_door(name, junk):
    X, mask = whole(84), patterns(84)
    clean = Views.of(gaps(X, mask))
    dirty = gaps(X, np.ones_like(mask))  # the same holes
    for x, m in zip(dirty, mask.T, strict=True):
        x[~m] = junk
    poisoned = Views.of(dirty, mask=mask)
    one, two = (make(name).fit(d) for d in (clean, poisoned))
    for model, a, b in ((one, clean, poisoned), (two, poisoned, clean)):
        np.testing.assert_array_equal(model.transform(a), one.transform(b))
        np.testing.assert_array_equal(filled(model, a), filled(one, b))


@every_method
def test_nothing_under_a_missing_entry_matters_inside(name):
    clean = Views.of(data())
    rng = np.random.default_rng(2)
    x = []
    for v, a in enumerate(clean.x):
        gone = ~clean.mask[:, [v]].expand_as(a) | clean.holes[v]
        x.append(torch.where(gone, torch.from_numpy(1e3 * rng.normal(size=a.shape)).float(), a))
    poisoned = replace(clean, x=tuple(x))
    one, two = (make(name).fit(d) for d in (clean, poisoned))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
    np.testing.assert_array_equal(one.transform(clean), one.transform(poisoned))
    np.testing.assert_array_equal(filled(one, clean), filled(two, poisoned))


@every_method
@pytest.mark.parametrize(("offset", "within"), [(100.0, 1e-2), (1e6, 1.0)])
def test_an_offset_of_a_view_is_an_offset_of_its_imputations(name, offset, within):
    def moved(X):
        return [X[0] + offset, *X[1:]]

    there = make(name).fit(moved(data()))
    a, b = filled(fitted(name), new()), filled(there, moved(new()))
    if a.size:
        np.testing.assert_allclose(b[:, :4] - offset, a[:, :4], rtol=0, atol=within)
        np.testing.assert_allclose(b[:, 4:], a[:, 4:], rtol=0, atol=within)
    np.testing.assert_allclose(
        there.transform(moved(new())), fitted(name).transform(new()), atol=within
    )


# Saving.


@every_method
def test_saved_and_loaded_says_the_same(name, tmp_path, monkeypatch):
    model = fitted(name)
    model.save(tmp_path / "model")
    assert {p.suffix for p in (tmp_path / "model").iterdir()} == {".safetensors", ".json"}

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
    assert loaded.views_ == model.views_


@every_method
def test_a_pickled_model_is_the_same_too(name):
    again = pickle.loads(pickle.dumps(fitted(name)))
    assert all_bytes(again, new()) == all_bytes(fitted(name), new())


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda f: (f / "model.json").unlink(), "holds no saved model"),
        (lambda f: (f / "model.json").write_text("{"), "is damaged"),
        (lambda f: (f / "model.json").write_text("{}"), "is damaged"),
        (lambda f: (f / "model.json").write_text('{"format": 99}'), "has format 99"),
        (lambda f: next(f.glob("*.safetensors")).write_bytes(pickle.dumps([1])), "not as it was"),
        (lambda f: next(f.glob("*.safetensors")).unlink(), "is gone"),
    ],
)
def test_what_is_no_saved_model_is_refused(damage, told, tmp_path):
    fitted("mean_fill").save(tmp_path)
    damage(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError), match=told):
        vedute.load(tmp_path)


# The face of scikit-learn.


@every_method
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


@every_method
def test_the_representation_has_names_and_comes_as_a_frame_where_asked(name):
    ids = [f"s{i}" for i in range(14)]
    frames = [pd.DataFrame(x, index=ids) for x in new()]
    model = make(name).set_output(transform="pandas").fit(data())
    z = model.transform(frames)
    names = model.get_feature_names_out()
    assert len(set(names)) == len(names) == z.shape[1]
    assert z.columns.tolist() == names.tolist()
    assert z.index.tolist() == ids
    np.testing.assert_array_equal(z.to_numpy(), fitted(name).transform(new()))


@every_method
def test_frames_say_the_same_as_arrays(name):
    frames = [pd.DataFrame(x).add_prefix("c") for x in data()]
    model = make(name).fit([f.dropna(how="all") for f in frames])
    order = model.impute(frames)[0].index if can(lambda: model.impute(frames)) else frames[0].index
    assert order.tolist() == list(range(84))
    np.testing.assert_allclose(filled(model, frames)[:14], filled(model, data())[:14], atol=1e-5)


@every_method
def test_clusters_can_be_left_to_others(name):
    model = make(name, n_clusters=None)
    if find(name).soft:  # its clusters are part of what it learns
        with pytest.raises(ValueError, match=r"n_clusters=None.* set n_clusters"):
            model.fit(data())
        return
    model.fit(data())
    np.testing.assert_array_equal(model.transform(new()), fitted(name).transform(new()))
    np.testing.assert_array_equal(filled(model, new()), filled(fitted(name), new()))
    for verb in (model.predict, model.fit_predict):
        with pytest.raises(ValueError, match=r"n_clusters=None.* set n_clusters"):
            verb(data())


@every_method
def test_more_clusters_than_samples_are_refused(name):
    with pytest.raises(ValueError, match="n_clusters=85 does not fit 84 samples"):
        make(name, n_clusters=85).fit(data())


# Views nobody has, other views, little data.


@every_method
def test_fit_refuses_a_view_nobody_has_and_the_other_verbs_take_it(name):
    a, b, c = (np.nan_to_num(x) for x in whole(14, seed=1))
    for X in ({"a": a, "b": np.full_like(b, np.nan), "c": c}, {"a": a, "b": None, "c": c}):
        with pytest.raises(ValueError, match="'b' is missing for every sample; leave it out"):
            make(name).fit(X)
    model = make(name).fit(dict(zip("abc", data(), strict=True)))
    nan = np.full_like(b, np.nan)
    expected = model.transform({"a": a, "b": nan, "c": c}), filled(model, [a, nan, c])
    for X in ({"a": a, "b": None, "c": c}, {"c": c, "a": a}, [a, None, c]):
        np.testing.assert_array_equal(model.transform(X), expected[0])
        if expected[1].size and isinstance(X, list):
            np.testing.assert_array_equal(filled(model, X), expected[1])
            assert model.impute(X)[1].shape == b.shape


@every_method
def test_other_views_than_fitted_are_refused(name):
    model = fitted(name)
    a, b, c = new()
    for wrong, told in (
        ({"view0": a, "sound": b}, "unknown view 'sound'"),
        ([a, b], "X has 2 views, fitted on 3"),
        ([a, c, b], r"'view1' has samples of shape \(5,\), fitted on \(6,\)"),
    ):
        for verb in (model.transform, model.predict, model.impute, model.score):
            with pytest.raises(ValueError, match=told):
                verb(wrong)


@every_method
def test_one_view_will_do(name):
    X = [data()[0][~np.isnan(data()[0]).all(1)]]
    if find(name).two_views:
        with pytest.raises(ValueError, match="two of several views, X has 1"):
            make(name).fit(X)
        return
    model = make(name).fit(X)
    assert np.isfinite(model.transform(X)).all()
    assert len(set(model.labels_)) == 3
    out = filled(model, X)
    assert np.isfinite(out).all()
    can(lambda: model.sample_imputations(X, 1))
    can(lambda: model.generate(3))
    with pytest.raises((ValueError, TypeError), match=r"two or more observed views|cannot"):
        model.score(X)


@every_method
def test_eight_samples_will_do(name):
    model = make(name, n_clusters=2).fit(data(8))
    assert set(model.predict(data(8))) == {0, 1}
    assert np.isfinite(filled(model, new())).all()
    can(lambda: model.impute(new(), interval=0.9))
    can(lambda: model.generate(3))
    can(lambda: model.score(data(8)))


@every_method
def test_a_table_is_cut_into_the_same_views(name):
    cuts = np.cumsum([0, *WIDTHS])
    columns = {f"view{v}": slice(*cuts[v : v + 2]) for v in range(3)}
    model = make(name, columns=columns).fit(np.hstack(data()))
    np.testing.assert_array_equal(model.transform(np.hstack(new())), fitted(name).transform(new()))
    out = can(lambda: model.impute(np.hstack(new())))
    if out is not None:
        np.testing.assert_array_equal(out, filled(fitted(name), new()))


@every_method
def test_quiet_unless_asked(name, capsys):
    make(name).fit(data())
    assert capsys.readouterr() == ("", "")


@every_method
def test_training_leaves_a_record(name):
    model = fitted(name)
    if can(lambda: model.impute(new())) is not None:
        assert list(model.r2_) == ["view0", "view1", "view2"]
    for record in vars(model).get("history_", []):
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
    (dict(steps=2.5), "steps must be a whole number, got 2.5"),
    (dict(steps="10"), "steps must be a whole number, got '10'"),
    (dict(latent_dim=2.5), "latent_dim must be a whole number, got 2.5"),
    (dict(hidden=(0,)), r"each of hidden must be at least 1, got \(0,\)"),
    (dict(hidden=16), "hidden must be a tuple of whole numbers or a dict by view, got 16"),
    (dict(device="mps"), "device 'mps' is not there; choose auto or cpu"),
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
