"""Counts of few columns: no size factors, and hidden views decide on their scale."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from shell import done, refused

from vedute.analysis.inspection import inspect
from vedute.data import kinds
from vedute.data.views import Views
from vedute.estimators import panels
from vedute.methods.fills.gaussian_fill import GaussianFill
from vedute.methods.fills.mean_fill import MeanFill


def cells(n=300, width=14, seed=0):
    """Genes, and proteins whose logarithms follow them; a third of the cells lack proteins."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    rate = z @ rng.normal(size=(3, 120)) / 2 + rng.normal(0, 1, 120)
    genes = rng.poisson(rng.lognormal(1, 0.3, (n, 1)) * np.exp(rate)).astype(float)
    level = z @ rng.normal(size=(3, width)) / 1.5 + rng.normal(4, 1, width)
    proteins = rng.poisson(np.exp(level + 0.3 * rng.normal(size=level.shape))).astype(float)
    seen = proteins.copy()
    seen[rng.permutation(n)[: n // 3]] = np.nan
    return genes, seen, proteins


def kind_of(*views, **settings):
    return MeanFill(**settings).fit(list(views)).views_[-1]


@pytest.mark.parametrize("width", [4, 14, 99])
def test_panels_of_counts_have_no_size_factors(width):
    genes, proteins, _ = cells(width=width)
    view = kind_of(genes, proteins)
    assert (view.kind, view.scaler.power) == ("log_counts", 0)
    assert "likelier at hidden views than positive and numbers" in kinds.sentence(view)
    assert kind_of(proteins[~np.isnan(proteins).any(1)]).kind == "log_counts"  # by itself, too


def test_hidden_views_decide_and_not_the_values_alone():
    """Equal counts are tested beside a linearly related view and beside an unrelated one."""
    rng = np.random.default_rng(1)
    level = rng.lognormal(3, 1.2, (300, 12))
    x = np.rint(level + rng.normal(size=level.shape)).clip(0)
    assert kind_of(level @ rng.normal(size=(12, 12)), x).kind == "numbers"
    assert kind_of(rng.normal(size=(300, 12)), x).kind == "log_counts"


def test_constant_columns_change_nothing():
    genes, proteins, _ = cells()
    known = np.where(np.isnan(proteins[:, :1]), np.nan, 2.0)
    wide = Views.of([genes, np.hstack([proteins, known])])
    mask = wide.mask.clone()
    (_, view) = panels.fitted(wide)
    assert (view.kind, bool((wide.mask == mask).all())) == ("log_counts", True)


def test_counts_too_large_to_be_told_apart_are_no_error():
    genes, proteins, _ = cells()
    assert kind_of(genes, proteins * 2.0**50).kind in panels.CANDIDATES


@pytest.mark.parametrize("kind", ["counts", "positive", "numbers", "log_counts"])
def test_what_a_user_says_wins(kind):
    genes, proteins, _ = cells()
    view = kind_of(genes, proteins, kinds=["auto", kind])
    assert (view.kind, view.why) == (kind, "as you say")
    assert view.scaler.power == (kind == "counts")


def test_the_decision_hangs_on_observed_values_only():
    genes, proteins, truth = cells()
    assert (
        kind_of(genes, proteins).why
        == kind_of(genes, np.where(np.isnan(proteins), np.nan, truth)).why
    )
    views = Views.of([genes, proteins])
    found = panels.fitted(views)
    assert [v.kind for v in found] == [v.kind for v in inspect(views).views]
    few = [x[~np.isnan(proteins).any(1)][:8] for x in (genes, proteins)]
    assert kind_of(*few).kind in panels.CANDIDATES


def test_proteins_are_inferred_on_the_scale_of_logarithms():
    genes, proteins, truth = cells()
    model = GaussianFill(random_state=0).fit([genes, proteins])
    gone = np.isnan(proteins).any(1)
    off, base = np.log1p(truth[gone]), np.log1p(proteins[~gone]).mean(0)
    filled = model.impute([genes, proteins], scale="kind")[1][gone]
    assert 1 - ((filled - off) ** 2).sum() / ((base - off) ** 2).sum() > 0.7
    assert model.r2_["view1"] > 0.7
    assert model.r2_in_units_["view1"] != model.r2_["view1"]
    units = model.impute([genes, proteins])[1][gone]
    assert (filled <= np.log1p(units) + 1e-6).all()  # Jensen


# The scale of the kind, for whatever a user has.


def as_ints(x):
    return pd.DataFrame(x).dropna().astype("int64")


def check(filled, proteins):
    known = ~np.isnan(proteins).any(1)
    filled = np.asarray(filled, float)
    np.testing.assert_allclose(filled[known], np.log1p(proteins[known]), rtol=1e-5)
    assert np.isfinite(filled).all()
    assert (filled >= 0).all()


def test_arrays_frames_views_sparse_matrices_and_tables():
    genes, proteins, _ = cells()
    fit = GaussianFill(random_state=0).fit
    check(fit([genes, proteins]).impute([genes, proteins], scale="kind")[1], proteins)
    X = {"rna": as_ints(genes), "adt": as_ints(proteins)}
    model = fit(X)
    found = model.impute(X, scale="kind")
    check(found["adt"].sort_index(), proteins)
    assert set(found["adt"].dtypes) == {np.dtype("float64")}
    assert set(model.impute(X)["adt"].dtypes) == {np.dtype("int64")}
    alone = model.impute({"rna": X["rna"]}, scale="kind")["adt"]
    assert alone.to_numpy().dtype == np.float64
    assert np.isfinite(alone.to_numpy()).all()
    views = Views.of([genes, proteins])
    check(fit(views).impute(views, scale="kind").x[1], proteins)
    X = [sparse.csr_array(genes), proteins]
    check(fit(X).impute(X, scale="kind")[1], proteins)
    table = np.hstack([genes, proteins])
    columns = {"rna": slice(120), "adt": slice(120, 134)}
    model = GaussianFill(random_state=0, columns=columns).fit(table)
    check(model.impute(table, scale="kind")[:, 120:], proteins)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_foreign_tables_of_whole_numbers(library):
    frames = pytest.importorskip(library)
    genes, proteins, _ = cells()
    cut = [pd.DataFrame(genes), pd.DataFrame(proteins).astype("Int64")]
    cut = [f.set_axis([f"c{j}" for j in range(f.shape[1])], axis=1) for f in cut]
    make = frames.from_pandas if library == "polars" else frames.Table.from_pandas
    X = dict(zip(("rna", "adt"), map(make, cut), strict=True))
    found = GaussianFill(random_state=0).fit(X).impute(X, scale="kind")["adt"]
    assert type(found) is type(X["adt"])
    check(found.to_pandas(), proteins)


@pytest.mark.parametrize("kind", ["log_counts", "counts", "positive", "text", "numbers"])
def test_intervals_and_means_on_the_scale_of_every_kind(kind):
    genes, proteins, _ = cells()
    X = [genes, proteins]
    model = GaussianFill(random_state=0, kinds=["numbers", kind]).fit(X)
    mean, low, high = (end[1] for end in model.impute(X, interval=0.9, scale="kind"))
    np.testing.assert_array_equal(mean, model.impute(X, scale="kind")[1])
    assert ((low <= mean) & (mean <= high)).all()
    known = ~np.isnan(proteins).any(1)
    np.testing.assert_array_equal(low[known], high[known])
    if kind == "numbers":
        np.testing.assert_array_equal(mean, model.impute(X)[1])
        assert model.r2_in_units_ == model.r2_
    np.testing.assert_array_equal(model.impute(X)[0], model.impute(X, scale="kind")[0])


def test_another_scale_is_refused():
    genes, proteins, _ = cells()
    with pytest.raises(ValueError, match="scale is one of units, kind, got 'log'"):
        MeanFill().fit([genes, proteins]).impute([genes, proteins], scale="log")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_command_writes_the_scale_of_the_kind(tmp_path, ending):
    genes, proteins, _ = cells(120)
    (tmp_path / "data").mkdir()
    for name, x in (("rna", genes), ("adt", proteins)):
        frame = as_ints(x).rename_axis("id").rename(columns=str)
        file = tmp_path / "data" / f"{name}.{ending}"
        frame.to_csv(file) if ending == "csv" else frame.reset_index().to_parquet(file)
    data, fitted = tmp_path / "data", tmp_path / "run"
    said = done("fit", data, "-o", fitted, "--method", "gaussian_fill", "--seed", "0")
    assert "in units)" in said
    for scale in ("units", "kind"):
        done("impute", fitted, "-o", tmp_path / scale, "--scale", scale)
    refused("impute", fitted, "-o", tmp_path / "other", "--scale", "log")
    assert not (tmp_path / "other").exists()
    kind, units = (read(tmp_path / k / f"adt.{ending}") for k in ("kind", "units"))
    kind.index = kind.index.astype(int)
    check(kind.sort_index(), proteins)
    assert set(units.dtypes) == {np.dtype("int64")}


def read(file):
    return (
        pd.read_csv(file, index_col=0)
        if file.suffix == ".csv"
        else pd.read_parquet(file).set_index("id")
    )
