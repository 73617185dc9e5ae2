"""Tables of polars and pyarrow in, the same out."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from vedute.data import foreign
from vedute.data.entry import Entry
from vedute.data.views import Views
from vedute.methods import find

pa = pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")
N = 40


def columns():
    """Columns of two views, of every kind and with gaps; some rows lack the second view."""
    rng = np.random.default_rng(0)
    some = lambda cells: [None if i % 7 == 3 else x for i, x in enumerate(cells)]  # noqa: E731
    a = {
        "real": rng.normal(size=N).tolist(),
        "whole": some(2**53 + 1 + i for i in range(N)),
        "flag": some(i % 3 == 0 for i in range(N)),
        "kind": some("xyz"[i % 3] for i in range(N)),
        "small": list(range(N)),
    }
    b = {k: [None if i % 4 == 1 else x + i for i in range(N)] for k, x in (("p", 0.5), ("q", 3.0))}
    return a, b


def arrow():
    a, b = columns()
    a["kind"], a["small"] = pa.array(a["kind"]).dictionary_encode(), pa.array(a["small"], pa.int8())
    return pa.table(a), pa.table(b)


def polars():
    pl = pytest.importorskip("polars")
    a, b = columns()
    kinds = {"kind": pl.Enum(["z", "y", "x"]), "small": pl.UInt8}
    return pl.DataFrame(a, schema_overrides=kinds), pl.DataFrame(b)


def cells(table):
    """Cells by column name, in any library."""
    return table.to_pydict() if isinstance(table, pa.Table) else table.to_dict(as_series=False)


def fitted(X, **settings):
    return find("mean_fill")(random_state=0, **settings).fit(X)


def check_filled(new, old):
    assert type(new) is type(old)
    assert new.schema == old.schema
    for name, own in cells(old).items():
        filled = cells(new)[name]
        assert None not in filled
        assert all(x == y for x, y in zip(filled, own, strict=True) if y is not None)


@pytest.mark.parametrize("make", [arrow, polars])
@pytest.mark.parametrize("pack", [list, tuple, lambda views: dict(zip("ab", views, strict=True))])
def test_tables_come_back_as_they_were_with_no_gaps(make, pack):
    X = pack(make())
    filled = fitted(X).impute(X)
    assert type(filled) is type(X)
    for k in X if isinstance(X, dict) else range(2):
        check_filled(filled[k], X[k])


@pytest.mark.parametrize("make", [arrow, polars])
def test_tables_are_seen_as_frames_of_pandas_are(make):
    a, b = columns()
    whole = {"whole": pd.array(a["whole"], "Int64"), "flag": pd.array(a["flag"], "boolean")}
    frames = [pd.DataFrame(a).assign(kind=pd.Categorical(a["kind"]), **whole), pd.DataFrame(b)]
    mine, then = Views.of(list(make())), Views.of(frames)
    np.testing.assert_array_equal(mine.mask, then.mask)
    assert [s.columns for s in mine.specs] == [s.columns for s in then.specs]
    level = {k: v for v, k in enumerate(mine.specs[0].levels[3])}
    order = [0, 1, 2, *(3 + level[k] for k in "xyz"), 6]
    np.testing.assert_array_equal(mine.x[0][:, order], then.x[0])
    np.testing.assert_array_equal(mine.x[1], then.x[1])


@pytest.mark.parametrize("make", [arrow, polars])
def test_one_table_is_cut_and_comes_back_with_its_other_columns(make):
    a, b = make()
    merged = {**{n: a[n] for n in ("real", "kind")}, **{n: b[n] for n in ("p", "q")}}
    X = type(a).from_pydict(merged) if make is arrow else type(a)(merged)
    filled = fitted(X, columns={"a": ["real"], "b": ["p"]}).impute(X)
    assert filled.schema == X.schema
    assert cells(filled)["kind"] == cells(X)["kind"]
    assert cells(filled)["q"] == cells(X)["q"]
    assert None not in cells(filled)["p"]


@pytest.mark.parametrize("make", [arrow, polars])
def test_a_view_that_nobody_has_is_a_table_like_the_others(make):
    a, b = make()
    new = fitted({"a": a, "b": b}).impute({"b": b[2:5]})
    assert type(new["a"]) is type(a)
    assert list(cells(new["a"])) == list(cells(a))
    assert len(new["a"]) == 3
    lower, upper = fitted({"a": a, "b": b}).impute({"a": a, "b": b}, interval=0.9)[1:]
    assert type(lower["b"]) is type(upper["b"]) is type(b)


@pytest.mark.parametrize("make", [arrow, polars])
def test_a_column_that_is_absent_is_a_gap(make):
    a, b = make()
    model = fitted([a, b])
    less = a.drop(["kind"]) if make is arrow else a.drop("kind")
    with pytest.warns(UserWarning, match="'view0' lacks 'kind', which it had when it was fitted"):
        new = model.impute([less, b])[0]
    assert list(cells(new)) == [*cells(less), "kind"]
    assert set(cells(new)["kind"]) <= set("xyz")
    assert cells(new)["real"] == cells(model.impute([a, b])[0])["real"]


def test_a_column_alone_comes_back_alone():
    _, b = arrow()
    X = [b["p"], pa.table({"r": np.arange(float(N))})]
    filled = fitted(X).impute(X)[0]
    assert isinstance(filled, pa.ChunkedArray)
    assert filled.null_count == 0
    assert filled.type == pa.float64()


LONG = Decimal("1234567890123234567.89")
EXACT = [LONG, None, Decimal("0.10"), Decimal("-7.50")]
WIDE = [2**70 + 1, None, 3, 5]
EXACTLY = {
    "decimals of arrow": lambda: pa.array(EXACT, pa.decimal128(30, 2)),
    "long decimals of arrow": lambda: pa.array(EXACT, pa.decimal256(60, 2)),
    "whole numbers of arrow": lambda: pa.array([2**53 + 1, None, 3, 5]),
    "unsigned ones of arrow": lambda: pa.array([2**64 - 1, None, 3, 5], pa.uint64()),
    "short floats of arrow": lambda: pa.array([0.1, None, 3, 5], pa.float32()),
    "indices of arrow": lambda: pa.array(["x", None, "y", "x"]).dictionary_encode(),
    "text of arrow": lambda: pa.array(["1.10", None, "3", "005"], pa.large_string()),
    "decimals of polars": lambda: series(EXACT),
    "whole numbers of polars": lambda: series([2**53 + 1, None, 3, 5]),
    "unsigned ones of polars": lambda: series([2**64 - 1, None, 3, 5], "UInt64"),
    "very wide ones of polars": lambda: series(WIDE, "Int128"),
    "short floats of polars": lambda: series([0.1, None, 3, 5], "Float32"),
    "text of polars": lambda: series(["1.10", None, "3", "005"]),
}


def series(cells, dtype=None):
    pl = pytest.importorskip("polars")
    return pl.Series("k", cells, getattr(pl, dtype) if dtype else None)


def beside(column):
    """A table of this column and one without gaps."""
    if isinstance(column, pa.Array):
        return pa.table({"k": column, "b": [1.0, 2.0, 3.0, 4.0]})
    return column.to_frame().with_columns(series([1.0, 2.0, 3.0, 4.0]).alias("b"))


@pytest.mark.parametrize("case", EXACTLY)
def test_observed_cells_come_back_to_the_last_digit(case):
    """Decimals went through a float, a wide whole number had no numpy dtype."""
    X = beside(EXACTLY[case]())
    entry = Entry.of(X)
    filled = entry.filled([np.full((4, *entry.views.shapes[0]), 3.14159)])
    check_filled(filled, X)


@pytest.mark.parametrize("make", [lambda: pa.nulls(4), lambda: series([None] * 4)])
def test_a_column_without_a_type_takes_numbers(make):
    X = beside(make())
    entry = Entry.of(X)
    assert cells(entry.filled([np.full((4, 2), 3.5)]))["k"] == [3.5] * 4


def test_new_decimals_fit_their_column():
    X = beside(pa.array([Decimal("9.99"), None, Decimal("0.10"), None], pa.decimal128(3, 2)))
    new = Entry.of(X).filled([np.array([[0.0, 0], [12.0, 0], [0, 0], [1 / 3, 0]])])
    assert cells(new)["k"] == [Decimal(x) for x in ("9.99", "9.99", "0.10", "0.33")]


@pytest.mark.parametrize("low", [-1e300, 1e300])
def test_new_decimals_of_38_digits_fit_their_column(low):
    X = beside(pa.array([Decimal("9.99"), None, Decimal("0.10"), None], pa.decimal128(38, 2)))
    new = Entry.of(X).filled([np.full((4, 2), low)])
    assert cells(new)["k"][1] == Decimal("9" * 36 + ".99").copy_sign(Decimal(low))


FRAME = pd.DataFrame({"p": [1.0, 2.0]}, index=["s", "t"])
REFUSED = {
    "lengths": (lambda a: [a, a[1:]], r"differ in length: 0 40, 1 39; align .* join by index"),
    "a mixture": (lambda a: {"a": a, "b": FRAME}, r"'b' is a frame of pandas.* 'a' has no index"),
    "an index": (lambda a: [pa.Table.from_pandas(FRAME)], r"'__index_level_0__'.* to_pandas\(\)"),
    "text": (lambda a: [pa.table({"k": ["red", "blue"]})], r"column 'k' holds 'red'.* categorical"),
    "a lazy table": (
        lambda a: [pytest.importorskip("polars").LazyFrame({"k": [1.0, 2.0]})],
        r"cannot read views from LazyFrame; .* of a lazy one what its collect\(\) gives",
    ),
    "time spans": (
        lambda a: [pa.table({"k": pa.array([1, 2], pa.duration("s"))})],
        r"column 'k' holds timedelta64.*, not numbers; drop the column",
    ),
    "names twice": (
        lambda a: [pa.table([[1.0], [2.0]], names=["k", "k"])],
        r"duplicated columns .*'k' 2 times\); rename them",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_in_one_sentence(case):
    make, said = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=said):
        Views.of(make(arrow()[0]))


def test_without_narwhals_one_sentence_says_what_to_do(monkeypatch):
    monkeypatch.setattr(foreign, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pyarrow needs narwhals: pip install narwhals, or pass"):
        Views.of(list(arrow()))


def test_what_is_no_table_is_named():
    class Odd:
        def __dataframe__(self):
            raise AssertionError

    with pytest.raises(TypeError, match="cannot read views from Odd; pass tables of pandas"):
        Views.of([Odd()])
