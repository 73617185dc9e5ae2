"""vedute.plot: what is drawn is what was observed, learned and imputed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

pytest.importorskip("matplotlib")

import matplotlib as mpl
from matplotlib import pyplot as plt

from vedute import DCCA, MVP, LowRankFill, MeanFill, RidgeFill, Views, plot
from vedute.analysis.inferred import inferred
from vedute.analysis.informs import informs
from vedute.analysis.profiles import profiles
from vedute.figures import plots

mpl.use("Agg")
TINY = dict(
    steps=30, warmup=10, hidden=(8,), map_hidden=(8,), latent_dim=3, device="cpu", random_state=0
)
LONG = "a very long name of a view that nobody would want to read"


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def cohort(n=90, L=3, K=3, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    z = 4 * rng.normal(size=(K, 3))[np.arange(n) % K] + rng.normal(size=(n, 3))
    ids = [f"p{i:02d}" for i in range(n)]
    X = {}
    for v in range(L):
        x = z @ rng.normal(size=(3, 4)) + 0.3 * rng.normal(size=(n, 4))
        frame = pd.DataFrame(x, ids, [f"f{v}{j}" for j in range(4)])
        X[f"view{v}"] = frame[(rng.random(n) >= share) | (np.arange(n) % L == v)]
    return X


@pytest.fixture(scope="module", name="X")
def tables():
    return cohort()


@pytest.fixture(scope="module")
def mvp(X):
    return MVP(n_clusters=3, **TINY).fit(X)


@pytest.fixture(scope="module")
def ridge(X):
    return RidgeFill(n_clusters=3, random_state=0).fit(X)


def words(labels):
    return [t.get_text() for t in labels]


def right(ax):
    """What stands at the right ends of rows."""
    return words(ax.child_axes[0].get_yticklabels())


def shown(ax):
    """Draw it, and all that has a place is inside the figure."""
    ax.figure.canvas.draw()
    box, whole = ax.get_tightbbox(), ax.figure.bbox
    assert box.x0 >= whole.x0 - 2
    assert box.y0 >= whole.y0 - 2
    assert box.x1 <= whole.x1 + 2
    assert box.y1 <= whole.y1 + 2
    return ax


def test_missing_has_a_column_per_pattern_as_wide_as_it_is_frequent():
    nan = np.full(2, np.nan)
    a, b = np.ones((10, 2)), np.ones((10, 2))
    a[:3], b[9] = nan, nan
    a[5, 0] = np.nan
    ax = shown(plot.missing({"a": a, "b": b}))
    mesh = ax.collections[0]
    np.testing.assert_array_equal(mesh.get_coordinates()[0, :, 0], [0, 6, 9, 10])
    np.testing.assert_array_equal(mesh.get_array(), [[1, 0, 1], [1, 1, 0]])
    assert words(ax.get_yticklabels()) == ["a", "b"]
    assert right(ax) == ["30 % missing, 7 % of its values", "10 % missing"]
    assert words(ax.texts) == ["6", "3", "1"]
    assert ax.get_title("left") == "Observed views: 3 patterns, 60 % complete"


@pytest.mark.parametrize(("n", "L"), [(5, 2), (5, 1), (3000, 20), (50, 30)])
def test_missing_of_few_and_many(n, L):
    ax = shown(plot.missing({f"{LONG} {v}": np.ones((n, 1)) for v in range(L)}))
    assert ax.get_title("left") == "Observed views: 1 pattern, 100 % complete"


def test_training_shows_the_hidden_error_and_what_was_kept(mvp):
    ax = shown(plot.training(mvp))
    checked = [r for r in mvp.history_ if r["hidden_error"] is not None]
    curve, kept = ax.lines[:2]
    np.testing.assert_array_equal(curve.get_xdata(), [r["step"] for r in checked])
    np.testing.assert_array_equal(curve.get_ydata(), [r["hidden_error"] for r in checked])
    assert f"kept: step {kept.get_xdata()[0]}, error {kept.get_ydata()[0]:.3f}" in words(ax.texts)
    assert "warm-up" in words(ax.texts)


def test_training_shows_terms_if_asked_or_if_nothing_was_hidden(mvp):
    ax = shown(plot.training(mvp, terms=True))
    names = [name.replace("_", " ") for name in mvp.history_[0]["terms"]]
    assert words(ax.get_legend().get_texts()) == names
    few = {k: f.iloc[:8] for k, f in cohort(8, share=0.0).items()}
    ax = plot.training(MVP(**TINY).fit(few))
    assert ax.get_title("left") == "MVP: terms of the loss"


def test_training_of_a_fill_is_refused(ridge):
    with pytest.raises(ValueError, match="RidgeFill is not trained in steps"):
        plot.training(ridge)


def test_map_colors_by_cluster(ridge):
    ax = shown(plot.map(ridge))
    sizes = [len(c.get_offsets()) for c in ax.collections]
    assert sizes == np.bincount(ridge.labels_).tolist()
    assert words(ax.get_legend().get_texts()) == ["0", "1", "2"]
    assert ax.get_legend().get_title().get_text() == "cluster"
    assert ax.get_xlabel() == "t-SNE"


def test_map_colors_by_labels(ridge):
    n = len(ridge.embedding_)
    names = pd.Series(["sick", None, "well"] * (n // 3), name="diagnosis")
    legend = plot.map(ridge, names).get_legend()
    assert legend.get_title().get_text() == "diagnosis"
    assert words(legend.get_texts()) == ["sick", "well", "unknown"]
    ages = np.arange(n, dtype=float)
    ages[0] = np.nan
    without, ages_of = plot.map(ridge, ages).collections
    assert len(without.get_offsets()) == 1
    np.testing.assert_array_equal(ages_of.get_array(), ages[1:])
    legend = plot.map(ridge, [f"type {i % 30}" for i in range(n)]).get_legend()
    assert words(legend.get_texts())[-1] == "others"
    assert len(legend.get_texts()) == plots.COLORED_CLASSES + 1


def test_map_without_clusters_of_few_and_of_equal_samples():
    few = cohort(6, share=0.0)
    assert plot.map(MeanFill().fit(few)).get_xlabel() in (
        "principal axes",
        "all samples are in one place",
    )
    same = {k: f * 0 + 1 for k, f in few.items()}
    assert plot.map(MeanFill().fit(same)).get_xlabel() == "all samples are in one place"


def test_hidden_errors_are_those_of_the_model(ridge):
    ax = shown(plot.hidden_errors(ridge))
    error, known = ridge.hidden_["error"].copy(), ridge.hidden_predictions_
    error[known["at"]] = known["error"]
    base, view = ridge.hidden_["mean_error"], ridge.hidden_["view"]
    for v, dots in enumerate(c for c in ax.collections if len(c.get_offsets()) > 1):
        mine = view == v
        np.testing.assert_allclose(dots.get_offsets()[:, 0], np.sort(error[mine]))
        share = 1 - error[mine].sum() / base[mine].sum()
        assert right(ax)[v] == f"R² {share:.2f}, {mine.sum()} hidden"
    assert words(ax.get_legend().get_texts()) == ["median", "mean", "mean-fill (mean)"]
    assert ax.get_title("left") == "Errors of RidgeFill on hidden views"


def test_hidden_errors_need_hidden_views(X):
    alone = {"a": X["view0"]}
    with pytest.raises(ValueError, match="no view was hidden in fit, which takes samples with two"):
        plot.hidden_errors(RidgeFill(random_state=0).fit(alone))


@pytest.mark.parametrize("L", [2, 6, 12])
def test_views_shows_the_matrix(L):
    X = {f"{LONG} {v}": f for v, f in enumerate(cohort(60, L).values())}
    model = LowRankFill(random_state=0).fit(X)
    ax = shown(plot.views(model, X))
    drawn = np.ma.filled(ax.collections[0].get_array(), np.nan)
    table = informs(model, X)
    np.testing.assert_array_equal(np.delete(drawn, L, axis=0), table)  # a free row before the last
    assert words(ax.get_yticklabels())[-1] == "all others"
    numbers = [f"{round(100 * x)}".replace("-", "−") for x in table.to_numpy().ravel() if x == x]
    assert words(ax.texts) == (numbers if L < 12 else [])


def test_clusters_shows_effects_by_name(ridge, X):
    ax = shown(plot.clusters(ridge, X))
    table = profiles(ridge, X)
    drawn = ax.collections[0].get_array()
    names = words(ax.get_yticklabels())
    assert len(names) == len(set(names)) == 12
    for name, row in zip(names, drawn, strict=True):
        np.testing.assert_array_equal(row, table.loc[tuple(name.split(" · "))])
    sizes = np.bincount(ridge.predict(X))
    assert words(ax.get_xticklabels()) == [f"{k}\nn={size}" for k, size in enumerate(sizes)]


def test_fifteen_clusters_and_one(X):
    many = RidgeFill(n_clusters=15, random_state=0).fit(X)
    shown(plot.clusters(many, X))
    shown(plot.map(many))
    with pytest.raises(ValueError, match="one cluster"):
        plot.clusters(RidgeFill(n_clusters=1, random_state=0).fit(X), X)


def test_sample_shows_values_and_intervals(ridge, X):
    i = next(i for i in X["view0"].index if i not in X["view1"].index)
    ax = shown(plot.sample(ridge, X, i, "view1", coverage=0.8))
    table = inferred(ridge, X, i, "view1", 0.8)
    scaled = table.sub(table["mean"], axis=0).div(table["std"], axis=0)
    ends = [segment[:, 0] for segment in ax.collections[0].get_segments()]
    np.testing.assert_allclose(ends, scaled[["lower", "upper"]])
    (dots,) = [line for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(dots.get_xdata(), scaled["value"])
    assert words(ax.get_yticklabels()) == list(X["view1"].columns)
    first = [float(x) for x in re.findall(r"-?[\d.]+", right(ax)[0])]
    np.testing.assert_allclose(first, table.iloc[0, :3].astype(float), atol=0.05)
    assert words(ax.get_legend().get_texts()) == ["imputed, 80 % interval"]


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((1.23456, 1.0, 1.5), "1.23  (1.00 to 1.50)"),
        ((-0.001, -1.68, 1.59), "0.0  (-1.7 to 1.6)"),
        ((123456.0, 1e5, 1.5e5), "123456  (100000 to 150000)"),
        ((0.123456, 0.123456, 0.123456), "0.1235"),
    ],
)
def test_numbers_are_as_long_as_their_intervals_are_narrow(ends, text):
    assert plot._text(*ends) == text


def test_sample_of_a_wide_view_shows_what_is_far_from_the_mean():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(50, 100))
    wide[7, 60] = 40.0
    X = {"a": wide, "b": rng.normal(size=(50, 2))}
    ax = shown(plot.sample(RidgeFill(random_state=0).fit(X), X, 7, "a"))
    names = words(ax.get_yticklabels())
    assert len(names) == 30
    assert "60" in names
    assert names == sorted(names, key=int)
    assert ax.get_title("left") == "a of sample 7, 30 of 100 features"


def test_sample_of_images_is_an_image():
    rng = np.random.default_rng(0)
    pixels = rng.integers(256, size=(40, 3, 5, 6), dtype=np.uint8)
    X = Views.of({"photo": pixels, "text": rng.normal(size=(40, 2))})
    ax = plot.sample(MeanFill().fit(X), X, 4, "photo")
    level = pixels[4].transpose(1, 2, 0).astype(float)
    level = (level - level.min()) / np.ptp(level)
    np.testing.assert_allclose(ax.images[0].get_array(), level, atol=1e-6)
    assert ax.get_title("left") == "photo of sample 4: observed"


def test_unfitted_models_and_methods_that_do_not_impute_are_refused(X):
    pair = {
        k: X[k].loc[X["view0"].index.intersection(X["view1"].index)] for k in ("view0", "view1")
    }
    cannot = DCCA(latent_dim=2, hidden=(8,), steps=5, device="cpu").fit(pair)
    for draw in (plot.hidden_errors, plot.views, plot.sample):
        rest = {plot.hidden_errors: (), plot.views: (pair,), plot.sample: (pair, 0, "view0")}[draw]
        with pytest.raises(TypeError, match="DCCA cannot impute"):
            draw(cannot, *rest)
        with pytest.raises(NotFittedError):
            draw(MVP(), *rest)
    for draw in (plot.training, plot.map):
        with pytest.raises(NotFittedError):
            draw(MVP())
    assert not plt.get_fignums()
    with pytest.raises(ValueError, match="pass one per sample of fit"):
        plot.map(cannot, labels=[1, 2])


def test_every_plot_takes_an_axes_and_leaves_no_trace(mvp, X):
    before = dict(mpl.rcParams)
    figure, grid = plt.subplots(2, 4, figsize=(20, 9), layout="constrained")
    a = grid.ravel()
    assert plot.missing(X, a[0]) is a[0]
    assert plot.training(mvp, a[1]) is a[1]
    assert plot.map(mvp, ax=a[2]) is a[2]
    assert plot.hidden_errors(mvp, a[3]) is a[3]
    assert plot.views(mvp, X, a[4]) is a[4]
    assert plot.clusters(mvp, X, a[5]) is a[5]
    assert plot.sample(mvp, X, 0, 0, a[6]) is a[6]
    assert plt.get_fignums() == [figure.number]
    assert dict(mpl.rcParams) == before


@pytest.mark.slow
def test_matplotlib_loads_late_and_without_it_one_sentence_says_what_to_install():
    code = (
        "import sys, vedute\n"
        "assert not {'torch', 'matplotlib'} & set(sys.modules)\n"
        "import numpy as np, vedute.plot\n"
        "assert vedute.plot.__name__ == 'vedute.plot' and 'matplotlib' not in sys.modules\n"
        "vedute.plot.plots.find_spec = lambda name: None\n"
        "try: vedute.plot.missing([np.ones((3, 2))])\n"
        "except ImportError as e: print(e)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "plots need matplotlib: pip install 'vedute[plots]'"


@pytest.mark.parametrize("at", [20, 400, 640, 980])
@pytest.mark.parametrize("least", [0.02, 0.5])
def test_the_label_of_what_was_kept_stays_inside(at, least):
    records = [
        {"step": s, "hidden_error": least + abs(s - at) / 3000, "terms": {}}
        for s in range(20, 1000, 20)
    ]
    figure, ax = plt.subplots(figsize=(6.6, 3.4))
    plots.errors(ax, records, {"step": at, "hidden_error": least}, 0, 0)
    figure.canvas.draw()
    (label,) = (t for t in ax.texts if t.get_text().startswith("kept"))
    room, box = ax.get_window_extent(), label.get_window_extent()
    assert room.x0 < box.x0 < box.x1 < room.x1
    assert room.y0 < box.y0 < box.y1 < room.y1
    plt.close(figure)
