"""The picture of README and the first page, docs/images/overview.png: python docs/overview.py

Eight samples in three views with gaps; the same after the fit: gaps filled, one value with its
interval, clusters. The values are drawn, not fitted.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

OUT = Path(__file__).parent / "images" / "overview.png"
VIEWS = {"blood": 4, "scan": 6, "survey": 3}
MISSING = {(1, "scan"), (2, "survey"), (3, "blood"), (4, "scan"), (6, "blood"), (6, "survey")}
ROWS, GAP = 8, 0.7
CLUSTER = (0, 0, 0, 1, 1, 1, 2, 2)
COLORS = ("#3f6fb5", "#c9462c", "#2f8f6b")
TEXT, FAINT, ACCENT = "#24262d", "#6b7280", "#b7791f"
VALUES = LinearSegmentedColormap.from_list("values", ["#eef2f8", "#9db6d9", "#33517f"])
SHOWN = (4, "scan")  # the sample and view whose intervals are drawn


def main() -> None:
    figure = Figure(figsize=(9.6, 3.2), dpi=170, facecolor="white")
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(-3.4, 44.2), ylim=(8.6, -2.2))
    ax.axis("off")
    table(ax, 0, filled=False)
    ax.add_patch(
        FancyArrowPatch((15.9, 4), (19.3, 4), arrowstyle="-|>", mutation_scale=16, color=TEXT)
    )
    ax.text(17.5, 3.3, "fit", ha="center", color=TEXT, size=10, style="italic")
    table(ax, 20.4, filled=True)
    intervals(ax)
    figure.savefig(OUT)


def values() -> dict[str, np.ndarray]:
    """Values in [0, 1] by view: a pattern of the cluster, and noise."""
    rng = np.random.default_rng(4)
    return {
        name: (0.65 * rng.random((3, width))[list(CLUSTER)] + 0.35 * rng.random((ROWS, width)))
        for name, width in VIEWS.items()
    }


def table(ax: Axes, left: float, filled: bool) -> None:
    """All views side by side; gaps are dashed, or outlined where they were filled."""
    x = left
    for name, cells in values().items():
        width = cells.shape[1]
        ax.text(x + width / 2, -0.5, name, ha="center", color=TEXT, size=10)
        for row in range(ROWS):
            gap = (row, name) in MISSING
            for k in range(width if filled or not gap else 0):
                color = VALUES(cells[row, k])
                ax.add_patch(Rectangle((x + k, row), 0.94, 0.9, color=color, lw=0))
            if gap:
                style = (
                    {"ls": "-", "lw": 1.6, "ec": ACCENT}
                    if filled
                    else {"ls": "--", "lw": 0.9, "ec": "#b3b8c2"}
                )
                ax.add_patch(Rectangle((x, row), width - 0.06, 0.9, fill=False, **style))
        x += width + GAP
    for row in range(ROWS):
        if left == 0:
            ax.text(
                -0.4,
                row + 0.47,
                f"sample {row + 1}",
                ha="right",
                va="center",
                color=FAINT,
                size=7.5,
            )
        if filled:
            ax.plot(x + 0.9, row + 0.45, "o", color=COLORS[CLUSTER[row]], ms=7)
    if filled:
        ax.text(x + 0.9, -0.5, "cluster", ha="center", color=TEXT, size=10)
    caption = "what is missing is filled" if filled else "some views of some samples are missing"
    ax.text(left + 7.2, -1.6, caption, ha="center", color=FAINT, size=9)


def intervals(ax: Axes) -> None:
    """The filled view of one sample, with 90 % intervals."""
    left, top, width, height = 39.6, 2.0, 3.6, 4.2
    row, name = SHOWN
    ax.add_patch(
        FancyBboxPatch(
            (left, top), width, height, boxstyle="round,pad=0.25", fc="#fbf7ef", ec=ACCENT, lw=1
        )
    )
    x = left + 0.3 + np.arange(VIEWS[name]) * 0.6
    y = top + height - 0.5 - 3.2 * values()[name][row]
    ax.errorbar(x, y, yerr=[0.55, 0.4, 0.7, 0.5, 0.35, 0.6], fmt="o", color=ACCENT, ms=3.5, lw=1.3)
    ax.text(
        left + width / 2,
        top - 0.6,
        f"{name} of sample {row + 1}",
        ha="center",
        color=TEXT,
        size=7.5,
    )
    ax.text(
        left + width / 2,
        top + height + 0.95,
        "with 90 % intervals",
        ha="center",
        color=FAINT,
        size=7.5,
    )


if __name__ == "__main__":
    main()
