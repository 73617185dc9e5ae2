"""The study in README: own data, three seeds, an own method, a table."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from plugging import install
from shell import done, refused

from vedute_bench.places import BENCH, ROOT
from vedute_bench.runner import records


def code(page, kind):
    return re.findall(rf"```{kind}\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """README's study, data, and the method of docs/own-methods.md in an installed distribution."""
    monkeypatch.chdir(tmp_path)
    (study,), (method, *_) = (
        code(BENCH / "README.md", "toml"),
        code(ROOT / "docs" / "own-methods.md", "python"),
    )
    install(tmp_path, monkeypatch, "vedute.methods", average=("own_method:Average", method))
    Path("own.toml").write_text(study, encoding="utf-8")
    rng = np.random.default_rng(0)
    z = rng.normal(size=(90, 2)) + 4 * (np.arange(90) % 3)[:, None]
    views = {name: z @ rng.normal(size=(2, 4)) for name in ("a", "b", "c")}
    views["c"][:9] = np.nan
    np.savez("mine.npz", **views)
    return tmp_path


def test_the_study_in_readme(place):
    (commands,) = code(BENCH / "README.md", "console")
    for line in commands.splitlines():
        words = shlex.split(line.removeprefix("$ "))[1:]
        done(*words, *(["--jobs", "1"] if words[0] == "bench" else []))
    known = records.read(place / "records.jsonl")
    assert {r["dataset"] for r in known} == {"mine"}
    assert sorted(r["seed"] for r in known if r["label"] == "mine") == [1, 2, 3]
    tables = (place / "tables" / "tables.md").read_text(encoding="utf-8")
    for label in ("low-rank fill", "MVP, short", "mine"):
        assert f" {label} | " in tables
    assert "Mean ± population standard deviation over 3 seeds." in tables
    assert "9 of them done before" in done("bench", "own.toml", "-o", "records.jsonl")


def test_data_that_are_not_there_are_named(place):
    Path("mine.npz").unlink()
    said = refused("bench", "own.toml", "-o", "records.jsonl")
    assert "names the dataset mine, but there is no" in said
