"""MVShapeNet: tables, chairs, cars, airplanes and rifles of ShapeNet, each seen from five sides.

25155 objects of the MVP paper. ShapeNet may not be passed on: fetch ShapeNetCore from
https://shapenet.org after registration, render it by examples/blender/render_mvshapenet.py, and put
the result into the data folder:

    mvshapenet/<class>/<object>/<azimuth>.png     mvshapenet/chair/1a6f615e8b1b5ae4/-45.png

Objects are read in the order of their names and shuffled; four in five are for training. `shapes`
is an open stand-in.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from vedute.data.views import Views
from vedute.datasets._files import folder
from vedute_bench.datasets._pictures import Bytes, need_pillow, read
from vedute_bench.shapes.objects import CLASSES, split_rows

AZIMUTHS = (-90, -45, 0, 45, 90)
NAMES = tuple(CLASSES)
SCRIPT = "examples/blender/render_mvshapenet.py"


def load(split: str = "all", seed: int = 0, size: int = 64) -> Views:
    """Load all rendered objects: five views of bytes (3, size, size) named by azimuth."""
    objects = _objects(folder() / "mvshapenet")
    order = np.random.default_rng(seed).permutation(len(objects))[split_rows(len(objects), split)]
    need_pillow("mvshapenet")
    x: list[Bytes] = [np.empty((len(order), 3, size, size), np.uint8) for _ in AZIMUTHS]
    for row, i in enumerate(order):
        for v, azimuth in enumerate(AZIMUTHS):
            file = objects[i] / f"{azimuth}.png"
            if not file.is_file():
                raise FileNotFoundError(f"{file} is missing; render the object again ({SCRIPT})")
            x[v][row] = read(file, size)
    y = np.array([NAMES.index(objects[i].parent.name) for i in order])
    ids = np.array([f"{objects[i].parent.name}/{objects[i].name}" for i in order])
    names = [str(a) for a in AZIMUTHS]
    return replace(Views.of(dict(zip(names, x, strict=True)), y=y), ids=ids)


def _objects(home: Path) -> list[Path]:
    absent = [name for name in NAMES if not (home / name).is_dir()]
    if absent:
        raise FileNotFoundError(
            f"{home} has no folder {absent[0]}; render your ShapeNet download by {SCRIPT} and put "
            "the result there, point VEDUTE_DATA to the folder that has it, or load shapes"
        )
    objects = [p for name in NAMES for p in sorted((home / name).iterdir()) if p.is_dir()]
    if not objects:
        raise FileNotFoundError(f"the folders of {home} hold no object; render them by {SCRIPT}")
    return objects
