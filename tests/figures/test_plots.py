"""Figures are made from tiny and from odd data."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from vedute.figures import plots

RNG = np.random.default_rng(0)


def drawn(figure, tmp_path):
    """The PNG is there and not blank."""
    from matplotlib.image import imread

    figure.savefig(tmp_path / "f.png", dpi=40)
    return imread(tmp_path / "f.png").std() > 0


def record(step, stage, error, **terms):
    return {"step": step, "epoch": step, "stage": stage, "terms": terms, "hidden_error": error}


def test_training_curves_mark_the_weights_that_were_kept(tmp_path):
    errors = [0.1, 0.9, 0.5, 0.6, None]  # 0.1 is of a warm-up
    history = [record(10 * i + 10, int(i > 0), e, a=5 - i, b=1.0) for i, e in enumerate(errors)]
    figure, (ax,) = plots.panels(1, (4, 3))
    plots.errors(ax, history, history[2], warm=10, second=0)
    assert "kept: step 30, error 0.500" in [t.get_text() for t in ax.texts]
    assert drawn(figure, tmp_path)


def test_training_curves_with_negative_terms(tmp_path):
    history = [record(1, 0, None, nll=-1.0), record(2, 0, None, nll=-2.0, other=1.0)]
    figure, (ax,) = plots.panels(1, (4, 3))
    plots.terms(ax, history, warm=0, second=0)
    assert ax.get_yscale() == "linear"
    assert drawn(figure, tmp_path)


@pytest.mark.parametrize(("n", "D"), [(5, 3), (40, 1), (60, 4)])
def test_embedding_map(tmp_path, n, D):
    y = np.arange(n) % 3
    figure = plots.embedding_map(RNG.random((n, D)), RNG.random((n, 7)), y)
    assert drawn(figure, tmp_path)


def test_inferred_images(tmp_path):
    images = [RNG.random((6, 12)) for _ in range(3)]
    figure = plots.inferred_images(images, (4, 3), [0, 5], ["seen: a", "seen: b"])
    assert drawn(figure, tmp_path)
    assert drawn(plots.inferred_images(images, (4, 3), [1]), tmp_path)


def test_figures_leave_no_trace():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    plots.embedding_map(RNG.random((5, 2)), RNG.random((5, 7)), np.arange(5))
    assert dict(mpl.rcParams) == before
