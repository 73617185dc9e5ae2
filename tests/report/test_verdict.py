"""The first screen of a page, its groups, and columns of categories."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import vedute
from vedute.data.views import Views
from vedute.report import columns, verdict
from vedute.report.run_folder import of_model


def cohort(n=300):
    """Two views of two hidden numbers, of which `clinic` has categories, and a view of noise."""
    rng = np.random.default_rng(0)
    z, ids = rng.normal(size=(n, 2)), [f"p{i}" for i in range(n)]
    stage = np.digitize(z[:, 0], (-0.5, 0.5))
    tables = {
        "blood": pd.DataFrame(z @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(n, 5)), ids),
        "clinic": pd.DataFrame(
            {
                "age": 50 + 9 * z[:, 1],
                "stage": pd.Categorical(np.array(["i", "ii", "iii"])[stage]),
                "sex": pd.Categorical(np.where(z[:, 0] > 0, "f", "m")),
            },
            index=ids,
        ),
        "noise": pd.DataFrame(rng.normal(size=(n, 4)), ids),
    }
    return {k: t[rng.random(n) < 0.85] for k, t in tables.items()}


@pytest.fixture(scope="module")
def fitted():
    views = cohort()
    return vedute.LowRankFill(n_clusters=3, random_state=0).fit(views), views


@pytest.fixture(scope="module")
def text(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    vedute.write_report(*fitted, path, title="A <cohort>", split="sex")
    return path.read_text(encoding="utf-8")


def test_the_verdict_grades_views_in_words(fitted, text):
    explained = verdict.shares(of_model(*fitted))
    assert explained["blood"] > 0.6 > 0.05 > explained["noise"]
    words = re.sub(r"<[^>]+>", "", text[: text.index("<nav>")])
    assert re.search(r"Inferred well.*blood.*may be analysed", words)
    assert re.search(r"Not inferred noise .*leave these views missing", words)


def test_the_title_is_escaped_and_the_day_is_said(text):
    assert "<h1>A &lt;cohort&gt;</h1>" in text
    assert re.search(r"<time>\d{4}-\d\d-\d\d</time>", text)


def test_a_page_is_split_by_a_column(text):
    part = text[text.index('<section id="groups">') :].partition("</section>")[0]
    assert [*re.findall(r"<td>(\w[\w ]*)</td>", part)] == ["f", "m", "not known"]
    assert part.count("\u202f%") >= 4  # explained and covered, of f and m


def test_a_column_that_is_not_there_is_suggested(fitted, tmp_path):
    with pytest.raises(ValueError, match="no column 'sexx'; did you mean 'sex'"):
        vedute.write_report(*fitted, tmp_path / "p.html", split="sexx")


def test_numbers_are_grouped_by_their_quartiles():
    views = Views.of(cohort())
    found, counts = np.unique(columns.column_values(views, "age"), return_counts=True)
    assert len(found) == 5  # with `not known`
    assert np.ptp(counts[found != "not known"]) <= 2


def test_categories_have_a_line_each(fitted, text):
    results = of_model(*fitted).results
    assert set(results.confusions) == {"1.stage", "1.sex"}
    assert results.confusions["1.stage"].shape == (3, 3)
    counts = results.confusions["1.sex"]
    assert np.trace(counts) / counts.sum() > 0.6
    part = text[text.index("<h3>Categories") :].partition("</table>")[0]
    assert part.count("<tr>") == 3


def test_correlations_are_those_of_pandas():
    rng = np.random.default_rng(0)
    true = rng.normal(size=(40, 3))
    mean = true + rng.normal(size=(40, 3))
    true[:5, 0], true[:, 2] = np.nan, 1.0
    expected = pd.DataFrame(true).corrwith(pd.DataFrame(mean))
    found = columns.correlations(true, mean)
    np.testing.assert_allclose(found[:2], expected[:2], rtol=1e-5)
    assert np.isnan(found[2])


def test_features_color_the_plane(fitted):
    results = of_model(*fitted).results
    shade, names = results.shades["clinic.stage"], results.shade_names["clinic.stage"]
    assert names.tolist() == ["i", "ii", "iii"]
    stage = Views.of(cohort()).known(1)[results.plane_rows][:, 1:4]
    known = ~np.isnan(stage).any(1)
    np.testing.assert_array_equal(shade[known], stage[known].argmax(1))
    assert (shade[~known] == columns.SHADES).all()
    assert len(results.shade_names["blood.0"]) == 3  # least, median, largest
