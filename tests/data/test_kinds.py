"""What views are taken for: by their observed entries only, with few rows, and at the borders."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from by_scalers import scaled as by_scalers

import vedute
from vedute.data import kinds, scaling
from vedute.data.views import Views
from vedute.estimators.fitted_view import FittedView
from vedute.methods.fills.lowrank_fill import LowRankFill
from vedute.methods.fills.mean_fill import MeanFill


def counts(n, width=120, seed=0):
    """Negative binomial with a depth for each row."""
    rng = np.random.default_rng(seed)
    depth, level = rng.lognormal(0, 0.5, (n, 1)), rng.lognormal(1, 1.5, width)
    return rng.poisson(depth * level * rng.gamma(1.0, size=(n, width))).astype(float)


def words(n, width=200, seed=0):
    """tf-idf: two topics, most words in few rows."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(0.1, size=(2, width))[np.arange(n) % 2]
    return rng.poisson(rate) * rng.uniform(1, 5, width)


def examples(n):
    rng = np.random.default_rng(n)
    shares = rng.dirichlet(np.ones(6), n)
    return {
        "numbers": rng.normal(size=(n, 5)),
        "positive": rng.lognormal(0, 1, (n, 8)),
        "counts": counts(n),
        "log_counts": counts(n, 99),
        "text": words(n),
        "proportions": shares,
        "ordinal": rng.integers(1, 6, (n, 4)).astype(float),
        "binary": rng.integers(0, 2, (n, 4)).astype(float),
        "categories": np.eye(3)[rng.integers(0, 3, n)],
        "images": rng.integers(0, 256, (n, 1, 4, 4)).astype(np.uint8),
    }


def taken(x, mask=None):
    """The kind of one view, as `fit` takes it."""
    views = Views.of([x, np.ones(len(x))], mask, dtype=torch.float64)
    return FittedView.of(views, 0).kind


@pytest.mark.parametrize("n", [20, 50, 500])
@pytest.mark.parametrize("kind", examples(20))
def test_every_kind_is_recognised(kind, n):
    assert taken(examples(n)[kind]) == kind


@pytest.mark.parametrize(
    "kind", ["numbers", "positive", "counts", "text", "proportions", "ordinal"]
)
def test_holes_and_missing_rows_say_nothing(kind):
    x = examples(100)[kind].copy()
    rng = np.random.default_rng(1)
    x[rng.random(x.shape) < 0.1] = np.nan
    x[::7] = np.nan
    if kind == "proportions":
        x[1] = np.eye(6)[0] * 0.4 + 0.1
    assert taken(x) == kind
    views = Views.of([x, np.ones(len(x))], dtype=torch.float64)
    seen = views.seen(0)
    for poison in (-1e9, np.nan, 0.5):
        dirty = torch.where(seen, views.x[0], poison)
        assert kinds.recognise(dirty, seen) == kinds.recognise(views.x[0], seen)
        limits = [kinds.bounds(kinds.KINDS[kind], a, seen) for a in (dirty, views.x[0])]
        assert limits[0] == limits[1]


RNG = np.random.default_rng(0)
BORDERS = {
    "ids": (np.arange(1.0, 61)[:, None] * [1, 100], "numbers"),
    "grey values": (np.clip(RNG.normal(120, 60, (60, 64)), 0, 255).round(), "numbers"),
    "a dense histogram": (RNG.dirichlet(np.full(64, 20.0), 60) * 500, "numbers"),
    "one word is negative": (words(60) - 1e-3, "numbers"),
    "few words": (words(60)[:, :8], "numbers"),
    "temperatures": (RNG.normal(20, 5, (60, 4)), "numbers"),
    "two values": (np.where(RNG.random((60, 3)) < 0.5, 3.0, 7.0), "ordinal"),
    "likert": (RNG.integers(-2, 3, (60, 3)).astype(float), "ordinal"),
    "one value": (np.full((60, 3), 4.0), "numbers"),
    "keywords": ((words(60) > 0).astype(float), "text"),
    "few flags": ((RNG.random((60, 10)) < 0.1).astype(float), "binary"),
    "rates": (RNG.beta(0.5, 0.5, (60, 9)), "proportions"),
    "few skewed rows": (RNG.lognormal(0, 1, (12, 4)), "numbers"),
    "bytes of a picture": (np.where(RNG.random((60, 99)) < 0.8, 0.0, 200.0), "text"),
}


@pytest.mark.parametrize("name", BORDERS)
def test_borders(name):
    x, kind = BORDERS[name]
    assert taken(x) == kind


def test_columns_of_one_value_change_nothing():
    for kind in ("counts", "positive", "text"):
        x = examples(60)[kind]
        assert (
            taken(np.hstack([x, np.zeros((60, 1)) if kind == "text" else x[:1, :1] + 0 * x[:, :1]]))
            == kind
        )


def test_frames_with_categories_are_numbers_of_several_types():
    frame = pd.DataFrame({"a": RNG.lognormal(0, 2, 50), "b": pd.Categorical(list("uv") * 25)})
    views = Views.of({"t": frame}, dtype=torch.float64)
    assert FittedView.of(views, 0).why == "columns of several types"


# How they are scaled.


def scaled(word, x):
    views = Views.of([x, np.ones(len(x))], dtype=torch.float64).pick(0)
    scaler = scaling.fit(word, views.x[0], views.seen(0))
    return scaler, by_scalers([scaler], views), views


@pytest.mark.parametrize("word", ["length", "depth", "log"])
def test_what_is_scaled_is_restored(word):
    x = counts(60)
    x[::5] = np.nan
    x[1, 3] = np.nan
    scaler, data, views = scaled(word, x)
    seen = views.seen(0).numpy()
    back = scaler.restore(data.x[0].numpy(), data.size(0))
    np.testing.assert_allclose(back[seen], x[seen], rtol=1e-5, atol=1e-4)
    assert (back[1:4] > -1e-6).all()
    assert (data.x[0].numpy()[::5] == 0).all()


def test_rows_of_text_get_the_same_length():
    x = words(60)
    scaler, data, _ = scaled("length", x)
    length = np.linalg.norm(x, axis=1)
    np.testing.assert_allclose(data.sizes[0], length / length.mean(), rtol=1e-10)
    even = x / length[:, None] * length.mean()
    one = np.sqrt((even.std(0)[even.std(0) > 0] ** 2).mean())
    np.testing.assert_allclose(data.x[0], (even - even.mean(0)) / one, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(scaler.unit, even.std(0) > 0)


def test_counts_are_divided_by_size_factors_and_logged():
    x = counts(60)
    _, data, _ = scaled("depth", x)
    size = x.sum(1) / x.sum(1).mean()
    np.testing.assert_allclose(data.sizes[0], size, rtol=1e-10)
    y = np.log1p(x / size[:, None])
    one = np.sqrt((y.std(0)[y.std(0) > 0] ** 2).mean())
    np.testing.assert_allclose(data.x[0], (y - y.mean(0)) / one, rtol=1e-4, atol=1e-5)


def test_a_size_goes_by_what_is_seen_of_a_row():
    x = np.tile(counts(1), (30, 1)) * np.arange(1.0, 31)[:, None]
    whole = scaled("depth", x)[1].sizes[0]
    x[4, ::2] = np.nan
    holed = scaled("depth", x)[1].sizes[0]
    np.testing.assert_allclose(holed / holed[0], whole / whole[0], rtol=0.02)


def test_a_hidden_row_has_the_usual_size():
    _, data, _ = scaled("depth", counts(40))
    out = torch.zeros(40, 1, dtype=torch.bool)
    out[3] = True
    assert float(data.hide(out).sizes[0][3]) == 1.0
    assert float(data[5:].sizes[0][0]) == float(data.sizes[0][5])


@pytest.mark.parametrize("word", ["log", "depth"])
def test_means_and_quantiles_under_a_logarithm(word):
    x = RNG.lognormal(1, 0.6, (4000, 2))
    x[:, 1] *= 50
    scaler = scaled(word, x)[0]
    mean, std = scaler.mean - 0.5, scaler.std * 0.7
    size = np.array([[2.5]]) if word == "depth" else 1.0
    normal = mean + std * np.random.default_rng(1).normal(size=(200_000, 2))
    free = scaling.replace(scaler, top=np.inf)
    drawn = free.restore(normal, size)
    m, s = free.moments(mean[None], std[None], size)
    np.testing.assert_allclose(m[0], drawn.mean(0), rtol=0.01)
    np.testing.assert_allclose(s[0], drawn.std(0), rtol=0.03)
    for z, share in ((-1.645, 0.05), (0.0, 0.5), (1.645, 0.95)):
        q = free.quantile(m, s, z, size)
        np.testing.assert_allclose((drawn <= q).mean(0), share, atol=0.005)
        np.testing.assert_allclose(free.distance(q, m, s, size), abs(z), atol=1e-6)


# Together.


def two_views(make, n=120, seed=0):
    """Two views that share their rows' groups; a third of each is missing."""
    X = [make(n, seed=seed), make(n, seed=seed + 1)]
    X[0][::3], X[1][1::3] = np.nan, np.nan
    return X


@pytest.mark.parametrize("make", [counts, words])
def test_imputations_and_intervals_are_possible_and_consistent(make):
    X = two_views(make)
    X[0][1, :5] = np.nan
    model = LowRankFill(max_rank=4, random_state=0).fit(X)
    mean, lower, upper = model.impute(X, interval=0.9)
    for x, m, low, high, plain in zip(X, mean, lower, upper, model.impute(X), strict=True):
        np.testing.assert_array_equal(m, plain)
        assert (low >= 0).all()
        assert ((low <= m) & (m <= high)).all()
        np.testing.assert_array_equal(m[~np.isnan(x)], x[~np.isnan(x)])
    assert all((d >= 0).all() for draw in model.sample_imputations(X, 2) for d in draw)


@pytest.mark.parametrize("n", [20, 200])
@pytest.mark.parametrize("kind", ["proportions", "ordinal", "positive"])
def test_values_stay_within_bounds(kind, n):
    x = examples(n)[kind]
    X = [
        np.where(np.arange(n)[:, None] % 4 == 0, np.nan, x),
        x @ np.ones((x.shape[1], 2)) + RNG.normal(size=(n, 2)),
    ]
    _, lower, upper = LowRankFill(random_state=0).fit(X).impute(X, interval=0.99)
    assert lower[0].min() >= 0
    assert upper[0].max() <= {"proportions": 1.0, "ordinal": 5.0}.get(kind, x.max() * (1 + 1e-9))


@pytest.mark.parametrize("make", [counts, words])
def test_holes_are_filled_in_the_size_of_their_row(make):
    X = two_views(make)
    X[0][1] *= 1000
    X[0][1, :8] = np.nan
    filled = LowRankFill(max_rank=3, random_state=0).fit(X).impute(X)[0]
    X[0][1] /= 1000
    small = LowRankFill(max_rank=3, random_state=0).fit(X).impute(X)[0]
    assert filled[1, :8].sum() > 100 * small[1, :8].sum()


def test_nothing_under_missing_entries_matters():
    X = two_views(counts)
    mask = np.ones((120, 2), bool)
    mask[::3, 0], mask[1::3, 1] = False, False
    results = []
    for poison in (0.0, -7.5, 1e6):
        dirty = [np.where(mask[:, [v]], x, poison) for v, x in enumerate(X)]
        model = LowRankFill(random_state=0).fit(Views.of(dirty, mask))
        results.append((model.embedding_, *model.impute(Views.of(dirty, mask)).arrays()))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", ["counts", "log_counts", "text", "positive", "ordinal"])
def test_saved_models_keep_their_kinds(kind, tmp_path):
    x = examples(80)[kind]
    X = [np.where(np.arange(80)[:, None] % 3 == 0, np.nan, x), x[:, :2]]
    model = LowRankFill(kinds=[kind, "numbers"], random_state=0).fit(X)
    model.save(tmp_path)
    again = vedute.load(tmp_path)
    assert (again.views_[0].kind, again.views_[0].bounds) == (kind, model.views_[0].bounds)
    for a, b in zip(model.impute(X, interval=0.5), again.impute(X, interval=0.5), strict=True):
        np.testing.assert_array_equal(a[0], b[0])


# What a user says.


def of(x, **settings):
    views = MeanFill(random_state=0, **settings).fit({"rna": x, "b": np.ones((len(x), 1))}).views_
    return views[0]


def test_what_is_given_wins():
    x = counts(60)
    view = of(x)
    assert (view.kind, view.likelihood.name, view.scaler.power, view.bounds[0]) == (
        *("counts", "normal", 1),
        0.0,
    )
    assert of(x, kinds={"rna": "numbers"}).scaler.power == 0
    assert of(x, kinds="text").scaler.power == 2
    assert of(x, kinds=["positive", "auto"]).scaler.offset is not None
    given = of(x, kinds={"rna": "counts"}, scaling="standard")
    assert (given.kind, given.scaler.power, given.bounds) == ("counts", 0, (0.0, np.inf))
    scaled = of(x, scaling="standard")
    assert (scaled.kind, scaled.bounds) == ("numbers", (-np.inf, np.inf))
    assert of(x, likelihood="laplace").likelihood.name == "laplace"
    assert of(x, likelihood="laplace").kind == "counts"
    assert of((x > 3).astype(float), likelihood={"rna": "bernoulli"}).kind == "binary"


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        ("counts", -1.5, "view 'rna' holds -1.5; counts are whole numbers from 0: correct it, or"),
        ("counts", 2.5, "view 'rna' holds 2.5; counts are whole numbers from 0"),
        ("text", -1.0, "view 'rna' holds -1; text is made of weights or counts that are never"),
        ("proportions", 3.0, "view 'rna' holds 3; proportions lie between 0 and 1"),
        ("positive", -2.0, "view 'rna' holds -2; positive are never negative"),
        ("binary", 3.0, "view 'rna' holds 3; bernoulli values lie between 0 and 1"),
    ],
)
def test_a_wrong_kind_is_refused(kind, value, sentence):
    x = np.ones((30, 12))
    x[4, 2] = value
    with pytest.raises(ValueError, match=sentence):
        of(x, kinds={"rna": kind})


def test_unknown_kinds_and_new_negative_values_are_refused():
    with pytest.raises(ValueError, match="no kind 'rna'; choose from auto, numbers"):
        of(counts(30), kinds="rna")
    with pytest.raises(ValueError, match="kinds names view 'x'; X has rna, b"):
        of(counts(30), kinds={"x": "text"})
    model = MeanFill().fit([counts(60), np.ones((60, 1))])
    with pytest.raises(ValueError, match="'view0' holds -1 and was fitted as counts"):
        model.transform([counts(60) - 1, np.ones((60, 1))])


def test_fit_says_what_it_took_views_for(caplog):
    with caplog.at_level("INFO", logger="vedute"):
        of(words(60), verbose=True)
    assert "rna: text (" in caplog.text


def test_rare_words_do_not_decide_hidden_errors():
    x = words(200)
    scaler, data, _ = scaled("length", x)
    held = vedute.data.holdout.HoldOut.of(data, torch.ones(200, 1, dtype=torch.bool), [scaler])
    error = held.errors(held.means[0], 0)
    assert float(error.mean()) == pytest.approx(1.0, rel=1e-4)
    varying = scaler.std > 0
    by_hand = (data.x[0].numpy()[:, varying] ** 2).mean(1)
    np.testing.assert_allclose(error, by_hand, rtol=1e-4)
