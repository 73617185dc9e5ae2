"""A method outside the package is found, used, saved and loaded like others; no file names code."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from shell import done, refused, vedute_

import vedute
from vedute import Blend, methods
from vedute.data import plugins
from vedute.estimators import saving

PAGE = Path(__file__).parents[2] / "docs" / "own-methods.md"
SHORT = ["--set", "steps=20", "--set", "hidden=(8,)", "--set", "device=cpu"]
LEARNS = {"steps": 20, "hidden": (8,), "device": "cpu", "random_state": 0}


def data(n):
    """Two views of two hidden numbers; each lacks a quarter of the samples."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 9)) + 0.1 * rng.normal(size=(n, 9))
    X = np.split(table, [5], axis=1)
    X[0][::4] = X[1][1::4] = np.nan
    return X


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The working folder, with data and the method of docs/own-methods.md in a module."""
    code, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    (tmp_path / "own_method.py").write_text(code, encoding="utf-8")
    np.savez(tmp_path / "d.npz", **{f"view{v}": x for v, x in enumerate(data(80))})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("own_method", None)
    plugins.registered.cache_clear()


@pytest.fixture
def own(place, monkeypatch):
    """Its class."""
    monkeypatch.syspath_prepend(place)
    import own_method

    return own_method.Average


def install(place, monkeypatch, points):
    """A distribution with these entry points; what pip would leave behind."""
    folder = place / "site" / "vedute_own-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: vedute-own\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[vedute.methods]\n{points}\n")
    monkeypatch.syspath_prepend(place / "site")
    monkeypatch.syspath_prepend(place)
    plugins.registered.cache_clear()


def test_an_entry_point_is_a_method_like_others(place, monkeypatch):
    install(place, monkeypatch, "average = own_method:Average")
    assert "average" in methods.available()
    X = data(80)
    model = methods.find("average")(**LEARNS).fit(X)
    model.save("model")
    assert json.loads(Path("model/model.json").read_text())["method"] == "own_method:Average"
    again = vedute.load("model")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert "Autoencoders that share a latent" in done("list", "methods")
    done("fit", "d.npz", "-o", "run", "--method", "average", *SHORT)
    done("impute", "run", "-o", "filled.npz")


def test_an_entry_point_can_be_an_expert_of_blend(place, monkeypatch):
    install(place, monkeypatch, "average = own_method:Average")
    experts = {f"average__{k}": v for k, v in LEARNS.items() if k not in ("random_state", "device")}
    blend = Blend(experts=("average", "mean_fill"), expert_settings=experts, random_state=0)
    blend.fit(data(80)).save("model")
    vedute.load("model")
    (place / "site" / "vedute_own-1.0.dist-info" / "entry_points.txt").unlink()
    plugins.registered.cache_clear()
    with pytest.raises(ValueError, match=r"expert that is not installed: no method 'average'"):
        vedute.load("model")


def test_a_class_can_be_passed(place, own):
    X = data(80)
    model = own(**LEARNS).fit(X)
    model.save("model")
    again = vedute.load("model", cls=own)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    with pytest.raises(ValueError, match=r"saved by own_method:Average, not by mvp"):
        vedute.load("model", cls=vedute.MVP)


def rename_class(name):
    """Let the saved model name another class, and be as it was saved."""
    path = Path("model/model.json")
    facts = json.loads(path.read_text())
    path.write_text(saving.sealed(facts | {"method": name}))


def test_a_class_may_have_moved(place, own):
    own(**LEARNS).fit(data(80)).save("model")
    rename_class("__main__:Average")
    assert type(vedute.load("model", cls=own)) is own


def test_what_a_file_names_is_not_imported(place, own):
    own(**LEARNS).fit(data(80)).save("model")
    (place / "trap.py").write_text("raise SystemExit('a file named code, which was executed')")
    rename_class("trap:Average")
    with pytest.raises(ValueError, match=r"saved by trap:Average, which is not installed; install"):
        vedute.load("model")
    Path("config.toml").write_text('method = "trap:Average"\n')
    said = refused("fit", "d.npz", "-o", "run", "--config", "config.toml")
    assert "--method trap:Average" in said
    assert "trap" not in sys.modules


def test_a_method_of_ones_own_on_the_command_line(place):
    said = done("compare", "d.npz", "--methods", "own_method:Average", *SHORT)
    assert "own_method:Average" in said
    done("fit", "d.npz", "-o", "run", "--method", "own_method:Average", *SHORT)
    assert (place / "run" / "report.npz").is_file()
    assert "own_method:Average, which is not installed" in refused("impute", "run", "-o", "f.npz")
    named = ["--method", "own_method:Average"]
    done("impute", "run", "-o", "filled.npz", *named)
    done("embed", "run", "-o", "embedding.csv", *named)
    done("generate", "run", "-n", 3, "-o", "new.npz", *named)
    done("fit", "d.npz", "-o", "again", "--config", "run/config.toml", *named)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("absent_module:Average", "No module named 'absent_module'"),
        ("own_method:Median", "has no attribute 'Median'"),
        ("own_method:Tensor", "derive a class from Estimator"),
        ("own_method:NeuralEstimator", "abstract class NeuralEstimator"),
        ("own_method:", "own_method:"),
        ("broken:Average", "ZeroDivisionError"),
    ],
)
def test_what_is_no_method_is_refused_in_one_sentence(place, word, says):
    (place / "broken.py").write_text("1 / 0\n")
    assert says in refused("fit", "d.npz", "-o", "run", "--method", word)
    assert not (place / "run").exists()


def test_a_method_without_its_decorator_is_refused(place):
    text = (place / "own_method.py").read_text()
    (place / "own_method.py").write_text(text.replace("@estimator\n", ""))
    assert "@estimator" in refused("fit", "d.npz", "-o", "run", "--method", "own_method:Average")


def test_a_broken_entry_point_is_named_and_harms_no_other(place, monkeypatch):
    install(place, monkeypatch, "bad = absent_module:Average\naverage = own_method:Average")
    methods.find("average")(**LEARNS).fit(data(80)).save("model")
    vedute.load("model")
    with pytest.raises(ImportError, match="of the distribution vedute-own cannot be imported"):
        methods.find("bad")
    assert "vedute-own" in " ".join(done("list", "methods").split())


def test_a_distribution_replaces_no_method_of_the_package(place, monkeypatch):
    install(place, monkeypatch, "mvp = own_method:Average")
    assert methods.find("mvp") is vedute.MVP
    assert methods.available().count("mvp") == 1


def test_samples_may_be_in_the_model_of_a_method_of_others(place):
    words = ["fit", "d.npz", "-o", "run", "--no-values", "--method", "own_method:Average"]
    assert "may keep samples in its model" in refused(*words)
    assert vedute_(*words[:4], "--no-values", "--method", "mean_fill").exit_code == 0
