"""Cohorts, values and groups: what is hidden, how much of it, and what stays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from vedute.data import patterns
from vedute.data.missing import ALL, drop_views, group_codes, make_mask, rates
from vedute.data.views import Views

DATA = (*patterns.VALUE_PROTOCOLS, patterns.GROUP_PROTOCOL)


def some_views(n: int = 400, L: int = 4, seed: int = 0) -> Views:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return Views.of([z[:, None] + 0.3 * rng.normal(size=(n, 5)) for _ in range(L)], y=z > 0.5)


def met(mask: np.ndarray) -> set[tuple[int, int]]:
    """Pairs of views that some sample has both of."""
    both = np.triu(mask.T.astype(int) @ mask, 1)
    return {(int(a), int(b)) for a, b in zip(*both.nonzero(), strict=True)}


@pytest.mark.parametrize(
    ("protocol", "pairs"),
    [
        ("chain", {(0, 1), (1, 2), (2, 3), (3, 4)}),
        ("ring", {(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)}),
        ("star", {(0, 1), (0, 2), (0, 3), (0, 4)}),
        ("two_components", {(0, 1), (1, 2), (3, 4)}),
    ],
)
def test_cohorts_have_two_views_each_and_are_equally_large(protocol, pairs):
    mask = make_mask(1001, 5, 1.0, 0, protocol)
    assert (mask.sum(1) == 2).all()
    assert met(mask) == pairs
    _, counts = np.unique(mask, axis=0, return_counts=True)
    assert counts.max() - counts.min() <= 1
    half = make_mask(1001, 5, 0.5, 0, protocol)
    assert half.all(1).sum() == 501
    assert (half[~half.all(1)].sum(1) == 2).all()


def test_two_components_of_four_views_are_two_pairs():
    assert patterns.COHORTS["two_components"](4) == [(0, 1), (2, 3)]
    assert patterns.COHORTS["two_components"](6) == [(0, 1), (1, 2), (3, 4), (4, 5)]


@pytest.mark.parametrize("protocol", [*patterns.COHORTS, *DATA])
@pytest.mark.parametrize("rate", [0.0, 0.3, 0.7, 1.0])
def test_every_row_keeps_a_view_and_seeds_decide(protocol, rate):
    views = some_views()
    a, b, c = (drop_views(views, rate, seed, protocol).mask for seed in (1, 1, 2))
    assert a.any(1).all()
    assert torch.equal(a, b)
    assert torch.equal(a, c) == (rate == 0 or (rate == 1 and protocol == "mar"))
    assert a.all() == (rate == 0)


@pytest.mark.parametrize("protocol", patterns.VALUE_PROTOCOLS)
@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.74])
def test_values_hide_exactly_the_share_that_was_asked_for(protocol, rate):
    assert rates(drop_views(some_views(), rate, 3, protocol).mask).slots == rate


def test_groups_hide_nearly_that_share_and_lack_the_same_views():
    views, groups = some_views(1000), np.random.default_rng(0).integers(40, size=1000)
    for rate in (0.1, 0.4, 0.6):
        mask = drop_views(views, rate, 0, "group", groups).mask.numpy()
        assert rates(mask).slots == pytest.approx(rate, abs=0.005)
        assert mask.any(0).all()
        for g in range(40):
            assert len(np.unique(mask[groups == g], axis=0)) == 1
    everything = drop_views(views, 1.0, 0, "group", groups).mask.numpy()
    assert everything.any(0).all()
    drawn = drop_views(views, 0.4, 0, "group").mask.numpy()
    assert rates(drawn).slots == pytest.approx(0.4, abs=0.02)
    assert len(np.unique(drawn, axis=0)) <= patterns.SITES


def test_mar_follows_the_first_view_and_mnar_the_hidden_one():
    rng = np.random.default_rng(1)
    views = Views.of([rng.normal(size=(4000, 1)) for _ in range(3)])  # independent
    for protocol, cause in (("mar", lambda v: 0), ("mnar", lambda v: v)):
        hidden = ~drop_views(views, 0.3, 0, protocol).mask.numpy()
        for v in range(1, 3):
            ranks = [patterns.scores(a.numpy()) for a in views.x]
            high = [hidden[r > 0.5, v].mean() / hidden[r < 0.5, v].mean() for r in ranks]
            assert high.pop(cause(v)) > 2
            assert np.allclose(high, 1, atol=0.3)
    assert drop_views(views, 0.3, 0, "mar").mask[:, 0].all()


def test_scores_are_ranks_of_the_first_component_whatever_the_units():
    rng = np.random.default_rng(0)
    z = rng.normal(size=200)
    x = z[:, None] * [1.0, 2.0, -3.0] + 0.01 * rng.normal(size=(200, 3))
    ranks = z.argsort().argsort() / 199
    found = patterns.scores(x * [1e6, 1.0, 1e-6] + 5)
    assert min(np.abs(found - ranks).max(), np.abs(1 - found - ranks).max()) < 0.05
    lost = np.vstack([x, np.full((2, 3), np.nan)])
    assert (patterns.scores(lost)[-2:] == 0.5).all()
    assert (patterns.scores(np.ones((4, 2))) == 0.5).all()


def test_what_is_written_in_missing_views_changes_no_mask():
    views = drop_views(some_views(), 0.5, 7)
    poisoned = torch.where(views.mask[:, 2:3], views.x[2], 1e6)
    other = Views.of([*views.arrays()[:2], poisoned.numpy(), views.arrays()[3]], mask=views.mask)
    for protocol in patterns.VALUE_PROTOCOLS:
        a, b = (drop_views(v, 0.3, 0, protocol).mask for v in (views, other))
        assert torch.equal(a, b)


def test_a_mistake_gets_one_sentence():
    with pytest.raises(ValueError, match="'two_components' needs 4 views, there are 3"):
        make_mask(10, 3, 1.0, 0, "two_components")
    with pytest.raises(ValueError, match="'mar' looks at the data; use drop_views"):
        make_mask(10, 3, 0.5, 0, "mar")
    bare = some_views().bare()
    with pytest.raises(ValueError, match=r"shape \(3,\); pass one group for each of 400 samples"):
        drop_views(bare, 0.5, 0, "group", [1, 2, 3])
    with pytest.raises(ValueError, match="row 1 has no group"):
        group_codes(["a", None, "b"], 3)
    with pytest.raises(ValueError, match="sample 'q' has no group"):
        group_codes(pd.Series({"p": 1, "r": 2}), 3, np.array(["p", "q", "r"]))
    with pytest.raises(ValueError, match="the id 'p' twice"):
        group_codes(pd.Series([1, 2], index=["p", "p"]), 2, np.array(["p", "q"]))
    assert len(set(ALL)) == len(ALL)


def test_a_series_of_groups_goes_by_ids():
    found = group_codes(pd.Series({"b": "x", "a": "y", "c": "x"}), 3, np.array(["a", "b", "c"]))
    assert found.tolist() == [0, 1, 1]
    assert group_codes(pd.Series({2: 5, 1: 5}), 2, np.array([1, 2])).tolist() == [0, 0]
