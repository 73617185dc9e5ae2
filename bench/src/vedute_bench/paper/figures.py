"""Pictures of the pages, as PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vedute.figures import plots
from vedute.figures.plots import RAMP
from vedute_bench.figures import files

Values = Mapping[str, Sequence[float]]


def _figure(columns: int, width: float = 3.0) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width * columns, 2.9), layout="constrained")
    return drawn, drawn.subplots(1, columns, squeeze=False)[0]


def curves(runs: Mapping[str, Values], warm: int | None, terms: Sequence[str]) -> bytes:
    """Draw a panel per term and a line per run; the warm-up is shaded."""
    from matplotlib import rc_context

    with rc_context(plots.STYLE):
        drawn, axes = _figure(len(terms))
        for ax, term in zip(axes, terms, strict=True):
            for color, (name, values) in zip(plots.COLORS, runs.items(), strict=False):
                epochs = np.arange(1, len(values[term]) + 1)
                ax.plot(epochs, values[term], color=color, linewidth=1.1, label=name or None)
            if warm is not None:
                ax.axvspan(0, warm, color="#fff3cf", zorder=0)
            ax.set(title=term.replace("_", " "), xlabel="epoch", yscale="log")
        if len(runs) > 1:
            axes[-1].legend(fontsize=7, frameon=False)
        return files.png(drawn, 110)


def surface(
    grid: Sequence[Sequence[float | None]], rows: Sequence[str], cols: Sequence[str]
) -> bytes:
    """Draw a heat map of accuracies."""
    from matplotlib import rc_context
    from matplotlib.colors import LinearSegmentedColormap

    values = np.array([[np.nan if v is None else v for v in row] for row in grid])
    with rc_context(plots.STYLE):
        drawn, (ax,) = _figure(1, 3.8)
        ramp = LinearSegmentedColormap.from_list("ramp", RAMP)
        ax.imshow(values, cmap=ramp, origin="lower")
        middle = (np.nanmin(values) + np.nanmax(values)) / 2
        for i, j in np.ndindex(*values.shape):
            if np.isfinite(values[i, j]):
                color = "white" if values[i, j] > middle else plots.INK
                ax.text(j, i, f"{values[i, j]:.1f}", color=color, **plots.CENTERED)
        ax.set_xticks(range(len(cols)), list(cols))
        ax.set_yticks(range(len(rows)), list(rows))
        ax.set(title="ACC, %", xlabel="β2 (consensus)", ylabel="β1 (views)")
        return files.png(drawn, 110)


def ssim_by_ratio(
    values_of: Mapping[str, Mapping[str, Sequence[float | None]]], names: Sequence[str]
) -> bytes:
    """Draw SSIM by k/d, a panel per dataset."""
    from matplotlib import rc_context

    with rc_context(plots.STYLE):
        drawn, axes = _figure(len(values_of), 4.0)
        for ax, (dataset, by_ratio) in zip(axes, values_of.items(), strict=True):
            for i, (name, color) in enumerate(zip(names, plots.COLORS, strict=False)):
                values = [np.nan if row[i] is None else row[i] for row in by_ratio.values()]
                ax.plot(values, "o-", color=color, markersize=4, label=name)
            ax.set_xticks(range(len(by_ratio)), list(by_ratio))  # also those without a value
            ax.set(title=dataset, xlabel="k/d", ylabel="SSIM")
        axes[0].legend(fontsize=7, frameon=False)
        return files.png(drawn, 110)
