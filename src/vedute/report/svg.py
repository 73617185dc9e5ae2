"""Drawing: scales with ticks, marks and a frame, as SVG that charts.js can pan, zoom and explain.

A mark may hold a <title>: the browser's own tooltip, which the script replaces by a better one.
Dots are lines without length under a round cap, so that zooming is one transform of all marks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Scale:
    """A map of values low..high to pixels start..end, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    percent: bool = False

    def __call__(self, value: Any) -> Any:
        """The pixel coordinate of a number or an array."""
        f = np.log10 if self.log else np.asarray
        low, high = float(f(self.low)), float(f(self.high))
        return self.start + (f(value) - low) / ((high - low) or 1.0) * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """Round values between low and high, with their labels."""
        if self.log and self.high > 8 * self.low:
            low, high = np.floor(np.log10(self.low)), np.ceil(np.log10(self.high))
            between = (1, 2, 5) if self.high < 160 * self.low else (1,)
            values = [m * 10.0**p for p in np.arange(low, high + 1) for m in between]
        else:
            rough = (self.high - self.low) / most or 1.0
            power = 10.0 ** np.floor(np.log10(rough))
            step = power * next(m for m in (1, 2, 5, 10) if m * power >= 0.999 * rough)
            first = np.ceil(self.low / step - 1e-9)
            values = [step * k for k in np.arange(first, self.high / step + 1e-9)]
        room = 1e-9 * (self.high - self.low)
        inside = [v for v in values if self.low - room <= v <= self.high + room]
        return [(v, percent(v) if self.percent else number(v)) for v in inside]

    def attribute(self, most: int) -> str:
        """The scale as an attribute for the script: low high kind percent most."""
        kind = "log" if self.log else "lin"
        return f"{float(self.low)!r} {float(self.high)!r} {kind} {int(self.percent)} {most}"


@dataclass
class Plot:
    """A frame with axes; `marks` are inside it and move, `notes` stay."""

    size: tuple[int, int]
    x: Scale
    y: Scale
    title: str  # for screen readers
    labels: tuple[str, str] = ("", "")
    zoom: bool = True
    axes: bool = True
    many: tuple[int, int] = (6, 5)  # ticks
    marks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        width, height = self.size
        left, right, top, bottom = self.x.start, self.x.end, self.y.end, self.y.start
        box = f'x="{px(left)}" y="{px(top)}" width="{px(right - left)}" height="{px(bottom - top)}"'
        many_x, many_y = self.many
        data = f' data-x="{self.x.attribute(many_x)}" data-y="{self.y.attribute(many_y)}"'
        data = data if self.zoom else ""
        corners = " ".join(px(v) for v in (left, top, right, bottom))
        grid = f'<g class="grid">{"".join(self._grid())}</g>' if self.axes else ""
        return (
            f'<svg class="plot" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{escape(self.title)}" data-box="{corners}"{data}>{grid}'
            f'<svg {box} viewBox="{px(left)} {px(top)} {px(right - left)} {px(bottom - top)}">'
            f'<rect class="ground" {box}/><g class="marks">{"".join(self.marks)}</g></svg>'
            f"{''.join(self.notes)}{self._names()}</svg>"
        )

    def _grid(self) -> Iterable[str]:
        for value, word in self.x.ticks(self.many[0]):
            at = px(self.x(value))
            yield f'<path d="M{at} {px(self.y.start)}V{px(self.y.end)}"/>'
            yield f'<text x="{at}" y="{px(self.y.start + 18)}" class="mid">{word}</text>'
        for value, word in self.y.ticks(self.many[1]):
            at = px(self.y(value))
            yield f'<path d="M{px(self.x.start)} {at}H{px(self.x.end)}"/>'
            yield f'<text x="{px(self.x.start - 8)}" y="{at}" class="end">{word}</text>'

    def _names(self) -> str:
        right, left = px(self.x.end), px(self.x.start)
        below, above = px(self.y.start + 38), px(self.y.end - 14)
        x = f'<text x="{right}" y="{below}" class="name end">{escape(self.labels[0])}</text>'
        y = f'<text x="{left}" y="{above}" class="name">{escape(self.labels[1])}</text>'
        return (x if self.labels[0] else "") + (y if self.labels[1] else "")


def px(value: Any) -> str:
    """Format a coordinate as short as possible."""
    return f"{float(value):.1f}".removesuffix(".0")


def number(value: float) -> str:
    """Format a number with at most four digits, grouped thousands and a typographic minus."""
    value = 0.0 if abs(value) < 1e-12 else float(value)
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return text.replace("-", "−").replace(",", "\u202f")


def percent(share: float, digits: int = 0) -> str:
    value = round(100 * float(share), digits)
    return f"{value if value else 0.0:.{digits}f}\u202f%".replace("-", "−")


def tip(*lines: str) -> str:
    """A tooltip of a mark."""
    return f"<title>{escape(chr(10).join(line for line in lines if line))}</title>"


def dot(x: Any, y: Any, kind: str, *lines: str) -> str:
    """A point at pixels x, y; `kind`: its classes."""
    return f'<path class="dot {kind}" d="M{px(x)} {px(y)}h.01">{tip(*lines)}</path>'


def line(x: ArrayLike, y: ArrayLike, kind: str) -> str:
    """A path through points in pixels; it breaks where y is not finite."""
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    fine, path = np.isfinite(ys), ""
    for i in np.flatnonzero(fine):
        path += f"{'L' if i and fine[i - 1] else 'M'}{px(xs[i])} {px(ys[i])}"
    return f'<path class="line {kind}" d="{path}"/>' if path else ""


def band(x: ArrayLike, low: ArrayLike, high: ArrayLike, kind: str) -> str:
    """The area between two lines in pixels."""
    xs, lows, highs = (np.asarray(a, float) for a in (x, low, high))
    way = np.concatenate([np.c_[xs, highs], np.c_[xs, lows][::-1]])
    return f'<path class="band {kind}" d="M{"L".join(f"{px(a)} {px(b)}" for a, b in way)}Z"/>'


def bar(x: float, y: float, width: float, height: float, kind: str, *lines: str) -> str:
    """A rectangle in pixels."""
    place = f'x="{px(x)}" y="{px(y)}" width="{px(width)}" height="{px(height)}"'
    return f'<rect class="bar {kind}" {place}>{tip(*lines) if lines else ""}</rect>'


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{px(x)}" y="{px(y)}" class="{kind}">{escape(words)}</text>'
