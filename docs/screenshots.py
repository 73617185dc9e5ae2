"""Pictures of a page for the docs: python docs/screenshots.py page.html (needs Chromium, Pillow).

The pictures are of `vedute fit handwritten.npz -o run --clusters 10` on digits half of whose rows
are incomplete, then `vedute report run -o page.html --shape pix=16x15`.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from chromium import Chromium  # noqa: E402

HERE = ROOT / "docs" / "images"
PARTS = (
    "header",
    "samples",
    "hidden",
    "examples",
    "intervals",
    "views",
    "map",
    "clusters",
    "data",
    "training",
    "repeat",
)
AT_NIGHT = ("samples", "hidden", "map", "clusters", "examples")
MARGIN = 24
SHEET = 760, 1075  # pixels


def main(page: Path) -> None:
    HERE.mkdir(parents=True, exist_ok=True)
    with Chromium(1180, 900) as browser, TemporaryDirectory() as folder:
        for dark in (False, True):
            browser.dark(dark)
            browser.open(page)
            browser.value("document.querySelector('nav').style.position = 'static'")
            browser.value("document.querySelectorAll('.sample')[2].open = true")
            for part in AT_NIGHT if dark else PARTS:
                raw = Path(folder) / "raw.png"
                browser.screenshot(raw, part if part == "header" else f"#{part}", MARGIN)
                keep(Image.open(raw), f"{part}-dark" if dark else part)
        browser.dark(False)
        browser.open(page)
        keep(sheets(browser, Path(folder) / "raw.png"), "print")
        point(browser)
        telephone(browser, page, Path(folder) / "raw.png")


def telephone(browser: Chromium, page: Path, raw: Path) -> None:
    """Three sections, 400 pixels wide, side by side."""
    browser.size(400, 800)
    browser.open(page)
    shots = []
    for part in ("#samples", "#views", "#data"):
        browser.screenshot(raw, part)
        shots.append(Image.open(raw).convert("RGB").crop((0, 0, 372, 820)))
    whole = Image.new("RGB", (len(shots) * 400, 840), "#8a8f98")
    for i, shot in enumerate(shots):
        whole.paste("#fdfdfc", (i * 400 + 6, 10, i * 400 + 394, 830))
        whole.paste(shot, (i * 400 + 14, 10))
    keep(whole, "telephone")


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


def sheets(browser: Chromium, raw: Path) -> Image.Image:
    """What would be printed, in the style of paper: its first four sheets, side by side."""
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.size(SHEET[0] - 2 * MARGIN, SHEET[1])
    browser.screenshot(raw)
    printed = Image.open(raw).convert("RGB")
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.size(1180, 900)
    width, height = (side // 2 for side in SHEET)
    whole = Image.new("RGB", ((width + 12) * 4 + 12, height + 24), "#8a8f98")
    for i in range(4):
        sheet, inside = Image.new("RGB", SHEET, "white"), SHEET[1] - 2 * MARGIN
        part = printed.crop((0, i * inside, printed.width, (i + 1) * inside))
        sheet.paste(part, (MARGIN, MARGIN))
        small = sheet.resize((width, height), Image.Resampling.LANCZOS)
        whole.paste(small, (12 + i * (width + 12), 12))
    return whole


def keep(image: Image.Image, name: str) -> None:
    """As small as a picture of a chart can be."""
    few = image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(HERE / f"report-{name}.png", optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
