"""Pieces of HTML. Text from the user goes through `escape`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from vedute.figures.plots import COLORS

SERIES = 40  # colors: four rounds of the palette, each paler or darker than the last


class Key(NamedTuple):
    """An entry of a legend: the class of its marks, the class of its color, its words."""

    series: str
    color: str
    words: str


def color(i: int) -> str:
    return f"k{i % SERIES}"


def legend(keys: Iterable[Key], kind: str = "") -> str:
    """Buttons that show and hide the marks of a series."""
    entries = "".join(
        f'<button type="button" data-series="{k.series}" aria-pressed="true">'
        f'<i class="{k.color}"></i>{escape(k.words)}</button>'
        for k in keys
    )
    return f'<div class="legend {kind}">{entries}</div>' if entries else ""


def figure(title: str, body: object, note: str = "", kind: str = "") -> str:
    """A chart with its title and a note on how to read it (HTML)."""
    caption = f"<h3>{escape(title)}</h3>" + (f"<p>{note}</p>" if note else "")
    return f'<figure class="{kind}"><figcaption>{caption}</figcaption>{body}</figure>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: int = 1) -> str:
    """An HTML table; cells are HTML, columns from `numeric` on hold numbers."""

    def cells(row: Sequence[str], tag: str) -> str:
        kinds = ("" if c < numeric else ' class="n"' for c in range(len(row)))
        return "".join(f"<{tag}{k}>{c}</{tag}>" for k, c in zip(kinds, row, strict=True))

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    head = cells([escape(h) for h in heads], "th")
    whole = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="table"><table>{whole}</table></div>'


def section(name: str, title: str, lead: str, *parts: str) -> str:
    """A section of the page; `lead` is HTML."""
    body = "".join(parts)
    return (
        f'<section id="{name}"><h2>{escape(title)}</h2><p class="lead">{lead}</p>{body}</section>'
    )


def palette() -> str:
    """CSS classes of the colors, for light and dark backgrounds."""
    light = "".join(f"--k{i}:{_shade(i, dark=False)};" for i in range(SERIES))
    dark = "".join(f"--k{i}:{_shade(i, dark=True)};" for i in range(SERIES))
    classes = "".join(f".k{i}{{--c:var(--k{i})}}" for i in range(SERIES))
    night = "@media screen and (prefers-color-scheme:dark)"
    return f":root{{{light}}}{night}{{:root{{{dark}}}}}{classes}"


def _shade(i: int, dark: bool) -> str:
    """Color i of the palette, which is made for white paper; lighter on a dark background."""
    to_white = (0.22, 0.55, 0.0, 0.7)[i // 10] if dark else (0.0, 0.45, 0.0, 0.65)[i // 10]
    to_black = 0.4 if i // 10 == 2 and not dark else 0.25 * (i // 10 == 2)
    parts = [int(COLORS[i % 10][k : k + 2], 16) for k in (1, 3, 5)]
    mixed = [(p + (255 - p) * to_white) * (1 - to_black) for p in parts]
    return "#" + "".join(f"{round(p):02x}" for p in mixed)
