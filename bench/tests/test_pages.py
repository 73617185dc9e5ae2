"""Pages: numbers on pages for users are those of the records, links lead somewhere, and research
pages show commands that exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib import import_module

import pytest

from vedute import commands
from vedute_bench.places import BENCH, DOCS, RESULTS, ROOT

USERS = ROOT / "docs"
PAGES = [BENCH / "README.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize(
    ("name", "tables", "page"),
    [
        ("experiments.sample_size", ("table",), "costs"),
        ("speed.memory", ("table", "verb_table"), "costs"),
        ("speed.store", ("table",), "scale"),
        ("speed.cost_model", ("tables",), "scale"),
    ],
)
def test_costs_are_those_of_the_records(name, tables, page):
    script = import_module(f"vedute_bench.{name}")
    text = (USERS / f"{page}.md").read_text(encoding="utf-8")
    for made in (getattr(script, table)() for table in tables):
        for table in [made] if isinstance(made, str) else made:
            assert table in text


def test_costs_of_many_samples_are_those_that_were_recorded():
    text = (USERS / "costs.md").read_text(encoding="utf-8")
    for name in ("large-intel-xeon-1-threads", "fills-intel-xeon-2-50ghz-1-threads"):
        recorded = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
        for line in (line for line in recorded.splitlines() if re.match(r"\|\w+\|\d*", line)):
            assert line in text


def test_single_missing_entries_are_those_of_the_records():
    table = (RESULTS / "gaps" / "table.md").read_text(encoding="utf-8").rstrip()
    assert table in (USERS / "gaps.md").read_text(encoding="utf-8")


def test_links_lead_somewhere():
    lost = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if not target.startswith("http") and not (page.parent / target).exists():
                lost.append(f"{page.name}: {target}")
        for target in re.findall(r'^--8<-- "([^":]+)', text, re.M):
            if not (BENCH / target).exists():
                lost.append(f"{page.name}: {target}")
    assert not lost


def test_commands_and_modules_of_the_pages_exist():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    modules = set(re.findall(r"python -m (vedute_bench[.\w]*)", text))
    assert "vedute_bench.rivals.rivals" in modules
    for name in modules:
        path = BENCH / "src" / name.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), name
    said = {shlex.split(line)[1] for line in re.findall(r"^\$ (vedute .+)$", text, re.M)}
    assert "bench" in said <= set(commands.available())


@pytest.mark.long
def test_the_site_builds(tmp_path):
    pytest.importorskip("material", reason="the extra docs is not installed")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    built = subprocess.run(words, cwd=BENCH, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
