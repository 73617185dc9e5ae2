"""Studies: runs are recorded once, a killed study goes on, and tables say what was measured."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_study import small_study
from typer.testing import CliRunner

from vedute import methods
from vedute.cli import app
from vedute.data import missing
from vedute.datasets import synthetic
from vedute.methods import presets
from vedute.methods.mvp import IMAGES, MVP, TABLES
from vedute_bench import paper_mvp, studies
from vedute_bench.datasets import shapes
from vedute_bench.places import RESULTS
from vedute_bench.runner import plan, records, workers
from vedute_bench.runner import run as running
from vedute_bench.runner.workers import Lane
from vedute_bench.summaries import tables
from vedute_bench.summaries.summary import PAPER, Summary

TINY = """
datasets = ["synthetic"]
rates = [0.3, 0.5]
seeds = [1, 2]

[[runs]]
label = "small mvp"
method = "mvp"
settings = { hidden = [16], device = "cpu" }

[[runs]]
label = "mean_fill"
method = "mean_fill"
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the study tiny.toml; the synthetic data are few."""
    yield from small_study(tmp_path, monkeypatch, TINY, lambda name: synthetic.load(80))


def vedute_(*words):
    return CliRunner().invoke(app, [str(w) for w in words])


def bench(*words):
    return vedute_("bench", "tiny.toml", "--jobs", "1", "-o", "out/r.jsonl", *words)


def short(*words):
    return bench("--set", "steps=4", *words)


def read(path="out/r.jsonl"):
    return records.read(Path(path))


def test_a_record_tells_how_to_repeat_the_run(place):
    assert short("--rates", ".5", "--seeds", "1").exit_code == 0
    (place / "out" / "masks").rename(place / "other")
    mvp, fill = read()
    assert (mvp["label"], fill["label"]) == ("small mvp", "mean_fill")
    assert (mvp["dataset"], mvp["rate"], mvp["seed"]) == ("synthetic", 0.5, 1)
    assert mvp["row_rate"] == 0.5
    assert 0.2 < mvp["slot_rate"] < 0.4
    assert mvp["steps"] == 4 + 4  # few rows: with all views again
    assert mvp["parameters"] > 1000
    assert fill["steps"] is None
    assert fill["parameters"] is None
    assert set(mvp["versions"]) == {"vedute", "python", "torch", "numpy", "sklearn"}
    once = {"one_start_acc", "one_start_nmi", "one_start_ari"}
    assert set(mvp["scores"]) == {"acc", "nmi", "ari", "error", "coverage", "crps"} | once
    assert 20 < mvp["scores"]["acc"] <= 100
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in mvp["settings"].items()}
    truth = synthetic.load(80)
    seen = missing.load_mask(place / "other" / mvp["mask_file"], truth)
    assert missing.fingerprint(seen) == mvp["mask"] == fill["mask"]
    model = MVP(**settings).fit(truth.hide(~torch.from_numpy(seen)))
    again = running._scores(model, truth, truth.hide(~torch.from_numpy(seen)), 1)
    assert again == pytest.approx(mvp["scores"], abs=1e-4)


def test_a_record_has_the_settings_that_images_were_learned_with():
    objects = shapes.load(40, size=16)
    settings = dict(network="polymnist", steps=4, device="cpu", latent_dim=8)
    model = MVP(**settings, view_dropout=0.1).fit(objects)
    settled = running._settled(model)
    assert settled["rec_weight"] == IMAGES.defaults["rec_weight"] == model.model_.hp.rec_weight
    assert "view_dropout" not in settled  # it was passed
    assert json.dumps(settled)
    plain = running._settled(MVP(**settings, variant="tables").fit(objects))
    assert plain["rec_weight"] == TABLES.defaults["rec_weight"]
    assert running._settled(methods.find("mean_fill")().fit(objects)) == {}


def test_finished_runs_are_never_repeated(place, monkeypatch):
    assert short("--seeds", "1").exit_code == 0
    first = Path("out/r.jsonl").read_bytes()
    masks = {p.name: p.read_bytes() for p in Path("out/masks").iterdir()}
    assert len(masks) == 2
    output = short().stdout
    assert "8 runs, 4 of them done before" in output
    assert Path("out/r.jsonl").read_bytes().startswith(first)
    assert len(read()) == 8
    assert masks == {p.name: p.read_bytes() for p in Path("out/masks").iterdir()}
    monkeypatch.setattr(plan, "measure", None)
    assert short().exit_code == 0
    assert len(read()) == 8


def test_a_setting_that_came_later_repeats_no_run(place):
    words = ("--methods", "small mvp", "--rates", ".5", "--seeds", "1")
    assert short(*words).exit_code == 0
    (record,) = read()
    del record["settings"]["view_dropout"]
    Path("out/r.jsonl").write_text(json.dumps(record) + "\n")
    assert "1 runs, 1 of them done before" in short(*words).stdout
    output = short(*words, "--set", "view_dropout=.2").stdout
    assert "1 runs, 0 of them done before" in output


def test_other_settings_or_another_mask_are_other_runs(place):
    assert short("--methods", "small mvp", "--rates", ".5", "--seeds", "1").exit_code == 0
    output = short("--methods", "small mvp", "--rates", ".5", "--seeds", "1", "--set", "lr=.01")
    assert "1 runs, 0 of them done before" in output.stdout
    assert read()[1]["overrides"] == {"steps": 4, "lr": 0.01}
    (mask,) = Path("out/masks").iterdir()
    missing.save_mask(mask, missing.make_mask(80, 3, 0.5, seed=7))
    output = short("--methods", "small mvp", "--rates", ".5", "--seeds", "1")
    assert "1 runs, 0 of them done before" in output.stdout
    assert len({r["mask"] for r in read()}) == 2


def test_a_killed_study_loses_only_the_run_in_flight(place, monkeypatch):
    real, runs = running.measure, []

    def killed(run, masks, jobs):
        runs.append(run)
        if len(runs) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return real(run, masks, jobs)

    monkeypatch.setattr(plan, "measure", killed)
    before = signal.getsignal(signal.SIGINT)
    assert bench("--methods", "mean_fill").exit_code == 130
    assert signal.getsignal(signal.SIGINT) is before
    assert len(read()) == 2
    with Path("out/r.jsonl").open("a") as file:
        file.write('{"label": "cut of')
    assert len(read()) == 2
    monkeypatch.undo()
    monkeypatch.chdir(place)
    monkeypatch.setattr(running.datasets, "load", lambda name: synthetic.load(80))
    output = bench("--methods", "mean_fill")
    assert "4 runs, 2 of them done before" in output.stdout
    assert len(read()) == 4


def test_a_failed_run_is_told_and_ends_no_other(place, monkeypatch):
    real = running.measure

    def fails_once(run, masks, jobs):
        if run.seed == 1 and run.rate == 0.3:
            raise FloatingPointError("the loss\nbecame nan")
        return real(run, masks, jobs)

    monkeypatch.setattr(plan, "measure", fails_once)
    result = bench("--methods", "mean_fill")
    assert result.exit_code == 1
    assert "mean_fill on synthetic at 0.3, seed 1: failed: the loss became nan" in result.stderr
    assert len(read()) == 3


def test_several_processes_do_the_same_and_survive_a_failure():
    lanes = [Lane([4, -1, 9], 1, 1), Lane([16], 1, 1)]
    found = dict(workers.outcomes(math.sqrt, lanes))
    assert isinstance(found.pop(-1), ValueError)
    assert found == {4: 2.0, 9: 3.0, 16: 4.0}
    left = dict(workers.outcomes(sys.exit, [Lane([1, 2], 1, 1)]))
    assert [type(error) for error in left.values()] == [SystemExit, SystemExit]
    assert dict(workers.outcomes_here(math.sqrt, [4, 9])) == {4: 2.0, 9: 3.0}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("bench moon -o r.jsonl", "no study 'moon'; choose from .*mvp-clustering"),
        ("bench paper -o r.jsonl", "no study 'paper'"),
        ("bench tiny.toml -o r.json", "must end in .jsonl"),
        ("bench tiny.toml -o r.jsonl --methods moon", "no method 'moon'"),
        ("bench tiny.toml -o r.jsonl --datasets moon", "no dataset 'moon'"),
        ("bench tiny.toml -o r.jsonl --rates half", "--rates takes values separated by commas"),
        ("bench tiny.toml -o r.jsonl --rates 2", "rate must lie in"),
        ("bench tiny.toml -o r.jsonl --set stepps=3", "no setting 'stepps'; did you mean steps"),
        ("bench tiny.toml -o r.jsonl --set steps=few", "steps must be a whole number"),
        ("bench mvp-clustering --datasets synthetic -o r.jsonl", "no preset 'synthetic' for mvp"),
        ("bench odd.toml -o r.jsonl", "has 'rate'; it may have"),
        ("bench empty.toml -o r.jsonl", "a study is missing"),
        ("bench-tables tiny.toml -o out", "is not a .jsonl file"),
        ("bench-tables text.jsonl -o out", "line 1 of text.jsonl is not a record"),
        (
            "bench-tables none.jsonl -o out",
            "none.jsonl does not exist; `vedute bench` writes such files",
        ),
        ("bench-tables empty.jsonl -o out", "has no records"),
        (
            "bench-tables empty.jsonl -o page.html",
            "OUT is a folder of several tables, not a file; got page.html",
        ),
    ],
)
def test_a_mistake_gets_one_sentence(place, words, message):
    Path("odd.toml").write_text("rate = 1")
    Path("empty.toml").write_text("")
    Path("text.jsonl").write_text("words\n")
    Path("empty.jsonl").write_text("")
    result = vedute_(*words.split())
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.strip().splitlines()
    assert re.search(message, line), line
    assert not Path("r.jsonl").exists()


def test_all_adds_the_methods_that_a_study_lacks():
    from vedute_bench.commands import _bench

    study = _bench.choose("mvp-clustering", "all", None, None, None)
    labels = [e.label for e in study.entries]
    assert labels[:2] == ["mvp (paper)", "mvp"]
    assert len(labels) == len(set(labels))
    assert set(plan.methods.available()) == {e.method for e in study.entries}
    one = _bench.choose("mvp-clustering", "mvp,mvp (paper)", "cub", "0", "1,1")
    assert [e.preset for e in one.entries] == [None, "paper"]
    assert (one.datasets, one.rates, one.seeds) == (["cub"], [0.0], [1])


def test_presets_are_those_of_the_dataset(place, monkeypatch):
    study = replace(studies.load("mvp-clustering"), datasets=["cub"], rates=[0.1], seeds=[42])
    paper, plain, *_ = plan.plan(study, Path("masks"), {"epochs": 3})
    assert (paper.preset, plain.preset) == ("cub", None)
    assert paper.settings["hidden"] == presets.find("mvp", "cub")["hidden"]
    assert plain.settings["hidden"] == MVP().hidden
    assert paper.settings["epochs"] == plain.settings["epochs"] == 3


def test_the_time_left_is_that_of_the_busiest_lane():
    study = replace(studies.load("mvp-clustering"), datasets=["a", "b"])
    run = {e.label: fake(e.label, "a", 0.1, 1) for e in study.entries}
    runs = [plan.Run(**{k: r[k] for k in run_fields()}) for r in run.values()]
    known = [{**fake("mvp", "a", 0.1, 2), "wall": 10.0}, {**run["mean_fill"], "wall": 2.0}]
    assert plan.time_left([Lane(runs[1:3], 1, 1)], known) == 12.0
    assert plan.time_left([Lane(runs[1:2], 4, 1), Lane(runs[2:3] * 8, 2, 1)], known) == 10.0
    assert plan.time_left([Lane(runs, 1, 1)], []) == 0.0


def run_fields():
    return plan.Run.__dataclass_fields__


def fake(label, dataset, rate, seed, **scores):
    """A record as `vedute bench` writes it."""
    return {
        **dict.fromkeys(run_fields(), ""),
        "study": "mvp-clustering",
        "label": label,
        "method": label.partition(" ")[0],
        "dataset": dataset,
        "rate": rate,
        "seed": seed,
        "mask": "m",
        "overrides": {},
        "settings": {"random_state": seed},
        "device": "a machine",
        "jobs": 1,
        "seconds": 1.0,
        "wall": 1.0,
        "scores": scores,
    }


def some_records():
    cells = {("knn_fill", 1): 80, ("knn_fill", 2): 84, ("mvp", 1): 90, ("mvp", 2): 91}
    cells |= {("mean_fill", 1): 70, ("mvp (paper)", 1): 85, ("mvp (paper)", 2): 85}
    return [
        fake(label, dataset, rate, seed, acc=acc + (dataset == "cub"), error=1 - acc / 100)
        for dataset in ("reuters1200", "cub")
        for rate in (0.1, 0.5)
        for (label, seed), acc in cells.items()
    ]


def test_tables_have_means_stds_marks_and_the_paper():
    summary = Summary.of(some_records())
    assert summary.datasets == ["cub", "reuters1200"]  # in the order of the study
    assert summary.labels == ["mvp (paper)", "mvp", "mean_fill", "knn_fill"]
    text = tables.markdown(summary)
    assert "| cub | mvp (paper) | *86.00 ± 0.00* | *86.00 ± 0.00* | *86.00* |\n" in text
    assert "|  | mvp | **91.50 ± 0.50** | **91.50 ± 0.50** | **91.50** |\n" in text
    assert "|  | knn_fill | 83.00 ± 2.00 | 83.00 ± 2.00 | 83.00 |\n" in text
    assert f"|  | {PAPER}mvp | 78.67 ± 2.39 | 74.20 ± 3.21 | 76.44 |\n| " in text
    assert text.index(PAPER) < text.index("mean_fill")  # beside the rows of its method
    assert text.count(PAPER) == 1  # reuters1200 is not Reuters, the other scores are not reported
    assert "over 1 to 2 seeds (1 of mean_fill)." in text
    assert "mvp: 91.50 over the 2 cells that the paper reports, where it has 76.44; " in text
    assert "mean_fill: " not in text  # of which the paper says nothing
    assert "minus one std in 2 of 2" in text
    assert "**0.095 ± 0.005**" in text  # of errors, the least
    assert "Measured: all on a machine." in text


def test_tables_in_latex_and_csv():
    summary = Summary.of(some_records())
    text = tables.latex(summary)
    assert "\\textbf{91.50 $\\pm$ 0.50} & " in text
    assert "\\underline{86.00 $\\pm$ 0.00} & " in text
    assert "knn\\_fill" in text
    assert text.count("\\midrule") == 6  # two datasets with ACC, error and seconds
    rows = list(csv.DictReader(tables.comma_separated(summary).splitlines()))
    (mine,) = (r for r in rows if list(r.values())[:4] == ["acc", "cub", "mvp", "0.5"])
    assert (float(mine["mean"]), float(mine["std"]), mine["runs"]) == (91.5, 0.5, "2")


def test_no_mean_of_times_on_two_machines() -> None:
    moved = [r | {"device": "another"} if r["rate"] == 0.1 else r for r in some_records()]
    for row in Summary.of(moved).rows("seconds"):
        assert row.cells[0] is not None
        assert row.cells[-1] is None
    assert all(row.cells[-1] for row in Summary.of(moved).rows("acc"))


def test_a_run_with_new_settings_makes_old_ones_obsolete():
    old = [fake("mvp", "cub", 0.1, seed, acc=10.0) for seed in (1, 2)]
    new = {**fake("mvp", "cub", 0.1, 1, acc=50.0), "settings": {"random_state": 1, "lr": 1}}
    cell = Summary.of([*old, new]).cell("mvp", "cub", 0.1, "acc")
    assert (cell.mean, cell.runs) == (50.0, 1)
    changed = {**new, "overrides": {"lr": 1}}
    assert Summary.of([*old, changed]).labels == ["mvp", "mvp (lr=1)"]


@pytest.mark.parametrize(
    ("name", "value", "runs"),
    [
        ("lr", None, 2),
        ("lr", 6e-3, 1),
        ("sharpen", True, 1),
    ],
)
def test_a_setting_that_a_record_does_not_name_is_at_its_default(name, value, runs):
    old, new = (fake("mvp", "cub", 0.1, seed, acc=10.0) for seed in (1, 2))
    new["settings"] = {"random_state": 2, name: value}
    assert Summary.of([old, new]).cell("mvp", "cub", 0.1, "acc").runs == runs


@pytest.mark.parametrize(("name", "runs"), [("verbose", 2), ("callbacks", 2), ("device", 1)])
def test_what_is_seen_of_a_run_makes_no_other_obsolete(name, runs):
    pair = [fake("mvp", "cub", 0.1, seed, acc=10.0) for seed in (1, 2)]
    for run, value in zip(pair, ("some", "other"), strict=True):
        run["settings"] = {"random_state": run["seed"], name: value}
    assert Summary.of(pair).cell("mvp", "cub", 0.1, "acc").runs == runs


def test_intervals_of_90_percent_should_cover_90_percent():
    wide = [
        fake("mvp", "cub", 0.1, 1, coverage=99.0),
        fake("knn_fill", "cub", 0.1, 1, coverage=88.0),
    ]
    rows = {row.label: row.marks[0] for row in Summary.of(wide).rows("coverage")}
    assert rows == {"mvp": "second", "knn_fill": "best"}


def test_report(tmp_path):
    pytest.importorskip("matplotlib")
    path, out = tmp_path / "r.jsonl", tmp_path / "out"
    third = [{**r, "dataset": "scene15"} for r in some_records() if r["dataset"] == "cub"]
    path.write_text("".join(json.dumps(r) + "\n" for r in [*some_records(), *third]))
    assert vedute_("bench-tables", path, "-o", out).exit_code == 0
    assert {p.name for p in out.iterdir()} == {
        "tables.md", "tables.tex", "tables.csv", "acc.png", "error.png",
        "ranks.md", "tests.csv", "ranks.png",
    }  # fmt: skip
    assert vedute_("bench-tables", path, "-o", out).exit_code == 2
    (out / "mine.txt").write_text("stays")
    assert vedute_("bench-tables", path, "-o", out, "--force").exit_code == 0
    assert (out / "mine.txt").exists()


def test_datasets_are_the_blocks_that_are_compared():
    uneven = {("cub", 0.1): 90.0, ("cub", 0.5): 70.0, ("handwritten", 0.1): 60.0}
    places = [(label, place, acc) for label in ("mvp", "knn_fill") for place, acc in uneven.items()]
    found = [fake(label, *place, 1, acc=acc) for label, place, acc in places]
    found.append(fake("mean_fill", "cub", 0.1, 1, acc=50.0))  # elsewhere it was not run
    assert Summary.of(found).comparable("acc") == {k: [80.0, 60.0] for k in ("mvp", "knn_fill")}


def test_of_many_labels_those_that_were_run_everywhere_have_colors():
    pytest.importorskip("matplotlib")
    from vedute.figures.plots import COLORS
    from vedute_bench.summaries import curves

    many = [(i, rate) for i in range(len(COLORS) + 1) for rate in (0.1, 0.5)]
    found = [fake(f"mvp{i}", "cub", rate, 1, acc=90.0 - i) for i, rate in many]
    found += [fake("some", "cub", 0.1, 1, acc=99.0)]  # easy cells only
    (ax,) = curves.rate_curves(Summary.of(found), "acc").axes
    shown = [line.get_label() for line in ax.get_lines()]
    assert {*shown} == {f"mvp{i}" for i in range(len(COLORS))} | {"others", f"{PAPER}mvp"}


def test_the_numbers_of_the_paper():
    paper = studies.published()
    assert paper["handwritten", "acc", 0.1] == (90.55, 5.29)
    assert paper["scene15", "ari", 0.7] == (24.68, 1.58)
    assert paper["sensit", "nmi", 0.5] == (32.05, 0.20)
    assert len(paper) == 5 * 3 * 4
    assert not any(dataset == "reuters1200" for dataset, _, _ in paper)
    ours = ("handwritten", "cub", "scene15")
    cells = [mean for (d, score, _), (mean, _) in paper.items() if score == "acc" and d in ours]
    assert sum(cells) / 12 == pytest.approx(69.25, abs=0.01)


def test_the_numbers_of_the_paper_of_other_methods():
    assert studies.published("icmvc")["handwritten", "acc", 0.7] == (67.48, 3.83)
    assert studies.published("completer")["cub", "ari", 0.7] == (0.73, None)
    assert studies.published("dvimc")["sensit", "nmi", 0.3] == (30.31, None)
    assert studies.published("mean_fill") == {}
    assert studies.sources("mean_fill") == []
    others = ("dcca", "dccae", "dimvc", "dsimvc", "completer", "cpspan", "icmvc", "dvimc")
    assert all(len(studies.published(method)) == 5 * 3 * 4 for method in others)
    assert {d for m in others for d, _, _ in studies.published(m)} == {
        "handwritten", "cub", "scene15", "reuters", "sensit"
    }  # fmt: skip


@pytest.mark.parametrize("method", ["dcca", "dccae"])
def test_means_over_the_rates_so_far_are_taken_apart(method):
    printed, apart = (studies.published(source) for source in studies.sources(method))
    for dataset in ("handwritten", "cub", "scene15", "reuters", "sensit"):
        values = [apart[dataset, "acc", rate][0] for rate in (0.1, 0.3, 0.5, 0.7)]
        for k, rate in enumerate((0.1, 0.3, 0.5, 0.7), start=1):
            so_far = sum(values[:k]) / k
            assert so_far == pytest.approx(printed[dataset, "acc", rate][0], abs=0.06)
    assert {score for _, score, _ in apart} == {"acc"}


def test_dcca_is_held_against_the_numbers_taken_apart():
    summary = Summary.of(
        [fake("dcca", "cub", rate, 1, acc=50.0, nmi=40.0, kmeans_acc=30.0) for rate in (0.1, 0.7)]
    )
    names = [row.label for row in summary.rows("acc")]
    assert names == ["dcca", f"{PAPER}dcca", f"{PAPER}dcca, rate by rate"]
    sentence = (
        "dcca: 50.00 over the 2 cells that the paper reports, where it has 41.25 rate by rate; "
    )
    assert summary.against_paper("dcca", "acc") == sentence + "at least its mean in 1 of 2."
    assert "where it has 49.51; at least its mean in 1 of 2" in summary.against_paper("dcca", "nmi")
    text = tables.markdown(summary)
    assert "ACC of k-means on the representation" in text
    assert "NMI of k-means" not in text


def test_studies_are_complete():
    assert "paper" not in studies.available()
    study = studies.load("mvp-clustering")
    sets = sum(len(entry.datasets or study.datasets) for entry in study.entries)
    assert sets * len(study.rates) * len(study.seeds) == 380
    assert study.seeds == [42, 44, 46, 48, 50]
    known = presets.load("mvp")
    assert all(dataset in known for dataset in study.datasets)


@pytest.mark.parametrize("name", [k for k in studies.available() if k.startswith("paper-")])
def test_studies_of_the_paper_change_what_they_say(name):
    study = studies.load(name)
    published = presets.load("mvp")
    for entry in study.entries:
        assert entry.preset == "paper"
        for dataset in study.datasets:
            paper_mvp.find(entry.method)(**published[dataset] | entry.settings).check_settings()
    assert len({json.dumps(entry.settings) for entry in study.entries}) == len(study.entries)


@pytest.mark.parametrize("name", ["mvp-clustering", "clustering"])
def test_no_row_has_the_epochs_of_reuters_on_reuters1200(name):
    """Reuters has fifteen times as many samples, so its epochs would give too few steps."""
    paper = [entry for entry in studies.load(name).entries if entry.preset]
    assert paper
    assert all("reuters1200" not in (entry.datasets or ["reuters1200"]) for entry in paper)
    known = records.read(RESULTS / name / "records.jsonl")
    assert not [r for r in known if r["preset"] == "reuters1200"]


def test_an_entry_may_have_fewer_datasets_than_its_study(place):
    study = replace(studies.load("mvp-clustering"), datasets=["cub", "synthetic"], rates=[0.1])
    mine = [replace(e, datasets=["cub"] if e.preset else ()) for e in study.entries]
    runs = plan.plan(replace(study, entries=mine), Path("masks"), {"epochs": 3})
    assert {run.dataset for run in runs if run.label == "mvp (paper)"} == {"cub"}
    assert {run.dataset for run in runs if run.label == "mvp"} == {"cub", "synthetic"}


def test_what_is_asked_for_counts_more_than_the_datasets_of_an_entry():
    from vedute_bench.commands import _bench

    paper = _bench.choose("mvp-clustering", "mvp (paper)", None, None, None)
    assert list(paper.entries[0].datasets) == ["handwritten", "cub", "scene15"]
    asked = _bench.choose("mvp-clustering", "mvp (paper)", "reuters1200", None, "1")
    assert (asked.entries[0].datasets, asked.entries[0].seeds) == ((), ())


def test_a_study_of_curves_records_the_terms_of_every_epoch(place):
    plain = ["--rates", ".5", "--seeds", "1", "--methods"]
    assert short(*plain, "small mvp").exit_code == 0
    (place / "tiny.toml").write_text("curves = true" + TINY)
    assert short(*plain, "small mvp,mean_fill").exit_code == 0
    without, mvp, fill = read()
    assert "history" not in without
    assert "history" not in fill
    assert mvp["scores"] == without["scores"]
    assert mvp["history"]["step"][-1] == mvp["steps"]
    assert set(mvp["history"]) > {"step", "reconstruction", "kl_views", "kl_consensus"}
    assert len({len(values) for values in mvp["history"].values()}) == 1
    (place / "tiny.toml").write_text("curves = 1" + TINY)
    assert "curves must be true or false, got 1" in short().output


def test_a_study_of_several_protocols_has_a_column_for_each(place):
    (place / "several.toml").write_text(
        TINY.replace("rates = [0.3, 0.5]\n", "")
        .replace("small mvp", "x")
        .replace(
            "\n[[runs]]",
            "\n[patterns]\nchain = [1.0]\ntwo_components = [1.0]\nmnar = [0.2]\n\n[[runs]]",
            1,
        )
    )
    words = ("several.toml", "--jobs", "1", "--methods", "mean_fill", "-o", "out/r.jsonl")
    output = vedute_("bench", *words)
    assert output.exit_code == 0, output.stderr
    assert "4 runs, 0 of them done before" in output.stdout  # three views: no two components
    assert "mean_fill on synthetic at chain 1, seed 1" in output.stderr
    assert {(r["protocol"], r["rate"]) for r in read()} == {("chain", 1.0), ("mnar", 0.2)}
    assert {r["mask_file"] for r in read()} == {p.name for p in Path("out/masks").iterdir()}
    assert "4 runs, 4 of them done before" in vedute_("bench", *words).stdout
    part = vedute_("bench", *words, "--protocols", "mnar", "--rates", ".2,.3")
    assert "4 runs, 2 of them done before" in part.stdout
    summary = Summary.of(read())
    assert summary.rates == ["chain 1", "mnar 0.2", "mnar 0.3"]
    assert not summary.by_rate()
    assert vedute_("bench-tables", "out/r.jsonl", "-o", "tables").exit_code == 0
    text = Path("tables/tables.md").read_text()
    assert "| dataset | method | chain 1 | mnar 0.2 | mnar 0.3 | mean |" in text
    assert "CRPS of hidden views" in text
    assert not list(Path("tables").glob("*.png"))
    assert "chain 1" in Path("tables/tables.csv").read_text()
    no = vedute_("bench", *words, "--protocols", "ring")
    assert (no.exit_code, "no rate for 'ring'; give it with --rates" in no.stderr) == (2, True)


def test_the_protocol_is_part_of_a_run_and_old_records_are_of_bernoulli():
    record = dict(label="a", dataset="d", rate=0.0, seed=1, mask="m", method="mean_fill")
    old = {**record, "settings": {}}
    assert plan.key(old) == plan.key({**old, "protocol": "bernoulli"})
    assert plan.key(old) != plan.key({**old, "protocol": "chain"})
    for folder in ("clustering", "mvp-clustering"):
        known = records.read(RESULTS / folder / "records.jsonl")
        assert Summary.of(known).by_rate()


def test_the_cohorts_study_hides_by_design_value_and_group():
    study = studies.load("cohorts")
    assert {"mvp", "blend", "knn_fill", "mean_fill"} <= {e.method for e in study.entries}
    assert {p for p, _ in study.hidden()} == {*missing.patterns.COHORTS, "mar", "mnar", "group"}
    assert "handwritten" in study.datasets


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("rates = [0.5]\npatterns = { chain = [1.0] }", "rates and patterns; give one of them"),
        ('task = "generation"\npatterns = { chain = [1.0] }', "has rates, not patterns"),
        ("", "has no rates; give at least one"),
        ("patterns = { moon = [1.0] }", "no protocol 'moon'; choose from uniform"),
    ],
)
def test_a_study_with_odd_patterns_is_refused(place, lines, message):
    (place / "odd.toml").write_text(TINY.replace("rates = [0.3, 0.5]", lines))
    result = vedute_("bench", "odd.toml", "-o", "r.jsonl")
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_clustering_study_extends_the_first():
    study, first = studies.load("clustering"), studies.load("mvp-clustering")
    assert (study.datasets, study.rates, study.seeds) == (first.datasets, first.rates, first.seeds)
    assert {e.label for e in first.entries} <= {e.label for e in study.entries}
    for method in {e.method for e in study.entries}:
        mine = [e for e in study.entries if e.method == method]
        published = [e.preset for e in mine if e.preset]
        two = plan.methods.find(method).two_views
        assert len(published) == (1 + two if studies.sources(method) else 0)
        assert [e.pair for e in mine if e.pair] == ["restrict", "restrict", "redraw"] * two
        assert all(set(e.seeds) <= set(study.seeds) for e in mine)
        asked = {dataset for e in mine if e.preset for dataset in e.datasets}
        assert asked <= set(presets.load(method))


def test_the_speed_script_compares_equal_losses():
    """If this fails, the code around the draws of MVP has changed: `speed.reference`."""
    from vedute_bench.speed import reference

    views = missing.drop_views(synthetic.load(60), 0.5, 42)
    job = reference.Job.of(views, "cpu", {"hidden": (8,), "batch_size": 32})
    how, difference = reference.agreement(job, reference.SlowMVP.of(job.model))
    assert how == "same noise"
    assert difference < 1e-4
    assert job.flops() > 1e6


def test_runs_of_a_benchmark_are_the_same_whatever_is_shown():
    record = {"label": "a", "method": "mvp", "dataset": "b", "rate": 0.5, "seed": 0, "mask": "c"}
    keys = [
        plan.key(record | {"settings": settings})
        for settings in ({}, {"verbose": False}, {"verbose": True}, {"callbacks": None})
    ]
    assert len(set(keys)) == 1
