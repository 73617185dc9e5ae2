"""Views: everything the door takes, what missing means, and what is refused in which words."""

from __future__ import annotations

import re
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from vedute.data.frames import ViewSpec
from vedute.data.views import Views

NAN = np.nan


def arrays(n=6):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, w)) for w in (3, 2)]


def numbers(views, v=0):
    return views.x[v].numpy().tolist()


# What comes in.


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "int64", "uint16", "uint8", "bool", ">f8"]
)
def test_every_numeric_dtype_is_data(dtype):
    a = np.array([[0, 1], [1, 0], [1, 1]], dtype)
    views = Views.of([a, a.astype(float)])
    assert views.x[0].dtype == torch.float32
    assert numbers(views) == [[0, 1], [1, 0], [1, 1]]
    assert views.mask.all()
    assert views.holes == (None, None)


@pytest.mark.parametrize(
    "kind",
    [sparse.csr_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_matrix, np.asfortranarray],
)
def test_sparse_views_are_densified_and_zeros_are_data(kind):
    a = np.array([[0.0, 0.0], [0.0, 2.0]])
    views = Views.of({"s": kind(a), "t": kind(a)})
    assert numbers(views) == a.tolist()
    assert views.mask.all()


def test_a_flat_view_is_one_column():
    views = Views.of([[1.0, NAN, 3.0], np.arange(3)])
    assert views.shapes == [(1,), (1,)]
    assert views.mask.tolist() == [[True, True], [False, True], [True, True]]


def test_containers_say_the_same():
    a, b = arrays()
    listed, named = Views.of((a, b)), Views.of({"view0": a, "view1": b})
    table, columns = np.hstack([a, b]), {"view0": slice(0, 3), "view1": [3, 4]}
    tables = [table, sparse.csr_matrix(table), pd.DataFrame(table), table.astype(object)]
    tables += [torch.from_numpy(table), table.tolist()]
    for other in (named, Views.of(listed), *(Views.of(t, columns=columns) for t in tables)):
        assert other.names == ("view0", "view1")
        assert all(torch.equal(x, y) for x, y in zip(other.x, listed.x, strict=True))
        assert torch.equal(other.mask, listed.mask)
    assert Views.of(table).shapes == [(5,)]


def test_a_table_is_cut_by_names_positions_and_slices():
    frame = pd.DataFrame(np.arange(8.0).reshape(2, 4), columns=list("abcd"), index=["s", "t"])
    views = Views.of(frame, columns={"u": ["d", "a"], "v": slice(1, 3), "w": "a"})
    assert numbers(views, 0) == [[3, 0], [7, 4]]
    assert numbers(views, 1) == [[1, 2], [5, 6]]
    assert numbers(views, 2) == [[0], [4]]
    assert views.ids.tolist() == ["s", "t"]
    assert numbers(Views.of(frame.to_numpy(), columns={"w": 2})) == [[2], [6]]


def test_frames_are_joined_in_order_of_first_appearance():
    a = pd.DataFrame({"p": [1.0, 2.0]}, index=["z", "b"])
    b = pd.Series([3, 4, 5], index=["a", "z", "c"], name="q")
    views = Views.of({"a": a, "b": b})
    assert views.ids.tolist() == ["z", "b", "a", "c"]
    assert views.mask.tolist() == [[True, True], [True, False], [False, True], [False, True]]
    assert numbers(views, 0) == [[1], [2], [0], [0]]
    assert numbers(views, 1) == [[4], [0], [3], [5]]


def test_a_frame_without_rows_does_not_change_the_ids():
    a = pd.DataFrame({"p": [1.0, 2.0]}, index=[7, 5])
    specs = Views.of([a, a]).specs
    for empty in (a.iloc[:0], pd.DataFrame(), None):
        views = Views.of([empty, a], like=specs)
        assert views.ids.tolist() == [7, 5]
        assert views.mask.tolist() == [[False, True], [False, True]]
        assert views.shapes == [(1,), (1,)]


def test_columns_of_frames_are_numbers_or_categories():
    frame = pd.DataFrame(
        {
            "int": pd.array([1, None, 3], dtype="Int64"),
            "flag": pd.array([True, False, None], dtype="boolean"),
            "gaps": pd.Series([True, None, False], dtype=object),
            "two": pd.Categorical(["x", "y", None], categories=["y", "x"]),
            "three": pd.Categorical(["r", None, "g"], categories=["r", "g", "b"]),
        }
    )
    views = Views.of([frame])
    (spec,) = views.specs
    x = torch.where(views.holes[0], NAN, views.x[0]).numpy()
    expected = [[1, 1, 1, 1, 1, 0, 0], [NAN, 0, NAN, 0, NAN, NAN, NAN], [3, NAN, 0, NAN, 0, 1, 0]]
    np.testing.assert_array_equal(x, expected)
    assert spec.levels == (None, None, None, ("y", "x"), ("r", "g", "b"))
    assert spec.columns == tuple(frame.columns)


def test_images_keep_their_bytes_and_networks_see_them_between_minus_one_and_one():
    images = np.array([0, 51, 255], np.uint8).reshape(3, 1, 1) * np.ones((1, 2, 2), np.uint8)
    views = Views.of([images, np.ones((3, 1))])
    assert views.x[0].dtype == torch.uint8
    seen = views.floating()
    assert seen.x[0][:, 0, 0].tolist() == pytest.approx([-1.0, -0.6, 1.0])
    assert seen.x[1] is views.x[1]


def test_bytes_become_numbers_where_numbers_were_fitted():
    images = np.full((3, 2, 2), 9, np.uint8)
    specs = Views.of([images.astype(float)]).specs
    for X in ([images], Views.of([images])):
        assert Views.of(X, like=specs).x[0].is_floating_point()


# What missing means.


def test_a_row_of_nan_is_missing_and_single_nan_are_holes():
    a = np.array([[NAN, NAN], [1.0, NAN], [0.0, 0.0]])
    views = Views.of([a, np.zeros((3, 1))])
    assert views.mask[:, 0].tolist() == [False, True, True]
    assert views.holes[0].tolist() == [[False, False], [False, True], [False, False]]
    assert views.holes[1] is None
    assert numbers(views) == [[0, 0], [1, 0], [0, 0]]
    assert not views.x[1].isnan().any()


def test_the_mask_hides_what_is_there_and_leaves_holes_in_what_it_shows():
    a = np.array([[1.0, 2.0], [3.0, NAN], [np.inf, NAN]])
    views = Views.of([a, np.ones((3, 1))], mask=[[0, 1], [1, 1], [0, 1]])
    assert views.mask[:, 0].tolist() == [False, True, False]
    assert numbers(views) == [[0, 0], [3, 0], [0, 0]]
    assert views.holes[0].tolist() == [[False, False], [False, True], [False, False]]


def test_the_mask_of_a_views_hides_more():
    views = Views.of(arrays(), mask=[[1, 0]] + [[1, 1]] * 5)
    again = Views.of(views, mask=[[1, 0]] * 3 + [[0, 1]] * 3)
    assert again.mask.tolist() == [[True, False]] * 3 + [[False, True]] * 3
    assert (again.x[1][:3] == 0).all()
    assert (again.x[0][3:] == 0).all()


def test_a_view_nobody_has_takes_the_shape_it_was_fitted_with():
    a, b = arrays()
    specs = Views.of({"a": a, "b": b}).specs
    for X in ({"a": a}, {"a": a, "b": None}, [a, None], Views.of({"a": a, "b": None})):
        views = Views.of(X, like=specs)
        assert views.names == ("a", "b")
        assert views.shapes == [(3,), (2,)]
        assert not views.mask[:, 1].any()


def test_names_decide_the_order_of_views_and_columns():
    a, b = arrays()
    frames = {k: pd.DataFrame(x).add_prefix(k) for k, x in (("a", a), ("b", b))}
    for X in ({"a": a, "b": b}, frames):
        views = Views.of(X)
        specs = views.specs
        turned = {k: X[k] for k in ("b", "a")}
        if X is frames:
            turned["a"] = turned["a"].iloc[:, ::-1]
        again = Views.of(turned, like=specs)
        assert all(torch.equal(x, y) for x, y in zip(again.x, views.x, strict=True))


def test_nothing_of_the_user_is_changed():
    a = np.array([[1.0, NAN], [NAN, NAN], [3.0, 4.0]], np.float32)
    b = np.ones((3, 1))
    a.flags.writeable = b.flags.writeable = False
    views = Views.of([a, b], mask=[[1, 1], [0, 1], [1, 0]])
    assert np.isnan(a).sum() == 3
    assert views.mask.sum() == 4


def test_labels_stay_with_their_rows_and_training_sees_none():
    views = Views.of(arrays(), y=list("abcdef"))
    assert views[[4, 0]].y.tolist() == ["e", "a"]
    assert Views.of(views).y is not None
    assert views.bare().y is None
    assert views.bare().ids is None


# Rows and views.


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (np.array([4, 1, 1]), [4, 1, 1]),
        ([5, -1], [5, 5]),
        (np.arange(6) > 3, [4, 5]),
        ([True, False] * 3, [0, 2, 4]),
        (slice(1, 5, 2), [1, 3]),
        (slice(None, None, -2), [5, 3, 1]),
        (torch.tensor([2, 0]), [2, 0]),
        (torch.arange(6) < 2, [0, 1]),
        (pd.Series([3]), [3]),
        (np.int64(2), [2]),
        (-1, [5]),
        ([], []),
        ((np.array([3, 4]), ...), [3, 4]),
    ],
    ids=str,
)
def test_rows_are_taken_by_anything_that_names_rows(rows, expected):
    a = np.arange(12.0).reshape(6, 2)
    a[2, 1] = NAN
    frames = [pd.DataFrame(a, index=list("stuvwx")), pd.Series(range(6), index=list("stuvwx"))]
    views = Views.of(frames, y=range(6))
    part = views[rows]
    assert part.index.tolist() == expected
    assert part.y.tolist() == expected
    assert part.ids.tolist() == ["stuvwx"[i] for i in expected]
    assert part.x[1][:, 0].tolist() == expected
    assert part.holes[0][:, 1].tolist() == [i == 2 for i in expected]
    assert part.shape == (len(expected), 2) == (len(part), len(part.x))


def test_rows_end():
    views = Views.of(arrays())
    assert len(list(views)) == 6
    with pytest.raises(IndexError):
        views[6]
    assert [len(b) for b in views.batches(4)] == [4, 2]


def test_views_at_the_door_are_numbered_anew():
    part = Views.of(arrays())[[3, 1]]
    assert part.index.tolist() == [3, 1]
    assert Views.of(part).index.tolist() == [0, 1]


def test_pick_and_hide():
    a, b = arrays()
    a[0, 0] = NAN
    views = Views.of({"a": a, "b": b, "c": a})
    picked = views.pick(2, 0)
    assert picked.names == ("c", "a")
    assert picked.shapes == [(3,), (3,)]
    hidden = torch.zeros(6, 3, dtype=torch.bool)
    hidden[0, 0] = hidden[1, 1] = True
    less = views.hide(hidden)
    assert torch.equal(less.mask, ~hidden)
    assert less.x[0][0].tolist() == [0, 0, 0]
    assert less.x[1][1].tolist() == [0, 0]
    assert not less.holes[0].any()
    assert views.mask.all()
    assert views.holes[0].sum() == 1


# What is refused, and in which words.


def frame(*ids, **columns):
    return pd.DataFrame(columns or {"p": np.arange(float(len(ids)))}, index=list(ids))


def of(*views, mask=None, columns=None, like=None):
    return Views.of(views[0] if columns is not None else list(views), mask, columns, like=like)


ONE, TWO = np.ones((3, 1)), np.ones((3, 2))
GAP = np.array([[1.0], [NAN], [NAN]])
FITTED = [ViewSpec("a", (2,)), ViewSpec("b", (1,))]
COLUMNS = [ViewSpec("a", (2,), ("p", "q"), (None, ("x", "y")))]
CAT = pd.Categorical(["x", "z"])

REFUSED = {
    "lengths": (lambda: of(ONE, np.ones((4, 2))), "'view0' 3|'view1' 4|align|DataFrames"),
    "blank row": (lambda: of(GAP, GAP), "rows 1, 2 have no observed view|drop"),
    "blank id": (lambda: of(frame("s", "t", p=[1, NAN])), "row 't' has no observed view|drop"),
    "many rows": (lambda: of(np.full((9, 1), NAN)), r"rows 0, 1, 2, 3, 4, ... \(9 in all\)"),
    "hidden row": (lambda: of(ONE, mask=[[1], [0], [1]]), "row 1 has no observed view"),
    "infinity": (lambda: of(TWO, [1, np.inf, -np.inf]), "'view1'|rows 1, 2|infinit|replace"),
    "infinite id": (lambda: of(frame("s", "t", p=[1, np.inf])), "'view0'|row 't' has infinite"),
    "strings": (lambda: of(ONE, [["1"], ["x"], ["y"]]), "'view1'|'x' in row 1|encode"),
    "dates": (lambda: of([np.datetime64("2020-01-01")] * 2), "'view0'|2020|not a number"),
    "complex": (lambda: of(ONE * 1j), "Complex data not supported|'view0'|real and imaginary"),
    "ragged": (lambda: of([[1, 2], [3]]), "'view0'|rows of different lengths|pass an array"),
    "rank 0": (lambda: of(ONE, 5.0), "'view1' is a single number|n_samples, n_features"),
    "rank 3": (lambda: Views.of(np.ones((3, 2, 2))), "rank 3|Expected 2D array|list"),
    "rank 1": (lambda: Views.of(np.ones(3)), "rank 1|Reshape your data|list"),
    "ids twice": (lambda: of(frame(1, 2), frame(3, 3, 3)), "'view1'|duplicated ids 3;|one row"),
    "columns twice": (
        lambda: of(pd.DataFrame(TWO, columns=["p", "p"])),
        "'view0'|duplicated columns 'p'|rename",
    ),
    "mask shape": (lambda: of(ONE, TWO, mask=np.ones((2, 3))), r"\(2, 3\)|\(3, 2\)|per view"),
    "mask words": (lambda: of(ONE, mask=[[0], [1], [2]]), "mask holds 2|True|False"),
    "mask over nan": (
        lambda: of(GAP, ONE, mask=np.ones((3, 2))),
        "mask|'view0'|X has none|rows 1, 2 have no value|correct",
    ),
    "mask over missing": (
        lambda: Views.of(Views.of([GAP, ONE]), mask=np.ones((3, 2))),
        "mask|'view0'|rows 1, 2 have no value|correct",
    ),
    "hidden in Views": (
        lambda: Views.of(Views.of([frame("s", "t")]), mask=[[1], [0]]),
        "row 't' has no observed view|drop",
    ),
    "unknown name": (
        lambda: Views.of({"a": TWO, "c": ONE}, like=FITTED),
        "unknown view 'c'|fitted views are a, b",
    ),
    "fewer views": (lambda: of(TWO, like=FITTED), r"1 views, fitted on 2 \(a, b\)|pass None"),
    "other Views": (
        lambda: Views.of(Views.of({"b": ONE, "a": TWO}), like=FITTED),
        "views are b, a|fitted on a, b",
    ),
    "width": (
        lambda: of(np.ones((3, 5)), ONE, like=FITTED),
        r"'a'|\(5,\)|\(2,\)|5 features, but it is expecting 2|same columns",
    ),
    "width of Views": (
        lambda: Views.of(Views.of({"a": ONE, "b": ONE}), like=FITTED),
        r"'a'|\(1,\)|\(2,\)|same columns",
    ),
    "width of frames": (
        lambda: of(frame(1), frame(1), like=FITTED),
        "'a'|1 features, fitted on 2|same columns",
    ),
    "other columns": (
        lambda: of(frame(1, p=[1.0], r=[1.0]), like=COLUMNS),
        "'a' lacks 'q' and has unknown 'r'|the 2 columns",
    ),
    "new category": (
        lambda: of(frame(1, 2, p=[1, 2], q=CAT), like=COLUMNS),
        "'a'|column 'q'|new category 'z'|fitted on 'x', 'y'",
    ),
    "category for number": (
        lambda: of(frame(1, 2, p=CAT, q=["x", "y"]), like=COLUMNS),
        "'a'|column 'p' is categorical, fitted on numbers",
    ),
    "no category": (lambda: of(frame(1, p=pd.Categorical([None]))), "'p' has no category|drop"),
    "text column": (
        lambda: of(frame(1, 2, p=[None, "blue"])),
        r"'view0'|column 'p' holds 'blue'|drop the column|astype\('category'\)",
    ),
    "time spans": (
        lambda: of(frame(1, p=[timedelta(1)])),
        "'view0'|column 'p' holds timedelta64.*, not numbers; drop the column|such as seconds",
    ),
    "a word among numbers": (
        lambda: of(frame(*"stuv", p=["1", "2", "low", "4"])),
        "'view0', column 'p', row 'u' holds 'low' among numbers; correct it",
    ),
    "names": (
        lambda: of(frame(*range(60), p=[f"name{i}" for i in range(60)])),
        "column 'p' holds 'name0', which is not a number; drop the column, or make it numeric$",
    ),
    "complex column": (lambda: of(frame(1, p=[1j])), "column 'p' holds complex|drop the column"),
    "no views": (lambda: Views.of([]), "no views|at least one"),
    "no data": (lambda: Views.of([None, None]), "every view is None|at least one"),
    "no samples": (lambda: of(np.ones((0, 3))), "no samples"),
    "empty frames": (lambda: of(frame(p=[]), frame(p=[])), "no samples|empty"),
    "no columns": (lambda: of(ONE, np.ones((3, 0))), "'view1' has no columns|leave it out"),
    "no frame columns": (lambda: of(frame(1), pd.DataFrame(index=[1])), "'view1' has no columns"),
    "same name": (lambda: Views.of({1: ONE, "1": ONE}), "two views are named '1'|rename"),
    "cut outside": (lambda: of(TWO, columns={"a": [0, 2]}), "view 'a'|width 2|slice"),
    "cut by strange names": (
        lambda: of(frame(1, p=[1]), columns={"a": ["q"]}),
        "view 'a'|'q'|slice",
    ),
    "cut a cube": (lambda: of(np.ones((2, 2, 2)), columns={"a": [0]}), "2-D table|rank 3"),
    "labels": (lambda: Views.of([ONE], y=[1, 2]), r"y has shape \(2,\)|one label per sample"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said_in_one_sentence_with_its_mend(case):
    wrong, parts = REFUSED[case]
    with pytest.raises(ValueError, match=parts.split("|")[0]) as told:
        wrong()
    text = str(told.value)
    for part in parts.split("|"):
        assert re.search(part, text), text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("wrong", "parts"),
    [
        (lambda: of(ONE, frame(1, 2, 3)), ["'view0' is an array", "'view1' is a frame"]),
        (lambda: Views.of("data.npz"), ["cannot read views from str", "list or dict"]),
        (lambda: Views.of(5), ["cannot read views from int"]),
        (lambda: of(ONE, [[1], [{}], [2]]), ["'view1' holds '{}' in row 1", "encode"]),
        (lambda: of([ONE, TWO], columns={"a": [0]}), ["2-D table", "list", "leave columns="]),
    ],
)
def test_what_is_no_data_at_all_is_a_type_error(wrong, parts):
    with pytest.raises(TypeError) as told:
        wrong()
    assert all(part in str(told.value) for part in parts), told.value


# Numbers that float32 has no room for.


def test_floats_are_kept_in_float32_where_nothing_is_lost():
    offset = arrays()[0] + 1e3
    views = Views.of([offset, offset.astype(np.float32)])
    assert [x.dtype for x in views.x] == [torch.float32, torch.float32]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("make", [lambda a: 1.7e9 + np.arange(len(a)), lambda a: a[:, 0] * 1e39])
def test_time_stamps_and_huge_numbers_stay_what_they_are(make, missing):
    a, b = arrays(40)
    stamps = make(a)
    stamps[:5] = NAN if missing else stamps[:5]
    views = Views.of([stamps, b])
    assert [x.dtype for x in views.x] == [torch.float64, torch.float32]
    seen = views.mask[:, 0].numpy()
    assert (views.x[0][:, 0].numpy()[seen] == stamps[seen]).all()


def test_a_constant_with_an_offset_needs_no_room():
    views = Views.of([np.full((6, 1), 1.7e9 + 0.1), arrays()[1]])
    assert views.x[0].dtype == torch.float32


# Masks of other people's making.


def test_what_a_masked_array_hides_is_missing():
    a, b = arrays()
    hidden = np.zeros(a.shape, bool)
    hidden[0], hidden[1, 2] = True, True
    for values in (a, np.rint(a).astype(int)):
        views = Views.of([np.ma.array(values, mask=hidden), b])
        assert views.mask[:, 0].tolist() == [False, *[True] * 5]
        assert views.holes[0].nonzero().tolist() == [[1, 2]]
    assert Views.of([np.ma.array(a), b]).mask.all()


def test_a_mask_with_an_index_is_joined_like_the_frames():
    a, b = (pd.DataFrame(x, index=list("abcdef")) for x in arrays())
    seen = pd.DataFrame(True, index=list("fedcba"), columns=["a", "b"])
    seen.loc["a", "a"] = False
    assert Views.of({"a": a, "b": b}, mask=seen).mask[:, 0].tolist() == [False, *[True] * 5]
    for turned in (seen[["b", "a"]], seen.set_axis([0, 1], axis=1)):
        assert Views.of({"a": a, "b": b}, mask=turned).mask[0].tolist() == [False, True]
        known = Views.of({"a": a, "b": b})
        assert Views.of(known, mask=turned).mask[0].tolist() == [False, True]
    with pytest.raises(ValueError, match=r"mask lacks 'a'; give it one row per sample, by the ids"):
        Views.of({"a": a, "b": b}, mask=seen.drop("a"))
    with pytest.raises(ValueError, match=r"mask has columns 'p', 'q'; name them a, b"):
        Views.of({"a": a, "b": b}, mask=seen.set_axis(["p", "q"], axis=1))


@pytest.mark.parametrize(
    "column",
    [pd.period_range("2020-01", periods=6, freq="M"), pd.IntervalIndex.from_breaks(range(7))],
)
def test_periods_and_intervals_do_not_pass_for_numbers(column):
    a, b = (pd.DataFrame(x) for x in arrays())
    with pytest.raises(ValueError, match=r"view 'a', column 'when' holds .*, not numbers; drop"):
        Views.of({"a": a.assign(when=column), "b": b})


def test_positions_cut_a_frame_unless_they_are_names():
    table = pd.DataFrame(np.hstack(arrays()), columns=list("vwxyz"))
    with pytest.raises(ValueError, match=r"columns of view 'a' are not in the table of width 5"):
        Views.of(table, columns={"a": 3.5, "b": [0, 1]})
    views = Views.of(table, columns={"a": [0, 1], "b": range(2, 5)})
    assert views.shapes == [(2,), (3,)]
    assert numbers(views) == table[["v", "w"]].astype("float32").to_numpy().tolist()
    apart = table.set_axis([1, 2, 3, 4, 5], axis=1)  # 0 is no name: all are positions
    views = Views.of(apart, columns={"a": [0, 1], "b": [2, 3, 4]})
    assert numbers(views, 1) == table[["x", "y", "z"]].astype("float32").to_numpy().tolist()
    named = table.set_axis([4, 3, 2, 1, 0], axis=1)
    assert (
        numbers(Views.of(named, columns={"a": [0, 1]}))
        == named[[0, 1]].astype("float32").to_numpy().tolist()
    )


def test_ids_that_are_the_same_in_writing_only_are_refused():
    a, b = (pd.DataFrame(x) for x in arrays())
    told = r"ids of views 'a' and 'b' never meet: 0 is not '0'; give both the same type"
    with pytest.raises(ValueError, match=told):
        Views.of({"a": a, "b": b.set_axis(b.index.astype(str))})
    apart = Views.of({"a": a, "b": b.set_axis(b.index + 6)})  # other samples: as it may be
    assert apart.mask.sum(1).tolist() == [1] * 12


def test_ids_of_several_levels_and_dates_are_ids():
    a, b = (pd.DataFrame(x) for x in arrays())
    levels = [pd.MultiIndex.from_product([[k], range(6)]) for k in "pq"]
    days = pd.date_range("2020-01-01", periods=6)
    for one, other in (levels, (levels[0], range(6)), (days, days + pd.Timedelta(days=9))):
        assert len(Views.of({"a": a.set_axis(one), "b": b.set_axis(other)})) == 12


def test_decimal_commas_are_refused_with_the_mend():
    frame = pd.DataFrame({"iron": ["1,5", "NA", "2", "3,25"], "age": [1.0, 2, 3, 4]})
    with pytest.raises(ValueError, match="'iron' holds '1,5', a number with a comma") as said:
        Views.of({"a": frame})
    mend = str(said.value).partition("convert the column: ")[2]
    frame["iron"] = eval(mend, {"pd": pd, "frame": frame})
    assert Views.of({"a": frame}).x[0][:, 0].tolist() == [1.5, 0.0, 2.0, 3.25]
