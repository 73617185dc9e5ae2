"""Picture of the views that several methods infer from the same view of the same samples.

A run saves its part in a small file (`Shown`), so that the picture can be drawn later, without the
model or the data. The given view is at the left, then a block for the truth and one per method,
with all views. There is a row per sample, grouped by class; mistakes are framed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from vedute.figures.plots import GREY, styled
from vedute_bench.figures.contact_sheet import Bytes, sheet
from vedute_bench.summaries.summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 100
ACROSS = 4  # blocks beside each other, at most
CLASSES = 5  # drawn classes, at most
SIDE = 64  # approximate pixels of a drawn image
GAP, HEAD, MARGIN = 3, 58, 8  # pixels: around an image, for names above a block, around all
LETTER = 11  # pixels of a letter in a name


class Shown(NamedTuple):
    """Images inferred by one method.

    - images: Bytes (B, 1 + L, C, H, W), the given view and then all views inferred from it.
    - wrong: Flags (B, 1 + L) of images that a judge rejects.
    - truth, classes: The true images (B, L, C, H, W) and classes (B,).
    - names, given: Names (L,) of the views, and the name of the given one.
    """

    images: Bytes
    wrong: NDArray[np.bool_]
    truth: Bytes
    classes: NDArray[Any]
    names: NDArray[np.str_]
    given: str

    def save(self, path: Path) -> None:
        with path.open("wb") as file:
            np.savez_compressed(file, **self._asdict())

    @classmethod
    def load(cls, path: Path) -> Shown:
        try:
            with np.load(path, allow_pickle=False) as file:
                parts = {name: file[name] for name in cls._fields}
        except (BadZipFile, EOFError, KeyError, TypeError, ValueError):
            raise ValueError(
                f"{path} has no inferred images; `vedute bench` writes such files"
            ) from None
        return cls(**parts | {"given": str(parts["given"])})


def load(summary: Summary, dataset: str, rate: float, folder: Path) -> dict[str, Shown]:
    """Load the images of one run per label from the folder, if their given images are the same."""
    by_label: dict[str, Shown] = {}
    for label in summary.labels:
        runs = summary.records.get((label, dataset, rate), [])
        names = [str(r["shown"]) for r in runs if r.get("shown")]
        paths = [folder / name for name in names if Path(name).name == name]
        for shown in [Shown.load(path) for path in paths if path.is_file()][:1]:
            if all(np.array_equal(shown.images[:, 0], s.images[:, 0]) for s in by_label.values()):
                by_label[label] = shown
    return by_label


@styled
def draw(shown: Mapping[str, Shown]) -> Figure:
    """Draw the images of methods with equal given images; save with `DPI` for exact pixels."""
    from matplotlib.figure import Figure

    first = next(iter(shown.values()))
    given = _block(first, first.images[:, :1], first.wrong[:, :1])
    blocks = {"truth": _block(first, first.truth, np.zeros(first.truth.shape[:2], bool))}
    blocks |= {k: _block(s, s.images[:, 1:], s.wrong[:, 1:]) for k, s in shown.items()}
    bands = -(-len(blocks) // ACROSS)
    across = -(-len(blocks) // bands)
    (tall, wide), lead = blocks["truth"].shape[:2], given.shape[1]
    step = wide + 2 * MARGIN
    width = 2 * MARGIN + lead + across * step
    height = 2 * MARGIN + bands * (HEAD + tall)
    figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI, facecolor="white")
    canvas = np.full((height, width, 3), 255, np.uint8)

    def put(block: Bytes, name: str, views: list[str], left: int, top: int) -> None:
        canvas[top : top + tall, left : left + block.shape[1]] = block
        tile = (block.shape[1] - 2 * GAP) / len(views)
        x, y = (left + 2 * GAP) / width, 1 - (top - HEAD) / height
        fits = len(name) * LETTER <= block.shape[1]
        text = name if fits else fill(name, round(1.5 * block.shape[1] / LETTER), max_lines=2)
        size = 12 if fits else 8
        figure.text(x, y - 15 / height, text, va="top", fontsize=size, fontweight="bold")
        for v, view in enumerate(views):
            x, y = (left + GAP + tile * (v + 0.5)) / width, 1 - (top - 3) / height
            figure.text(x, y, view, ha="center", va="bottom", fontsize=9, color=GREY)

    for i, (name, block) in enumerate(blocks.items()):
        band, place = divmod(i, across)
        top = MARGIN + band * (HEAD + tall) + HEAD
        if place == 0:
            put(given, "given", [first.given], MARGIN, top)
        put(block, name, first.names.tolist(), MARGIN + lead + 2 * MARGIN + place * step, top)
    figure.figimage(canvas, origin="upper", zorder=-1)
    return figure


def _block(shown: Shown, images: Bytes, wrong: NDArray[np.bool_]) -> Bytes:
    """Arrange images (B, columns, C, H, W) with a row per sample and a sheet per class."""
    scale = max(1, SIDE // images.shape[-1])
    rows = [shown.classes == kind for kind in np.unique(shown.classes)[:CLASSES]]
    return np.vstack([sheet(images[r], wrong[r], scale=scale, gap=GAP) for r in rows])
