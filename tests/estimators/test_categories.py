"""Probabilities of categories: they sum to one, agree with what is imputed, and keep what is
observed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from every_method import IMPUTING, METHODS, each, small

from vedute import DCCA, Blend, GaussianFill, LowRankFill, MeanFill, Views
from vedute.estimators.categories import projected, smallest_sets, with_observed
from vedute.methods.best_pair import for_views
from vedute.methods.mvp import MVP

NAN = np.nan
STAGES = ["I", "II", "III"]


def nearest(y, steps=4000):
    """Probabilities nearest to y by bisection: sum max(y - t, 0) falls as t grows."""
    low, high = y.min() - 1, y.max()
    for _ in range(steps):
        t = (low + high) / 2
        low, high = (t, high) if np.maximum(y - t, 0).sum() > 1 else (low, t)
    return np.maximum(y - t, 0)


def cohort(n=90, seed=0):
    """Frames of different people: measurements beside a stage, a sex and a flag; and text alone."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2))
    index = pd.Index([f"p{i}" for i in range(n)], name="patient")
    blood = pd.DataFrame(z @ rng.normal(size=(2, 3)), index, list("abc"))
    stage = pd.Categorical.from_codes(np.digitize(z[:, 0], (-0.5, 0.5)), STAGES)
    clinic = pd.DataFrame({"age": 60 + 5 * z[:, 1], "stage": stage}, index)
    clinic["sex"] = pd.Categorical.from_codes((z[:, 1] > 0).astype(int), ["f", "m"])
    clinic["smokes"] = z[:, 0] > 0
    kind = pd.DataFrame({"kind": pd.Categorical.from_codes(rng.integers(3, size=n), STAGES)}, index)
    return {"blood": blood.iloc[: n - 10], "clinic": clinic.iloc[20:], "kind": kind.iloc[:60]}


@pytest.fixture(scope="module", params=[LowRankFill, Blend])
def fitted(request):
    return small(request.param).fit(cohort())


def test_the_nearest_probabilities():
    rng = np.random.default_rng(0)
    y = rng.normal(0.3, 0.6, size=(40, 4))
    p = projected(y)
    np.testing.assert_allclose(p, [nearest(row, 60) for row in y], atol=1e-12)
    np.testing.assert_allclose(p.sum(1), 1)
    assert (p.argmax(1) == y.argmax(1)).all()
    own = rng.dirichlet(np.ones(4), size=10)
    np.testing.assert_allclose(projected(own), own, atol=1e-12)


def test_what_is_seen_of_a_one_hot_row_excludes_the_rest():
    value = np.tile([0.5, 0.3, 0.2], (5, 1))
    x = np.array([[0, NAN, NAN], [NAN, 1, NAN], [NAN] * 3, [0, 0, NAN], [0, 0, 1]])
    seen = ~np.isnan(x)
    p = with_observed(value, np.nan_to_num(x), seen, 3)
    np.testing.assert_allclose(
        p, [[0, 0.6, 0.4], [0, 1, 0], [0.5, 0.3, 0.2], [0, 0, 1], [0, 0, 1]], atol=1e-9
    )
    sure = with_observed(
        np.array([[1.0, 0.0, 0.0]]), np.zeros((1, 3)), np.array([[True, False, False]]), 3
    )
    np.testing.assert_allclose(sure, [[0, 0.5, 0.5]])  # which the model excluded
    np.testing.assert_array_equal(
        with_observed(np.ones((2, 1)), np.ones((2, 1)), seen[:2, :1], 1), 1.0
    )


def test_columns_of_frames_by_column_and_category(fitted):
    X = cohort()
    found, filled = fitted.impute_proba(X), fitted.impute(X)
    assert list(found) == ["clinic", "kind"]
    clinic = found["clinic"]
    assert clinic.columns.names == ["column", "category"]
    pairs = [("stage", s) for s in STAGES] + [("sex", "f"), ("sex", "m")]
    assert list(clinic) == [*pairs, ("smokes", False), ("smokes", True)]
    pd.testing.assert_index_equal(clinic.index, filled["clinic"].index)
    for name in ("stage", "sex", "smokes"):
        p = clinic[name]
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert ((p >= 0) & (p <= 1)).all(axis=None)
        assert (p.idxmax(axis=1) == filled["clinic"][name]).all()  # also where observed
        there = X["clinic"].index
        given = p.loc[there].to_numpy() == (X["clinic"][[name]].to_numpy() == np.array([*p]))
        assert given.all()
    assert (found["kind"]["kind"].idxmax(axis=1) == filled["kind"]["kind"]).all()
    assert clinic.drop(X["clinic"].index)["stage"].max(axis=1).between(0.34, 0.999).any()


def test_single_missing_categories_of_blend():
    X = cohort()
    lacking = X["clinic"].index[5:65:4]
    X["clinic"].loc[lacking, ["stage", "sex"]] = None
    model = small(Blend).fit(X)
    assert set(model.hole_weights_) == {"clinic"}
    p, filled = model.impute_proba(X)["clinic"], model.impute(X)["clinic"]
    for name in ("stage", "sex"):
        np.testing.assert_allclose(p[name].sum(axis=1), 1)
        assert (p[name].idxmax(axis=1) == filled[name]).all()
        assert (p[name].loc[lacking].max(axis=1) < 1).any()
    assert set(p["smokes"].loc[lacking].to_numpy().ravel()) == {0.0, 1.0}  # observed there


def arrays(n=60):
    rng = np.random.default_rng(1)
    z = rng.normal(size=(n, 2))
    pick = np.digitize(z[:, 0], (-0.5, 0.5))
    x, one, two = z @ rng.normal(size=(2, 4)), np.eye(3)[pick], (z > 0).astype(float)
    one[:8], two[8:16] = NAN, NAN
    return {"x": x, "one": one, "two": two}


@pytest.mark.parametrize("cls", [MVP, Blend, GaussianFill, MeanFill])
def test_arrays_and_any_method(cls):
    X = arrays()
    model = small(cls).fit(X)
    assert [v.likelihood.name for v in model.views_] == ["normal", "categorical", "bernoulli"]
    found, filled = model.impute_proba(X), model.impute(X)
    assert list(found) == ["one", "two"]
    assert list(found["one"]) == [0, 1, 2]
    there = filled["one"] if cls in (MVP, MeanFill) else projected(filled["one"])
    np.testing.assert_allclose(found["one"], there, atol=1e-6)
    np.testing.assert_allclose(found["one"].sum(axis=1), 1)
    assert list(found["two"]) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for c in range(2):
        np.testing.assert_allclose(found["two"][c][1], filled["two"][:, c], atol=1e-6)
        np.testing.assert_allclose(found["two"][c].sum(axis=1), 1)


def test_whole_numbers_are_chosen_as_the_likeliest():
    X = arrays()
    fitted = X | {"one": np.nan_to_num(X["one"]).astype(int)}
    fitted["one"][:8, 0] = 1
    model = small(MVP).fit(fitted)
    p, chosen = (f({"x": X["x"]}) for f in (model.impute_proba, model.impute))
    assert (p["one"].to_numpy().argmax(1) == chosen["one"].argmax(1)).all()
    assert set(np.unique(chosen["one"])) <= {0, 1}


def test_two_categories_that_came_one_hot():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(40, 3)), np.eye(2)[rng.integers(2, size=40)]]
    model = small(MVP, likelihood=["normal", "categorical"]).fit(X)
    (p,) = model.impute_proba([X[0], None]).values()
    assert p.shape == (40, 2)
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_a_views_has_its_ids_and_what_is_missing_does_not_matter(fitted):
    X = cohort()
    views = Views.of(X)
    found, same = fitted.impute_proba(views), fitted.impute_proba(X)
    for name, frame in found.items():
        assert list(frame.index) == list(same[name].index)
        np.testing.assert_allclose(frame, same[name], atol=1e-6)  # a Views is in single precision
    X = arrays()
    model, mask = small(MVP).fit(X), np.stack([~np.isnan(x).any(1) for x in X.values()], 1)
    junk = {
        name: np.where(m[:, None], x, 1.0) for (name, x), m in zip(X.items(), mask.T, strict=True)
    }
    hidden = Views.of(junk, mask=mask)
    for name, frame in model.impute_proba(hidden).items():
        np.testing.assert_array_equal(frame, model.impute_proba(X)[name])


def test_refusals():
    X = [np.random.default_rng(0).normal(size=(30, 3)) for _ in range(2)]
    with pytest.raises(ValueError, match="no view holds categories, nor zeros and ones"):
        MeanFill(random_state=0).fit(X).impute_proba(X)
    with pytest.raises(TypeError, match="DCCA cannot impute"):
        small(DCCA).fit(X).impute_proba(X)


@pytest.mark.parametrize("name", each(IMPUTING, pytest.mark.slow))
def test_categories_are_drawn_as_often_as_impute_proba_says(name):
    """Categories are tested alone in a view, and beside numbers."""
    frames, m = cohort(60), 80
    frames["clinic"].loc[frames["clinic"].index[5:25], "stage"] = None
    X = Views.of(frames)
    model = for_views(small(METHODS[name], n_clusters=3), len(frames)).fit(X)
    p, draws = model.impute_proba(X), model.sample_imputations(X, m)
    clinic, kind = (np.stack([d.x[v].numpy() for d in draws]).mean(0) for v in (1, 2))
    sex = np.stack([1 - clinic[:, 4], clinic[:, 4]], 1)
    for chances, found in (
        (p["kind"]["kind"].to_numpy(), kind),
        (p["clinic"]["stage"].to_numpy(), clinic[:, 1:4]),
        (p["clinic"]["sex"].to_numpy(), sex),
    ):
        certain = (chances < 1e-9) | (chances > 1 - 1e-9)
        np.testing.assert_allclose(found[certain], chances[certain], atol=1e-6)
        z = (found - chances)[~certain] / np.sqrt(chances * (1 - chances) / m)[~certain]
        assert np.abs(z).max(initial=0) < 5.5
        assert z.size == 0 or np.sqrt((z**2).mean()) < 1.4


def test_every_draw_of_indicators_has_one_category():
    X = arrays()
    X = X | {"two": np.eye(4)[np.random.default_rng(2).integers(4, size=60)].astype(float)}
    X["two"][10:30] = NAN
    model = small(MVP).fit(X)
    for drawn in (*model.sample_imputations(X, 5), model.generate(50)):
        for name in ("one", "two"):
            assert set(np.unique(drawn[name])) == {0.0, 1.0}
            np.testing.assert_array_equal(drawn[name].sum(1), 1.0)


def test_frames_of_categories_are_generated_as_often_as_they_are():
    rng = np.random.default_rng(0)
    pick = rng.choice(4, size=300, p=[0.04, 0.16, 0.3, 0.5])
    z = rng.normal(size=(300, 3))
    stage = pd.Categorical.from_codes(pick, ["I", "II", "III", "IV"])
    X = {"x": pd.DataFrame(z, columns=list("abc")), "stage": pd.DataFrame({"stage": stage})}
    drawn = pd.Series(MVP(steps=150, random_state=0).fit(X).generate(2000)["stage"]["stage"])
    found = drawn.value_counts(normalize=True)[["I", "II", "III", "IV"]]
    np.testing.assert_allclose(found, [0.04, 0.16, 0.3, 0.5], atol=0.08)


def test_the_smallest_set_of_categories():
    p = pd.DataFrame([[0.5, 0.3, 0.2], [0.05, 0.95, 0.0], [0.0, 0.0, 1.0]], columns=STAGES)
    sets = [smallest_sets(p, level)["category"].tolist() for level in (0.5, 0.8, 0.9, 0.9999)]
    assert [s[0] for s in sets] == [("I",), ("I", "II"), ("I", "II", "III"), ("I", "II", "III")]
    assert [s[1] for s in sets] == [("II",), ("II",), ("II",), ("II", "I")]
    assert [s[2] for s in sets] == [("III",)] * 4


def test_sets_of_categories_by_view_and_column(fitted):
    X = cohort()
    found, p = fitted.category_sets(X, 0.8), fitted.impute_proba(X)
    assert {name: list(sets) for name, sets in found.items()} == {
        "clinic": ["stage", "sex", "smokes"],
        "kind": ["kind"],
    }
    for name, sets in found.items():
        assert sets.index.equals(p[name].index)
        for column in sets:
            for person, chosen in sets[column].items():
                chances = dict(p[name].loc[person, column])
                assert sum(chances[k] for k in chosen) >= 0.8 - 1e-9
                assert sum(chances[k] for k in chosen[:-1]) < 0.8
    observed = found["clinic"].loc[X["clinic"].index, "stage"]
    assert (observed.str[0] == X["clinic"]["stage"]).all()
    assert (observed.str.len() == 1).all()
    with pytest.raises(ValueError, match="level is a probability between 0 and 1, got 90"):
        fitted.category_sets(X, 90)
