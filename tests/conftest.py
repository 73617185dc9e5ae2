"""What all tests share."""

import pytest


@pytest.fixture(autouse=True)
def measured_here(request, monkeypatch):
    """`vedute fit` measures in this process, not in one of its own, which takes seconds to start;
    tests marked `own_process` are about that one."""
    if request.node.get_closest_marker("own_process"):
        return
    from vedute.commands import _pages

    def here(run):
        try:
            _pages.measure_here(run)
        except Exception as error:
            return str(error)
        return ""

    monkeypatch.setattr(_pages, "_in_a_process", here)
