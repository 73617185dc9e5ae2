"""--json: one object on stdout, with the keys that docs/promises.md names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from shell import done, vedute_

from vedute.commands import _command

FORMATS = Path(__file__).parents[2] / "docs" / "promises.md"
STUDY = """
datasets = ["synthetic"]
rates = [0.5]
seeds = [1]

[[runs]]
label = "one"
method = "mean_fill"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with d.npz, a study and a fitted run."""
    folder = tmp_path_factory.mktemp("json")
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 2))
    a, b = (z @ rng.normal(size=(2, d)) for d in (4, 3))
    a[:9] = b[50:] = np.nan
    np.savez(folder / "d.npz", a=a, b=b, y=np.arange(60) % 3)
    done("fit", folder / "d.npz", "-o", folder / "run", "--method", "mean_fill", "--clusters", "3")
    (folder / "tiny.toml").write_text(STUDY)
    return folder


def documented(command):
    """The keys of a command in docs/promises.md; those in parentheses are of what is inside."""
    table = FORMATS.read_text(encoding="utf-8").partition("## What `--json`")[2]
    rows = re.findall(r"^\| (.*?) \| (.*?) \|$", table.partition("\n## ")[0], re.MULTILINE)
    (text,) = (keys for names, keys in rows if f"`{command}`" in names.split(", "))
    return set(re.findall(r"`(\w+)`", re.sub(r"\([^`]*?\)", "", text)))


@pytest.mark.parametrize(
    "words",
    [
        "inspect d.npz",
        "fit d.npz -o OUT --method mean_fill --clusters 3",
        "fit d.npz -o OUT --method lowrank_fill --report page.html",
        "embed run -o OUT.csv",
        "cluster run d.npz -o OUT.csv",
        "impute run -o OUT.npz",
        "report run -o OUT.html",
        "compare d.npz --methods mean_fill",
        "tune d.npz --method knn_fill --trials 2 -o OUT.toml",
        "ampute d.npz --rate .2 -o OUT.npz",
        "convert d.npz -o OUT",
        "list",
    ],
)
def test_one_object_with_the_keys_that_are_documented(place, tmp_path, monkeypatch, words):
    monkeypatch.chdir(place)
    out = words.replace("OUT", str(tmp_path / "out")).replace("page", str(tmp_path / "page"))
    found = json.loads(done(*out.split(), "--json"))
    assert set(found) == documented(words.split()[0])
    for path in found.get("wrote", ()):
        assert Path(path).exists()
    assert len(found.get("wrote", ())) >= ("OUT" in words)


def test_values(place, tmp_path, monkeypatch):
    monkeypatch.chdir(place)
    fitted = json.loads(
        done(
            "fit",
            "d.npz",
            "-o",
            tmp_path / "r",
            "--method",
            "mean_fill",
            "--clusters",
            "3",
            "--json",
        )
    )
    assert (fitted["samples"], fitted["n_clusters"], fitted["method"]) == (60, 3, "mean_fill")
    assert [v["name"] for v in fitted["views"]] == list(fitted["explained"]) == ["a", "b"]
    filled = json.loads(done("impute", "run", "-o", tmp_path / "f.npz", "--json"))
    assert filled["imputed"] == {"a": 9, "b": 10}
    rows = json.loads(done("compare", "d.npz", "--methods", "mean_fill", "--json"))["methods"]
    assert rows[-1]["method"] == "mean_fill"
    assert 0.5 < rows[-1]["error"] < 2


def test_auto_says_the_number_and_the_curve(tmp_path):
    rng = np.random.default_rng(0)
    z = 9 * np.eye(3)[np.arange(120) % 3] + rng.normal(size=(120, 3))
    data = tmp_path / "d.npz"
    np.savez(data, a=z @ rng.normal(size=(3, 5)), b=z @ rng.normal(size=(3, 4)))
    fit = ("fit", data, "-o", tmp_path / "run", "--method", "mean_fill", "--clusters", "auto")
    told = done(*fit)
    assert "3 clusters, the most stable number beyond chance; stability by number:\n" in told
    assert "  2: 1.00, 3: 1.00, 4: 0." in told
    found = json.loads(done(*fit, "--force", "--json"))
    assert found["n_clusters"] == 3
    assert found["stability"]["n_clusters"] == list(range(2, 13))
    assert f"3: {found['stability']['stability'][1]:.2f}" in told
    compare = ("compare", data, "--methods", "mean_fill", "--clusters", "auto")
    assert "mean_fill: 3 clusters, the most stable number" in done(*compare)
    rows = json.loads(done(*compare, "--json"))["methods"]
    assert all(len(row["stability"]["error"]) == 11 for row in rows)


def test_a_mistake_leaves_stdout_empty(place, monkeypatch):
    monkeypatch.chdir(place)
    result = vedute_("fit", "no.npz", "-o", "x", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("vedute: no.npz does not exist")


def test_what_json_does_not_have():
    odd = {1: np.float32(2), "x": (float("nan"), np.array([1, 2])), "p": Path("a"), "n": None}
    assert _command.plain(odd) == {"1": 2.0, "x": [None, [1, 2]], "p": "a", "n": None}
