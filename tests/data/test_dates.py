"""Dates in frames and tables: days since the earliest, and dates of their own type again."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from vedute import LowRankFill, Views, load
from vedute.data import dates, kinds

N = 30
RNG = np.random.default_rng(0)
DAYS = pd.Series(
    pd.Timestamp("2020-02-25") + pd.to_timedelta(RNG.integers(0, 900, N), unit="D")
).where(np.arange(N) != 3)
DAYS[0] = pd.Timestamp("2020-02-25")
NOON = DAYS + timedelta(hours=11, minutes=30)
PLAIN = [None if pd.isna(x) else x.to_pydatetime() for x in NOON]
COLUMNS = {
    "seconds": DAYS.astype("datetime64[s]"),
    "nanoseconds": NOON.astype("datetime64[ns]"),
    "a zone": NOON.dt.tz_localize("Europe/Berlin"),
    "date objects": pd.Series([None if x is None else x.date() for x in PLAIN], dtype=object),
    "datetime objects": pd.Series(PLAIN, dtype=object),
    "stamps": pd.Series([None if x is None else pd.Timestamp(x) for x in PLAIN], dtype=object),
    "objects in a zone": pd.Series(
        [None if x is None else x.replace(tzinfo=UTC) for x in PLAIN], dtype=object
    ),
    "text": DAYS.dt.strftime("%d.%m.%Y").astype(object).where(DAYS.notna(), None),
}


def frames(column):
    g = pd.DataFrame({"b": np.arange(N) * 0.5, "c": RNG.normal(size=N)})
    return {"f": pd.DataFrame({"a": g["b"] + 1, "x": column}), "g": g}


def filled(X):
    with pytest.warns(UserWarning, match=r"'f' has dates, .* days: 'x' since 2020-02-25"):
        model = LowRankFill(random_state=0).fit(X)
    return model, model.impute(X)


@pytest.mark.parametrize("kind", COLUMNS)
def test_dates_come_back_in_their_type(kind):
    X = frames(COLUMNS[kind])
    _, out = filled(X)
    old, new = X["f"]["x"], out["f"]["x"]
    assert new.dtype == old.dtype
    assert new.notna().all()
    seen = old.notna()
    assert new[seen].equals(old[seen])
    assert {type(x) for x in new} == {type(x) for x in old[seen]}


@pytest.mark.parametrize("kind", ["timestamp[us][pyarrow]", "date32[day][pyarrow]"])
def test_dates_of_arrow_in_pandas(kind):
    pytest.importorskip("pyarrow")
    column = pd.Series(COLUMNS["date objects"].tolist(), dtype=kind)
    _, out = filled(frames(column))
    assert out["f"]["x"].dtype == column.dtype
    assert out["f"]["x"].notna().all()


def test_days_count_from_the_earliest():
    with pytest.warns(UserWarning, match="since 2020-02-25"):
        views = Views.of(frames(DAYS))
    x = views.x[0][:, 1].numpy()
    known = DAYS.notna().to_numpy()
    np.testing.assert_array_equal(x[known], (DAYS - DAYS.min()).dt.days[known])
    assert not views.seen(0)[3, 1]
    assert views.specs[0].origins == (None, "2020-02-25")
    assert kinds.recognise(views.x[0], views.seen(0), views.specs[0]).kind.name == "numbers"


def test_whole_days_stay_whole_and_hours_do_not():
    _, out = filled(frames(DAYS))
    assert (out["f"]["x"] == out["f"]["x"].dt.normalize()).all()


def test_new_data_count_from_the_day_of_fitting(tmp_path):
    X = frames(DAYS)
    model, _ = filled(X)
    later = {k: v.iloc[10:20] for k, v in X.items()}
    whole = model.transform(X)[10:20]
    np.testing.assert_allclose(model.transform(later), whole, atol=1e-6)
    model.save(tmp_path / "m")
    np.testing.assert_allclose(load(tmp_path / "m").transform(later), whole, atol=1e-6)
    again = pickle.loads(pickle.dumps(model))
    assert again.specs[0].origins == (None, "2020-02-25")
    with pytest.warns(UserWarning, match="has dates"):
        others = Views.of(later)
    with pytest.raises(ValueError, match=r"has dates since .* fitted on"):
        model.transform(others)


def test_another_kind_of_column_than_was_fitted():
    X = frames(DAYS)
    model, _ = filled(X)
    gone = {**X, "f": X["f"].assign(x=np.nan)}
    made = model.impute(gone)["f"]["x"]
    assert made.dtype.kind == "M"
    with pytest.raises(ValueError, match="'x' is numeric, fitted on dates"):
        model.impute({**X, "f": X["f"].assign(x=np.arange(N))})
    with pytest.raises(ValueError, match="'b' holds dates, fitted on numbers"):
        model.impute({**X, "g": X["g"].assign(b=DAYS)})


def test_a_view_that_is_not_there_has_dates_too():
    X = frames(DAYS)
    model, _ = filled(X)
    made = model.impute({"f": None, "g": X["g"]})["f"]
    assert made["x"].dtype.kind == "M"


@pytest.mark.parametrize("far", ["1066-10-14", "9999-12-31"])
def test_dates_that_nanoseconds_cannot_hold(far):
    column = pd.Series([datetime.fromisoformat(far), *PLAIN[1:]], dtype=object)
    with pytest.warns(UserWarning, match="has dates"):
        model = LowRankFill(random_state=0).fit(frames(column))
    with pytest.warns(UserWarning, match="has dates"):
        assert Views.of(frames(column)).seen(0)[0, 1]
    assert model.impute(frames(column))["f"]["x"].notna().all()


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_others(library):
    pl = pytest.importorskip("polars")
    days = [None if x is None else x.date() for x in PLAIN]
    table = pl.DataFrame({"a": np.arange(N) * 1.0, "x": days, "at": PLAIN}).with_columns(
        zone=pl.col("at").dt.replace_time_zone("Asia/Tokyo"),
        ms=pl.col("at").cast(pl.Datetime("ms")),
    )
    other = pl.DataFrame({"b": np.arange(N) * 0.5})
    X = {"f": table, "g": other}
    X = X if library == "polars" else {k: v.to_arrow() for k, v in X.items()}
    _, out = filled(X)
    new, old = out["f"], X["f"]
    assert new.schema == old.schema
    for name in ("x", "at", "zone", "ms"):
        pairs = zip(*(a[name].to_list() if library == "polars" else a[name].to_pylist()
                      for a in (old, new)), strict=True)  # fmt: skip
        assert all(b is not None and (a is None or a == b) for a, b in pairs)


GOOD = {
    "iso": (["2024-02-29", "1999-12-01"], "2024-01-05"),
    "slashes": (["2024/02/29", "1999/12/01"], "2024/01/05"),
    "german": (["29.02.2024", "01.12.1999"], "05.01.2024"),
    "short german": (["1.2.2024", "01.12.1999"], "5.1.2024"),
    "british": (["29/02/2024", "01/02/2024"], "05/01/2024"),
    "american": (["02/29/2024", "01/02/2024"], "01/05/2024"),
    "sas": (["01JAN2020", "29FEB2024"], "05JAN2024"),
    "with names": (["1 March 2020", "29 February 2024"], "5 January 2024"),
    "with short names": (["01-Mar-2020", "29-Feb-2024"], "05-Jan-2024"),
    "american names": (["Mar 1, 2020", "Feb 29, 2024"], "Jan 5, 2024"),
    "with a time": (["2024-02-29 10:30", "1999-12-01 00:00"], "2024-01-05 00:00"),
    "iso time": (["2024-02-29T10:30:15.2Z", "1999-12-01T00:00:00.0Z"], "2024-01-05T00:00:00.0Z"),
}  # fmt: skip


@pytest.mark.parametrize("case", GOOD)
def test_text_is_read_and_written_in_its_way(case):
    texts, fifth = GOOD[case]
    cells = pd.Series([*texts, None], dtype=object)
    found = dates.of_text("here", cells)
    assert found is not None
    assert found.isna().tolist() == [False, False, True]
    like = dates.wording(cells)
    assert dates.written(np.array(["2024-01-05"], "datetime64[us]"), like) == [fifth]
    back = dates.of_text("here", pd.Series([*texts, fifth], dtype=object))
    assert back is not None
    assert back[2] == pd.Timestamp("2024-01-05")


NONE = [
    ["1-2", "3-4"],
    ["2024-02-30", "2024-01-01"],
    ["2024-01", "2024-02"],
    ["20240101", "20240102"],
    ["01/02/24", "13/02/24"],
    ["12:30", "13:30"],
    ["2024-01-01", "01.01.2024"],
    ["13/01/2024", "01/13/2024"],
    ["0000-00-00", "2024-01-01"],
    ["1.2.3", "2.3.4"],
    ["2024-01-01 to 2024-02-01", "2024-01-01"],
    ["2024-01/02", "2024-01/03"],
    ["P-2024-01-01", "P-2024-01-02"],
    ["32 Foo 2020", "1 Bar 2020"],
    [None, None],
]


@pytest.mark.parametrize("texts", NONE)
def test_what_is_no_date(texts):
    assert dates.of_text("here", pd.Series(texts, dtype=object)) is None


@pytest.mark.parametrize("texts", [["01/02/2024", "3/4/2023"], ["01-02-2024"], ["05/05/2024"]])
def test_day_and_month_that_cannot_be_told_apart(texts):
    with pytest.raises(ValueError, match=r"here holds dates like .* ambiguous; write them as in"):
        dates.of_text("here", pd.Series(texts, dtype=object))


def test_numbers_that_look_like_dates_stay_numbers():
    views = Views.of(pd.DataFrame({"a": [20240101, 20240102], "b": ["20240101", "20240131"]}))
    assert views.specs[0].origins == ()
    assert views.x[0][0].tolist() == [20240101.0, 20240101.0]


def test_an_odd_cell_among_dates():
    column = ["2024-01-01", "2024-01-02", "unknown", None]
    with pytest.raises(ValueError, match="row '2' holds 'unknown' among dates; write it as"):
        Views.of(pd.DataFrame({"a": column}))


def test_date_objects_are_no_time_spans():
    assert not dates.are_in(pd.Series([timedelta(1)]))
    assert dates.are_in(pd.Series([date(2020, 1, 1), None], dtype=object))
    assert not dates.are_in(pd.Series(pd.Categorical([date(2020, 1, 1)])))
