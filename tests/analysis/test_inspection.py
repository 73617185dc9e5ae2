"""What `inspect` says of data whose oddities are known."""

from __future__ import annotations

import json
from time import perf_counter

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from vedute.analysis import inspection
from vedute.cli import app
from vedute.data.views import Views

RNG = np.random.default_rng(0)


def inspect(X, mask=None):
    return inspection.inspect(Views.of(X, mask, dtype=torch.float64))


def vedute_(*words):
    result = CliRunner().invoke(app, [str(w) for w in words])
    return result.exit_code, result.stdout, result.stderr


def warning(facts, *words):
    """The one warning with these words."""
    (found,) = (w for w in facts.warnings() if all(word in w for word in words))
    return found


@pytest.fixture
def odd():
    """60 samples; a: 20 missing, a hole, a constant column; b: zeros, a repeated row; c: 0/1."""
    a, b = RNG.standard_normal((60, 5)), RNG.standard_normal((60, 4))
    c = np.eye(3)[RNG.integers(3, size=60)]
    a[:, 2] = 7.0
    a[:20] = np.nan
    a[30, 0] = np.nan
    b[40:43] = 0.0
    b[50] = b[51]
    c[:10] = np.nan
    return {"a": a, "b": b, "c": c}


def test_shares_ranges_and_guesses(odd):
    facts = inspect(odd)
    a, b, _ = facts.views
    assert facts.n == 60
    assert (a.observed, a.missing, b.missing) == (40, pytest.approx(1 / 3), 0.0)
    assert a.holes == pytest.approx(1 / (40 * 5))
    assert (a.low, a.high) == (np.nanmin(odd["a"]), np.nanmax(odd["a"]))
    assert [v.likelihood for v in facts.views] == ["normal", "normal", "categorical"]
    assert [v.scaling for v in facts.views] == ["standard", "standard", "none"]
    assert (a.dtype, a.shape) == ("float64", (5,))
    assert facts.rates == (pytest.approx(1 / 3), pytest.approx(30 / 180))


def test_zeros_are_told_apart_from_missing(odd):
    facts = inspect(odd)
    assert [v.zero_rows for v in facts.views] == [0, 3, 0]
    assert "(3)" in warning(facts, "'b'", "zeros")
    mask = ~np.stack([np.isnan(x).all(1) for x in odd.values()], axis=1)
    mask[40:43, 1] = False
    assert inspect(odd, mask).views[1].zero_rows == 0


def test_constant_columns_and_repeated_rows(odd):
    facts = inspect(odd)
    assert facts.views[0].constant == ["2"]
    assert "'2'" in warning(facts, "'a'", "one value")
    assert facts.views[1].repeated_rows == 1  # the rows of zeros are another matter
    warning(facts, "'b'", "repeat")
    assert facts.repeated_samples == 0


def test_repeated_samples():
    x = RNG.standard_normal((30, 6))
    x[[4, 9]] = x[0]
    facts = inspect([x, 2 * x])
    assert facts.repeated_samples == 2
    assert "(2)" in warning(facts, "every view")
    one = np.ones((30, 2), bool)
    one[9, 1] = False  # the same, but of one view only
    assert inspect([x, 2 * x], one).repeated_samples == 1


def test_holes_and_signs_of_zero_in_repeated_rows():
    x = RNG.standard_normal((4, 5))
    x[1] = x[0]
    x[0, 0], x[1, 0] = 0.0, -0.0
    assert inspect([x]).views[0].repeated_rows == 1
    x[1, 0] = np.nan
    assert inspect([x]).views[0].repeated_rows == 0


def test_patterns_are_counted(odd):
    assert inspect(odd).patterns == [(["a", "b", "c"], 40), (["b", "c"], 10), (["b"], 10)]


def test_views_without_a_common_sample_and_groups_of_views():
    x = {k: RNG.standard_normal((40, 3)) for k in "abcd"}
    mask = np.zeros((40, 4), bool)
    mask[:20, [0, 1]] = mask[10:, 1] = True  # a-b
    mask[20:, 2] = True  # b-c, but never a and c
    mask[39] = [False, False, False, True]  # d is alone
    facts = inspect(x, mask)
    assert facts.strangers == [("a", "c"), ("a", "d"), ("b", "d"), ("c", "d")]
    assert facts.parts == [["a", "b", "c"], ["d"]]
    warning(facts, "'a'", "'c'", "only other views relate them")
    assert "a, b, c | d" in warning(facts, "groups that no sample connects")


def test_early_stopping_needs_rows_with_two_views():
    few = inspect([RNG.standard_normal((50, 3)), RNG.standard_normal((50, 3))])
    assert (few.hideable, few.early_stopping) == (10, False)
    warning(few, "only 10 views")
    enough = inspect([RNG.standard_normal((100, 3)), RNG.standard_normal((100, 3))])
    assert (enough.hideable, enough.early_stopping) == (20, True)
    assert not list(enough.warnings())


def test_outliers_ask_for_something_and_counts_have_a_kind():
    counts = np.rint(RNG.lognormal(2, 1.5, size=(200, 12)))
    wild = RNG.standard_normal((5000, 2))
    wild[0, 0] = 1e4
    assert not list(inspect([counts, counts[:, :4] + 0.5]).warnings())
    (facts,) = inspect([counts]).views
    assert (facts.kind, facts.scaling) == ("log_counts", "log1p")
    assert "likelier at hidden views" in facts.why
    (facts,) = inspect([np.tile(counts, 9)]).views
    assert (facts.kind, facts.scaling) == ("counts", "depth")
    assert "rows differ in their sum" in facts.why
    warning(inspect([wild]), "standard deviations", "laplace")


def test_frames_name_their_columns_and_categories():
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0], "site": 1, "kind": pd.Categorical(list("aab"))})
    frame["kind"] = frame["kind"].cat.set_categories(list("abc"))
    (facts,) = inspect([frame]).views
    assert facts.dtype == "category, float64, int64"
    assert facts.constant == ["site", "kind=c"]


def test_a_view_of_one_column_of_categories_needs_no_setting():
    kinds = pd.DataFrame({"kind": pd.Categorical(list("abc") * 10)})
    facts = inspect({"kind": kinds, "x": pd.DataFrame({"x": RNG.standard_normal(30)})})
    assert facts.views[0].likelihood == "categorical"


def test_images():
    (facts,) = inspect([RNG.integers(0, 256, size=(20, 3, 4, 4)).astype(np.uint8)]).views
    assert (facts.shape, facts.dtype, facts.scaling) == ((3, 4, 4), "uint8", "bytes")
    assert facts.kind == "images"


def test_the_time_that_images_take_on_a_cpu(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (20, 1, 24, 24)).astype(np.uint8)
    table = rng.normal(size=(20, 3))
    table[:4] = np.nan
    few, many = (inspect([np.tile(images, (k, 1, 1, 1)), np.tile(table, (k, 1))]) for k in (1, 20))
    assert 1 < few.seconds < many.seconds
    assert inspect([table[4:], table[4:, :2]]).seconds is None
    assert inspect([images[:, :, :5, :5], table]).seconds is None  # they go through an mlp
    np.savez(tmp_path / "d.npz", a=images, b=images)
    _, shown, _ = vedute_("inspect", tmp_path / "d.npz")
    assert "to learn images on this CPU; faster: a GPU, smaller images, or fewer steps" in shown
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert inspect([images, table]).seconds is None


def test_a_view_that_nobody_has():
    facts = inspect([RNG.standard_normal((5, 2)), np.full((5, 3), np.nan)])
    assert facts.views[1].low is None
    warning(facts, "'view1'", "missing for every sample")


def test_many_rows_take_seconds():
    X = [RNG.standard_normal((100_000, 50)) for _ in range(3)]
    X[1][::3] = np.nan
    views = Views.of(X, dtype=torch.float64)
    start = perf_counter()
    assert inspection.inspect(views).views[1].observed == 66_666
    assert perf_counter() - start < 15  # 2 s where nobody else is at work


# The command.


def test_the_command_shows_it_all(odd, tmp_path):
    pytest.importorskip("matplotlib")
    np.savez(tmp_path / "d.npz", **odd)
    code, out, _ = vedute_("inspect", tmp_path / "d.npz", "-o", tmp_path / "m.png")
    assert code == 0
    for word in ("33.3 %", "categorical", "● ", "zeros (3)", "early_stopping", "n_clusters"):
        assert word in out
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_one_object(odd, tmp_path):
    np.savez(tmp_path / "d.npz", **odd, e=np.full((60, 2), np.nan))
    code, out, _ = vedute_("inspect", tmp_path / "d.npz", "--json")
    assert code == 0
    facts = json.loads(out)
    assert facts["n"] == 60
    assert facts["views"][1]["zero_rows"] == 3
    assert facts["rates"]["slots"] == pytest.approx(90 / 240)
    assert facts["patterns"][0] == [["a", "b", "c"], 40]
    assert any("zeros" in w for w in facts["warnings"])


def test_a_folder_of_tables(tmp_path):
    folder = tmp_path / "two words"
    folder.mkdir()
    ids = [f"p{i}" for i in range(50)]
    a = pd.DataFrame(RNG.standard_normal((50, 3)), index=ids, columns=["x", "y", "z"])
    b = pd.DataFrame({"kind": list("abcde") * 10, "group": 1}, index=ids)
    a[:40].to_csv(folder / "a.csv")
    b[10:].to_csv(folder / "b.csv")
    words = ("--label", "group", "--one-hot")
    code, out, _ = vedute_("inspect", folder, *words)
    assert code == 0
    assert "50 samples, 2 views" in out
    assert f"vedute fit '{folder}' -o run --label group --one-hot" in out
    code, _, err = vedute_("inspect", folder)
    assert (code, err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("words", "why"), [("no.npz", "does not exist"), ("d.npz -o m.pdf", "must end in .png")]
)
def test_mistakes(tmp_path, monkeypatch, words, why):
    monkeypatch.chdir(tmp_path)
    np.savez("d.npz", a=np.eye(3))
    code, _, err = vedute_("inspect", *words.split())
    assert code == 2
    assert why in err
    assert len(err.strip().splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["d.npz"]
