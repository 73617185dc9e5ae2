"""The short tables of the best methods on images are those of the records."""

from __future__ import annotations

import pytest

from vedute_bench.places import DOCS


@pytest.fixture
def leaders(script_of):
    return script_of("pages.leaders")


@pytest.mark.parametrize("dataset", ["polymnist", "shapes"])
def test_committed_tables_are_those_of_the_records(leaders, dataset):
    committed = (leaders.folder(dataset) / "short.md").read_text(encoding="utf-8")
    assert committed == leaders.table(dataset)
    assert "**" in committed


def test_the_table_of_the_first_page_is_that_of_the_records(leaders):
    page = DOCS / "index.md"
    assert leaders.first_page() in page.read_text(encoding="utf-8")


def test_the_committed_choice_is_that_of_the_records(leaders):
    committed = (leaders.RESULTS / "leaders-choice.md").read_text(encoding="utf-8")
    assert committed == leaders.choice()
