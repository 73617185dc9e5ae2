"""What all tests share: their order, and where `fit` measures."""

import pytest

from vedute.commands import _pages

IN_A_PROCESS = _pages._in_a_process


def pytest_collection_modifyitems(items):
    """Long tests first: at the end, one process would wait for them."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def _measured(run, source, method):
    try:
        _pages.measure_here(run, source, method)
    except Exception as error:
        return str(error)
    return ""


@pytest.fixture(scope="session", autouse=True)
def measured_here():
    """`vedute fit` measures in this process: one of its own takes seconds to start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_pages, "_in_a_process", _measured)
        yield


@pytest.fixture(autouse=True)
def own_process(request, monkeypatch):
    """But in tests marked so, which are about that one."""
    if request.node.get_closest_marker("own_process"):
        monkeypatch.setattr(_pages, "_in_a_process", IN_A_PROCESS)
