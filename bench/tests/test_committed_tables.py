"""The tables in results are those that `make -C bench tables` writes from the records there."""

from __future__ import annotations

import pytest

from vedute_bench.commands import bench_tables
from vedute_bench.places import RESULTS
from vedute_bench.runner import records

# Of the study `clustering`, whose runs are partly those of mvp-clustering.
SHARED = {"clustering": ("clustering", "mvp-clustering")}


@pytest.mark.parametrize("study", ["clustering", "mvp-clustering"])
def test_clustering(study, tmp_path):
    files = [RESULTS / k / "records.jsonl" for k in SHARED.get(study, (study,))]
    bench_tables._clustering(
        [r for file in files for r in records.read(file)], tmp_path, plots=False
    )
    same(study, tmp_path)


GENERATION = ["polymnist", "polymnist-complete", "shapes", "leaders-polymnist", "leaders-shapes"]


@pytest.mark.parametrize("study", GENERATION)
def test_generation(study, tmp_path):
    found = records.read(RESULTS / study / "records.jsonl")
    bench_tables._generation(found, tmp_path, plots=False, pictures=tmp_path)
    same(study, tmp_path)


def same(study, folder):
    texts = {p.name: p.read_text(encoding="utf-8") for p in folder.iterdir()}
    assert texts
    for name, text in texts.items():
        there = (RESULTS / study / name).read_text(encoding="utf-8")
        assert there == text, f"{study}/{name} is stale: run `make -C bench tables`"


def test_how_large_latents_get():
    from vedute_bench.experiments import latent_scale

    there = latent_scale.FILE.with_suffix(".md").read_text(encoding="utf-8")
    assert there == latent_scale.table(latent_scale.recorded())


def test_how_the_defaults_were_chosen():
    from vedute_bench.experiments import defaults

    for name in defaults.PAGE:
        there = (defaults.FOLDER / f"{name}.md").read_text(encoding="utf-8")
        assert there == defaults.of_page(name), f"{name}.md is stale: run `make -C bench tables`"


def test_single_missing_entries():
    from vedute_bench.rivals import gaps

    known = records.read_all(gaps.OUT)
    assert {gaps._place(r) for r in known} == set(gaps.planned({}))
    there = gaps.OUT.with_name(gaps.TABLE).read_text(encoding="utf-8")
    assert there == gaps.page(known), f"{gaps.TABLE} is stale: run `make -C bench tables`"
