"""Pictures of a page for the docs: python docs/screenshots.py page.html (needs Chromium, Pillow).

The pictures are of `vedute fit handwritten.npz -o run --clusters 10` on digits half of whose rows
are incomplete, then `vedute report run -o page.html --shape pix=16x15`.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from chromium import Chromium  # noqa: E402

HERE = ROOT / "docs" / "images"
PARTS = (
    "header",
    "data",
    "training",
    "hidden",
    "intervals",
    "map",
    "clusters",
    "examples",
    "repeat",
)
AT_NIGHT = ("hidden", "map", "clusters", "examples")
MARGIN = 24


def main(page: Path) -> None:
    HERE.mkdir(parents=True, exist_ok=True)
    with Chromium(1180, 900) as browser, TemporaryDirectory() as folder:
        for dark in (False, True):
            browser.dark(dark)
            browser.open(page)
            browser.value("document.querySelector('nav').style.position = 'static'")
            for part in AT_NIGHT if dark else PARTS:
                raw = Path(folder) / "raw.png"
                browser.screenshot(raw, part if part == "header" else f"#{part}", MARGIN)
                keep(Image.open(raw), f"{part}-dark" if dark else part)
        browser.dark(False)
        browser.open(page)
        browser.print(Path(folder) / "p.pdf")
        keep(sheets(Path(folder)), "print")
        point(browser)


def point(browser: Chromium) -> None:
    """The map, zoomed into, with a tooltip."""
    browser.value("document.querySelector('#map').scrollIntoView({behavior: 'instant'})")
    for _ in range(3):
        browser.value("document.querySelector('#map .tools button').click()")
    find = """(() => { const b = document.querySelector('#map svg.plot').getBoundingClientRect();
        const far = (r) => Math.hypot(r.x - b.x - b.width / 2, r.y - b.y - b.height / 2);
        const all = [...document.querySelectorAll('#map .dot')].map(d => d.getBoundingClientRect());
        const r = all.reduce((p, q) => far(q) < far(p) ? q : p);
        return [r.x + r.width / 2, r.y + r.height / 2] })()"""
    browser.value("new Promise(done => setTimeout(done, 300))")  # scrolling hushes
    browser.mouse("mouseMoved", *browser.value(find))
    keep(Image.open(io.BytesIO(browser.window())), "hover")


def sheets(folder: Path) -> Image.Image:
    """The first four sheets of paper, side by side."""
    words = ["pdftoppm", "-r", "60", "-l", "4", "-png", str(folder / "p.pdf"), str(folder / "p")]
    subprocess.run(words, check=True)
    pages = [Image.open(p) for p in sorted(folder.glob("p-*.png"))]
    width, height = pages[0].size
    whole = Image.new("RGB", ((width + 12) * len(pages) + 12, height + 24), "#8a8f98")
    for i, sheet in enumerate(pages):
        whole.paste(sheet, (12 + i * (width + 12), 12))
    return whole


def keep(image: Image.Image, name: str) -> None:
    """As small as a picture of a chart can be."""
    few = image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(HERE / f"report-{name}.png", optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
