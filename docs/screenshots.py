"""Pictures of a report for the docs: python docs/screenshots.py (needs Chromium, Pillow).

The report is of a made-up cohort: 420 patients with blood values, clinical records, a survey and
genes that nothing else informs.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from chromium import Chromium  # noqa: E402

HERE = ROOT / "docs" / "images"
PARTS = {"verdict": "header", "hidden": "#hidden", "examples": "#examples", "clusters": "#clusters",
         "map": "#map", "samples": "#samples"}  # fmt: skip
AT_NIGHT = ("verdict", "map")
MARGIN = 24
SHEET = 760, 1075  # pixels
BLOOD = ("hemoglobin", "platelets", "leukocytes", "CRP", "glucose", "sodium")
SURVEY = ("sleep", "mood", "memory", "pain")
OBSERVED = {"blood": 0.85, "clinic": 0.95, "survey": 0.75, "genes": 0.6}


def main() -> None:
    with TemporaryDirectory() as folder, Chromium(1180, 900) as browser:
        page, raw = Path(folder) / "page.html", Path(folder) / "raw.png"
        cohort(Path(folder) / "cohort")
        for command in (
            "fit cohort -o run --clusters 3 --one-hot",
            "report run -o page.html --title 'Cohort of 2023' --split sex",
        ):
            words = [sys.executable, "-m", "vedute", *shlex.split(command)]
            env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
            subprocess.run(words, cwd=folder, env=env, check=True)
        for dark in (False, True):
            browser.dark(dark)
            browser.open(page)
            browser.value("document.querySelector('nav').style.position = 'static'")
            browser.value("document.querySelectorAll('.sample')[1].open = true")
            for name in AT_NIGHT if dark else PARTS:
                browser.screenshot(raw, PARTS[name], MARGIN)
                keep(Image.open(raw), f"{name}-dark" if dark else name)
        browser.dark(False)
        browser.open(page)
        keep(sheets(browser, raw), "print")
        keep(telephone(browser, page, raw), "telephone")


def cohort(folder: Path) -> None:
    """Write one file per view; three hidden numbers and a group make all but the genes."""
    rng, n = np.random.default_rng(3), 420
    group = rng.integers(3, size=n)
    z = rng.normal(size=(n, 3)) + 2.2 * np.eye(3)[group]
    stage = np.where(rng.random(n) < 0.75, group, rng.integers(3, size=n))
    blood = z @ rng.normal(size=(3, 6)) + 0.6 * rng.normal(size=(n, 6))
    blood[:, 0], blood[:, 3] = 13 + blood[:, 0] / 4, 4 * np.exp(blood[:, 3] / 3)
    views = {
        "blood": pd.DataFrame(blood, columns=BLOOD).round(2),
        "clinic": pd.DataFrame(
            {
                "age": (50 + 8 * z[:, 0] + 5 * rng.normal(size=n)).round(),
                "stage": np.array(["I", "II", "III"])[stage],
                "sex": np.where(rng.random(n) < 0.5, "f", "m"),
                "smoker": np.where(rng.random(n) < 0.2 + 0.5 * (group == 1), "yes", "no"),
            }
        ),
        "survey": pd.DataFrame(
            z @ rng.normal(size=(3, 4)) + 1.5 * rng.normal(size=(n, 4)), columns=SURVEY
        ).round(1),
        "genes": pd.DataFrame(rng.normal(size=(n, 30)).round(2)).add_prefix("G"),
    }
    folder.mkdir()
    for name, table in views.items():
        table.index = pd.Index([f"p{i:03d}" for i in range(n)], name="patient")
        table[rng.random(n) < OBSERVED[name]].to_csv(folder / f"{name}.csv")


def telephone(browser: Chromium, page: Path, raw: Path) -> Image.Image:
    """Three sections, 400 pixels wide, side by side."""
    browser.size(400, 800)
    browser.open(page)
    shots = []
    for part in ("header", "#examples", "#samples"):
        browser.screenshot(raw, part)
        shot = Image.open(raw).convert("RGB")
        shot = shot.crop(((shot.width - 372) // 2, 0, (shot.width + 372) // 2, shot.height))
        shots.append(shot.crop((0, 0, 372, min(820, shot.height))))
    whole = Image.new("RGB", (len(shots) * 400, 840), "#8a8f98")
    for i, shot in enumerate(shots):
        whole.paste("#fdfdfc", (i * 400 + 6, 10, i * 400 + 394, 830))
        whole.paste(shot, (i * 400 + 14, 10))
    return whole


def sheets(browser: Chromium, raw: Path) -> Image.Image:
    """The first four printed sheets, side by side."""
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
    """Save a picture in few colors, as charts have."""
    few = image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(HERE / f"report-{name}.png", optimize=True)


if __name__ == "__main__":
    main()
