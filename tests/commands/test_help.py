"""What `--help` looks like in a terminal of 80 columns."""

from __future__ import annotations

from itertools import pairwise

import pytest
from shell import done
from typer.testing import CliRunner

from vedute import commands
from vedute.cli import app, flowing


@pytest.fixture(params=[(), *((name,) for name in commands.available())], ids=" ".join)
def shown(request, monkeypatch):
    """The lines of a help text."""
    monkeypatch.setenv("COLUMNS", "80")
    return done(*request.param, "--help").splitlines()


def test_help_is_wrapped_once(shown):
    prose = [line.strip() for line in shown[: next(i for i, x in enumerate(shown) if "╭" in x)]]
    for line, following in pairwise(prose):
        word = following.partition(" ")[0]
        assert not (line and word) or len(f" {line} {word} ") > 80, line


def test_help_fits_and_flags_take_no_value(shown):
    assert max(map(len, shown)) <= 80
    assert not [line for line in shown if "<bool>" in line or "BOOLEAN" in line]


def test_the_shell_completes(monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    words = {"_VEDUTE_COMPLETE": "complete_bash", "COMP_WORDS": "vedute list m", "COMP_CWORD": "2"}
    shown = CliRunner().invoke(app, ["--show-completion", "bash"], prog_name="vedute")
    found = CliRunner().invoke(app, prog_name="vedute", env=words)
    assert "complete -o default -F _vedute_completion vedute" in shown.stdout
    assert found.stdout.split() == ["methods"]


def test_paragraphs_flow():
    doc = """One line.

    Two
    lines.
    """
    assert flowing(doc) == "One line.\n\nTwo lines."
