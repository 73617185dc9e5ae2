"""Fixtures of all tests, from tests/support."""

from fixtures import measured_here as measured_here
from fixtures import own_process as own_process
from fixtures import pytest_collection_modifyitems as pytest_collection_modifyitems
