"""Pieces of HTML: tables, sections, and figures of `vedute.plot` as inline SVG, without scripts.

Text from the user goes through `escape`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib.util import find_spec
from io import StringIO
from typing import Any

from vedute.figures import plots

Draw = Callable[..., object]  # on Axes, its first argument
BROAD, HALF, THIRD, SLIM = 10.5, 5.1, 3.4, 4.2  # widths in inches
SERIES = 40  # colors: four rounds of the palette, which is made for white paper
LIGHT = ("100%,white", "55%,white", "60%,black", "35%,white")
DARK = ("78%,white", "45%,white", "75%,black", "30%,white")
NO_MATPLOTLIB = "<p class=\"hint\">This figure needs matplotlib: pip install 'vedute[plots]'</p>"
CLUTTER = re.compile(
    r"(?s)<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>|<!--.*?-->"
)
FONTS = re.compile(r"'DejaVu Sans'[^;\"]*sans-serif")


def number(value: float) -> str:
    """Format a number with at most four digits, grouped thousands and a typographic minus."""
    value = 0.0 if abs(value) < 1e-12 else float(value)
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return text.replace("-", "−").replace(",", "\u202f")


def feature_name(name: str) -> str:
    return f"feature {name}" if name.isdecimal() else name


def feature_of(name: str, view: str) -> str:
    return f"{escape(feature_name(name))}<small>{escape(view)}</small>"


def percent(share: float, digits: int = 0) -> str:
    value = round(100 * float(share), digits)
    return f"{value if value else 0.0:.{digits}f}\u202f%".replace("-", "−")


def section(name: str, title: str, lead: str, *parts: str) -> str:
    """A section of the page; `lead` is HTML."""
    head = f'<h2>{escape(title)}</h2><p class="lead">{lead}</p>'
    return f'<section id="{name}">{head}{"".join(parts)}</section>'


def figure(title: str, body: str, note: str = "", kind: str = "") -> str:
    """A chart with its title and a note on how to read it (HTML)."""
    caption = f"<h3>{escape(title)}</h3>" + (f"<p>{note}</p>" if note else "")
    return f'<figure class="{kind}"><figcaption>{caption}</figcaption>{body}</figure>'


def chart(title: str, note: str, height: float, draw: Draw, *shown: Any, wide: bool = False) -> str:
    """A figure drawn by `draw(ax, *shown)`; wide: in two layouts, for a window and for a phone."""
    if not wide:
        return figure(title, drawing(draw, title, HALF, height, *shown), note)
    broad, slim = (drawing(draw, title, width, height, *shown) for width in (BROAD, SLIM))
    body = f'<div class="broad">{broad}</div><div class="slim">{slim}</div>'
    return figure(title, body, note, kind="wide")


def fold(title: str, *parts: str) -> str:
    """Parts that a reader opens; printed open. Empty parts are left out."""
    body = "".join(parts)
    return (
        f'<details class="fold"><summary>{escape(title)}</summary>{body}</details>' if body else ""
    )


def plain(title: str, note: str, body: str) -> str:
    """A part without a frame: title, a note (HTML; may be empty), and body."""
    small = f" <small>{note}</small>" if note else ""
    return f'<div class="plain"><h3>{title}{small}</h3>{body}</div>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: int = 1) -> str:
    """An HTML table; cells are HTML, columns from `numeric` on hold numbers."""

    def line(row: Iterable[str], tag: str) -> str:
        kinds = ["" if c < numeric else ' class="n"' for c in range(len(heads))]
        cells = "".join(f"<{tag}{k}>{c}</{tag}>" for k, c in zip(kinds, row, strict=True))
        return f"<tr>{cells}</tr>"

    body = "".join(line(row, "td") for row in rows)
    whole = f"<thead>{line(map(escape, heads), 'th')}</thead><tbody>{body}</tbody>"
    return f'<div class="table"><table>{whole}</table></div>'


def drawing(draw: Draw, title: str, width: float, height: float, *shown: Any) -> str:
    """The SVG that `draw(ax, *shown)` makes on Axes of this size; title: unique in the page."""
    if find_spec("matplotlib") is None:
        return NO_MATPLOTLIB
    from matplotlib import rc_context

    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": f"{title} {width}"}
    with rc_context(settings), plots.style():
        figure, (ax,) = plots.panels(1, (width, height))
        draw(ax, *shown)
        ax.set_title("")  # the page has one
        file = StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = CLUTTER.sub("", file.getvalue().partition("<svg")[2])
    text = re.sub(r' (width|height)="[\d.]+pt"', "", text, count=2)  # it is scalable
    text = re.sub(r' id="[A-Za-z]+_\d+"', "", text)
    text = re.sub(r"\n\s*", "\n", FONTS.sub("var(--sans)", text))
    return f'<svg class="drawing" role="img" aria-label="{escape(title)}"{text}'


def color(i: int) -> str:
    """The CSS class of a color."""
    return f"k{i % SERIES}"


def palette() -> str:
    """CSS classes of the colors, for light and dark backgrounds."""
    light = dark = classes = ""
    for i in range(SERIES):
        mixed = f"--k{i}:color-mix(in srgb,{plots.COLORS[i % 10]}"
        light += f"{mixed} {LIGHT[i // 10]});"
        dark += f"{mixed} {DARK[i // 10]});"
        classes += f".k{i}{{--c:var(--k{i})}}"
    night = f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    return f":root{{{light}}}{night}{classes}"
