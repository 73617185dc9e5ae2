"""Size of the page of 20 000 samples, and the times to open and to search it.

    python -m vedute_bench.speed.page [samples]        (needs Chromium)

The data have six views of 40 features, a third of the views missing, and ten clusters; the method
is the low-rank fill. The script prints one line of JSON. It has the seconds to measure and to write
the page, its MB, and the seconds to load it in headless Chromium (median of five). The time of a
search is the milliseconds from a typed letter to the new list (maximum of twelve).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import pandas as pd

import vedute
from vedute_bench.places import SUPPORT

sys.path.append(str(SUPPORT))

from chromium import Chromium

SEARCH = """new Promise(done => {
    const field = document.querySelector('.finder input'), start = performance.now();
    field.value = %r;
    field.dispatchEvent(new Event('input'));
    document.querySelector('.samples').getBoundingClientRect();  // laid out
    done(performance.now() - start);
})"""
WORDS = ("", "1", "12", "123", "s00042", "cluster 3", "missing view2", "view1, view4", "nothing")
WORDS += ("no such sample", "0", "s1 view0")


def data(n: int) -> vedute.Views:
    rng = np.random.default_rng(0)
    group = rng.integers(10, size=n)
    z = 3 * rng.normal(size=(10, 6))[group] + rng.normal(size=(n, 6))
    ids = [f"s{i:05d}" for i in range(n)]

    frames = {}
    for v in range(6):
        x = z @ rng.normal(size=(6, 40)) + rng.normal(size=(n, 40))
        frames[f"view{v}"] = pd.DataFrame(x, ids, [f"gene{v}_{i}" for i in range(40)])
    mask = rng.random((n, 6)) > 1 / 3
    mask[np.arange(n), rng.integers(6, size=n)] = True
    return vedute.Views.of(frames, mask=mask)


def main(n: int) -> None:
    X = data(n)
    model = vedute.LowRankFill(n_clusters=10, random_state=0).fit(X)
    with TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        start = perf_counter()
        vedute.write_report(model, X, page)
        record = {"samples": n, "seconds to make": perf_counter() - start}
        record["MB"] = page.stat().st_size / 1e6
        with Chromium() as browser:
            times = []
            for _ in range(5):
                start = perf_counter()
                browser.open(page)
                times.append(perf_counter() - start)
            record["seconds to open"] = median(times)
            record["ms to search"] = max(browser.value(SEARCH % word) for word in WORDS)
    print(json.dumps({k: round(v, 2) for k, v in record.items()}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
