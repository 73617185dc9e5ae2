"""All subsets, both kinds of coherence, and a study of them from the run to the report."""

from __future__ import annotations

import csv
import json
import tomllib
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score
from small_study import small_study
from typer.testing import CliRunner

from vedute.cli import app
from vedute.data.missing import drop_views
from vedute.data.views import Views
from vedute.datasets import synthetic
from vedute.methods import presets
from vedute.methods.fills.knn_fill import KNNFill
from vedute.methods.fills.mean_fill import MeanFill
from vedute.methods.mvp import MVP
from vedute.metrics.ssim import ssim
from vedute_bench import studies
from vedute_bench.commands import _bench, bench_tables
from vedute_bench.datasets import polymnist, shapes
from vedute_bench.generation import cross_view
from vedute_bench.generation.classifiers import Judge, Recipe, judges
from vedute_bench.generation.cross_view import (
    Prediction,
    by_mean,
    by_model,
    by_nearest,
    evaluate,
    subsets,
)
from vedute_bench.runner import plan, records, samples
from vedute_bench.runner import run as running
from vedute_bench.summaries import generation_tables
from vedute_bench.summaries.method_grid import Shown
from vedute_bench.summaries.summary import Summary

SHORT = Recipe(epochs=6, batch_size=16, dropout=0.1)


def squares(n, seed=0, L=3, side=12):
    """Bytes (n, 1, side, side): a bright quarter that all views share, in a view's own noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    half = side // 2
    x = []
    for v in range(L):
        image = rng.integers(40 + 30 * v, size=(n, 1, side, side))
        for i, kind in enumerate(y):
            top, left = half * (kind // 2), half * (kind % 2)
            image[i, 0, top : top + half, left : left + half] += 110
        x.append(image.astype(np.uint8))
    return Views.of(x, y=y)


REAL, TEST = squares(80), squares(40, seed=1)


@pytest.fixture(scope="module")
def jury():
    return judges(["per_view", "angle"], REAL, TEST, recipe=SHORT)


@pytest.fixture(scope="module")
def model():
    light = MVP(latent_dim=4, hidden=(16,), map_hidden=(8,), network="mlp", steps=30, device="cpu")
    return light.set_params(random_state=0, warmup=5).fit(drop_views(REAL, 0.5, 42))


def perfect(test):
    """Returns the true images, whatever it is given."""
    return lambda batch: Prediction(
        torch.zeros(len(batch), 1), [x[batch.index] / 255 for x in test.x]
    )


def test_all_subsets_but_none():
    assert len(subsets(5)) == 31
    assert [sum(len(s) == k for s in subsets(5)) for k in range(6)] == [0, 5, 10, 10, 5, 1]
    assert len(set(subsets(5))) == 31
    assert subsets(2) == [(0,), (1,), (0, 1)]


def test_a_perfect_generator_reaches_what_the_classifier_does(jury):
    found = evaluate(perfect(TEST), TEST, jury)
    assert set(found.sizes) == {1, 2, 3}
    for size, row in found.sizes.items():
        assert row["coherence_all"] == pytest.approx(jury[0].accuracy)
        assert row["angle_all"] == pytest.approx(jury[1].accuracy)
        assert row["ssim_all"] == row["ssim_given"] == pytest.approx(1.0)
        assert row.get("ssim_missing", 1.0) == pytest.approx(1.0)
        assert ("ssim_missing" in row) == (size < 3)
        assert row["nmi"] == 0.0  # one representation for all
    some = [row for row in found.subsets if len(row["given"]) < 3]
    missing = np.mean([row["coherence_missing"] for row in some])
    assert missing == pytest.approx(jury[0].accuracy)


def test_missing_and_given_views_are_told_apart():
    """What is given comes back, the rest is black: coherence A is 0, B is the share given."""

    def repeats(batch):
        images = [x / 255 * m.view(-1, 1, 1, 1) for x, m in zip(batch.x, batch.mask.T, strict=True)]
        return Prediction(torch.eye(4)[torch.arange(len(batch)) % 4], images)

    class Bright(Judge):
        def wrong(self, images, v, rows):
            return images.flatten(1).amax(1) == 0

    judge = Bright("coherence", [], torch.zeros(0), 1.0)
    found = evaluate(repeats, TEST, [judge])
    for size, row in found.sizes.items():
        assert row.get("coherence_missing", 0) == 0
        assert row["coherence_given"] == 1
        assert row["coherence_all"] == pytest.approx(size / 3)
        assert row["ssim_given"] == pytest.approx(1.0)
        assert row.get("ssim_missing", 0) < 0.5
        assert row["nmi"] == pytest.approx(1.0)
    (last,) = (row for row in found.subsets if row["given"] == [0, 2])
    assert last["by_view"]["coherence"] == [1, 0, 1]


def test_clusters_are_compared_with_those_from_all_views():
    """View 0 alone tells one half from the other; with any other view, a cluster per label."""
    corners = torch.eye(4)

    def tells(batch):
        rows = torch.arange(len(batch)) % 4
        alone = batch.mask[0].tolist() == [True, False, False]
        return Prediction(corners[rows % 2 if alone else rows], [])

    test = replace(TEST, y=np.arange(len(TEST)) % 4)
    found = {tuple(row["given"]): row for row in evaluate(tells, test, []).subsets}
    half = found[(0,)]["same_clusters"]
    assert half == pytest.approx(adjusted_rand_score(test.y, test.y % 2))
    assert found[(1,)]["same_clusters"] == found[(0, 2)]["same_clusters"] == 1
    assert "same_clusters" not in found[(0, 1, 2)]


def test_views_hidden_from_training_are_compared_with_the_truth(monkeypatch):
    """The true images, and black ones; in parts that do not end where samples do."""
    monkeypatch.setattr(cross_view, "ROWS", 7)
    seen = drop_views(REAL, 0.5, 42)

    def black(batch):
        return Prediction(None, [torch.zeros(x.shape) for x in batch.x])

    right = cross_view.hidden_in_training(perfect(REAL), REAL, seen)
    assert right == {"hidden_ssim": pytest.approx(1), "hidden_error": 0}
    squares = [
        (x[~m] / 255.0).square().flatten(1).mean(1)
        for x, m in zip(REAL.x, seen.mask.T, strict=True)
    ]
    wrong = cross_view.hidden_in_training(black, REAL, seen)
    assert wrong["hidden_error"] == pytest.approx(float(torch.cat(squares).mean()))
    assert wrong["hidden_ssim"] < 0.5
    assert cross_view.hidden_in_training(black, REAL, REAL) == {}


def test_both_rules_of_decoding_given_views_are_scored(model):
    test = cross_view.enter(model, TEST)
    before = evaluate(by_model(model), test, []).sizes
    found = running._other_rule(model, test)
    assert found["own_ssim_given_1"] == pytest.approx(before[1]["ssim_given"])  # itself alone
    assert len({round(x, 6) for x in found.values()}) == 1  # whatever else is given
    assert evaluate(by_model(model), test, []).sizes == before
    assert running._other_rule(MeanFill().fit(REAL), test) == {}


def test_generated_samples_agree_where_all_views_are_of_one_class(model):
    """Judges that see one class everywhere, and some that never agree."""

    class Always:
        def __init__(self, answer):
            self.answer = answer

        def predict(self, images):
            return torch.full((len(images),), self.answer)

    alike = Judge("coherence", [Always(1)] * 3, torch.zeros(0), 1.0)
    apart = Judge("coherence", [Always(v) for v in range(3)], torch.zeros(0), 1.0)
    assert cross_view.agreement(model, alike, n=5) == 1
    assert cross_view.agreement(model, apart, n=5) == 0


def test_batches_change_nothing(model, jury, monkeypatch):
    whole = evaluate(by_model(model), cross_view.enter(model, TEST), jury)
    monkeypatch.setattr(cross_view, "ROWS", 7)
    parts = evaluate(by_model(model), cross_view.enter(model, TEST), jury)
    for size in whole.sizes:
        assert parts.sizes[size] == pytest.approx(whole.sizes[size], abs=1e-4)


def test_scores_are_those_of_imputed_images(model):
    """The slow way: impute what is hidden, compare image by image."""
    found = evaluate(by_model(model), cross_view.enter(model, TEST), [])
    for row in found.subsets:
        hidden = torch.ones(TEST.shape, dtype=torch.bool)
        hidden[:, row["given"]] = False
        decoded = model.decode(model.learner.scaled(TEST.hide(hidden)))
        for v, mean in enumerate(row["by_view"]["ssim"]):
            image = ((torch.from_numpy(decoded[v][0]) + 1) / 2).clamp(0, 1)
            assert float(ssim(image, TEST.x[v] / 255).mean()) == pytest.approx(mean, abs=1e-5)


def test_one_draw_is_judged_beside_the_mean_and_changes_nothing_of_it(model, jury):
    test = cross_view.enter(model, TEST)
    plain, drawn = (evaluate(by_model(model, asked), test, jury) for asked in (False, True))
    again = evaluate(by_model(model, drawn=True), test, jury)
    assert again.sizes == drawn.sizes  # the same draws
    found = by_model(model, drawn=True)(test)
    assert all(not torch.allclose(a, b) for a, b in zip(found.images, found.drawn, strict=True))
    for size, scores in plain.sizes.items():
        assert not any("drawn" in name for name in scores)
        assert scores == {k: v for k, v in drawn.sizes[size].items() if "drawn" not in k}
        names = {k for k in drawn.sizes[size] if "drawn" in k}
        ends = ("all", "given", "missing") if size < 3 else ("all", "given")
        assert names == {f"{j.name}_drawn_{end}" for j in jury for end in ends}


def test_what_was_drawn_is_judged_by_itself(jury):
    """Right images where one draws, black ones at the mean."""

    def predict(batch):
        right = [x[batch.index] / 255 for x in TEST.x]
        return Prediction(None, [torch.zeros_like(x) for x in right], right)

    found = evaluate(predict, TEST, jury[:1])
    for size, scores in found.sizes.items():
        end = "missing" if size < 3 else "given"
        assert scores[f"coherence_drawn_{end}"] == pytest.approx(jury[0].accuracy, abs=0.05)
        assert scores[f"coherence_{end}"] < 0.6


def test_fills_have_draws_too():
    fill = KNNFill().fit(REAL)
    found = by_model(fill, drawn=True)(TEST)
    assert [x.shape for x in found.drawn] == [x.shape for x in found.images]


def test_what_is_hidden_changes_nothing(model):
    """Poison: a predictor sees the given views only."""
    seen = []

    def spy(batch):
        seen.append((batch.mask.clone(), [x.clone() for x in batch.x]))
        return by_model(model)(batch)

    evaluate(spy, cross_view.enter(model, TEST), [])
    for mask, x in seen:
        assert all(not a[~mask[:, v]].any() for v, a in enumerate(x))


def test_floors_and_fills_agree():
    """The mean image is mean_fill's, the nearest sample that of knn_fill with one neighbour."""
    mean, nearest = (evaluate(by(REAL), TEST, []) for by in (by_mean, by_nearest))
    fills = (MeanFill(random_state=0), KNNFill(n_neighbors=1, random_state=0))
    for floor, fill in zip((mean, nearest), fills, strict=True):
        found = evaluate(by_model(fill.fit(REAL)), TEST, [])
        for size, scores in floor.sizes.items():
            assert "nmi" not in scores
            if fill is fills[0] and size < 3:
                assert scores["ssim_missing"] == pytest.approx(
                    found.sizes[size]["ssim_missing"], abs=1e-3
                )
    assert nearest.sizes[1]["ssim_missing"] > 0
    same = evaluate(by_nearest(TEST), TEST, [])  # everybody is nearest to itself
    assert same.sizes[1]["ssim_missing"] == pytest.approx(1.0)


def test_pictures(model, jury):
    images, wrong = samples.infer(model, TEST, [3, 8], [2, 0], jury[0])
    assert images.shape == (2, 4, 1, 12, 12)
    assert images.dtype == np.uint8
    assert (images[0, 0] == TEST.x[2][3].numpy()).all()
    assert (images[1, 0] == TEST.x[0][8].numpy()).all()
    assert not wrong[:, 0].any()
    steps = samples.traverse(model, 1, axes=2, steps=5)
    assert steps.shape == (2, 5, 1, 12, 12)
    assert (steps[0, 2] == steps[1, 2]).all()  # both walks pass through the middle
    with pytest.raises(TypeError, match="keeps no posteriors"):
        samples.traverse(Mute(), 0)


class Mute(MVP):
    model_ = torch.nn.Identity()


def test_a_walk_follows_the_principal_axes():
    points = torch.randn(500, 3, dtype=torch.float64) * torch.tensor([5.0, 1.0, 0.1]) + 2
    path = samples.walk(points, 2, 3, 2.0)
    assert path[:, 1] == pytest.approx(points.mean(0).expand(2, 3))
    ahead = (path[0, 2] - path[0, 1]).abs()
    assert ahead[0] == pytest.approx(2 * 5, rel=0.1)
    assert ahead[1:].max() < 0.5


def test_only_complete_images_in_bytes_are_evaluated(model):
    with pytest.raises(ValueError, match="complete test set"):
        evaluate(by_model(model), drop_views(TEST, 0.5, 0), [])
    floats = Views.of([x.numpy().astype(float) for x in TEST.x], y=TEST.y)
    with pytest.raises(ValueError, match="compared in bytes"):
        cross_view.enter(model, floats)


# A study.

STUDY = """
task = "generation"
datasets = ["squares"]
rates = [0.5]
seeds = [1, 2]
judges = ["shared", "angle"]
shown_view = "view1"

[[runs]]
label = "small mvp"
method = "mvp"
settings = { hidden = [16], network = "mlp", latent_dim = 4, steps = 6, device = "cpu" }

[[runs]]
label = "mean_fill"
method = "mean_fill"
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    parts = {None: synthetic.load(80), "train": REAL, "test": TEST}
    monkeypatch.setattr(running.datasets, "available", lambda: ["squares"])
    monkeypatch.setattr(
        "vedute_bench.generation.classifiers.RECIPES", {"shared": SHORT, "angle": SHORT}
    )
    yield from small_study(tmp_path, monkeypatch, STUDY, lambda name, split=None: parts[split])


def vedute_(*words):
    return CliRunner().invoke(app, [str(w) for w in words])


def test_a_study_from_the_runs_to_the_report(place):
    pytest.importorskip("matplotlib")
    run = vedute_("bench", "tiny.toml", "--jobs", "1", "-o", "out/r.jsonl")
    assert run.exit_code == 0, run.output
    found = records.read(Path("out/r.jsonl"))
    assert len(found) == 4
    mvp = found[0]
    assert (mvp["task"], mvp["judges"]) == ("generation", ["shared", "angle"])
    assert mvp["settings"]["n_clusters"] is None
    for name in ("coherence_all", "coherence_missing", "angle_all", "ssim_missing", "nmi"):
        assert {f"{name}_1", f"{name}_2"} <= set(mvp["scores"])
    assert {"nearest_ssim_missing_1", "mean_ssim_missing_2"} <= set(mvp["scores"])
    assert 50 < mvp["scores"]["classifier_coherence"] <= 100
    assert 0 <= mvp["scores"]["coherence_all_1"] <= 100
    assert len(mvp["subsets"]) == 7
    assert 0 <= mvp["scores"]["generated_coherence"] <= 100
    assert np.isfinite(mvp["scores"]["bits"])
    assert {"hidden_ssim", "hidden_error", "own_ssim_given_3"} <= set(mvp["scores"])
    assert {p.name for p in Path("out").iterdir()} == {
        "r.jsonl", "masks", "classifiers", "floors", "pictures"
    }  # fmt: skip
    assert len(list(Path("out/classifiers").iterdir())) == 2  # made once, for all runs
    fill, small = "mean_fill-on-squares-at-0.5-seed-", "small-mvp-on-squares-at-0.5-seed-"
    ends = (".png", ".npz", "-traversal.png")
    assert {p.name for p in Path("out/pictures").iterdir()} == {
        *(f"{fill}{seed}{end}" for seed in (1, 2) for end in ends[:2]),
        *(f"{small}{seed}{end}" for seed in (1, 2) for end in ends),
    }
    assert (mvp["shown_view"], mvp["shown"]) == ("view1", f"{small}1.npz")
    again = vedute_("bench", "tiny.toml", "--jobs", "1", "-o", "out/r.jsonl")
    assert "4 of them done before" in again.stdout

    assert vedute_("bench-tables", "out/r.jsonl", "-o", "report").exit_code == 0
    assert {p.name for p in Path("report").iterdir()} == {
        "generation.md", "generation.csv", "squares-0.5.png", "side-by-side-squares-0.5.png"
    }  # fmt: skip
    text = Path("report/generation.md").read_text()
    assert "| dataset | trained at | method | 0 missing | 1 missing | 2 missing |" in text
    assert "(nearest training sample)" in text
    assert "Samples from no view" in text
    assert "classifiers that judge coherence are right on" in text
    rows = list(csv.DictReader(Path("report/generation.csv").read_text().splitlines()))
    mine = [float(r["scores"]["nmi_2"]) for r in found if r["label"] == "small mvp"]
    (row,) = (
        r for r in rows if list(r.values())[:5] == ["nmi", "squares", "0.5", "small mvp", "1"]
    )
    assert float(row["mean"]) == pytest.approx(np.mean(mine), abs=1e-4)
    assert row["runs"] == "2"


def test_complete_data_are_a_rate_like_others(place):
    run = vedute_("bench", "tiny.toml", "--rates", "0", "--seeds", "1", "-o", "out/r.jsonl")
    assert run.exit_code == 0, run.output
    assert [r["row_rate"] for r in records.read(Path("out/r.jsonl"))] == [0, 0]
    assert vedute_("bench-tables", "out/r.jsonl", "-o", "report").exit_code == 0
    assert Path("report/side-by-side-squares-0.png").exists()


def test_without_a_view_to_show_there_are_no_such_images(place):
    Path("tiny.toml").write_text(STUDY.replace('shown_view = "view1"', ""))
    words = ("--methods", "mean_fill", "--seeds", "1", "-o", "out/r.jsonl")
    assert vedute_("bench", "tiny.toml", *words).exit_code == 0
    assert "shown" not in records.read(Path("out/r.jsonl"))[0]
    assert [p.suffix for p in Path("out/pictures").iterdir()] == [".png"]
    assert vedute_("bench-tables", "out/r.jsonl", "-o", "report").exit_code == 0
    assert not list(Path("report").glob("side-by-side*"))
    old = records.read(Path("out/r.jsonl"))
    old[0].pop("shown_view")  # as before there were such views
    Path("tiny.toml").write_text(STUDY)
    runs = plan.plan(studies.load("tiny.toml"), Path("out/masks"), {})
    assert len(plan.unfinished(runs, old)) == 3


def test_a_strange_view_to_show_is_refused_before_anything_runs(place):
    Path("tiny.toml").write_text(STUDY.replace("view1", "m7"))
    run = vedute_("bench", "tiny.toml", "-o", "out/r.jsonl")
    assert run.exit_code == 2
    assert "shows view 'm7', which squares does not have; its views are view0, view1" in run.stderr


def test_what_a_user_changes_has_pictures_of_its_own(place):
    (run, *_) = plan.plan(studies.load("tiny.toml"), Path("masks"), {"steps": 3})
    assert running._file(run) == "small-mvp-on-squares-at-0.5-seed-1-steps-3"


def test_floors_are_made_once_and_again_for_other_data(tmp_path, monkeypatch):
    cpu = torch.device("cpu")
    first = running._floors("squares", REAL, TEST, cpu, tmp_path)
    assert {"mean_ssim_missing_1", "nearest_ssim_all_2"} <= set(first)
    (file,) = tmp_path.iterdir()
    assert file.name == "squares.json"
    other = running._floors("squares", REAL, squares(40, seed=2), cpu, tmp_path)
    assert other != first
    file.write_text("{")  # damaged
    assert running._floors("squares", REAL, TEST, cpu, tmp_path) == first
    monkeypatch.setattr(cross_view, "evaluate", None)
    assert running._floors("squares", REAL, TEST, cpu, tmp_path) == first


def test_images_to_show_are_of_the_first_samples_of_each_class(model, jury, tmp_path):
    shown = samples.shown(model, TEST, 1, jury[0])
    assert shown.classes.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    rows = [0, 4, 1, 5, 2, 6, 3, 7]
    assert (shown.images[:, 0] == TEST.x[1][rows].numpy()).all()
    assert (shown.truth[:, 2] == TEST.x[2][rows].numpy()).all()
    assert (shown.images == samples.infer(model, TEST, rows, [1] * 8)[0]).all()
    shown.save(tmp_path / "a.npz")
    again = Shown.load(tmp_path / "a.npz")
    assert again.given == "view1"
    for a, b in zip(again[:5], shown[:5], strict=True):
        assert (a == b).all()


def test_both_kinds_of_records_in_one_file(place):
    vedute_("bench", "tiny.toml", "--jobs", "1", "-o", "out/r.jsonl", "--methods", "mean_fill")
    old = {**records.read(Path("out/r.jsonl"))[0], "scores": {"acc": 50.0}}
    del old["task"]  # as before there were tasks
    with Path("out/r.jsonl").open("a") as file:
        file.write(json.dumps(old) + "\n")
    assert vedute_("bench-tables", "out/r.jsonl", "-o", "report").exit_code == 0
    assert {"tables.md", "generation.md"} <= {p.name for p in Path("report").iterdir()}


def test_the_studies_of_images():
    for name, kinds in (("polymnist", ["per_view"]), ("shapes", ["shared", "angle"])):
        study = studies.load(name)
        assert study.task == "generation"
        assert study.datasets == [name]
        assert study.judges == kinds
    assert studies.load("shapes").rates == [0.1, 0.5]
    assert studies.load("polymnist").shown_view == polymnist.NAMES[1]
    assert studies.load("shapes").shown_view == str(shapes.AZIMUTHS[4])


VAES = {"mvae", "mmvae", "mopoe", "mmjsd", "mvtcae", "mmvaeplus"}


@pytest.mark.parametrize("name", ["polymnist", "shapes"])
def test_seven_methods_are_compared_at_equal_length(name, place):
    study = studies.load(name)
    runs = plan.plan(replace(study, shown_view="view1"), Path("masks"), {})
    equal = [run for run in runs if run.settings["epochs"] == 100]
    assert {run.method for run in equal} == {"paper_mvp", *VAES}
    assert {run.label: run.settings["epochs"] for run in runs}["mvp (paper)"] == 300
    assert {run.settings["batch_size"] for run in equal} == {256}
    many = {"polymnist": [42, 44, 46], "shapes": [42]}[name]
    assert sorted({run.seed for run in runs if run.label == "mmJSD"}) == many
    assert {run.seed for run in runs if run.label != "mmJSD"} == {42}
    assert all(run.preset == name for run in runs)
    chosen = _bench.choose(name, "MoPoE,mmJSD", "squares", None, "1")
    assert [e.label for e in chosen.entries] == ["MoPoE", "mmJSD"]
    assert [e.seeds for e in chosen.entries] == [(), ()]  # the user's
    assert chosen.shown_view == ""  # a view of other data


def test_references_on_complete_data_have_tables_of_their_own(place):
    study = replace(studies.load("polymnist-complete"), shown_view="view1")
    runs = {run.method: run for run in plan.plan(study, Path("masks"), {})}
    assert set(runs) == VAES
    for method, run in runs.items():
        assert run.rate == 0
        table = "polymnist-simple" if method == "mmvae" else "polymnist-reference"
        assert run.preset == table
        wanted = presets.find(method, table) | {"epochs": 100}
        assert {k: run.settings[k] for k in wanted} == wanted
        assert run.settings["network"] == "polymnist"
    assert all(run.drawn for run in runs.values())  # as those tables
    old = [{**asdict(run), "drawn": False} for run in runs.values()]
    assert len(plan.unfinished(runs.values(), old)) == len(runs)
    assert not plan.unfinished(runs.values(), [asdict(run) for run in runs.values()])


def test_what_others_report_stands_below_ours_and_is_never_the_best():
    scores = {f"coherence_drawn_missing_{g}": 10.0 + g for g in (1, 2, 3, 4)}
    scores |= {f"nmi_{g}": 50.0 for g in (1, 2, 3, 4)}
    record = {"study": "polymnist-complete", "label": "MoPoE", "method": "mopoe", "seed": 42}
    record |= {"dataset": "polymnist", "rate": 0.0, "overrides": {}, "settings": {}, "seconds": 1}
    record |= {"task": "generation", "scores": scores, "evaluation": 1, "device": "a machine"}
    other = {**record, "label": "mVAE", "scores": {k: v - 5 for k, v in scores.items()}}
    text = generation_tables.markdown(Summary.of([record, other]))
    lines = [line.split(" | ", 2)[2] for line in text.splitlines() if " | 0 | " in line]
    here = lines.index("MoPoE | **14.00** | **13.00** | **12.00** | **11.00** |")
    assert lines[here + 2] == "*MultiVae* | 85.00 | 84.00 | 79.00 | 67.00 |"
    assert "*MVTCAE paper* | 52.00 | 48.00 | 42.00 | 29.00 |" in lines
    assert "MultiVae" not in generation_tables.comma_separated(Summary.of([record]))


def test_a_method_has_one_color_in_all_studies():
    record = {"study": "shapes", "seed": 42, "dataset": "shapes", "rate": 0.5, "overrides": {}}
    record |= {"settings": {}, "scores": {f"nmi_{g}": 50.0 for g in (1, 2, 3, 4)}}
    shown = {"mvp (paper)": "mvp", "mvp (100 epochs)": "mvp", "mvp (other)": "mvp"}
    shown |= {"MoPoE": "mopoe"}
    dashes = {"mvp (100 epochs)": "--", "mvp (other)": "-."}
    runs = [{**record, "label": label, "method": method} for label, method in shown.items()]
    colors = []
    for some in (runs, runs[3:]):
        (ax,) = generation_tables.curves(Summary.of(some), "shapes", 0.5).axes
        lines = {line.get_label(): line for line in ax.get_lines()}
        colors.append({label: line.get_color() for label, line in lines.items()})
        styles = {label: line.get_linestyle() for label, line in lines.items()}
        assert styles == {k: dashes.get(k, "-") for k in styles}
    assert colors[0]["mvp (paper)"] == colors[0]["mvp (100 epochs)"] != colors[0]["MoPoE"]
    assert colors[1]["MoPoE"] == colors[0]["MoPoE"]


def test_judges_that_were_trained_again_are_told_apart():
    record = {
        "study": "s",
        "label": "MoPoE",
        "method": "mopoe",
        "dataset": "polymnist",
        "rate": 0.0,
    }
    record |= {"overrides": {}, "settings": {}, "mask": "m", "seconds": 60.0, "evaluation": 2.0}
    record |= {"device": "cpu"}
    runs = [
        {**record, "seed": seed, "scores": {"nmi_1": 50.0, "classifier_coherence": share}}
        for seed, share in ((42, 98.226), (44, 98.196))
    ]
    sentence = "the classifiers that judge coherence are right on {} % of real images."
    assert sentence.format("98.20 to 98.23") in generation_tables.markdown(Summary.of(runs))
    assert sentence.format("98.23") in generation_tables.markdown(Summary.of(runs[:1]))


def test_references_are_of_labels_that_studies_have():
    known = {
        (entry.label, dataset, rate)
        for name in ("polymnist", "polymnist-complete", "shapes")
        for study in [studies.load(name)]
        for entry in study.entries
        for dataset in study.datasets
        for rate in study.rates
    }
    assert "references" not in studies.available()
    words = {"source", "dataset", "rate", "score"}
    for table in tomllib.loads((studies.FOLDER / "references.toml").read_text())["references"]:
        labels = set(table) - words
        assert labels
        assert {(k, table["dataset"], table["rate"]) for k in labels} <= known
        assert table["score"] in generation_tables.SCORES


def test_a_preset_and_a_table_are_one_too_many():
    with pytest.raises(ValueError, match="'a' has a preset and a table; give one of them"):
        studies.Entry("a", "mvae", preset="paper", table="polymnist-simple")


def test_a_strange_task_is_refused(tmp_path):
    path = tmp_path / "odd.toml"
    path.write_text(STUDY.replace('task = "generation"', 'task = "dreaming"'))
    with pytest.raises(ValueError, match="task must be one of clustering, generation"):
        studies.load(str(path))
    path.write_text('drawn = "once"' + STUDY)
    with pytest.raises(ValueError, match="drawn must be true or false, got 'once'"):
        studies.load(str(path))


def test_figures_leave_out_what_a_user_changed_where_there_is_more():
    plain = {"dataset": "a", "rate": 0.5, "overrides": {}}
    changed = {**plain, "overrides": {"epochs": 3}}
    alone = {**changed, "rate": 0.1}
    assert bench_tables._as_planned([plain, changed, alone]) == [plain, alone]
