"""Figures as small PNG files with few colors, so that pages with many pictures load quickly."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from vedute import io

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image as Picture

LINES, PICTURES = 64, 96  # colors of a palette


def png(figure: Figure, dpi: float, colors: int = LINES) -> bytes:
    """Encode a figure as a PNG with a palette."""
    from PIL import Image

    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    return reduced(Image.open(drawn).convert("RGB"), colors)


def reduced(image: Picture, colors: int) -> bytes:
    """Encode an image as a PNG with a palette of `colors` colors."""
    from PIL import Image

    file = BytesIO()
    few = image.quantize(colors, dither=Image.Dither.NONE)
    few.save(file, "PNG", optimize=True)
    return file.getvalue()


def save(figure: Figure, path: Path, dpi: float, colors: int = LINES) -> None:
    with io.atomic_file(path, force=True) as part:
        part.write_bytes(png(figure, dpi, colors))
