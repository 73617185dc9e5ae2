"""The legend of many curves fits below their panels."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from vedute_bench.figures import lines as drawing


@pytest.mark.parametrize("names", [["a", "b", "c"], ["a long name " * 4, "b", "c", "d", "e", "f"]])
def test_a_legend_has_room(names):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.4), layout="constrained")
    lines = {name: figure.subplots().plot([0, 1])[0] for name in names[:1]}
    drawing.legend_below(figure, dict.fromkeys(names, lines[names[0]]))
    FigureCanvasAgg(figure).draw()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
