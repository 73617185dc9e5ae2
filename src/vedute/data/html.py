"""Small HTML for notebooks: no scripts, no classes, in its colors. All text is escaped here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

PATTERNS_SHOWN = 8
CELL = "padding:2px 12px 2px 0;text-align:left;vertical-align:middle"
SQUARE = "display:inline-block;width:10px;height:10px;margin-right:3px;border-radius:2px"
FILLED_SQUARE, EMPTY_SQUARE = "background:#3f6fb5", "box-shadow:inset 0 0 0 1px #9a9ea8"
COUNT_BAR = f"display:inline-block;height:10px;margin-right:6px;{FILLED_SQUARE}"


def section(title: str, *parts: str) -> str:
    """Put a title above parts that are HTML."""
    style = "font-size:13px;line-height:1.5;margin:6px 0"
    return f'<div style="{style}"><b>{escape(title)}</b>{"".join(parts)}</div>'


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], form: Callable[[str], str] = escape
) -> str:
    """Format a table; cells are text, or HTML if `form` is str."""
    head = "".join(f'<th style="{CELL}">{escape(h)}</th>' for h in heads)
    cells = ("".join(f'<td style="{CELL}">{form(cell)}</td>' for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    style = "border-collapse:collapse;margin:4px 0 8px"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def lines(sentences: Iterable[str]) -> str:
    return "".join(f"<div>{escape(sentence)}</div>" for sentence in sentences)


def patterns(mask: NDArray[np.bool_], names: Sequence[str]) -> str:
    """List the most frequent patterns of mask (n, L), with bars for their samples, and a square per
    view, filled where it is observed."""
    counts = Counter(map(tuple, mask.tolist())).most_common()
    rows = []
    for pattern, count in counts[:PATTERNS_SHOWN]:
        squares = "".join(
            f'<span style="{SQUARE};{FILLED_SQUARE if seen else EMPTY_SQUARE}" '
            f'title="{escape(name)}: {"observed" if seen else "missing"}"></span>'
            for name, seen in zip(names, pattern, strict=True)
        )
        width = max(round(120 * count / counts[0][1]), 1)
        bar = f'<span style="{COUNT_BAR};width:{width}px"></span>'
        rows.append([squares, f"{bar}{count} ({percent(count / len(mask))})"])
    rest = [count for _, count in counts[PATTERNS_SHOWN:]]
    more = [f"{len(rest)} rarer patterns: {sum(rest)} samples"] if rest else []
    return table(["observed views", "samples"], rows, str) + lines(more)


def shape(sizes: Sequence[int]) -> str:
    return " × ".join(str(size) for size in sizes) or "1"


def percent(share: float) -> str:
    """Format a share; one that is not 0 is never written as 0 %."""
    return "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
