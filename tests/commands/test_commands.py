"""The command line: what it writes, and what it says when something is wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import warnings
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from shell import done, refused, short_mvp, vedute_

import vedute
from vedute import Blend, cli, datasets, io, methods
from vedute.commands import _settings, available
from vedute.estimators.base import Estimator
from vedute.estimators.saving import sealed
from vedute.io import toml
from vedute.methods import presets
from vedute.methods.mvp import MVP

SRC = Path(__file__).parents[2] / "src"
SMALL = short_mvp(steps=20, warmup=5)


def make(path, n=60, seed=0):
    """Three views of three dtypes; a mask, NaN rows, a hole, ids and labels."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 3))
    a, b, c = (z @ rng.standard_normal((3, d)) for d in (6, 5, 4))
    c[:10] = np.nan
    a = a.astype(np.float32)
    a[20, 2] = np.nan
    mask = np.ones((n, 3), bool)
    mask[25:40, 1] = mask[:10, 2] = False
    views = {"view0": a, "view1": np.rint(20 * b).astype(np.int32), "view2": c}
    ids = np.array([f"s{i}" for i in range(n)])
    names = ["a", "b", "c"]
    np.savez(path, **views, mask=mask, ids=ids, y=rng.integers(3, size=n), view_names=names)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with d.npz and a fitted run."""
    folder = tmp_path_factory.mktemp("place")
    make(folder / "d.npz")
    done("fit", folder / "d.npz", "-o", folder / "run", "--clusters", "3", *SMALL)
    return folder


def load(path):
    with np.load(path, allow_pickle=False) as file:
        return {k: file[k] for k in file.files}


def test_a_run_holds_all_that_a_report_will_need(place):
    run = place / "run"
    files = "config.toml data.json embedding.npz hidden.npz history.jsonl model-card.md"
    files += " model.json model.safetensors report.npz"
    names = ["model.safetensors" if p.suffix == ".safetensors" else p.name for p in run.iterdir()]
    assert sorted(names) == files.split()
    config = tomllib.loads((run / "config.toml").read_text())
    assert config["method"] == "mvp"
    assert config["settings"]["hidden"] == [16]
    assert config["settings"]["random_state"] == 0
    facts = json.loads((run / "data.json").read_text())
    assert facts["n"] == 60
    assert facts["names"] == ["a", "b", "c"]
    assert facts["missing_by_view"] == {"a": 0.0, "b": 0.25, "c": pytest.approx(1 / 6)}
    assert facts["source"] == str(place / "d.npz")
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    assert history[-1]["step"] == 20 + 20  # few rows: with all views again
    results = load(run / "embedding.npz")
    assert results["embedding"].shape == (60, 32)
    assert results["labels"].shape == results["ids"].shape == (60,)
    assert set(load(run / "hidden.npz")) == {"row", "view", "error", "mean_error"}
    assert isinstance(vedute.load(run), MVP)


def test_same_seed_same_embedding_and_labels_do_not_matter(place, tmp_path):
    arrays = load(place / "d.npz")
    del arrays["y"]
    np.savez(tmp_path / "d.npz", **arrays)
    done("fit", tmp_path / "d.npz", "-o", tmp_path / "run", "--clusters", "3", *SMALL)
    first, second = (f / "run" / "embedding.npz" for f in (place, tmp_path))
    assert first.read_bytes() == second.read_bytes()


def test_embed_and_cluster(place, tmp_path):
    done("embed", place / "run", "-o", tmp_path / "e.npz")
    done("cluster", place / "run", place / "d.npz", "-o", tmp_path / "l.csv")
    fitted = load(place / "run" / "embedding.npz")
    embedded = load(tmp_path / "e.npz")
    np.testing.assert_allclose(embedded["embedding"], fitted["embedding"], atol=1e-5)
    rows = [line.split(",") for line in (tmp_path / "l.csv").read_text().split()]
    assert rows[0] == ["ids", "labels"]
    assert [r[0] for r in rows[1:]] == fitted["ids"].tolist() == embedded["ids"].tolist()
    assert [int(r[1]) for r in rows[1:]] == fitted["labels"].tolist()


def test_impute_fills_what_is_missing_and_nothing_else(place, tmp_path):
    done("impute", place / "run", "-o", tmp_path / "f.npz")
    before, after = load(place / "d.npz"), load(tmp_path / "f.npz")
    assert set(before) == set(after)
    for v in range(3):
        old, new = before[f"view{v}"], after[f"view{v}"]
        seen = before["mask"][:, [v]] & ~np.isnan(old.astype(float))
        assert old.dtype == new.dtype
        assert np.isfinite(new).all()
        np.testing.assert_array_equal(old[seen], new[seen])
    assert (before["view1"] != after["view1"])[25:40].any()
    assert after["mask"].all()


def test_impute_with_intervals(place, tmp_path):
    done("impute", place / "run", "-o", tmp_path / "f.npz", "--interval", "0.9")
    f, mask = load(tmp_path / "f.npz"), load(place / "d.npz")["mask"]
    for v in range(3):
        low, mean, high = (f[f"view{v}{end}"] for end in ("_lower", "", "_upper"))
        assert (low <= mean).all()
        assert (mean <= high).all()
        assert (low < high)[~mask[:, v]].all()
        assert (low == high)[mask[:, v]].sum() >= mask[:, v].sum() * low.shape[1] - 1


def test_new_samples_may_lack_a_view_altogether(place, tmp_path):
    arrays = load(make(tmp_path / "all.npz", n=30, seed=1))
    np.savez(tmp_path / "new.npz", b=arrays["view1"][:9], a=arrays["view0"][:9])
    done("impute", place / "run", tmp_path / "new.npz", "-o", tmp_path / "f.npz")
    filled = load(tmp_path / "f.npz")
    assert list(filled) == ["b", "a", "c"]
    assert filled["c"].shape == (9, 4)
    np.testing.assert_array_equal(filled["b"], arrays["view1"][:9])


def test_generate(place, tmp_path):
    done("generate", place / "run", "-n", "7", "-o", tmp_path / "g.npz")
    shapes = {k: a.shape for k, a in load(tmp_path / "g.npz").items()}
    assert shapes == {"a": (7, 6), "b": (7, 5), "c": (7, 4)}


def test_force_replaces_and_its_absence_protects(place, tmp_path):
    out = tmp_path / "e.csv"
    out.write_text("mine")
    assert "--force" in refused("embed", place / "run", "-o", out)
    assert out.read_text() == "mine"
    done("embed", place / "run", "-o", out, "--force")
    assert out.read_text().startswith("ids,")
    assert "--force" in refused("fit", place / "d.npz", "-o", place / "run")


def test_a_dataset_is_data_by_its_name(tmp_path):
    done("fit", "synthetic", "-o", tmp_path / "run", "--method", "mean_fill")
    facts = json.loads((tmp_path / "run" / "data.json").read_text())
    assert facts["source"] == "synthetic"
    assert (tmp_path / "run" / "history.jsonl").read_text() == ""
    done("impute", tmp_path / "run", "-o", tmp_path / "f.npz")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fit no.npz -o OUT", "no.npz does not exist"),
        ("fit nothing -o OUT", "neither a file nor a dataset; datasets are .*handwritten"),
        ("fit d.npz -o OUT --method mpv", "no method 'mpv'"),
        ("fit d.npz -o OUT --preset moon", "no preset 'moon' for mvp; choose from .*handwritten"),
        ("fit d.npz -o OUT --method mean_fill --preset cub", "the method has none"),
        ("fit d.npz -o OUT --set latent_dim=3", "'latent_dim'; did you mean mvp__latent_dim"),
        ("fit d.npz -o OUT --method mvp --set latentdim=3", "did you mean latent_dim"),
        ("fit d.npz -o OUT --set latent_dim", "name=value"),
        ("fit d.npz -o OUT --set mvp__latent_dim=many", "a whole number or None, got 'many'"),
        ("fit d.npz -o OUT --method mvp --set early_stopping=no", "must be True or False"),
        ("fit d.npz -o OUT --method mvp --set variant=flat", "variant must be one of"),
        ("fit d.npz -o OUT --clusters 1000", "n_clusters=1000 does not fit 60 samples"),
        ("fit text.npz -o OUT", "view 'a' holds .*'x'.* in row 0"),
        ("fit uneven.npz -o OUT", "views differ in length"),
        ("embed no -o OUT.npz", "no holds no saved model"),
        ("embed run -o OUT.txt", "must end in .npz or .csv"),
        ("embed run uneven.npz -o OUT.npz", "unknown view|differ in length"),
        ("cluster plain d.npz -o OUT.npz", "has no clusters"),
        ("impute run -o OUT.npz --interval 90", "between 0 and 1"),
        ("impute run -o OUT.csv", "must end in .npz"),
        ("impute run wide.npz -o OUT.npz", "view 'a' has samples of shape"),
        ("generate plain -o OUT.npz", "cannot generate"),
    ],
)
def test_a_mistake_gets_one_sentence_and_leaves_nothing(place, monkeypatch, words, message):
    monkeypatch.chdir(place)
    np.savez("text.npz", a=np.array([["x"]]))
    np.savez("uneven.npz", a=np.ones((3, 2)), b=np.ones((4, 2)))
    np.savez("wide.npz", a=np.ones((3, 9)))
    if not Path("plain").exists():
        done("fit", "d.npz", "-o", "plain", "--method", "mean_fill")
    before = sorted(Path().iterdir())
    assert re.search(message, refused(*words.split()))
    assert sorted(Path().iterdir()) == before


def test_an_interrupted_or_failed_command_leaves_nothing(place, monkeypatch, tmp_path):
    monkeypatch.setattr(io, "read", interrupted)
    result = vedute_("fit", place / "d.npz", "-o", tmp_path / "run", *SMALL)
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "vedute: interrupted\n")
    monkeypatch.undo()
    monkeypatch.setattr(Estimator, "save", half_saved)
    result = vedute_("fit", place / "d.npz", "-o", tmp_path / "run", *SMALL)
    assert result.exit_code == 2
    assert result.stderr.startswith("vedute: this is a bug: RuntimeError: ")
    assert [p.name for p in tmp_path.iterdir()] == [".run.checkpoint"]  # to go on from


def interrupted(*_):
    raise KeyboardInterrupt


def half_saved(_, folder):
    (folder / "model.json").write_text("{")
    raise RuntimeError


def test_list_names_everything():
    listed = done("list")
    for name in ("mvp", "knn_fill", "handwritten", "scene15", "synthetic"):
        assert name in listed
    assert "knn_fill" not in done("list", "presets")
    assert vedute_("list", "everything").exit_code == 2


def test_every_help_has_an_example_and_loads_nothing_heavy():
    code = f"""
import sys
from vedute.cli import app
for words in [[], *([name] for name in {available()}), ["--version"]]:
    try:
        app([*words, "--help"] if words != ["--version"] else words)
    except SystemExit as end:
        assert not end.code, words
heavy = {{"torch", "pandas", "sklearn", "scipy", "matplotlib"}} & set(sys.modules)
assert not heavy, heavy
"""
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("Example: ") == len(available())
    assert f"vedute {vedute.__version__}" in run.stdout


@pytest.mark.slow
def test_as_a_program(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    words = [sys.executable, "-m", "vedute", "fit", "no.npz", "-o", str(tmp_path / "run")]
    run = subprocess.run(words, env=env, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "vedute: no.npz does not exist; give a file of views (.npz)\n"


def test_a_preset_may_begin_from_another():
    found, other = (presets.find("mvp", name) for name in ("mvshapenet", "shapes"))
    assert found == other | {"lr": 1e-4, "cooldown": 0}
    assert presets.find("mopoe", "mvshapenet") == presets.find("mopoe", "shapes")


def test_the_settings_of_a_method_are_listed():
    out = " ".join(done("list", "settings", "knn_fill").split())
    assert "n_neighbors = 10 (at least 1) Samples whose mean fills a missing value." in out
    assert "vedute list settings mvp" in refused("list", "settings")
    assert "vedute list methods mvp" in refused("list", "datasets", "mvp")
    assert "no method 'mpv'" in refused("list", "settings", "mpv")


def test_methods_are_listed_on_one_line_each(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = done("list", "methods").splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[2:-1]] == methods.available()
    rows = json.loads(done("list", "methods", "--json"))["methods"]
    assert [row["name"] for row in rows] == methods.available()
    assert all(row["what_it_is"] for row in rows)


def test_one_method_is_shown_with_paper_abilities_and_settings():
    out = " ".join(done("list", "methods", "mvp").split())
    assert "mvp: Multi-view permutation of VAEs" in out
    assert "paper Gao & Pu, ICLR year 2025 views any number" in out
    assert "variant = None (one of tables, images, paper) The model and its defaults:" in out
    found = json.loads(done("list", "methods", "mvp", "--json"))
    assert (found["paper"], found["generative"]) == ("Gao & Pu, ICLR", "imputes, generates")
    assert [s["setting"] for s in found["settings"]] == [f.name for f in fields(MVP)]
    assert "did you mean mvp?" in refused("list", "methods", "mvpp", "--json")


def test_a_kind_is_given_by_view(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", a=rng.poisson(3, (60, 4)) + 0.5, b=rng.normal(size=(60, 3)))
    data, run = tmp_path / "d.npz", tmp_path / "run"
    assert "a: positive (as you say); z-scores of log" in done(
        "inspect", data, "--kind", "a=positive"
    )
    words = ("--method", "mean_fill", "--kind", "a=positive")
    assert "b: numbers (some are negative)" in done("fit", data, "-o", run, *words)
    assert "--kind takes view=kind" in refused("inspect", data, "--kind", "positive")
    assert "counts are whole numbers from 0" in refused("inspect", data, "--kind", "a=counts")
    assert "names view 'c'" in refused("fit", data, "-o", tmp_path / "c", "--kind", "c=text")


def test_presets_are_settings_of_their_method():
    for name, settings in presets.load("mvp").items():
        assert _settings.check(MVP, settings) == settings, name
    assert presets.find("mvp", "sensit")["latent_dim"] == 32
    assert presets.find("mvp", "handwritten")["hidden"]["pix"] == (512, 512, 1024)
    assert presets.find("mvp", "reuters") == presets.find("mvp", "reuters1200")


def test_values_may_be_written_as_in_python_or_toml():
    given = ["a=True", "b=false", "c=[1, 2]", "d=none", "e=1e-3", "f= true"]
    read = {"a": True, "b": False, "c": [1, 2], "d": "none", "e": 1e-3, "f": True}
    assert _settings.parse(given) == read


def test_toml_is_read_back():
    table = {
        "text": 'a "quoted" \\ line\nand é \x7f',
        "flag": True,
        "number": 1e-05,
        "whole": -3,
        "nothing": None,
        "settings": {"hidden": {"view 1": (1, 2)}, "odd key": [0.5, "x"], "none": None},
    }
    back = tomllib.loads(toml.dumps(table))
    del table["nothing"], table["settings"]["none"]
    table["settings"]["hidden"]["view 1"] = [1, 2]
    assert back == table


@pytest.mark.slow
def test_demo(tmp_path, monkeypatch):
    """The whole demo with a short training and few digits; its scores are tested elsewhere."""
    pytest.importorskip("matplotlib")
    digits, find = datasets.load("handwritten"), methods.find
    monkeypatch.setattr(datasets, "load", lambda name: digits[::10])
    short = {"mvp__steps": 30, "mvp__warmup": 10}
    known = {"blend": partial(Blend, expert_settings=short)}
    monkeypatch.setattr(methods, "find", lambda name: known.get(name) or find(name))
    output = done("demo", "-o", tmp_path / "out", "--json", "--seed", "1")
    scores = json.loads(output.splitlines()[-1])
    assert list(scores) == [
        "acc", "nmi", "ari", "imputation_error", "knn_imputation_error",
        "lowrank_imputation_error", "coverage", "seconds",
    ]  # fmt: skip
    assert 10 <= scores["acc"] <= 100
    assert 0 < scores["coverage"] < 1
    made = {p.name for p in (tmp_path / "out").iterdir()}
    assert {"labels.csv", "embedding.csv", "filled.npz"} < made
    assert {"missing.png", "training.png", "map.png", "pix.png"} < made
    assert "--force" in refused("demo", "-o", tmp_path / "out")


def test_a_folder_with_the_name_of_a_dataset_is_read_where_it_is_meant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "synthetic"
    folder.mkdir()
    for name in "ab":
        np.save(folder / f"{name}.npy", np.random.default_rng(0).normal(size=(30, 2)))
    assert "30 samples, 2 views" in done("inspect", "./synthetic")
    done("fit", "./synthetic", "-o", "run", "--method", "mean_fill")
    assert json.loads((tmp_path / "run" / "data.json").read_text())["source"] == str(folder)
    done("impute", "run", "-o", "filled")


def test_intervals_in_an_npz_file_are_no_views(place, tmp_path):
    filled = tmp_path / "filled.npz"
    done("impute", place / "run", "-o", filled, "--interval", "0.9")
    assert "60 samples, 3 views" in done("inspect", filled)
    done("cluster", place / "run", filled, "-o", tmp_path / "labels.csv")


@pytest.mark.parametrize("name", ["data.json", "config.toml", "report.npz", "embedding.npz"])
def test_a_damaged_run_is_said_to_be_damaged(place, tmp_path, name):
    run = tmp_path / "run"
    shutil.copytree(place / "run", run)
    (run / name).write_text("{")
    message = refused("report", run, "-o", tmp_path / "page.html")
    assert message == f"vedute: {run / name} is damaged; fit again\n"


def test_a_run_that_forgot_its_data_takes_others(place, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(place / "run", run)
    (run / "data.json").write_text("{")
    assert "is damaged; name DATA as well" in refused("embed", run, "-o", tmp_path / "z.npz")
    done("embed", run, place / "d.npz", "-o", tmp_path / "z.npz")


def test_a_model_without_what_it_learned_is_damaged(place, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(place / "run", run)
    facts = json.loads((run / "model.json").read_text())
    (run / "model.json").write_text(sealed(facts | {"learned": {"$dict": []}}))
    assert "is damaged" in refused("embed", run, "-o", tmp_path / "z.npz")


def test_a_warning_is_one_sentence_too(monkeypatch):
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(cli, "app", lambda prog_name: None)
    cli.main()
    assert warnings.formatwarning("it is late", UserWarning, "a.py", 3) == "vedute: it is late\n"
