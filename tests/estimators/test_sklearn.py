"""scikit-learn's own checks, and its tools for choosing among models, on incomplete views."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from every_method import CLUSTERING, IMPUTING, METHODS, PAIRED, REPRESENTATIVES, SMALL, each, small
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import estimator_checks_generator

from vedute import MVP, Views
from vedute.methods.best_pair import BestPair, for_views

LEARNS = SMALL | {"hidden": (32,), "pretrain": 100, "latent_dim": 2, "batch_size": 128}
QUICK = {  # of every method: nothing is fitted
    "check_set_params",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_get_params_invariance",
    "check_no_attributes_set_in_init",
}
LONGER = {"steps": 60, "latent_dim": 8}  # where a step sees all samples, as others' epochs do
TWO_VIEWS = {"a": slice(0, 1), "b": slice(1, None)}
ONE_VIEW = "a table is one view, and the score leaves out one of two: checked with `columns` below"
DO_NOT_APPLY = {
    "check_fit_score_takes_y": ONE_VIEW,
    "check_pipeline_consistency": ONE_VIEW,
    "check_array_api_input": "runs only where SCIPY_ARRAY_API is set",
}
CUT = "a table that cannot be cut by `columns` is refused in words of our own"
DO_NOT_APPLY_TO_PAIRS = {
    "check_n_features_in_after_fitting": CUT,
    "check_fit2d_1feature": CUT,
    "check_fit2d_predict1d": CUT,
    "check_methods_subset_invariance": "whitening magnifies rounding; the contract allows for it",
}

CLASSES = "asks whoever has predict_proba for the tags of a classifier"
DO_NOT_APPLY_TO_SOFT = {
    "check_estimator_sparse_array": CLASSES,
    "check_estimator_sparse_matrix": CLASSES,
}


def make(name, n_views=1, **settings):
    """A small model; of a table, a method for two views makes two."""
    columns = TWO_VIEWS if name in PAIRED and n_views == 1 else None
    sizes = LEARNS | (LONGER if name == "icmvc" else {})
    settings = {"n_clusters": 2, "columns": columns} | settings
    return for_views(small(METHODS[name], sizes, **settings), n_views)


def views(n=60):
    """Three views of two clusters, some missing."""
    rng = np.random.default_rng(0)
    side = np.arange(n) % 2
    X = [4.0 * side[:, None] + rng.normal(size=(n, w)) for w in (4, 3, 5)]
    for v, x in enumerate(X):
        x[v::4] = np.nan
    return Views.of(X, y=side)


def checks():
    """Those of scikit-learn, for every method."""
    for name in METHODS:
        others = DO_NOT_APPLY_TO_PAIRS if name in PAIRED else {}
        others = others | (DO_NOT_APPLY_TO_SOFT if name in CLUSTERING else {})
        for _, check in estimator_checks_generator(make(name)):
            title = check.func.__name__
            others_run = pytest.mark.slow if name in REPRESENTATIVES else pytest.mark.all
            marks = () if name in ("mvp", "knn_fill") or title in QUICK else others_run
            if title not in DO_NOT_APPLY | others:
                yield pytest.param(name, check, id=f"{name}-{title}", marks=marks)


@pytest.mark.parametrize(("name", "check"), list(checks()))
def test_the_checks_of_scikit_learn(name, check):
    check(make(name))


@pytest.mark.parametrize("name", each(IMPUTING))
@pytest.mark.parametrize("check", [k for k, why in DO_NOT_APPLY.items() if why == ONE_VIEW])
def test_the_checks_of_scores_on_two_views(name, check):
    getattr(estimator_checks, check)(name, make(name, columns=TWO_VIEWS))


def test_rows_are_split_with_their_labels_and_ids():
    data = views()
    train, test, y_train, y_test = train_test_split(
        data, data.y, test_size=0.25, stratify=data.y, random_state=0
    )
    assert isinstance(train, Views)
    assert (len(train), len(test)) == (45, 15)
    assert train.y.tolist() == y_train.tolist()
    assert test.y.tolist() == y_test.tolist()
    assert sorted([*train.index.tolist(), *test.index.tolist()]) == list(range(60))
    frames = [pd.DataFrame(x.numpy(), index=[f"s{i}" for i in range(60)]) for x in data.x]
    part, _ = train_test_split(Views.of(frames), random_state=0)
    assert part.ids.tolist() == [f"s{i}" for i in part.index.tolist()]


def test_cross_validation_needs_no_labels():
    scores = cross_val_score(MVP(steps=10, random_state=0), views(), cv=3)
    assert scores.shape == (3,)
    assert (scores <= 1).all()
    fill = cross_validate(make("lowrank_fill"), views(), cv=KFold(3, shuffle=True, random_state=0))
    assert (fill["test_score"] > 0.3).all()
    labels = cross_val_predict(make("knn_fill"), views(), cv=3)
    assert set(labels) == {0, 1}


def test_the_mean_scores_nothing():
    assert METHODS["mean_fill"]().fit(views()).score(views()) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.all
def test_settings_are_searched_by_the_label_free_score_in_two_processes():
    search = GridSearchCV(
        MVP(steps=10, warmup=2, random_state=0), {"latent_dim": [2, 4]}, cv=2, n_jobs=2
    )
    search.fit(views())
    results = search.cv_results_
    assert np.isfinite(results["mean_test_score"]).all()
    assert search.best_params_["latent_dim"] in (2, 4)
    assert search.best_score_ == results["mean_test_score"].max()
    assert search.transform(views()).shape == (60, search.best_params_["latent_dim"])
    alone = GridSearchCV(search.estimator, search.param_grid, cv=2).fit(views())
    np.testing.assert_allclose(
        alone.cv_results_["mean_test_score"], results["mean_test_score"], atol=1e-4
    )


@pytest.mark.parametrize("first", [StandardScaler(), SimpleImputer()], ids=str)
@pytest.mark.parametrize("last", ["mvp", "lowrank_fill"])
def test_a_pipeline_on_one_table(first, last):
    table = np.hstack([x.numpy() for x in views().x])
    table[~np.repeat(views().mask.numpy(), (4, 3, 5), axis=1)] = np.nan
    columns = {"a": slice(0, 4), "b": slice(4, 7), "c": slice(7, 12)}
    pipeline = Pipeline([("first", first), ("last", make(last, columns=columns))])
    labels = pipeline.fit_predict(table)
    np.testing.assert_array_equal(labels, pipeline.predict(table))
    assert pipeline.transform(table).shape[0] == 60
    assert pipeline.score(table) <= 1
    searched = GridSearchCV(pipeline, {"last__n_clusters": [2, 3]}, cv=2).fit(table)
    assert searched.best_params_["last__n_clusters"] in (2, 3)


def test_a_pipeline_on_one_frame():
    frame = pd.DataFrame(np.hstack([x.numpy() for x in views().x]), columns=list("abcdefghijkl"))
    scale = ColumnTransformer([("z", StandardScaler(), list("abcd"))], remainder="passthrough")
    scale.set_output(transform="pandas").set_params(verbose_feature_names_out=False)
    model = make("mvp", columns={"one": list("abcd"), "two": ["e", "f"], "three": slice(6, 12)})
    z = make_pipeline(scale, model.set_output(transform="pandas")).fit_transform(frame)
    assert z.index.tolist() == frame.index.tolist()
    assert z.columns.tolist() == model.get_feature_names_out().tolist()


@pytest.mark.parametrize("name", each(k for k in METHODS if k not in CLUSTERING))
def test_clustering_is_left_to_a_pipeline(name):
    data, last = views(), KMeans(2, n_init=5, random_state=0)
    model, other = make(name, 3), make(name, 3, n_clusters=None)
    alone = last.fit_predict(model.fit_transform(data))
    if isinstance(other, BestPair):  # which chooses a pair by the clusters that are asked for
        other.set_params(pair=tuple(data.names[v] for v in model.chosen()))
    labels = make_pipeline(other, last).fit_predict(data)
    np.testing.assert_array_equal(labels, alone)
