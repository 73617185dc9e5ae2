"""What each protocol hides, and that nothing is hidden that must stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import chisquare

from vedute.data.missing import (
    PROTOCOLS,
    drop_entries,
    drop_views,
    fingerprint,
    load_mask,
    make_mask,
    rates,
    save_mask,
)
from vedute.data.views import Views

EXACT = ["uniform", "dsimvc", "bernoulli", "with_replacement"]


def some_views(n: int = 60, dims: tuple[int, ...] = (4, 3, 2), seed: int = 0) -> Views:
    rng = np.random.default_rng(seed)
    return Views.of([1.0 + rng.random((n, d)) for d in dims])


def missing_counts(mask: np.ndarray) -> np.ndarray:
    """How many incomplete rows lack 1, 2, ..., L-1 views."""
    lost = (~mask).sum(1)
    return np.bincount(lost[lost > 0], minlength=mask.shape[1])[1:]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("L", [2, 3, 6])
@pytest.mark.parametrize("n", [1, 7, 200])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_every_row_keeps_a_view(protocol: str, L: int, n: int, rate: float) -> None:
    mask = make_mask(n, L, rate, 3, protocol)
    assert mask.shape == (n, L)
    assert mask.dtype == bool
    assert mask.any(1).all()
    if rate == 0:
        assert mask.all()


@pytest.mark.parametrize("protocol", EXACT)
@pytest.mark.parametrize(("n", "rate"), [(2000, 0.7), (601, 0.5), (100, 0.29), (4485, 0.3), (9, 1)])
def test_floor_of_rate_times_n_rows_are_incomplete(protocol: str, n: int, rate: float) -> None:
    incomplete = (~make_mask(n, 4, rate, 42, protocol)).any(1).sum()
    assert incomplete == {2000: 1400, 601: 300, 100: 29, 4485: 1345, 9: 9}[n]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_same_seed_same_mask(protocol: str) -> None:
    a, b, c = (make_mask(300, 3, 0.5, seed, protocol) for seed in (1, 1, 2))
    assert (a == b).all()
    assert (a != c).any()


def test_uniform_loses_every_number_of_views_equally_often() -> None:
    mask = make_mask(20_000, 6, 0.5, 0, "uniform")
    assert chisquare(missing_counts(mask)).pvalue > 0.01
    sigma = np.sqrt(0.25 * 0.75 / 20_000)
    assert np.abs((~mask).mean(0) - 0.25).max() < 3 * sigma
    assert rates(mask).slots == pytest.approx(0.25, abs=0.005)


@pytest.mark.parametrize(
    ("protocol", "shares"),
    [
        ("bernoulli", np.array([6, 15, 20, 15, 6]) / 62),
        ("with_replacement", np.array([6, 450, 3000, 3600, 720]) / 7776),
    ],
)
def test_six_views_lose_as_many_as_the_papers_scripts(protocol: str, shares: np.ndarray) -> None:
    counts = missing_counts(make_mask(40_000, 6, 0.5, 0, protocol))
    assert chisquare(counts, shares * 20_000).pvalue > 0.01


def test_bernoulli_meets_every_partial_pattern_equally_often() -> None:
    mask = make_mask(14_000, 4, 1.0, 0, "bernoulli")
    patterns = np.bincount(mask @ (1 << np.arange(4)), minlength=16)
    assert patterns[0] == patterns[15] == 0
    assert chisquare(patterns[1:15]).pvalue > 0.01


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_two_views_at_one_half_agree_in_all_protocols(protocol: str) -> None:
    mask = make_mask(4000, 2, 0.5, 0, protocol)
    assert rates(mask).rows == pytest.approx(0.5, abs=0.011)
    assert (~mask).mean(0) == pytest.approx([0.25, 0.25], abs=0.03)


@pytest.mark.parametrize(
    ("protocol", "L", "rate", "rows"),
    [
        ("completer", 2, 0.3, 0.30),
        ("completer", 3, 0.5, 0.44),
        ("dcp", 2, 0.3, 0.30),
        ("dcp", 3, 0.5, 0.47),
        ("icmvc", 2, 0.1, 0.02),
        ("icmvc", 2, 0.3, 0.18),
        ("icmvc", 2, 0.5, 0.50),
        ("icmvc", 2, 0.7, 0.70),
    ],
)
def test_realised_share_of_incomplete_rows(protocol: str, L: int, rate: float, rows: float) -> None:
    assert rates(make_mask(4000, L, rate, 0, protocol)).rows == pytest.approx(rows, abs=0.012)


def test_completer_fixes_the_share_of_slots() -> None:
    for seed in range(5):
        assert rates(make_mask(1000, 3, 0.5, seed, "completer")).slots == pytest.approx(
            0.5 / 3, abs=0.005
        )


def test_dropped_views_are_zero_and_the_rest_is_untouched() -> None:
    views = some_views()
    less = drop_views(views, 0.5, 42)
    assert (less.mask.numpy() == make_mask(60, 3, 0.5, 42)).all()
    for v in range(3):
        seen = less.mask[:, v]
        assert (less.x[v][~seen] == 0).all()
        assert torch.equal(less.x[v][seen], views.x[v][seen])
    assert views.mask.all()


def test_dropping_twice_combines_and_never_empties_a_row() -> None:
    once = drop_views(some_views(), 1.0, 1)
    twice = drop_views(once, 1.0, 2)
    drawn = torch.from_numpy(make_mask(60, 3, 1.0, 2))
    both = once.mask & drawn
    empty = ~both.any(1)
    assert empty.any()
    assert not empty.all()
    assert torch.equal(twice.mask[empty], once.mask[empty])
    assert torch.equal(twice.mask[~empty], both[~empty])


def test_dropped_entries_become_holes_and_leave_something_in_every_present_view() -> None:
    views = drop_views(some_views(500, (20, 10)), 0.5, 0)
    less = drop_entries(views, 0.3, 0)
    for v in range(2):
        hole, seen = less.holes[v], less.mask[:, v]
        assert hole is not None
        assert (less.x[v][hole] == 0).all()
        assert not hole[~seen].any()
        assert torch.equal(less.x[v][~hole], views.x[v][~hole])
        assert hole[seen].float().mean() == pytest.approx(0.3, abs=0.02)
    assert torch.equal(less.mask, views.mask)
    everything = drop_entries(less, 1.0, 1)
    for v in range(2):
        hole = everything.holes[v]
        assert hole is not None
        assert ((~hole[less.mask[:, v]]).sum(1) == 1).all()


def test_dropping_no_entries_makes_no_holes_and_bytes_stay() -> None:
    pictures = Views.of([np.full((5, 2, 2), 7, np.uint8), np.ones((5, 3))])
    assert drop_entries(pictures, 0.0, 0).holes == (None, None)
    less = drop_entries(pictures, 0.9, 0)
    assert less.holes[0] is None
    assert torch.equal(less.x[0], pictures.x[0])
    assert less.holes[1] is not None
    assert less.holes[1].any()


def test_what_cannot_be_hidden_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"only view .* drop_entries"):
        drop_views(some_views(dims=(4,)), 0.5, 0)
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"rate must lie in \[0, 1\]"):
            drop_views(some_views(), rate, 0)
        with pytest.raises(ValueError, match=r"rate must lie in \[0, 1\]"):
            drop_entries(some_views(), rate, 0)
    with pytest.raises(KeyError, match="choose from uniform, bernoulli"):
        drop_views(some_views(), 0.5, 0, "mcar")


def test_rates_count_rows_and_slots() -> None:
    mask = [[True, True], [True, False], [False, True], [True, True]]
    assert rates(mask) == (0.5, 0.25)
    assert rates(torch.tensor(mask)).rows == 0.5


def test_fingerprint_depends_on_pattern_and_shape() -> None:
    mask = make_mask(12, 2, 0.5, 0)
    other = mask.copy()
    other[0, 0] = ~other[0, 0]
    prints = {fingerprint(m) for m in (mask, other, mask.reshape(8, 3))}
    assert len(prints) == 3
    assert all(len(p) == 16 for p in prints)
    assert fingerprint(torch.from_numpy(mask)) == fingerprint(mask)


@pytest.mark.parametrize("ids", [["a", "b", "c"], [7, 8, 9]])
def test_a_saved_mask_comes_back_for_the_same_samples_only(tmp_path: Path, ids: list[str]) -> None:
    frames = [pd.DataFrame(np.ones((3, 2)), index=ids) for _ in range(2)]
    views = Views.of(frames)
    mask = make_mask(3, 2, 0.7, 5)
    path = tmp_path / "mask"
    save_mask(path, mask, views.ids, protocol="bernoulli", rate=0.7, seed=5)
    assert (load_mask(path, views) == mask).all()
    assert (Views.of(views, mask=load_mask(path, views)).mask.numpy() == mask).all()
    assert (load_mask(path, some_views(3, (2, 2))) == mask).all()
    with np.load(path, allow_pickle=False) as file:
        assert set(file.files) == {"mask", "ids", "protocol", "rate", "seed"}
        assert (str(file["protocol"]), float(file["rate"]), int(file["seed"])) == (
            "bernoulli",
            0.7,
            5,
        )
    with pytest.raises(ValueError, match=r"other samples: row 0 is .* order"):
        load_mask(path, views[[2, 1, 0]])
    with pytest.raises(ValueError, match=r"\(3, 2\).*\(3, 3\); draw another"):
        load_mask(path, some_views(3))
    with pytest.raises(ValueError, match=r"\(3, 2\).*\(4, 2\); draw another"):
        load_mask(path, some_views(4, (2, 2)))


def test_strange_mask_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("mask")
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    np.save(tmp_path / "array.npy", np.ones(3))
    for name in ("text", "other.npz", "array.npy"):
        with pytest.raises(ValueError, match="not a mask file; write one with save_mask"):
            load_mask(tmp_path / name, some_views())
    with pytest.raises(FileNotFoundError):
        load_mask(tmp_path / "nowhere", some_views())
    with pytest.raises(ValueError, match="one id per row"):
        save_mask(tmp_path / "m", np.ones((3, 2)), ids=["a"])


def test_whatever_the_door_takes_can_lose_views_and_entries() -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 40, 3))
    dropped = drop_views({"a": a, "b": b}, 0.5, 1)
    assert dropped.names == ("a", "b")
    assert torch.equal(dropped.mask, drop_views(Views.of([a, b]), 0.5, 1).mask)
    assert drop_entries([a, b], 0.2, 1).holes[0] is not None
