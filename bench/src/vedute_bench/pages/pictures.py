"""Move figures of studies from results to docs/images, where pages show them.

    python -m vedute_bench.pages.pictures    after `vedute bench-tables`

If there is a folder results/shapes/pictures, the images of MVP alone are drawn, too.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from vedute_bench.commands import bench_tables
from vedute_bench.places import BENCH, IMAGES, RESULTS
from vedute_bench.runner import lines, records

SHOWN = {  # name in docs/images: file of `vedute bench-tables` in results
    **{f"mvp-clustering-{k}": f"mvp-clustering/{k}" for k in ("acc", "error")},
    **{f"clustering-{k}": f"clustering/{k}" for k in ("acc", "error", "ranks")},
    "vaes-polymnist": "polymnist/polymnist-0.5",
    "vaes-polymnist-complete": "polymnist-complete/polymnist-0",
    "vaes-shapes": "shapes/shapes-0.5",
    "vaes-shapes-tenth": "shapes/shapes-0.1",
    "inferred-polymnist-by-all": "polymnist/side-by-side-polymnist-0.5",
    "inferred-polymnist-by-mvp": "leaders-polymnist/side-by-side-polymnist-0.5",
    "inferred-shapes-by-all": "shapes/side-by-side-shapes-0.5",
    "inferred-shapes-by-mvp": "leaders-shapes/side-by-side-shapes-0.5",
}
ALONE = "mvp (100 epochs)"


def main() -> None:
    for name, made in SHOWN.items():
        figure = RESULTS / f"{made}.png"
        if figure.exists():
            shutil.move(figure, IMAGES / f"{name}.png")
    pictures = RESULTS / "shapes" / "pictures"
    if pictures.exists():
        _alone(pictures, BENCH / "build" / "shapes")


def _alone(pictures: Path, folder: Path) -> None:
    """Draw shapes inferred by MVP alone."""
    known = records.finished(lines.read(RESULTS / "shapes" / "records.jsonl"))
    folder.mkdir(parents=True, exist_ok=True)
    bench_tables._generation([r for r in known if r["label"] == ALONE], folder, True, pictures)
    shutil.move(folder / "side-by-side-shapes-0.5.png", IMAGES / "inferred-shapes-64.png")


if __name__ == "__main__":
    main()
