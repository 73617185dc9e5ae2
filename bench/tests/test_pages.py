"""Pages: numbers on pages for users are those of the records, links lead somewhere, and research
pages show commands that exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from vedute import commands
from vedute_bench.pages import numbers
from vedute_bench.places import BENCH, DOCS, ROOT

PAGES = [BENCH / "README.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("page", numbers.pages(), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_numbers_are_those_of_the_records(page):
    text = page.read_text(encoding="utf-8")
    assert numbers.rewritten(text) == text, f"{page.name} is stale: run `make -C bench numbers`"


def test_nobody_types_a_number_into_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for made in (r"```.*?```", r"<!-- (n|table) .*?<!-- /\1 -->", r"\[[^]]*\]\([^)]*\)"):
        text = re.sub(made, "", text, flags=re.DOTALL)
    typed = re.findall(r"\d+\.\d+|\d+ %", text)
    assert set(typed) <= {"3.11", "0.5", "4.0", "2.0"}, "mark them: see pages/numbers.py"


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
