"""Row by row: what a model says of a row does not depend on the other rows of the call."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from every_method import IMPUTING, METHODS, small

from vedute.estimators import imputation, learner, sentence_decoding
from vedute.methods.best_pair import for_views

CLOSE = 1e-5  # standard deviations
N = 84


def arrays(n, seed):
    """Numbers twice, flags and one-hot rows; views and entries of numbers are missing."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    loadings = np.random.default_rng(9).normal(size=(2, 9))
    x = (rng.normal(size=(n, 2)) + 3 * group[:, None]) @ loadings + 0.3 * rng.normal(size=(n, 9))
    flags = (rng.random((n, 3)) < 0.2 + 0.3 * group[:, None]).astype(float)
    X = [x[:, :4], 100 * x[:, 4:] + 1000, flags, np.eye(3)[group]]
    gone = rng.random((n, 4)) < 0.4
    gone[np.arange(n), rng.integers(4, size=n)] = False
    for a in X[:2]:
        a[:, 1:][rng.random((n, a.shape[1] - 1)) < 0.05] = np.nan
    return [np.where(out[:, None], np.nan, a) for a, out in zip(X, gone.T, strict=True)]


def frames(n, seed):
    """Convert the data to tables of floats, integers, flags and categories."""
    a, b, flags, kinds = arrays(n, seed)
    codes = [np.where(np.isnan(c).any(1), -1, np.nan_to_num(c).argmax(1)) for c in (flags, kinds)]
    blood = pd.DataFrame(a).add_prefix("a")
    blood["count"] = pd.array(np.round(3 * a[:, 0]), "Int64")
    blood["type"] = pd.Categorical.from_codes(codes[0], ["a", "b", "o"])
    clinic = pd.DataFrame(b).add_prefix("b")
    clinic["stage"] = pd.Categorical.from_codes(codes[1], ["i", "ii", "iii"])
    ids = [f"s{i}" for i in range(n)]
    return [f.set_axis(ids) for f in (blood, clinic, pd.DataFrame(flags).add_prefix("f"))]


def counted(n, seed):
    """Whole numbers of few values: many training rows are equally near."""
    X = [np.round(a[:, :3] / np.nanstd(a)) for a in arrays(n, seed)[:3]]
    return [np.where(np.isnan(a).any(1, keepdims=True), np.nan, a) for a in X]


def sentences(n, seed):
    """Words, and numbers that say which; either may be missing."""
    rng = np.random.default_rng(seed)
    words = rng.integers(1, 6, size=(n, 5)).astype(float)
    X, out = [words, words[:, :2] + 0.1 * rng.normal(size=(n, 2))], rng.integers(3, size=n)
    return [np.where((out == v)[:, None], np.nan, x) for v, x in enumerate(X)]


KINDS = {"arrays": arrays, "frames": frames, "counted": counted}
OTHERS = [
    ("mmjsd", arrays, {"subset_rule": "random_expert"}),
    ("mmvae", arrays, {"subset_rule": "random_expert"}),
    ("mmvae", arrays, {"objective": "moe_elbo"}),
    ("mmvaeplus", arrays, {"private": "prior", "trunks": 2}),
    ("cpspan", counted, {"variant": "released"}),
    ("icmvc", counted, {"released_graph": True}),
    ("mvp", sentences, {"likelihood": {"view0": "tokens"}}),
]


def fit(name, data, **settings):
    X = data(N, seed=0)
    model = for_views(small(METHODS[name], n_clusters=3, **settings), len(X))
    return model.fit(some(X, there(X)))


fitted = cache(lambda name: fit(name, arrays))


def there(X):
    """Positions of rows with a view."""
    return np.flatnonzero(np.any([~pd.isna(x).all(axis=1) for x in map(pd.DataFrame, X)], axis=0))


def some(X, rows):
    return [x.iloc[rows] if isinstance(x, pd.DataFrame) else x[rows] for x in X]


def numeric(X):
    """The columns of all views, categories as codes: (n, columns)."""
    columns = [pd.DataFrame(x)[c] for x in X for c in pd.DataFrame(x)]
    codes = [c.cat.codes if isinstance(c.dtype, pd.CategoricalDtype) else c for c in columns]
    return np.column_stack([c.to_numpy(float, na_value=np.nan) for c in codes])


def outputs(model, X, unit):
    """All that is said of each row, by verb, in standard deviations: (n, ...) each."""
    z = model.embedding_
    found = {"transform": model.transform(X) / z.std(), "predict": model.predict(X)[:, None]}
    if model.soft:
        found["predict_proba"] = model.predict_proba(X)
    if model.generative:
        ends = model.impute(X, interval=0.9)
        values = {"impute": model.impute(X), "reconstruct": model.reconstruct(X)}
        values |= {"mean": ends.mean, "lower": ends.lower, "upper": ends.upper}
        found |= {verb: numeric(x) / unit for verb, x in values.items()}
    return found


def agree(whole, rows, part):
    for verb, values in part.items():
        np.testing.assert_allclose(values, whole[verb][rows], rtol=0, atol=CLOSE, err_msg=verb)


def check(model, data, n, monkeypatch):
    """Some rows, single rows, all in another order and in other batches: all agree."""
    X, unit = data(n, seed=1), np.nanstd(numeric(data(N, seed=0)), axis=0)
    X = some(X, there(X))
    whole, n = outputs(model, X, unit), len(X[0])
    agree(whole, slice(5), outputs(model, some(X, np.arange(5)), unit))
    for i in range(5):
        agree(whole, [i], outputs(model, some(X, [i]), unit))
    order = np.random.default_rng(0).permutation(n)
    agree(whole, order, outputs(model, some(X, order), unit))
    monkeypatch.setattr(imputation, "DECODED_ROWS", 7)
    monkeypatch.setattr(learner, "BATCHES", 1)
    agree(whole, slice(n), outputs(model, X, unit))


SEVERAL = (
    "mvp",
    "mopoe",
    "completer",
    "icmvc",
    "dvimc",
    "knn_fill",
    "kernel_fill",
)  # with all kinds
CASES = [pytest.param(name, "arrays") for name in METHODS]
CASES += [
    pytest.param(name, kind, marks=pytest.mark.slow if name in SEVERAL else pytest.mark.all)
    for name, kind in product(METHODS, ("frames", "counted"))
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_row_does_not_depend_on_the_others(name, kind, monkeypatch):
    data = KINDS[kind]
    model = fitted(name) if data is arrays else fit(name, data)
    check(model, data, N, monkeypatch)


@pytest.mark.parametrize(("name", "data", "settings"), OTHERS)
def test_nor_with_other_settings(name, data, settings, monkeypatch):
    monkeypatch.setattr(sentence_decoding, "CANDIDATES", 4)
    check(fit(name, data, **settings), data, 20, monkeypatch)


@pytest.mark.parametrize("name", IMPUTING)
def test_draws_for_users_differ_from_row_to_row(name):
    a, b, *rest = (x[:1] for x in arrays(N, seed=0))
    row = [np.full_like(a, np.nan), np.full_like(b, np.nan), *map(np.nan_to_num, rest)]
    X = [np.repeat(x, 40, axis=0) for x in row]
    first, again, other = (
        np.hstack(fitted(name).sample_imputations(X, 1, random_state=s)[0]) for s in (0, 0, 1)
    )
    assert len(np.unique(first, axis=0)) == 40
    np.testing.assert_array_equal(again, first)
    assert (other[:, :9] != first[:, :9]).all()
