"""What is neither a file nor a folder is not read, and not replaced."""

import os
from pathlib import Path

import numpy as np
import pytest
from shell import done, refused, vedute_

import vedute
from vedute.data import missing

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
FIT = ("fit", "d.npz", "-o", "run", "--method", "mean_fill")


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("d.npz", a=rng.normal(size=(30, 3)), b=rng.normal(size=(30, 2)))


def pipe(path):
    path = Path(path)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


@pytest.mark.parametrize(
    "ending", ["npz", "csv", "csv.gz", "parquet", "xlsx", "mat", "h5mu", "h5ad"]
)
def test_data_in_a_pipe_are_refused(ending):
    pipe(f"p.{ending}")
    spec = Path("views.toml")
    spec.write_text("[views]\na = 'a*'\n")
    table = ending in ("csv", "csv.gz", "parquet")
    said = refused("inspect", f"p.{ending}", *(("--views", spec) if table else ()))
    assert f"p.{ending} is a pipe or a device; write it to a file, and name that" in said


@pytest.mark.parametrize("option", ["--views", "--config"])
def test_settings_in_a_pipe_are_refused(option):
    Path("t.csv").write_text("id,a\n1,2\n")
    pipe("p.toml")
    source = "t.csv" if option == "--views" else "d.npz"
    said = refused("fit", source, option, "p.toml", "-o", "run")
    assert "p.toml is a pipe or a device" in said


@pytest.mark.parametrize(
    "name",
    ["data.json", "model.json", "config.toml", "embedding.npz", "hidden.npz", "history.jsonl"],
)
def test_a_run_with_a_pipe_in_it_never_hangs(name):
    done(*FIT)
    pipe(f"run/{name}")
    commands = [
        ["report", "run", "-o", "r.html"],
        ["impute", "run", "-o", "out.npz"],
        ["impute", "run", "d.npz", "-o", "new.npz"],
    ]
    results = [vedute_(*words) for words in commands]
    assert all(result.exit_code in (0, 2) for result in results)
    if name == "data.json":
        assert [result.exit_code for result in results] == [2, 2, 0]


def test_arrays_of_a_store_and_masks_in_a_pipe_are_refused():
    done("convert", "d.npz", "-o", "store")
    pipe("store/view0.npy")
    assert "view0.npy is a pipe or a device" in refused("inspect", "store")
    views = vedute.Views.of({"a": np.ones((3, 2))})
    with pytest.raises(ValueError, match="is a pipe or a device"):
        missing.load_mask(pipe("mask.npz"), views)


def test_force_replaces_files_and_folders_only():
    done(*FIT)
    for out, words in (
        ("p.npz", ["impute", "run", "-o", "p.npz"]),
        ("p.html", ["report", "run", "-o", "p.html"]),
        ("p", ["fit", "d.npz", "-o", "p", "--method", "mean_fill"]),
        ("store", ["convert", "d.npz", "-o", "store"]),
    ):
        path = pipe(out)
        assert f"{out} is a pipe or a device; choose another name" in refused(*words, "--force")
        assert path.is_fifo()
    Path("null.html").symlink_to(os.devnull)
    said = refused("report", "run", "-o", "null.html", "--force")
    assert "null.html is a pipe or a device" in said


@pytest.mark.parametrize("name", ["model.json", "history.jsonl", "report.npz"])
def test_force_replaces_no_pipe_in_a_folder(name):
    done(*FIT)
    path = pipe(f"run/{name}")
    before = {p.name: p.stat().st_mtime_ns for p in Path("run").iterdir()}
    assert f"{name} is a pipe or a device; remove it first" in refused(*FIT, "--force")
    assert path.is_fifo()
    assert {p.name: p.stat().st_mtime_ns for p in Path("run").iterdir()} == before
