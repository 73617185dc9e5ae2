"""Fixtures of all tests, from tests/support, and one for scripts."""

from importlib import import_module

import pytest
from fixtures import measured_here as measured_here
from fixtures import own_process as own_process
from fixtures import pytest_collection_modifyitems as pytest_collection_modifyitems


@pytest.fixture
def script_of():
    """A module of vedute_bench, by its name there: pages.leaders."""
    return lambda name: import_module(f"vedute_bench.{name}")
