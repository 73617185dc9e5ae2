"""The commands that this distribution adds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell import done, refused, vedute_

from vedute import commands, datasets
from vedute_bench.commands import _demo_images
from vedute_bench.runner import records

STUDY = """
datasets = ["synthetic"]
rates = [0.5]
seeds = [1]

[[runs]]
label = "mean_fill"
method = "mean_fill"
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(STUDY)
    return tmp_path


def test_commands_and_datasets_are_found_by_entry_points():
    assert {"bench", "bench-demo", "bench-tables"} <= set(commands.available())
    assert {"captions", "cub_captions", "mvshapenet", "shapes"} <= set(datasets.available())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--engine loky --gpu-jobs 2", "--gpu-jobs is for GPUs of this machine"),
        ("--engine dask --scheduler tcp://a:1 --jobs 2", "the one at tcp://a:1 has its own"),
        ("--jobs 0", "'--jobs'"),
    ],
)
def test_a_mistake_gets_one_sentence(place, words, message):
    assert message in refused("bench", "tiny.toml", "-o", "r.jsonl", *words.split())
    assert not Path("r.jsonl").exists() or not records.read_all(Path("r.jsonl"))


def test_one_object_with_the_keys_that_are_documented(place):
    found = json.loads(done("bench", "tiny.toml", "--jobs", "1", "-o", "r.jsonl", "--json"))
    assert set(found) == {"runs", "earlier", "new", "missing", "wrote"}
    found = json.loads(done("bench-tables", "r.jsonl", "-o", "tables", "--json"))
    assert all(Path(path).exists() for path in found["wrote"])


def test_a_no_is_an_object_and_exit_code_1(place):
    settings = 'settings = { device = "cuda:99" }'
    Path("bad.toml").write_text(f"{STUDY.replace('mean_fill', 'mvp')}{settings}\n")
    result = vedute_("bench", "bad.toml", "--jobs", "1", "-o", "r.jsonl", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["missing"] == 1


def test_picture_demo(tmp_path, monkeypatch):
    """The whole demo on few small pictures; what it draws is looked at by people."""
    monkeypatch.setattr(_demo_images, "OBJECTS", 300)
    monkeypatch.setattr(_demo_images, "SIZE", 8)
    monkeypatch.setattr(_demo_images, "SETTINGS", _demo_images.SETTINGS | {"steps": 6})
    output = done("bench-demo", "-o", tmp_path / "out", "--json")
    scores = json.loads(output.splitlines()[-1])
    assert {f"{who}ssim_{n}" for who in ("", "mean_") for n in (1, 2, 3, 4)} < set(scores)
    assert (tmp_path / "out" / "inferred.png").read_bytes()[:4] == b"\x89PNG"
    assert "--force" in refused("bench-demo", "-o", tmp_path / "out")


def test_deep_json_among_records_is_no_record(tmp_path):
    (tmp_path / "r.jsonl").write_text("[" * 10**5 + "\n")
    assert "line 1 of" in refused("bench-tables", tmp_path / "r.jsonl", "-o", tmp_path / "out")


def test_a_dataset_in_records_writes_nothing_outside(tmp_path, monkeypatch):
    place = tmp_path / "deep"
    place.mkdir()
    monkeypatch.chdir(place)
    record = {"study": "s", "label": "MoPoE", "method": "mopoe", "seed": 42, "dataset": "../x"}
    record |= {"rate": 0.0, "overrides": {}, "settings": {}, "seconds": 1, "task": "generation"}
    record |= {"scores": {"nmi_1": 50.0}, "evaluation": 1, "device": "a machine"}
    (place / "r.jsonl").write_text(json.dumps(record) + "\n")
    before = sorted(tmp_path.rglob("*"))
    assert "cannot name a file" in refused("bench-tables", "r.jsonl", "-o", "out")
    assert sorted(tmp_path.rglob("*")) == before
