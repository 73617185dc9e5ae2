"""The tables of how MVP's defaults for images were found are those of the records."""

from __future__ import annotations

import pytest


@pytest.fixture
def script(script_of):
    return script_of("experiments.image_defaults")


@pytest.mark.parametrize("dataset", ["polymnist", "shapes"])
def test_committed_tables_are_those_of_the_records(script, dataset):
    committed = (script.FOLDER / f"{dataset}.md").read_text(encoding="utf-8")
    assert committed == script.table(script.read(script.FOLDER / "records.jsonl"), dataset)


def test_every_training_has_one_record_with_its_settings(script):
    records = script.read(script.FOLDER / "records.jsonl")
    asked = {script._key(v): v for v in script.variants()}
    assert len(asked) == len(script.variants()) == len(records)
    for record in records:
        mine = asked[script._key(record)]
        assert {k: record[k] for k in mine} == mine
