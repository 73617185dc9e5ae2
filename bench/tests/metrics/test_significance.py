"""Ranks and tests over datasets, on the example of Demšar (JMLR 2006, tables 2 and 6)."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from vedute_bench.metrics import significance
from vedute_bench.metrics.significance import (
    alike,
    average_ranks,
    compare,
    critical_difference,
    holm,
    wilcoxon,
)
from vedute_bench.summaries import ranking

# AUC of decision trees on fourteen datasets; "voting" kept apart, as its ranks are in the paper.
TREES = {
    "C4.5": (763, 599, 954, 628, 882, 936, 661, 583, 775, 1000, 940, 619, 972, 957),
    "+m": (768, 591, 971, 661, 888, 931, 668, 583, 838, 1000, 962, 666, 981, 978),
    "+cf": (771, 590, 968, 654, 886, 916, 609, 563, 866, 1000, 965, 614, 976, 946),
    "+m+cf": (798, 569, 967, 657, 898, 931, 685, 625, 875, 1000, 962, 669, 975, 970),
}
TABLE = np.array(list(TREES.values()), float).T


def test_average_ranks():
    np.testing.assert_allclose(average_ranks(TABLE), [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    np.testing.assert_array_equal(average_ranks([[3, 1, 3], [0, 0, 0]]), [1.75, 2.5, 1.75])


def test_friedman():
    """9.28 without ties; these take 78 of 840, 6 for each two equals and 60 for four."""
    chi2, p = significance.friedman(TABLE)
    assert chi2 == pytest.approx(9.28 / (1 - 78 / 840), abs=0.02)
    assert 0.01 < p < 0.02
    assert significance.friedman(np.ones((4, 3))) == (0.0, 1.0)


def test_critical_difference():
    assert critical_difference(4, 14) == pytest.approx(2.569 * np.sqrt(20 / 84), abs=1e-3)  # 1.25
    assert critical_difference(4, 14, alpha=0.1) == pytest.approx(1.12, abs=5e-3)
    assert critical_difference(2, 10) == pytest.approx(1.960 / np.sqrt(10), abs=1e-3)


def test_wilcoxon():
    """C4.5 against +m: the lesser sum of ranks is 12, hence z = -40.5 / sqrt(14 15 29 / 24)."""
    p = wilcoxon(TABLE[:, 1] - TABLE[:, 0])
    assert p == pytest.approx(0.0110, abs=5e-4)
    assert wilcoxon(np.zeros(5)) == 1.0
    assert wilcoxon(np.arange(1.0, 6.0)) == pytest.approx(2 / 2**5)  # all of one sign


def test_holm():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.6, 0.5]), [1.0, 1.0])
    assert holm([]).shape == (0,)


def test_bars_join_what_does_not_differ():
    ranks = np.array([1.0, 1.8, 2.2, 4.0, 6.0])
    assert alike(ranks, 1.0) == [(0, 1), (1, 2)]
    assert alike(ranks, 1.2) == [(0, 2)]
    assert alike(ranks, 2.0) == [(0, 2), (2, 3), (3, 4)]
    assert alike(ranks, 9.0) == [(0, 4)]
    assert alike(ranks, 0.1) == []


def test_a_comparison_sorts_by_rank_and_tests_all_pairs():
    found = compare(TREES)
    assert found.labels == ["+m+cf", "+m", "+cf", "C4.5"]
    assert found.datasets == 14
    assert (np.diff(found.ranks) > 0).all()
    np.testing.assert_allclose(found.means[3], TABLE[:, 0].mean())
    assert len(found.tests) == 6
    (one,) = (t for t in found.tests if (t.better, t.worse) == ("+m", "C4.5"))
    assert (one.wins, one.losses) == (10, 2)
    raw = [wilcoxon(TABLE[:, 3] - TABLE[:, j]) for j in (1, 2, 0)]
    raw += [wilcoxon(TABLE[:, 1] - TABLE[:, j]) for j in (2, 0)]
    raw += [wilcoxon(TABLE[:, 2] - TABLE[:, 0])]
    np.testing.assert_allclose([t.p for t in found.tests], holm(raw))


def test_too_little_is_not_compared():
    assert compare({}) is None
    assert compare({"a": [1.0] * 9, "b": [2.0] * 9}) is None
    assert compare({k: [1.0, 2.0] for k in "abc"}) is None
    equal = compare({k: [1.0, 2.0, 3.0, 4.0] for k in "abc"})
    assert equal.ranks.tolist() == [2.0, 2.0, 2.0]
    assert {t.p for t in equal.tests} == {1.0}


def test_ranks_as_text():
    sure = {"good": np.arange(20) + 9.0, "fair": np.arange(20) + 5.0, "bad": np.arange(20) + 0.0}
    found = compare(sure)
    text = ranking.markdown(found)
    assert "| good | 1.00 | 18.50 | 2 | 0 | – |\n" in text
    assert "| fair | 2.00 | 14.50 | 1 | 1 | < 0.001 |\n" in text
    assert "| bad | 3.00 | 9.50 | 0 | 2 | < 0.001 |\n" in text
    assert "Over 20 datasets" in text
    assert "No pair can pass it" not in text
    assert "for all 3 pairs" in text
    rows = list(csv.DictReader(ranking.comma_separated(found).splitlines()))
    assert [(r["better_rank"], r["worse_rank"]) for r in rows] == [
        ("good", "fair"), ("good", "bad"), ("fair", "bad")
    ]  # fmt: skip
    assert (rows[1]["wins"], rows[1]["losses"], rows[1]["difference"]) == ("20", "0", "9.0")


def test_few_datasets_cannot_tell_a_pair_apart():
    found = compare({k: np.arange(4.0) + i for i, k in enumerate("abc")})
    assert min(t.p for t in found.tests) >= significance.least_p(4) == 0.125
    assert "No pair can pass it: over 4 datasets its p is at least 0.125." in ranking.markdown(
        found
    )
    assert wilcoxon(np.arange(1.0, 7.0)) == pytest.approx(significance.least_p(6))  # < .05


def test_the_diagram_names_every_label_once():
    pytest.importorskip("matplotlib")
    found = compare(TREES)
    figure = ranking.diagram(found)
    (ax,) = figure.axes
    texts = [t.get_text() for t in ax.texts]
    for label, rank in zip(found.labels, found.ranks, strict=True):
        (text,) = (t for t in texts if label in t.split())
        assert f"{rank:.1f}" in text
    assert any(f"critical difference {found.distance:.2f}" in t for t in texts)
    bars = [line for line in ax.get_lines() if line.get_linewidth() == 3]
    assert len(bars) == len(alike(found.ranks, found.distance))
    figure.canvas.draw()
