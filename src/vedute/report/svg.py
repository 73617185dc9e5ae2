"""Marks in a frame, as SVG that charts.js can pan, zoom and explain; and formats of numbers.

A mark may hold a <title>: the browser's own tooltip, which the script replaces by a better one.
Dots are lines without length under a round cap, so that zooming is one transform of all marks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any


@dataclass(frozen=True)
class Scale:
    """A linear map of values low..high to pixels start..end."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel coordinate of a value."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + share * (self.end - self.start)


@dataclass
class Plot:
    """A frame; `marks` are inside it and move."""

    size: tuple[int, int]
    x: Scale
    y: Scale
    title: str  # for screen readers
    marks: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        width, height = self.size
        left, right, top, bottom = self.x.start, self.x.end, self.y.end, self.y.start
        box = f'x="{px(left)}" y="{px(top)}" width="{px(right - left)}" height="{px(bottom - top)}"'
        corners = " ".join(px(v) for v in (left, top, right, bottom))
        return (
            f'<svg class="plot" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{escape(self.title)}" data-box="{corners}">'
            f'<svg {box} viewBox="{px(left)} {px(top)} {px(right - left)} {px(bottom - top)}">'
            f'<rect class="ground" {box}/><g class="marks">{"".join(self.marks)}</g></svg></svg>'
        )


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
