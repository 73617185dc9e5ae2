"""Files that would take more memory than there is: refused before it is taken."""

import gzip
import hashlib
import io
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from safetensors.numpy import load, save
from scipy.io import savemat
from scipy.sparse import csr_matrix
from shell import refused

import vedute
from vedute import methods
from vedute.data import limits
from vedute.estimators import saving


@pytest.fixture(autouse=True)
def little_memory(monkeypatch, tmp_path):
    monkeypatch.setenv(limits.LIMIT_VARIABLE, "100000")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    (tmp_path / "d/b.csv").write_text("id,b\np1,1\np2,2\n")


def npy_header(shape):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"shape": shape, "fortran_order": False, "descr": "<f8"}
    )
    return file.getvalue()


def packed(text):
    Path("d/a.csv.gz").write_bytes(gzip.compress(text.encode()))


def cell():
    views = np.empty((1, 2), object)
    views[0, 0] = views[0, 1] = np.zeros((20000, 4), np.uint8)
    return views


LARGE = {
    "npy": ("d", lambda: Path("d/a.npy").write_bytes(npy_header((10**9, 10)))),
    "npz": ("d.npz", lambda: np.savez_compressed("d.npz", a=np.zeros((20000, 3)))),
    "csv": ("d", lambda: Path("d/a.csv").write_text("id,x\n" + "p,1\n" * 50000)),
    "gz of numbers": (
        "d",
        lambda: packed("id,x\n" + "".join(f"p{i},1\n" for i in range(99999))),
    ),
    "gz of one line": ("d", lambda: packed("i" * 10**7)),
    "parquet": (
        "d",
        lambda: pd.DataFrame({"x": np.ones(50000)}, [f"p{i}" for i in range(50000)]).to_parquet(
            "d/a.parquet"
        ),
    ),
    "mat": ("d.mat", lambda: savemat("d.mat", {"view1": np.zeros((9999, 9))}, do_compression=True)),
    "cells of mat": ("d.mat", lambda: savemat("d.mat", {"X": cell()}, do_compression=True)),
    "sparse mat": ("d.mat", lambda: savemat("d.mat", {"view1": csr_matrix((10**5, 10**5))})),
}


@pytest.mark.parametrize("kind", LARGE)
def test_what_is_too_large_is_refused_with_its_size_and_the_way_to_allow_it(kind):
    source, write = LARGE[kind]
    write()
    message = refused("inspect", source)
    assert "more than the 100.0 kB it may" in message
    assert "VEDUTE_MAX_BYTES=" in message


def test_images_are_measured_before_they_are_decoded(tmp_path):
    (tmp_path / "d/front").mkdir()
    for name in ("p1", "p2"):
        Image.new("RGB", (200, 200)).save(tmp_path / "d/front" / f"{name}.png")
    assert "240.0 kB" in refused("inspect", "d")


def test_no_number_of_bytes_is_a_mistake(monkeypatch):
    monkeypatch.setenv(limits.LIMIT_VARIABLE, "much")
    assert "whole number of bytes, got 'much'" in refused("inspect", "d")


# Saved models.


def saved(method, monkeypatch, **settings):
    monkeypatch.delenv(limits.LIMIT_VARIABLE)
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(30, 3)), rng.normal(size=(30, 2))]
    methods.find(method)(random_state=0, **settings).fit(X).save("run")
    return json.loads(Path("run/model.json").read_text())


def changed(facts):
    Path("run/model.json").write_text(saving.sealed(facts))
    with pytest.raises(ValueError, match="damaged") as found:
        vedute.load("run")
    return str(found.value)


@pytest.mark.parametrize("method", ["mvp", "mopoe"])
def test_sizes_are_compared_with_the_tensors_before_a_network_is_built(method, monkeypatch):
    facts = saved(method, monkeypatch, steps=2, hidden=(4,), latent_dim=2)
    vedute.load("run")
    learned = dict(facts["learned"]["$dict"])
    both = facts["params"]["$dict"], learned["settings_"]["$dict"]
    pairs = [pair for part in both for pair in part if pair[0] == "latent_dim"]
    for size, message in ((3, "should be"), (10**5, "should be"), (10**9, "should be|overflow")):
        for pair in pairs:
            pair[1] = size
        assert re.search(message, changed(facts))


@pytest.mark.parametrize("name", ["fit", "__class__", "embed", "other_", "method"])
def test_loading_sets_known_fields_only(name, monkeypatch):
    facts = saved("mean_fill", monkeypatch)
    facts["learned"]["$dict"].append([name, "x"])
    assert repr(name) in changed(facts)


@pytest.mark.parametrize("name", ["embedding_", "views_", "seed_"])
def test_loading_sets_known_types_only(name, monkeypatch):
    facts = saved("mean_fill", monkeypatch)
    for pair in facts["learned"]["$dict"]:
        if pair[0] == name:
            pair[1] = "x"
    assert name in changed(facts)


def test_deep_json_is_damaged(monkeypatch):
    saved("mean_fill", monkeypatch)
    Path("run/model.json").write_text("[" * 10**5)
    assert "damaged" in refused("impute", "run", "d", "-o", "out")


# Parts that do not belong together.


def resaved(change):
    """The arrays of the model changed, under the digest that they have now."""
    (old,) = Path("run").glob("*.safetensors")
    found = load(old.read_bytes())
    change(found)
    content = save({k: np.ascontiguousarray(a) for k, a in found.items()})
    new = f"model-{hashlib.sha256(content).hexdigest()}.safetensors"
    old.unlink()
    Path("run", new).write_bytes(content)
    facts = Path("run/model.json")
    facts.write_text(saving.sealed(json.loads(facts.read_text()) | {"tensors": new}))


CHANGES = {
    "flags": lambda a: a > 0,
    "no columns": lambda a: a[..., :0],
    "one axis more": lambda a: a[None],
    "no numbers": lambda a: np.full_like(a, np.nan),
}
KEYS = {
    "knn_fill": ["views_.0.scaler.scale", "views_.1.calibration.noise"],
    "mean_fill": [
        "views_.0.scaler.std",
        "views_.0.calibration.by_seen",
        "views_.0.calibration.reach",
    ],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("method", "key"), [(m, k) for m, keys in KEYS.items() for k in keys])
def test_a_model_whose_parts_do_not_fit_is_damaged(method, key, change, monkeypatch):
    saved(method, monkeypatch, n_clusters=2)

    def changed(arrays):
        (name,) = (k for k in arrays if k.startswith(f"learned.{key}"))
        arrays[name] = CHANGES[change](arrays[name])

    resaved(changed)
    with pytest.raises(ValueError, match=r"the saved model in run is damaged \(.*\); save it"):
        vedute.load("run")


@pytest.mark.parametrize("change", ["no columns", "one axis more"])
def test_donors_that_do_not_fit_are_damaged(change, monkeypatch):
    test_a_model_whose_parts_do_not_fit_is_damaged("knn_fill", "donors_.0", change, monkeypatch)


@pytest.mark.parametrize("value", ["x", [], None, {"x": 1}])
def test_fields_that_are_no_fields_are_damaged(value, monkeypatch):
    facts = saved("mean_fill", monkeypatch)
    (views,) = (v for k, v in facts["learned"]["$dict"] if k == "views_")
    views[0]["fields"] = value
    changed(facts)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_what_has_no_end_is_no_model(monkeypatch):
    saved("mean_fill", monkeypatch)
    for make in (os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")):
        path = Path("run/model.json")
        path.rmdir() if path.is_dir() else path.unlink()
        make(path)
        with pytest.raises(FileNotFoundError, match="holds no saved model"):
            vedute.load("run")
