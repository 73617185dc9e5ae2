"""Curves with bands, and their legend below all panels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE, LETTER = 0.6, 0.075  # inches of a legend


def curve_with_band(
    ax: Axes, x: ArrayLike, means: ArrayLike, stds: ArrayLike, style: str, color: str, label: str
) -> None:
    """Draw means over x with a band of one standard deviation."""
    mean, std = np.asarray(means), np.asarray(stds)
    ax.fill_between(x, mean - std, mean + std, color=color, alpha=0.18, linewidth=0)
    ax.plot(x, mean, style, color=color, linewidth=1.8, markersize=3.5, label=label)


def legend_below(figure: Figure, lines: Mapping[str, Any]) -> None:
    """Add a legend below all panels, in as many columns as fit the longest name."""
    widest = LINE + LETTER * max((len(name) for name in lines), default=1)
    columns = max(1, min(len(lines), int(figure.get_figwidth() / widest)))
    layout: Any = {"loc": "outside lower center", "ncols": columns, "frameon": False}
    figure.legend(lines.values(), lines.keys(), **layout)
