"""Losses are equal to MultiVae's if that library is installed; otherwise a sentence says so."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

NAME = "vedute_bench.rivals.against_multivae"


@pytest.fixture
def scripts(monkeypatch):
    yield
    for name in (NAME, "stopwatch"):
        sys.modules.pop(name, None)


def test_without_the_library_a_sentence_says_so(scripts, monkeypatch):
    monkeypatch.setitem(sys.modules, "multivae", None)
    with pytest.raises(SystemExit, match=r"MultiVae is not installed here .* pip install multivae"):
        import_module(NAME)


@pytest.mark.skipif(find_spec("multivae") is None, reason="MultiVae is no dependency")
@pytest.mark.parametrize("rows", ["complete", "incomplete"])
@pytest.mark.filterwarnings("default")  # of the library
def test_losses_and_gradients_are_those_of_multivae(scripts, rows):
    script = import_module(NAME)
    views, settings = script.data(quick=True)["tables"]
    views = views if rows == "complete" else script.drop_views(views, 0.5, 42)
    for case in script.CASES:
        if rows == "complete" or case.constants == 1:
            loss, gradient = script.agreement(case, views, settings | case.settings)
            assert loss is None or loss < 1e-8, case.name
            assert gradient < 1e-6, case.name
