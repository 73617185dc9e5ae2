"""Figures in a notebook: a real kernel, with matplotlib's inline backend, shows what is drawn."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

SECONDS = 120  # a kernel on a busy machine
DATA = """
import numpy as np, vedute
X = list(np.random.default_rng(0).normal(size=(2, 20, 3)))
X[1][:5] = np.nan
"""
OURS = "vedute.plot.missing(X); None"
THEIRS = "from matplotlib import pyplot as plt\nplt.figure(); plt.plot([1, 2, 3]); None"


@pytest.fixture
def client(tmp_path, monkeypatch):
    """Client of a kernel that has imported nothing yet."""
    pytest.importorskip("ipykernel")
    manager = pytest.importorskip("jupyter_client.manager")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    kernel, client = manager.start_new_kernel(startup_timeout=SECONDS)
    yield client
    client.stop_channels()
    kernel.shutdown_kernel(now=True)


def figures(client, cell):
    """How many figures a cell shows."""
    client.execute(cell)
    shown, done = 0, False
    while not done:
        message = client.get_iopub_msg(timeout=SECONDS)
        content = message["content"]
        assert message["msg_type"] != "error", content
        shown += message["msg_type"] == "display_data" and "image/png" in content["data"]
        done = content.get("execution_state") == "idle"
    return shown


@pytest.mark.filterwarnings("ignore")  # of the kernel's packages
def test_every_figure_of_a_notebook_is_shown(client):
    cells = [DATA, OURS, THEIRS, OURS, f"{OURS}\n{THEIRS}"]
    assert [figures(client, cell) for cell in cells] == [0, 1, 1, 1, 2]


def test_a_plot_takes_back_its_style_and_nothing_else(monkeypatch):
    from matplotlib import rcParams

    from vedute.figures import plots

    before = dict(rcParams)
    with plots.style():
        assert rcParams["axes.titleweight"] == "bold"
        monkeypatch.setitem(rcParams, "interactive", not before["interactive"])  # by a backend
    assert {k for k, v in rcParams.items() if v != before[k]} == {"interactive"}
