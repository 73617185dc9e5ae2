"""Figures of `vedute.plot` in the page: matplotlib Axes as inline SVG, without scripts."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from importlib.util import find_spec
from io import StringIO
from typing import TYPE_CHECKING, Any

from vedute.figures import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[["Axes"], object]
BROAD, HALF, THIRD, SLIM = 10.5, 5.1, 3.4, 4.2  # widths in inches
NO_MATPLOTLIB = "<p class=\"hint\">This figure needs matplotlib: pip install 'vedute[plots]'</p>"
LEFT_OUT = re.compile(
    r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>|<!--.*?-->", re.DOTALL
)
FONTS = re.compile(r"'DejaVu Sans'[^;\"]*sans-serif")


def drawing(draw: Draw, title: str, width: float, height: float) -> str:
    """The SVG that `draw` makes on Axes of this size in inches; title: unique in the page."""
    if find_spec("matplotlib") is None:
        return NO_MATPLOTLIB
    from matplotlib import rc_context

    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": f"{title} {width}"}
    with rc_context(settings), plots.style():
        figure = plots.empty((width, height))
        ax = figure.subplots()
        draw(ax)
        ax.set_title("")  # the page has one
        file = StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _inline(file.getvalue(), title)


def both(draw: Draw, title: str, height: float) -> str:
    """A wide drawing in two layouts: one for a wide window and paper, one for a phone."""
    broad, slim = (drawing(draw, title, width, height) for width in (BROAD, SLIM))
    return f'<div class="broad">{broad}</div><div class="slim">{slim}</div>'


def _inline(text: str, title: str) -> str:
    """An SVG file as an element of the page: scalable, in its font, and without unused parts."""
    text = LEFT_OUT.sub("", text[text.index("<svg") :])
    text = re.sub(r' (width|height)="[\d.]+pt"', "", text, count=2)
    text = re.sub(r' id="[A-Za-z]+_\d+"', "", text)
    text = re.sub(r"\n\s*", "\n", FONTS.sub("var(--sans)", text))
    return text.replace(
        "<svg ", f'<svg class="drawing" role="img" aria-label="{escape(title)}" ', 1
    )
