"""The leaderboard: the page is what the script writes, with the numbers of its sources."""

from __future__ import annotations

import pytest

from vedute_bench import studies
from vedute_bench.places import RESULTS


@pytest.fixture(scope="module")
def leaderboard():
    from vedute_bench.pages import leaderboard

    return leaderboard


@pytest.fixture(scope="module")
def page(leaderboard):
    return leaderboard.page()


def test_the_committed_page_is_what_the_script_writes(leaderboard, page):
    assert leaderboard.PAGE.read_text(encoding="utf-8") == page, "run `make leaderboard`"
    assert "{" not in page.replace("`{", "")


def test_every_entry_has_numbers_and_says_how_they_were_made(leaderboard):
    for entry in leaderboard.entries():
        found = [entry.cells(dataset) for dataset in leaderboard.DATASETS]
        assert any(any(cells) for cells in found), entry.name
        assert all(len(cells) == 4 for cells in found), entry.name
        assert all(getattr(entry, fact) for fact in leaderboard.FACTS), entry.name


def test_numbers_are_those_of_the_paper_and_of_our_records(page):
    mean, std = studies.published("mvp")["cub", "acc", 0.1]
    cub = page.partition("## CUB")[2].partition("\n## ")[0]
    assert f"| MVP | Gao & Pu, ICLR 2025 | {mean:.2f} ± {std:.2f} |" in cub
    tables = (RESULTS / "clustering" / "tables.csv").read_text().splitlines()
    one = next(line for line in tables if line.startswith("acc,cub,mvp,0.1,")).split(",")
    assert f"| MVP | vedute, `mvp` | {float(one[4]):.2f} ± {float(one[5]):.2f} |" in cub
    assert "vedute" not in page.partition("## Reuters")[2].partition("\n## How")[0]
