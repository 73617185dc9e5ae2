"""Views hidden for the whole fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from by_scalers import scaled

from vedute.data import scaling
from vedute.data.holdout import SHARE, HiddenEntries, HoldOut, choose, hide_entries
from vedute.data.missing import drop_entries, drop_views, empty_columns
from vedute.data.views import Views


def random_mask(n, L, rate, seed=0):
    g = torch.Generator().manual_seed(seed)
    mask = torch.rand(n, L, generator=g) >= rate
    mask[torch.arange(n), torch.randint(L, (n,), generator=g)] = True
    return mask


@pytest.mark.parametrize(("n", "L", "rate"), [(1000, 2, 0.2), (400, 6, 0.5), (100, 3, 0.0)])
def test_a_tenth_is_hidden_and_every_row_keeps_a_view(n, L, rate):
    torch.manual_seed(5)
    mask = random_mask(n, L, rate)
    hidden = choose(mask)
    assert not (hidden & ~mask).any()
    assert hidden.sum(1).max() == 1
    assert (mask & ~hidden).any(1).all()
    assert hidden.sum() == round(SHARE * int(mask.sum()))


def test_every_view_and_row_may_be_chosen():
    torch.manual_seed(5)
    mask = random_mask(60, 4, 0.3)
    often = sum(choose(mask, fewest=1).int() for _ in range(2000))
    assert (often[~mask] == 0).all()
    assert (often[mask.sum(1) == 1] == 0).all()
    assert (often[mask & (mask.sum(1, keepdim=True) > 1)] > 0).all()
    four = mask.all(1)
    shares = often[four].sum(0) / often[four].sum()
    assert shares == pytest.approx(np.full(4, 0.25), abs=0.05)


def test_when_few_rows_have_two_views_only_they_lose_one():
    mask = torch.ones(300, 2).bool()
    mask[25:, 1] = False
    hidden = choose(mask)
    assert hidden[:25].sum() == hidden.sum() == 25


@pytest.mark.parametrize(("n", "L", "few"), [(500, 1, True), (97, 2, True), (98, 2, False)])
def test_fewer_than_twenty_are_not_worth_it(n, L, few):
    assert (choose(torch.ones(n, L).bool()) is None) == few


def example(seed=0):
    """Two views, one of them with holes, a constant feature and an image-like shape."""
    g = torch.Generator().manual_seed(seed)
    mask = random_mask(80, 2, 0.2)
    x = [3 + 2 * torch.randn(80, 4, generator=g), torch.randn(80, 2, 3, generator=g)]
    x[0][:, 2] = 1.5
    holes = mask[:, [0]] & (torch.rand(80, 4, generator=g) < 0.3)
    x[0] = x[0].masked_fill(holes | ~mask[:, [0]], 0)
    x[1] = x[1] * mask[:, 1].view(-1, 1, 1)
    return Views(tuple(x), mask, torch.arange(80), (holes, None), ("a", "b"))


def held_out(kind="none"):
    data = example()
    scalers = [scaling.fit(kind, x, data.seen(v)) for v, x in enumerate(data.x)]
    torch.manual_seed(0)
    hidden = choose(data.mask, fewest=1)
    data = scaled(scalers, data)
    return data, hidden, HoldOut.of(data, hidden, scalers)


def slow_error(data, v, row, value):
    """Mean over the features that are there and vary: ((value - x) / std)^2."""
    seen = data.seen(v).flatten(1)
    columns, found = data.x[v].flatten(1).double(), []
    for f in range(columns.shape[1]):
        std = columns[seen[:, f], f].std(correction=0)
        if std > 0 and seen[row, f]:
            found.append(((value.flatten()[f] - columns[row, f]) / std) ** 2)
    return sum(found) / len(found)


@pytest.mark.parametrize("kind", ["none", "standard"])
def test_errors_are_squared_standard_deviations_over_what_is_there(kind):
    data, hidden, held = held_out(kind)
    rows = hidden.any(1).nonzero()[:, 0].tolist()
    values = [torch.randn(len(rows), *shape) for shape in data.shapes]
    slow = []
    for v in range(2):
        errors = held.errors(values[v], v)
        for m, row in enumerate(rows):
            if hidden[row, v]:
                slow.append(float(slow_error(data, v, row, values[v][m])))
                assert float(errors[m]) == pytest.approx(slow[-1], rel=1e-4)
    assert held.mean_error(values) == pytest.approx(np.mean(slow), rel=1e-4)
    assert len(slow) == int(hidden.sum())


def test_one_value_may_serve_all_rows_and_truth_costs_nothing():
    _, _, held = held_out()
    one = torch.randn(2, 3)
    torch.testing.assert_close(
        held.errors(one, 1), held.errors(one.expand(len(held.hidden), 2, 3), 1)
    )
    assert held.mean_error(held.truth.x) == 0


def test_inputs_lack_what_is_hidden_and_nothing_else():
    data, hidden, held = held_out()
    rows = hidden.any(1)
    assert torch.equal(held.inputs.mask, data.mask[rows] & ~hidden[rows])
    assert torch.equal(held.truth.mask, data.mask[rows])
    assert (held.inputs.x[0][held.hidden[:, 0]] == 0).all()
    assert torch.equal(held.inputs.x[0][~held.hidden[:, 0]], data.x[0][rows][~held.hidden[:, 0]])
    few = held.part(slice(3))
    assert len(few.inputs) == len(few.truth) == len(few.hidden) == 3


def test_a_group_is_hidden_as_a_whole():
    torch.manual_seed(5)
    mask = random_mask(600, 4, 0.3)
    groups = torch.randint(150, (600,))
    hidden = choose(mask, groups=groups)
    assert hidden.sum(1).max() == 1
    assert (mask & ~hidden).any(1).all()
    assert 0.9 * SHARE * mask.sum() < hidden.sum() <= SHARE * mask.sum()
    for g in range(150):
        mine, went = mask[groups == g], hidden[groups == g]
        views = went.any(0)
        assert views.sum() <= 1
        assert torch.equal(went, mine & views)  # no row of the group shows what is hidden


def test_groups_that_cannot_be_hidden_stay():
    mask = torch.ones(200, 2).bool()
    mask[::2, 1] = False  # rows with one view give away what is hidden in others of their group
    pairs = torch.arange(200) // 2
    torch.manual_seed(0)
    assert not choose(mask, 1, groups=pairs)[:, 0].any()
    assert choose(mask, 1, groups=torch.zeros(200).long()) is None  # too large
    alone = choose(mask, 1, groups=torch.arange(200))
    assert alone.sum() == round(SHARE * int(mask.sum()))


def test_the_groups_of_hidden_rows_stay_with_them():
    views = Views.of([np.arange(20.0)[:, None], np.ones((20, 1))])
    hidden = torch.zeros(20, 2).bool()
    hidden[[3, 8, 9], 0] = True
    scalers = [scaling.fit("standard", x, x == x) for x in views.x]
    held = HoldOut.of(views, hidden, scalers, torch.arange(20) // 5)
    assert held.groups.tolist() == [0, 1, 1]
    assert held.part([2, 0]).groups.tolist() == [1, 0]
    assert held.part(slice(2)).groups.tolist() == [0, 1]
    assert held.part([2]).truth.x[0].item() == 9


def holed_views(n=400):
    rng = np.random.default_rng(0)
    x = [rng.normal(2.0, 1.0, (n, 6)), rng.normal(2.0, 1.0, (n, 3)), rng.normal(2.0, 1.0, (n, 2))]
    for v in (0, 2):
        hole = rng.random(x[v].shape) < 0.2
        hole[np.arange(n), rng.integers(x[v].shape[1], size=n)] = False
        x[v][hole] = np.nan
    x[0][:50] = np.nan
    views = Views.of(x)
    return views, [scaling.fit("none", a, views.seen(v)) for v, a in enumerate(views.x)]


def test_entries_are_hidden_where_views_have_holes():
    views, scalers = holed_views()
    torch.manual_seed(0)
    fewer = hide_entries(views, scalers)
    assert fewer.holes[1] is None
    assert (fewer.mask == views.mask).all()
    for v in (0, 2):
        before, after = views.seen(v), fewer.seen(v)
        assert not (after & ~before).any()
        assert (after.any(1) == views.mask[:, v]).all()  # none loses its last
        gone = before & ~after
        share = gone.sum() / (before & (before.sum(1, keepdim=True) > 1)).sum()
        assert 0.05 < share < 0.12
        mean = torch.from_numpy(scalers[v].mean).float().expand_as(gone)
        assert torch.equal(fewer.x[v][gone], mean[gone])
        assert torch.equal(fewer.x[v][after], views.x[v][after])


def test_hidden_entries_know_their_rows_and_truth():
    views, scalers = holed_views()
    fewer = hide_entries(views, scalers)
    held = HiddenEntries.of(fewer, views, torch.arange(len(views)))
    assert held.views == [0, 2]
    for v in held.views:
        hidden = held.truth_of(v)
        truth, there = hidden.x[0].numpy(), hidden.seen(0).numpy()
        at = held.groups.numpy()[held.rows_of(v)]
        gone = (views.seen(v) & ~fewer.seen(v)).numpy()
        np.testing.assert_array_equal(there, gone[at])
        np.testing.assert_array_equal(truth[there], views.x[v].numpy()[gone])
        assert there.any(1).all()
        assert gone.sum() == there.sum()


def rare_columns(n=60):
    """Columns with few values, in a view that every row has, and a view that two rows have."""
    x = [np.full((n, 40), np.nan), np.arange(2.0 * n).reshape(n, 2), np.full((n, 1), np.nan)]
    x[0][:, 0] = np.arange(n)
    for j in range(1, 40):
        x[0][np.random.default_rng(j).permutation(n)[: 1 + j // 10], j] = j
    x[2][:2] = 1.0
    return Views.of(x)


@pytest.mark.parametrize("grouped", [False, True])
def test_hiding_never_takes_the_last_values_of_a_column(grouped):
    views = rare_columns()
    groups = torch.arange(60) // 3 if grouped else None
    scalers = [scaling.fit("none", a, views.seen(v)) for v, a in enumerate(views.x)]
    for seed in range(40):
        torch.manual_seed(seed)
        hidden = choose(views.mask, 1, groups=groups, holes=views.hole_parts)
        fewer = views.hide(hidden)
        for left in (fewer, hide_entries(fewer, scalers), hide_entries(views, scalers)):
            assert not any(empty_columns(left, v) for v in range(3))
        if grouped:
            for rows, gone in ((groups == g, hidden[groups == g]) for g in range(20)):
                assert torch.equal(gone, views.mask[rows] & gone.any(0))


def test_hiding_on_purpose_never_takes_the_last_values_of_a_column():
    views = rare_columns()
    for seed in range(20):
        for left in (drop_views(views, 0.7, seed), drop_entries(views, 0.9, seed)):
            assert not any(empty_columns(left, v) for v in range(3))
            assert left.mask.any(1).all()


def test_where_no_value_would_be_the_last_the_same_is_hidden():
    views, _ = holed_views()
    torch.manual_seed(3)
    plain = choose(views.mask)
    torch.manual_seed(3)
    assert torch.equal(plain, choose(views.mask, holes=views.hole_parts))
