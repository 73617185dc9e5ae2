"""Make the dataset `shapes` on many cores: ten seconds on sixteen, while `load` takes minutes.

    VEDUTE_DATA=folder python -m vedute_bench.shapes.make_shapes

Leaves in VEDUTE_DATA the file that `vedute_bench.datasets.shapes` reads, with the same images.
"""

from __future__ import annotations

from multiprocessing import Pool

import numpy as np

from vedute.datasets._files import folder
from vedute.io.files import atomic_file
from vedute_bench.datasets import shapes
from vedute_bench.runner import workers
from vedute_bench.shapes.objects import FULL, Bytes, Ints, design, labels, picture

SEED = 0


def part(numbers: Ints) -> Bytes:
    """Pictures (5, m, 3, 64, 64) of the objects with these numbers."""
    y = labels(FULL, SEED)
    images = [
        picture(*design(int(y[i]), int(i), SEED), shapes.AZIMUTHS, shapes.SIZE) for i in numbers
    ]
    return np.stack(images, axis=1)


if __name__ == "__main__":
    with Pool(workers.cores()) as pool:
        images = np.concatenate(pool.map(part, np.array_split(np.arange(FULL), 64)), axis=1)
    path = folder() / f"shapes-{SEED}-v{shapes.VERSION}.npz"
    with atomic_file(path) as temporary:
        np.savez(temporary, **{f"view{v}": x for v, x in enumerate(images)})
    print(f"wrote {path}")
