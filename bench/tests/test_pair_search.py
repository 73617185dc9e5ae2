"""Studies that choose a pair of views: all pairs run once, and the other seeds take the best."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from small_study import small_study
from typer.testing import CliRunner

from vedute.cli import app
from vedute.data import missing
from vedute.datasets import synthetic
from vedute.methods.best_pair import for_views
from vedute.methods.deep.dcca import DCCA
from vedute_bench import studies
from vedute_bench.places import DOCS, RESULTS
from vedute_bench.runner import plan, records
from vedute_bench.runner import run as running
from vedute_bench.runner.records import best_pair
from vedute_bench.summaries import tables
from vedute_bench.summaries.summary import PAIRS as PAIRS_ROW
from vedute_bench.summaries.summary import Summary

STUDY = """
datasets = ["synthetic"]
rates = [0.4]
seeds = [1, 2, 3]
pair_seed = 1

[[runs]]
label = "honest"
method = "dcca"
pair = "restrict"
settings = { hidden = [8], steps = 2, batch_size = 64, device = "cpu" }

[[runs]]
label = "redrawn"
method = "dcca"
pair = "redraw"
seeds = [1, 2]
settings = { hidden = [8], steps = 2, batch_size = 64, device = "cpu" }

[[runs]]
label = "mean_fill"
method = "mean_fill"
"""
PAIRS = [("view0", "view1"), ("view0", "view2"), ("view1", "view2")]


@pytest.fixture
def place(tmp_path, monkeypatch):
    yield from small_study(tmp_path, monkeypatch, STUDY, lambda name: synthetic.load(120), "s.toml")


def bench(*words, study="s.toml"):
    words = ["bench", study, "--jobs", "1", "-o", "r.jsonl", *words]
    return CliRunner().invoke(app, words)


def read(label=None):
    found = records.read(Path("r.jsonl"))
    return [r for r in found if label in (None, r["label"])]


def dcca():
    """Entry of the study, with the seed of the search."""
    settings = {"hidden": (8,), "steps": 2, "batch_size": 64, "device": "cpu"}
    return DCCA(n_clusters=5, random_state=1, **settings)


def test_one_seed_tries_all_pairs_and_the_others_take_the_best(place):
    result = bench()
    assert result.exit_code == 0, result.output
    assert "9 runs, 0 of them done before" in result.stdout
    assert "3 more runs, on the pairs of views that were the best" in result.stdout
    assert "12 new records" in result.stdout
    assert "honest on synthetic (view0 + view1) at 0.4, seed 1: ACC" in result.stderr
    for label, seeds in (("honest", [1, 1, 1, 2, 3]), ("redrawn", [1, 1, 1, 2])):
        mine = read(label)
        assert [r["seed"] for r in mine] == seeds
        assert [tuple(r["pair"]) for r in mine[:3]] == PAIRS
        best = max(mine[:3], key=lambda r: r["pair_score"])["pair"]
        assert all(r["pair"] == best and "pair_score" not in r for r in mine[3:])
        assert [r["settings"]["random_state"] for r in mine] == seeds
    again = bench()
    assert "12 runs, 12 of them done before" in again.stdout


def test_it_goes_on_where_it_was(place, monkeypatch):
    real = running.measure

    def fails(run, masks, jobs):
        if run.pair == PAIRS[1]:
            raise FloatingPointError("the loss became nan")
        return real(run, masks, jobs)

    monkeypatch.setattr(plan, "measure", fails)
    result = bench("--methods", "honest")
    assert result.exit_code == 1
    assert "2 new records" in result.stdout  # nobody knows the best pair yet
    monkeypatch.setattr(plan, "measure", real)
    result = bench("--methods", "honest")
    assert (result.exit_code, len(read())) == (1, 2)
    assert "1 failed before; --retry repeats them" in result.stdout
    result = bench("--methods", "honest", "--retry")
    assert "3 runs, 2 of them done before" in result.stdout
    assert "3 new records" in result.stdout
    assert len(read()) == 5


def test_other_seeds_are_searched_with_the_same_one(place):
    assert bench("--methods", "honest", "--seeds", "3").exit_code == 0
    assert [r["seed"] for r in read()] == [1, 1, 1, 3]
    assert bench("--methods", "honest", "--seeds", "2,3").exit_code == 0
    assert [r["seed"] for r in read()] == [1, 1, 1, 3, 2]
    assert len({tuple(r["pair"]) for r in read()[3:]}) == 1


def test_pairs_on_the_shared_mask_are_judged_as_best_pair_does(place):
    assert bench("--methods", "honest", "--seeds", "1").exit_code == 0
    truth = synthetic.load(120)
    seen = missing.load_mask(Path("masks") / read()[0]["mask_file"], truth)
    assert seen.shape == (120, 3)
    model = for_views(dcca(), 3).fit(truth.hide(~torch.from_numpy(seen)))
    tried = {"+".join(r["pair"]): r["pair_score"] for r in read()}
    assert tried == pytest.approx(model.scores_, abs=2e-5)
    best = best_pair(read())
    assert best == tuple(truth.names[v] for v in model.chosen())
    (mine,) = (r for r in read() if tuple(r["pair"]) == best)
    again = running._percent(truth.y, model.labels_)
    assert {k: mine["scores"][k] for k in again} == pytest.approx(again, abs=1e-4)


def test_redrawn_masks_are_those_of_the_papers_protocol(place):
    assert bench("--methods", "redrawn", "--seeds", "1").exit_code == 0
    truth = synthetic.load(120)
    drawn = [missing.drop_views(running.pick(truth, pair), 0.4, 42) for pair in PAIRS]
    found = [dcca().fit(views.bare()).labels_ for views in drawn]
    accuracy = [running._percent(truth.y, labels)["acc"] for labels in found]
    views = drawn[int(np.argmax(accuracy))]
    assert best_pair(read()) == views.names
    (mine,) = (r for r in read() if tuple(r["pair"]) == views.names)
    assert mine["pair_score"] == pytest.approx(max(accuracy) / 100)
    assert mine["redraw"]
    assert (mine["row_rate"], mine["slot_rate"]) == (0.4, 0.2)  # none lacks both
    saved = missing.load_mask(Path("masks") / mine["mask_file"], running.pick(truth, views.names))
    np.testing.assert_array_equal(saved, views.mask.numpy())
    assert missing.fingerprint(saved) == mine["mask"]
    names = {path.stem.rpartition("-")[2] for path in Path("masks").iterdir()}
    assert names == {"seed42", "view0+view1", "view0+view2", "view1+view2"}


def test_tables_have_the_best_pair_only(place):
    assert bench().exit_code == 0
    summary = Summary.of(read())
    honest = summary.records["honest", "synthetic", 0.4]
    assert [r["seed"] for r in honest] == [1, 2, 3]
    assert len({tuple(r["pair"]) for r in honest}) == 1
    assert len(summary.records["redrawn", "synthetic", 0.4]) == 2
    marks = {row.label: row.marks[0] for row in summary.rows("acc")}
    assert {marks["honest"], marks["mean_fill"]} == {"best", "second"}
    assert marks["redrawn"] == ""  # it saw other data, and labels chose its pair
    assert set(summary.comparable("acc")) == {"honest", "mean_fill"}
    text = tables.markdown(summary)
    pair = " + ".join(honest[0]["pair"])
    assert f"| synthetic | honest | stability | {pair} |\n" in text
    assert re.search(r"\| synthetic \| redrawn \| labels \| view\d \+ view\d \|\n", text)
    assert "over 2 to 3 seeds (2 of redrawn)." in text


def test_tables_have_the_mean_over_all_pairs_beside_the_chosen_one(place):
    assert bench().exit_code == 0
    summary = Summary.of(read())
    labels = [row.label for row in summary.rows("acc")]
    pairs = [f"honest{PAIRS_ROW}", f"redrawn{PAIRS_ROW}"]
    assert [k for k in labels if "paper" not in k] == [
        "honest",
        pairs[0],
        "mean_fill",
        "redrawn",
        pairs[1],
    ]
    (row,) = (row for row in summary.rows("acc") if row.label == f"honest{PAIRS_ROW}")
    tried = [r["scores"]["acc"] for r in read("honest")[:3]]
    assert row.cells[0] == pytest.approx((np.mean(tried), np.std(tried), 0))
    assert set(row.marks) == {""}
    assert "all pairs of views, seed 1." in tables.markdown(summary)
    assert f"synthetic,honest{PAIRS_ROW}," in tables.comma_separated(summary).replace('"', "")


def test_two_views_leave_nothing_to_choose(place, monkeypatch):
    monkeypatch.setattr(running.datasets, "load", lambda name: synthetic.load(80).pick(0, 2))
    study = studies.load("s.toml")
    runs = plan.plan(study, Path("masks"), {})
    assert len(runs) == 3 + 2 + 3
    assert {(run.pair, run.search, run.redraw) for run in runs} == {(None, False, False)}
    assert len({run.mask for run in runs}) == 1


def test_a_study_may_leave_the_search_to_every_run(place):
    study = studies.load("s.toml")
    plain = replace(study, entries=[replace(study.entries[0], pair="")])
    assert [run.pair for run in plan.plan(plain, Path("masks"), {})] == [None] * 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('pair = "redraw"', 'pair = "any"', "pair of 'redrawn' must be one of '', 'restrict', 're"),
        ('"mean_fill"\n', '"mean_fill"\npair = "redraw"\n', "mean_fill takes all views at once"),
    ],
)
def test_a_mistake_gets_one_sentence(place, old, new, message):
    before, _, after = STUDY.rpartition(old)
    Path("wrong.toml").write_text(before + new + after)
    result = bench(study="wrong.toml")
    assert result.exit_code == 2
    (line,) = result.stderr.strip().splitlines()
    assert message in line
    assert not Path("masks").exists()


def test_equal_pairs_are_chosen_alike_in_any_order():
    tried = [{"pair": list(pair), "pair_score": 0.5} for pair in PAIRS]
    assert best_pair(tried) == best_pair(tried[::-1]) == PAIRS[0]
    assert best_pair([*tried, {"pair": ["a", "b"], "scores": {}}]) == PAIRS[0]
    assert best_pair([]) is None
    apart = [{**r, "pair_silhouette": s} for r, s in zip(tried, (0.1, 0.3, 0.2), strict=True)]
    assert best_pair(apart) == best_pair(apart[::-1]) == PAIRS[1]
    better = {"pair": list(PAIRS[2]), "pair_score": 0.6, "pair_silhouette": -1.0}
    assert best_pair([*apart[:2], better]) == PAIRS[2]


def test_records_from_before_still_count():
    study = replace(studies.load("mvp-clustering"), datasets=["handwritten"])
    folder = RESULTS / "mvp-clustering"
    known = records.read(folder / "records.jsonl")
    runs = plan.plan(study, folder / "masks", {}, known)
    assert len(runs) == 100
    assert not plan.unfinished(runs, known)


def test_what_the_docs_say_of_the_choice_is_what_was_recorded():
    summary = Summary.of(records.read(RESULTS / "clustering" / "records.jsonl"))
    searches = [runs for runs in summary.tried.values() if not runs[0]["redraw"]]
    gains = []
    for runs in searches:
        acc = {tuple(r["pair"]): r["scores"]["acc"] for r in runs}
        mine = acc[best_pair(runs)]
        gains.append((mine - np.mean([*acc.values()]), max(acc.values()) - mine))
    many = [
        spearmanr([(r["pair_score"], r["scores"]["acc"]) for r in runs]).statistic
        for runs in searches
        if len(runs) >= 10
    ]
    above, below = np.mean(gains, axis=0)
    text = " ".join((DOCS / "clustering.md").read_text().split())
    assert f"in the {len(searches)} searches without labels" in text
    assert f"is {above:.1f} points above the mean over pairs and {below:.1f} below the best" in text
    assert f"by {np.median(many):.2f} (Spearman, median of {len(many)} searches)" in text
    assert f"in {sum(rho < 0 for rho in many)} of these below 0" in text
