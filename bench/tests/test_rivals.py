"""The benchmark of rivals: what is done is not done again, time ends a run, tables are right."""

from __future__ import annotations

import ast
import json

import numpy as np
import pytest

from vedute_bench.runner import pack, records


@pytest.fixture
def rivals(tmp_path, monkeypatch):
    """The script, with one tiny set where the third view of some rows was never measured."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 2)) + 4 * (np.arange(60) % 3)[:, None]
    views = {f"view{v}": z @ rng.normal(size=(2, 4)) for v in range(3)}
    views["view2"][::7] = np.nan
    arrays = {k: x.astype(np.float32) for k, x in views.items()}
    np.savez(tmp_path / "tiny.npz", **arrays, y=np.arange(60) % 3, view_names=list("abc"))
    np.savez(tmp_path / "mnist.npz", x_train=np.zeros(1))
    monkeypatch.setenv("VEDUTE_DATA", str(tmp_path))
    from vedute_bench.rivals import rivals

    rivals.current_facts.cache_clear()
    rivals._size.cache_clear()
    return rivals


def run(rivals, folder, *words, only="methods=mean_fill,block_ridge,seeds=0,1,rates=.5"):
    out = folder / "records.jsonl"
    rivals.main(["--only", only, "--out", str(out), "--jobs", "2", *words])
    return records.read_all(out)


def test_runs_are_made_once_and_again_when_code_or_settings_change(
    rivals, tmp_path, monkeypatch, capsys
):
    made = run(rivals, tmp_path)
    assert len(made) == 4
    fill, ridge = (next(r for r in made if r["method"] == m) for m in ("mean_fill", "block_ridge"))
    assert ridge["scores"]["error"] < 0.5 * fill["scores"]["error"]
    assert {"acc", "nmi", "ari", "coverage", "coverage_50"} < set(fill["scores"])
    hidden = [view["hidden"] for view in fill["by_view"].values()]
    errors = [view["error"] for view in fill["by_view"].values()]
    assert np.average(errors, weights=hidden) == pytest.approx(fill["scores"]["error"], abs=1e-4)
    assert fill["threads"] == 1
    assert fill["mask"] == ridge["mask"]
    assert len(run(rivals, tmp_path)) == 4
    assert "4 runs, 4 of them done before" in capsys.readouterr().out

    monkeypatch.setattr(rivals.source_digest, "of_method", lambda name: "another")
    rivals.current_facts.cache_clear()
    assert len(run(rivals, tmp_path, "--any-code")) == 4
    assert len(run(rivals, tmp_path)) == 6


def test_of_runs_that_were_made_again_the_last_is_packed():
    run = {"method": "knn_fill", "dataset": "cub", "rate": 0.5, "seed": 0}
    old, new = {**run, "code": "a"}, {**run, "code": "b"}
    other = {**run, "seed": 1, "code": "a"}
    assert pack.current([old, other, new]) == [other, new]


def test_a_setting_that_is_new_and_changes_nothing_makes_no_record_old(rivals, monkeypatch):
    (name,) = rivals.real_sets.available()[:1]
    record = {"method": "knn_fill", "dataset": name, **rivals.current_facts("knn_fill", name)}
    fewer = {k: v for k, v in record["settings"].items() if k != "n_neighbors"}
    assert rivals.is_current({**record, "settings": fewer})
    assert rivals.is_current(record)
    assert not rivals.is_current({**record, "settings": record["settings"] | {"n_neighbors": 3}})


def test_a_run_over_the_limit_is_recorded_and_its_other_seeds_are_not_tried(
    rivals, tmp_path, capsys
):
    only = "methods=mean_fill,seeds=0,1,2,rates=.5"
    made = run(rivals, tmp_path, "--limit", "0", only=only)
    assert [(r["seed"], r["timed_out"], "skipped" in r) for r in made] == [
        (0, True, False),
        (1, True, True),
        (2, True, True),
    ]
    assert len(run(rivals, tmp_path, "--limit", "0", only=only)) == 3
    assert len(run(rivals, tmp_path, "--minutes", "0", only=only)) == 3
    assert "3 runs are left" in capsys.readouterr().out
    assert len(run(rivals, tmp_path, only=only)) == 6  # a longer limit


def test_records_of_another_machine_are_taken_over_once(rivals, tmp_path):
    there, here = tmp_path / "there.jsonl", tmp_path / "here.jsonl"
    there.write_text(json.dumps({"method": "mean_fill", "scores": {}}) + "\n")
    for _ in range(2):
        rivals.main(["--merge", str(there), "--out", str(here)])
        assert here.read_text() == there.read_text()


def test_order_and_selection(rivals):
    every = rivals.planned({})
    assert {r.dataset for r in every} == {"tiny"}
    assert [r.seed for r in every] == sorted(r.seed for r in every)
    assert {r.method for r in every if r.rate == 0.3} >= {"mvp", "mean_fill", "lowrank_fill"}
    assert not any(r.method == "dcca" and r.rate != 0.5 for r in every)
    assert rivals.selection("methods=a,b,seeds=0") == {"methods": ["a", "b"], "seeds": ["0"]}
    with pytest.raises(SystemExit, match="choose from methods="):
        rivals.selection("method=a")


def test_the_digest_is_of_code_and_not_of_words(rivals):
    def dump(text):
        return rivals.source_digest.dump(ast.parse(text))

    assert dump('def f():\n    """One."""\n    return 1') == dump("def f():  # two\n    return 1")
    assert dump("def f():\n    return 1") != dump("def f():\n    return 2")
    assert dump("f'a{b}c' 'd'") == dump('f"a{b}" "cd"') != dump("f'a{b}c'")
    digests = {m: rivals.source_digest.of_method(m) for m in ("mvp", "mean_fill", "dcca")}
    assert len(set(digests.values())) == 3


def record(method, dataset, seed, **kept):
    scores = kept.pop("scores", {})
    place = {"method": method, "dataset": dataset, "rate": 0.5, "seed": seed}
    return {**place, "scores": scores, "seconds": 1.0, "device": "a machine", **kept}


def test_the_page_says_who_wins(rivals, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\nBy hand.\n\n{rivals.rivals_page.MARK}\n\nold")
    found = [
        record("mvp", "a", 0, scores={"error": 0.4, "acc": 50.0}),
        record("mvp", "a", 1, scores={"error": 0.5, "acc": 60.0}),
        record("knn_imputer", "a", 0, scores={"error": 0.9, "acc": 70.0}),
        record("mvp", "b", 0, scores={"error": 0.8, "acc": 60.0, "coverage": 91.0}),
        record("knn_imputer", "b", 0, scores={"error": 0.2}),
        record("mofa", "b", 0, timed_out=True, limit=900.0),
        record("mofa", "a", 0, stopped=40.0),
    ]
    rivals.rivals_page.write(page, found, lambda r: r["method"] == "mvp")
    text = page.read_text()
    assert text.startswith("# Title\n\nBy hand.\n")
    assert "old\n" not in text
    assert "6 runs, 3 of them with older code, on a machine." in text
    assert "|a|**0.450**|0.900|–|" in text
    assert "|b|0.800|**0.200**|> 900 s|" in text
    assert "|a|55.0|**70.0**|–|" in text
    assert "|b|0.800|0.200|knn_imputer|4.000|" in text
    assert "|geometric mean||||**1.414**|" in text
