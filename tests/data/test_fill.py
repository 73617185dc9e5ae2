"""Type in = type out: what comes back is a copy of the user's object, filled where it was not."""

from __future__ import annotations

from copy import deepcopy
from datetime import date
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from vedute.data.entry import Entry
from vedute.data.views import Views
from vedute.estimators import base, filling, imputation, learner
from vedute.methods import find, load

NAN = np.nan
CUT = {"a": slice(0, 3), "b": [3, 4]}


def arrays(n=40):
    """Two views, the second missing for every fourth row, one hole in the first."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(n, 3)), rng.normal(5.0, 2.0, size=(n, 2))
    a[1, 2] = NAN
    b[::4] = NAN
    return a, b


def table(columns=None):
    whole = np.hstack(arrays())
    if isinstance(columns, str):
        columns = list(columns)
    return whole if columns is None else pd.DataFrame(whole, columns=columns)


def levelled():
    """Views by the top level of the columns, which are in no order."""
    return table(pd.MultiIndex.from_tuples(zip("abaab", "pqrst", strict=True)))


def frames():
    """Typical frames: different rows in each view, all kinds of columns."""
    rng = np.random.default_rng(1)
    ids = [f"s{i}" for i in range(30)]
    colors = pd.Categorical(rng.choice(["r", "g", "b"], 30), categories=["r", "g", "b", "none"])
    a = pd.DataFrame(
        {
            "real": rng.normal(size=30),
            "single": rng.normal(size=30).astype(np.float32),
            "int": 2**53 + 1 + np.arange(30),
            "small": rng.integers(0, 100, 30).astype(np.int8),
            "flag": rng.random(30) < 0.5,
            "nullable": pd.array(rng.integers(0, 9, 30), dtype="Int64"),
            "maybe": pd.array(rng.random(30) < 0.5, dtype="boolean"),
            "gaps": pd.Series(rng.random(30) < 0.5, dtype=object).where(rng.random(30) < 0.8, None),
            "two": pd.Categorical(rng.choice(["lo", "hi"], 30), ["lo", "hi"], ordered=True),
            "three": colors,
            "thin": pd.arrays.SparseArray(rng.poisson(0.3, 30).astype(float), fill_value=0.0),
        }
    ).set_index(pd.Index(ids, name="sample"))
    a.loc["s3", ["nullable", "maybe", "two", "three"]] = None
    a.loc["s4", "real"] = NAN
    b = pd.Series(rng.normal(size=25), index=ids[5:][::-1], name="length")
    return a.iloc[:27], b


def fitted(X, columns=None):
    return find("mean_fill")(random_state=0, columns=columns).fit(X)


def same(a, b):
    """Equal to the last bit, types included."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        a, b = list(a.values()), list(b.values())
    if isinstance(a, (list, tuple)):
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, b, check_exact=True)
    elif isinstance(a, pd.Series):
        pd.testing.assert_series_equal(a, b, check_exact=True)
    elif sparse.issparse(a):
        same(a.toarray(), b.toarray())
    elif isinstance(a, Views):
        same([x.numpy() for x in a.x], [x.numpy() for x in b.x])
        same(a.mask.numpy(), b.mask.numpy())
    else:
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def flat(X):
    """All cells of X side by side, (n, width)."""
    if isinstance(X, Views):
        return np.hstack([x.numpy() for x in X.x])
    if isinstance(X, dict):
        X = list(X.values())
    if isinstance(X, (list, tuple)):
        return np.hstack([flat(x) for x in X])
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return X[:, None] if X.ndim == 1 else X


CONTAINERS = {
    "list": (lambda: list(arrays()), None),
    "tuple": (arrays, None),
    "dict": (lambda: dict(zip(("a", 7), arrays(), strict=True)), None),
    "float32": (lambda: [x.astype(np.float32) for x in arrays()], None),
    "sparse views": (lambda: [sparse.csr_array(x) for x in arrays()], None),
    "one column": (lambda: [arrays()[0], arrays()[1][:, 0]], None),
    "frames": (lambda: {k: pd.DataFrame(x) for k, x in zip("ab", arrays(), strict=True)}, None),
    "Views": (lambda: Views.of(arrays()), None),
    "table": (table, CUT),
    "frame": (lambda: table("pqrst"), {"a": list("prs"), "b": ["q", "t"]}),
    "frame with more": (lambda: table("pqrst").assign(name="x"), {"a": slice(0, 3)}),
    "two levels": (levelled, None),
    "sparse table": (lambda: sparse.csr_matrix(table()), CUT),
    "sparse columns": (lambda: sparse.csc_array(table()), {"a": slice(0, 3), "b": slice(3, 5)}),
    "one table": (lambda: table()[:, :3], None),
    "one frame": (lambda: table("pqrst")[["p", "q", "r"]], None),
    "one series": (lambda: table("pqrst")["p"], None),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_the_container_comes_back_filled_and_the_users_own_is_not_touched(kind):
    make, columns = CONTAINERS[kind]
    X, before = make(), make()
    model = fitted(X, columns)
    filled = model.impute(X)
    same(X, before)
    assert type(filled) is type(X)
    if kind == "frame with more":
        assert filled.pop("name").eq("x").all()
        X.pop("name")
        assert filled[["s", "t"]].isna().any(axis=None)  # in no view: as it was
        filled, X = filled[["p", "q", "r"]], X[["p", "q", "r"]]
    missing = flat(X) == 0 if isinstance(X, Views) else np.isnan(flat(X))
    assert missing.any() or kind == "one series"
    assert not np.isnan(flat(filled)).any()
    np.testing.assert_array_equal(flat(filled)[~missing], flat(X)[~missing])
    assert flat(filled).dtype == flat(X).dtype
    means = np.nanmean(np.where(missing, NAN, flat(X)), axis=0)
    np.testing.assert_allclose(flat(filled), np.where(missing, means, flat(X)), rtol=1e-5)
    for other in (model.sample_imputations(X, 1)[0], model.reconstruct(X)) if not columns else ():
        assert type(other) is type(X)
        assert flat(other).shape == flat(X).shape


IN_BATCHES = CONTAINERS | {
    "mixed frames": (lambda: list(frames()), None),
    "tensors": (lambda: [torch.from_numpy(x) for x in arrays()], None),
    "a view nobody has": (lambda: {"a": np.nan_to_num(arrays()[0])}, None),
}


@pytest.mark.parametrize("kind", IN_BATCHES)
def test_what_is_filled_batch_by_batch_is_what_is_filled_at_once(kind, monkeypatch):
    make, columns = IN_BATCHES[kind]
    X = make()
    model = fitted(dict(zip("ab", arrays(), strict=True)) if "nobody" in kind else X, columns)
    verbs = [model.transform, model.impute, model.reconstruct, partial(model.impute, interval=0.9)]
    at_once, sizes = [verb(X) for verb in verbs], []
    monkeypatch.setattr(imputation, "DECODED_ROWS", 7)
    monkeypatch.setattr(learner, "BATCHES", 1)
    once = learner.scaled

    def counted(views, part):
        sizes.append(len(part))
        return once(views, part)

    for module in (learner, filling, base):
        monkeypatch.setattr(module, "scaled", counted)
    for verb, found in zip(verbs, at_once, strict=True):
        same(verb(X), found)
    assert max(sizes) == 7


def test_a_row_that_is_out_of_range_is_named_in_whatever_batch_it_is(monkeypatch):
    model = fitted(list(arrays()))
    a, b = arrays()
    a[33] = 1e25
    monkeypatch.setattr(imputation, "DECODED_ROWS", 7)
    monkeypatch.setattr(learner, "BATCHES", 1)
    for verb in (model.impute, model.transform):
        with pytest.raises(ValueError, match="row 33 has values too far"):
            verb([a, b])


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int8, bool, np.float32, np.float64])
def test_arrays_keep_their_dtype_and_a_view_left_out_has_that_of_fitting(dtype):
    a, _ = arrays()
    x = np.tile([0, 1, 1, 0], (40, 1)).astype(dtype)
    model = fitted({"a": a, "x": x})
    assert model.impute({"a": a, "x": x})["x"].dtype == dtype
    assert model.reconstruct({"x": x, "a": a})["x"].dtype == dtype
    filled = model.impute({"a": np.nan_to_num(a)})
    assert list(filled) == ["a", "x"]
    assert filled["x"].dtype == dtype
    np.testing.assert_allclose(filled["x"].astype(float), x)


def test_images_come_back_as_bytes():
    rng = np.random.default_rng(0)
    images, b = rng.integers(0, 256, (40, 3, 4), dtype=np.uint8), arrays()[1][:, :1]
    model = fitted([images, b])
    filled = model.impute([None, np.ones((2, 1))])[0]
    assert filled.dtype == np.uint8
    np.testing.assert_allclose(filled[0].astype(float), images.mean(0), atol=0.51)
    np.testing.assert_array_equal(model.impute([images, b])[0], images)


def test_frames_come_back_with_all_rows_and_the_dtype_of_every_column():
    a, b = frames()
    before = deepcopy((a, b))
    filled = fitted([a, b]).impute([a, b])
    same((a, b), before)
    ids = pd.Index([f"s{i}" for i in (*range(27), 29, 28, 27)])
    for view in filled:
        assert view.index.tolist() == ids.tolist()
        assert not view.isna().any(axis=None)
    for column in a:
        assert filled[0][column].dtype == a[column].dtype, column
        kept = a[column].dropna()
        assert filled[0].loc[kept.index, column].tolist() == kept.tolist()
    assert {type(x) for x in filled[0]["gaps"]} == {bool}
    assert isinstance(filled[1], pd.Series)
    assert filled[1].name == "length"
    assert filled[1].dtype == float


def test_no_digit_of_an_observed_value_is_lost():
    big = pd.DataFrame({"id": [2**53 + 1, 2**62 + 3, -(2**60) - 1]}, index=[0, 1, 2])
    fine = pd.DataFrame({"x": [0.1 + 0.2, 1e30, 1 / 3]}, index=[2, 3, 0])
    filled = fitted([big, fine]).impute([big, fine])
    assert filled[0]["id"].dtype == np.int64
    assert filled[0]["id"].iloc[:3].tolist() == big["id"].tolist()
    assert filled[1].loc[[2, 3, 0], "x"].tolist() == fine["x"].tolist()
    array = np.array([[2**62 + 3], [5], [7]])
    assert fitted([array, np.ones(3)]).impute([array, np.ones(3)])[0].tolist() == array.tolist()


LONG = Decimal("1234567890123234567.89")
EXACTLY = {
    "decimals": (object, [LONG, None, Decimal("0.10"), Decimal("-7.5")], Decimal("3.14")),
    "Int64": ("Int64", [2**53 + 1, None, 3, -5], 3),
    "UInt64": ("UInt64", [2**64 - 1, None, 3, 5], 3),
    "whole numbers": (object, [2**70 + 1, None, 3, 5], 3),
    "int64[pyarrow]": ("int64[pyarrow]", [2**53 + 1, None, 3, 5], 3),
    "decimals of arrow": (
        "decimal",
        [LONG, None, Decimal("0.10"), Decimal("-7.50")],
        Decimal("3.14"),
    ),
    "text": (object, ["1.10", None, "3", "005"], "3.14159"),
    "float16 of arrow": ("halffloat[pyarrow]", [0.5, None, 3.0, 5.0], 3.140625),
    "text of arrow": ("text", ["1.10", " ", "3", "005"], "3.14159"),
}


@pytest.mark.parametrize("case", EXACTLY)
def test_new_values_are_of_the_type_of_those_observed(case):
    dtype, cells, new = EXACTLY[case]
    if "arrow" in case:
        pa = pytest.importorskip("pyarrow")
        kinds = {"decimal": pa.decimal128(30, 2), "text": pa.string()}
        dtype = pd.ArrowDtype(kinds[dtype]) if dtype in kinds else dtype
    X = pd.DataFrame({"k": pd.Series(cells, dtype=dtype), "b": [1.0, 2.0, 3.0, 4.0]})
    filled = Entry.of(X).filled([np.full((4, 2), 3.14159)])
    assert filled["k"].dtype == X["k"].dtype
    assert filled["k"].tolist() == [new if x in (None, " ") else x for x in cells]
    assert [type(x) for x in filled["k"].tolist()] == [type(new)] * 4


@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_columns_of_no_view_are_kept_where_views_become_floats(make):
    X = make([[1, 2, 3, 9], [4, 5, 6, 9]])
    entry = Entry.of(X, columns={"a": slice(1), "b": slice(1, 2)})
    filled = entry.filled([np.full((2, 1), 0.5), np.zeros((2, 1))], anew=[0])
    filled = filled.toarray() if sparse.issparse(filled) else filled
    assert filled.tolist() == [[0.5, 2, 3, 9], [0.5, 5, 6, 9]]


def test_the_order_of_columns_is_the_users_and_changes_nothing():
    a, b = frames()
    model = fitted([a, b])
    turned = a.iloc[:, ::-1]
    filled = model.impute([turned, b])
    assert filled[0].columns.tolist() == turned.columns.tolist()
    same(filled[0][list(a)], model.impute([a, b])[0])
    np.testing.assert_array_equal(model.transform([turned, b]), model.transform([a, b]))


@pytest.mark.parametrize("absent", [None, "no rows", "left out"])
def test_a_frame_nobody_has_comes_back_as_it_was_fitted(absent):
    a, b = frames()
    model, odd = fitted({"a": a, "b": b}), ["two", "gaps", "thin"]
    X = {"b": b} if absent == "left out" else {"a": None if absent is None else a.iloc[:0], "b": b}
    filled = model.impute(X)
    assert list(filled) == [*X, *({"a", "b"} - set(X))]
    assert filled["a"].index.tolist() == b.index.tolist()
    assert filled["a"].drop(columns=odd).dtypes.tolist() == (a.drop(columns=odd).dtypes.tolist())
    assert filled["a"]["two"].cat.categories.tolist() == ["lo", "hi"]
    assert not filled["a"].isna().any(axis=None)


def test_a_batch_with_fewer_categories_is_filled_with_all_of_them():
    ids, x = range(30), pd.DataFrame({"x": np.arange(30.0)})
    c = pd.DataFrame({"c": pd.Categorical(["p"] + ["q"] * 27 + ["r"] * 2)}, index=ids)
    model = fitted([c, x])
    new = pd.DataFrame({"c": pd.Categorical(["p"])}, index=[100])
    filled = model.impute([new, x])[0]["c"]
    assert filled.iloc[0] == "p"
    assert (filled.iloc[1:] == "q").all()
    words = pd.DataFrame({"c": ["r", "p"]}, index=[100, 101])
    assert model.impute([words, x])[0]["c"].tolist() == ["r", "p"] + ["q"] * 30
    assert model.impute([words, x])[0]["c"].dtype == words["c"].dtype


def test_arrays_and_frames_may_take_turns():
    a, b = arrays()
    named = [pd.DataFrame(a, columns=list("pqr")), pd.DataFrame(b, columns=list("st"))]
    filled = fitted([a, b]).impute([a, b])
    for x, y in zip(fitted([a, b]).impute(named), filled, strict=True):
        np.testing.assert_array_equal(x, y)
        assert x.columns.tolist() in (list("pqr"), list("st"))
    for x, y in zip(fitted(named).impute([a, b]), filled, strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_saved_model_remembers_the_frames(tmp_path):
    a, b = frames()
    odd = pd.DataFrame({("x", 1): np.arange(30.0), 5: pd.Categorical(np.arange(30) % 4)})
    X = {"a": a, "b": b, "c": odd.set_index(pd.Index([f"s{i}" for i in range(30)]))}
    model = fitted(X)
    model.save(tmp_path)
    loaded = load(tmp_path)
    assert loaded.specs == model.specs
    for part in (X, {"b": b}, {"a": a.iloc[:3], "c": X["c"].iloc[5:]}):
        same(loaded.impute(part), model.impute(part))


KINDS = {"arrays": lambda: list(arrays()), "frames": lambda: list(frames()), "dict": arrays}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_intervals_enclose_the_mean_and_close_on_what_is_known(make):
    X = make()
    mean, lower, upper = found = fitted(X).impute(X, interval=0.9)
    assert found._fields == ("mean", "lower", "upper")
    assert type(mean) is type(lower) is type(upper) is type(X)
    same(mean, fitted(X).impute(X))
    for x, m, low, high in zip(X, mean, lower, upper, strict=True):
        if isinstance(x, pd.DataFrame):
            columns = ["real", "single", "int", "small", "nullable", "thin"]
            x, m, low, high = (f[columns].astype(float) for f in (x, m, low, high))
        gap = np.isnan(x.reindex(m.index) if isinstance(x, (pd.DataFrame, pd.Series)) else x)
        assert np.asarray(low <= m).all()
        assert np.asarray(m <= high).all()
        assert (np.asarray(low)[~gap] == np.asarray(high)[~gap]).all()
        assert (np.asarray(low)[gap] < np.asarray(high)[gap]).any()


LABELS = {
    "intervals": pd.IntervalIndex.from_breaks([0.0, 0.5, 1.0]),
    "time stamps": pd.date_range("2020-01-01", periods=2, tz="UTC"),
    "days": pd.Index([date(2020, 1, 1), date(2020, 1, 2)]),
    "months": pd.period_range("2020-01", periods=2, freq="M"),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_a_saved_model_remembers_columns_and_categories_of_any_name(labels, tmp_path):
    a, _ = arrays()
    kinds = pd.Categorical.from_codes(np.arange(40) % 2, labels)
    X = {"a": pd.DataFrame(a[:, :2], columns=labels), "b": pd.DataFrame({"kind": kinds})}
    X["b"].iloc[::3] = None
    model = fitted(X)
    model.save(tmp_path)
    same(load(tmp_path).impute(X), model.impute(X))


@pytest.mark.parametrize(
    "cut", [range(3), pd.Index([0, 1, 2]), np.arange(3), slice(np.int64(0), np.int64(3))]
)
def test_a_saved_model_remembers_how_a_table_was_cut(cut, tmp_path):
    whole = table()
    model = fitted(whole, {"a": cut, "b": [3, 4]})
    model.save(tmp_path)
    same(load(tmp_path).impute(whole), model.impute(whole))


def test_what_cannot_be_saved_is_refused_before_anything_is_written(tmp_path):
    a, b = arrays()
    strange = pd.DataFrame(a, columns=["p", "q", frozenset("r")])
    with pytest.raises(TypeError, match=r"columns\.2 holds frozenset.* cannot be saved"):
        fitted({"a": strange, "b": pd.DataFrame(b)}).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_generator_is_saved_as_the_seed_that_it_gave(tmp_path):
    for generator in (np.random.RandomState(3), np.random.default_rng(3)):
        model = find("mean_fill")(random_state=generator).fit(list(arrays()))
        model.save(tmp_path)
        assert load(tmp_path).random_state == model.seed_
    with pytest.raises(ValueError, match=r"random_state must be a whole number, .*, got 1\.5"):
        find("mean_fill")(random_state=1.5).fit(list(arrays()))


@pytest.mark.parametrize("dtype", [int, bool, np.uint8])
def test_a_choice_in_whole_numbers_stays_one(dtype):
    a, _ = arrays()
    chosen = np.eye(4, dtype=dtype)[np.arange(40) % 4]
    for X, absent in (
        ([a, chosen], [a, None]),
        ({"a": pd.DataFrame(a), "c": pd.DataFrame(chosen)}, {"a": pd.DataFrame(a)}),
    ):
        told = fitted(X).impute(absent)
        told = np.asarray(told[1] if isinstance(told, list) else told["c"])
        assert told.dtype == dtype
        assert (told.astype(int).sum(1) == 1).all()
    assert (fitted([a, chosen * 1.0]).impute([a, None])[1] == 0.25).all()
    mean, *ends = fitted([a, chosen]).impute([a, None], 0.9)
    assert mean[1].dtype == dtype
    assert all(np.isnan(end[1]).all() for end in ends)
    hidden = np.repeat(np.arange(40)[:, None] % 5 == 0, 4, axis=1)
    partly = np.ma.array(chosen, mask=hidden)
    assert (fitted([a, partly]).impute([a, partly])[1].astype(int).sum(1) == 1).all()


def test_categories_that_nobody_has_take_nothing_from_the_others():
    a, _ = arrays()
    model = find("mvp")(steps=20, hidden=(8,), random_state=0)
    model.fit([a, np.eye(5)[np.arange(40) % 3]])
    np.testing.assert_allclose(model.impute([a, None])[1].sum(1), 1, rtol=1e-5)
    drawn = [model.generate(400)["view1"], *(x[1] for x in model.sample_imputations([a, None], 9))]
    for each in drawn:
        assert set(np.unique(each)) == {0, 1}
        assert (each.sum(1) == 1).all()


def test_tensors_come_back_as_tensors():
    a, b = (torch.from_numpy(x) for x in arrays())
    filled = fitted([a, b]).impute([a, b])
    assert all(isinstance(x, torch.Tensor) for x in filled)
    assert not filled[1].isnan().any()


def test_tensors_may_need_gradients_or_be_short_but_not_sparse():
    a, b = (torch.from_numpy(x) for x in arrays())
    known = fitted([a, b]).impute([a, b])
    grown = fitted([a.clone().requires_grad_(), b]).impute([a, b])
    assert all(torch.equal(x, y) for x, y in zip(known, grown, strict=True))
    short = [a.bfloat16(), b.bfloat16()]
    filled = fitted(short).impute(short)
    assert [x.dtype for x in filled] == [torch.bfloat16] * 2
    assert torch.equal(filled[0][2:], short[0][2:])
    assert not filled[1].isnan().any()
    with pytest.raises(ValueError, match=r"is a sparse tensor; pass to_dense\(\) of it"):
        fitted([a.to_sparse(), b])


@pytest.mark.parametrize("levels", [[(1, 2), (2, 3), (3, 4)], pd.interval_range(0, 3).to_list()])
def test_categories_may_be_tuples_and_intervals(levels):
    a, b = arrays()
    kinds = pd.Categorical.from_codes(np.arange(len(a)) % 3, levels)
    X = {"a": pd.DataFrame(a).assign(k=kinds).iloc[: len(a) - 5], "b": pd.DataFrame(b).fillna(0)}
    filled = fitted(X).impute(X)["a"]["k"]
    assert filled[: len(a) - 5].tolist() == kinds[: len(a) - 5].tolist()
    assert filled.isin(levels).all()


def test_constants_are_told_as_they_are():
    a, b = arrays()
    b = np.nan_to_num(b)
    X = {"a": pd.DataFrame(a).assign(k=1e-6, seven=7.0).iloc[:30], "b": pd.DataFrame(b)}
    model = find("mvp")(steps=20, hidden=(8,), random_state=0).fit(X)
    told = [*model.impute(X, interval=0.9), model.reconstruct(X), *model.sample_imputations(X, 2)]
    for each in [*told, model.generate(5)]:
        assert (each["a"]["k"] == 1e-6).all()
        assert (each["a"]["seven"] == 7.0).all()


def test_columns_of_one_dtype_are_filled_at_once_and_each_as_it_is_alone():
    rng = np.random.default_rng(0)
    kinds = ["float64", "Int64", "int16", "float32", "boolean", "Float64", "bool", "UInt8"]
    a = pd.DataFrame({j: rng.integers(0, 2, 30) for j in range(24)}, index=range(30))
    a = a.astype({j: kinds[j % 8] for j in a})
    holes = {j: np.roll(range(30), j)[:4] for j in a if kinds[j % 8][0] in "fIFU"}
    for j, rows in holes.items():
        a.loc[rows, j] = None
    a.insert(5, "kind", pd.Categorical(rng.choice(list("xyz"), 30)))
    b = pd.DataFrame({"b": rng.normal(size=38)})  # eight rows more
    model = fitted({"a": a, "b": b})
    turned = a[a.columns[::-1]]
    filled = model.impute({"a": turned, "b": b})["a"]
    assert filled.columns.tolist() == turned.columns.tolist()
    for label in a:
        alone = fitted({"a": a[[label]], "b": b}).impute({"a": a[[label]], "b": b})["a"]
        pd.testing.assert_frame_equal(filled[[label]], alone, check_exact=True)
        assert filled[label].dtype == a[label].dtype


def test_views_of_one_frame_go_back_among_its_other_columns():
    X = table("pqrst").assign(more="x")[["more", *"tsrqp"]].rename_axis("id")
    X.insert(0, "more", 1, allow_duplicates=True)
    filled = fitted(X, {"a": ["p", "r"], "b": ["q", "r", "t"]}).impute(X)
    assert filled.columns.tolist() == X.columns.tolist()
    assert filled.index.name == "id"
    pd.testing.assert_frame_equal(filled[["more", "s"]], X[["more", "s"]])
    means = X[list("pqrt")].mean()
    pd.testing.assert_frame_equal(filled[list("pqrt")], X[list("pqrt")].fillna(means), rtol=1e-6)


@pytest.mark.parametrize("dtype", [object, "string"])
@pytest.mark.parametrize(
    ("text", "filled"),
    [
        (["1", " 2.5", "NA", "4", "?", "5.5"], ["1", " 2.5", "3.25", "4", "3.25", "5.5"]),
        (["1", "3", None, "4", "", "4"], ["1", "3", "3", "4", "3", "4"]),
        (["TRUE", "FALSE", "n/a", "TRUE", None, "TRUE"], ["TRUE", "FALSE", *["TRUE"] * 4]),
    ],
)
def test_text_that_means_numbers_is_filled_with_text_as_in_files(text, filled, dtype):
    a = pd.DataFrame({"c": pd.Series(text, dtype=dtype), "d": np.arange(6.0)})
    X = [a, pd.DataFrame({"e": np.arange(6.0)})]
    found = fitted(X).impute(X)[0]
    assert found["c"].tolist() == filled
    assert found["c"].dtype == a["c"].dtype
    nobody = [a.assign(c=pd.Series(["NA"] * 6, dtype=dtype)), X[1]]
    assert fitted(X).impute(nobody)[0]["c"].notna().all()


def test_the_top_level_of_columns_names_the_views(tmp_path):
    X = levelled()
    X.loc[::4, "b"] = NAN
    model = fitted(X)
    assert [view.name for view in model.views_] == ["a", "b"]
    assert not Views.of(X).mask[::4, 1].any()
    same(model.impute(X[::-1]), model.impute(X)[::-1])
    model.save(tmp_path / "m")
    same(load(tmp_path / "m").impute(X), model.impute(X))
    with pytest.warns(UserWarning, match=r"view 'a' lacks .*'p'.* taken as missing in all rows"):
        less = model.impute(X.drop(columns=[("a", "p")]))
    assert set(less.columns) == set(X.columns)
    assert less["a", "p"].notna().all()


@pytest.mark.parametrize("lost", ["real", "int", "small", "flag", "nullable", "gaps", "three"])
def test_a_column_that_is_absent_is_a_gap(lost):
    a, b = frames()
    model = fitted([a, b])
    whole, less = model.impute([a, b])[0], a.drop(columns=lost)
    with pytest.warns(UserWarning, match=f"view 'view0' lacks '{lost}', which it had when it was"):
        new = model.impute([less, b])[0]
    assert list(new.columns) == [*less.columns, lost]
    assert new[lost].notna().all()
    assert str(new[lost].dtype) == str(whole[lost].dtype)
    assert new[less.columns].equals(whole[less.columns])


def test_one_table_may_lack_a_column_that_its_views_name():
    X = table("pqrst")
    cut = {"a": ["p", "q"], "b": ["r", "s"]}
    model = fitted(X, cut)
    with pytest.warns(UserWarning, match="view 'b' lacks 's'"):
        new = model.impute(X.drop(columns="s"))
    assert list(new.columns) == ["p", "q", "r", "t", "s"]
    assert new["s"].notna().all()
    with pytest.raises(ValueError, match="columns of view 'b' are not in the table"):
        fitted(X.drop(columns="s"), cut)


def test_an_unknown_column_is_refused_and_a_view_without_any_that_is_known():
    X = {
        "a": pd.DataFrame({"p": [1.0, 2, 3], "q": [2.0, 3, 1]}),
        "b": pd.DataFrame({"r": [1.0, 2, 4]}),
    }
    model = fitted(X)
    with pytest.raises(ValueError, match="'a' lacks 'q' and has unknown 's'; pass the 2 columns"):
        model.impute(X | {"a": X["a"].rename(columns={"q": "s"})})


@pytest.mark.parametrize("turn", [False, True])
def test_columns_0_1_2_are_those_called_so_in_text(turn):
    rng = np.random.default_rng(0)
    X = {"a": pd.DataFrame(rng.normal(size=(30, 3))), "b": pd.DataFrame(rng.normal(size=(30, 2)))}
    X["a"].iloc[::3, 1] = NAN
    text = {k: x.rename(columns=str) for k, x in X.items()}
    then, now = (text, X) if turn else (X, text)
    filled = fitted(then).impute(now)
    assert list(filled["a"].columns) == list(now["a"].columns)
    np.testing.assert_array_equal(filled["a"], fitted(now).impute(now)["a"])
    np.testing.assert_allclose(
        fitted(then).transform(Views.of(now)), fitted(then).transform(now), atol=1e-6
    )


def test_one_frame_that_is_one_view_says_how_to_cut_it(caplog):
    fitted(table("pqrst")[["p", "q"]])
    assert "one frame is one view; to split it, pass columns=" in caplog.text
    caplog.clear()
    fitted({"a": table("pqrst")[["p", "q"]]})
    fitted(table("pqrst")["p"])
    fitted(levelled())
    fitted(table()[:, :3])
    assert not caplog.text
