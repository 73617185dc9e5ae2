"""The short tables of the best methods on images are those of the records."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("dataset", ["polymnist", "shapes"])
def test_committed_tables_are_those_of_the_records(monkeypatch, dataset):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import leaders

    committed = (leaders.folder(dataset) / "short.md").read_text(encoding="utf-8")
    assert committed == leaders.table(dataset)
    assert "**" in committed


def test_the_committed_choice_is_that_of_the_records(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import leaders

    committed = (leaders.FOLDER / "leaders-choice.md").read_text(encoding="utf-8")
    assert committed == leaders.choice()
