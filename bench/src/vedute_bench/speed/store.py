"""CPU time and peak memory of stores by the number of rows.

    python -m vedute_bench.speed.store [ROWS ...]    measures; records in bench/results/store
    python -m vedute_bench.speed.store --table       the table in docs/costs.md

The data are three views of 50 numbers in .npy files, made in blocks; every view is missing in a
quarter of the rows. The commands `convert`, `fit` (MVP with its default number of steps) and
`impute` run sequentially, each in a separate process with one thread. The measurements for the page
are left out of `fit`, since another process makes them.

Seconds are CPU time, so that other load does not count. Memory is the peak resident memory (Linux),
including Python, torch and memory-mapped pages. The size of the float32 values is `store`. The
number of samples per second in training is `train`, from the store and from memory (up to 10^6
rows): the maximum of TRIES alternating trials, by wall time.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from vedute_bench.places import RESULTS
from vedute_bench.runner import lines

FILE = RESULTS / "store" / "records.jsonl"
ROWS, BLOCK, VIEWS, WIDTH, LATENT = (10_000, 100_000, 1_000_000), 10_000, 3, 50, 10
STEPS, BATCH, TRIES, MOST = 300, 256, 3, 1_000_000
VERBS = {
    "convert": "convert data -o store --force",
    "fit": "fit store -o run --force --method mvp",
    "impute": "impute run store -o filled --force",
}


def make(folder: Path, rows: int) -> None:
    """Write views that share latents, with NaN where they are missing."""
    import numpy as np

    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(LATENT, WIDTH)) for _ in range(VIEWS)]
    folder.mkdir()
    names = [folder / f"v{v}.npy" for v in range(VIEWS)]
    shape = rows, WIDTH
    files = [np.lib.format.open_memmap(p, "w+", np.float32, shape) for p in names]
    for start in range(0, rows, BLOCK):
        n = min(BLOCK, rows - start)
        z, gone = rng.normal(size=(n, LATENT)), rng.integers(VIEWS + 1, size=n)
        for v, (file, w) in enumerate(zip(files, weights, strict=True)):
            x = np.tanh(z @ w)
            x[gone == v] = np.nan
            file[start : start + n] = x


def measured(words: str, place: Path) -> dict[str, float]:
    """Run a command in a separate process; return its seconds and MiB."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    call = [sys.executable, __file__, "--one", words]
    done = subprocess.run(
        call, cwd=place, env=environment, check=True, capture_output=True, text=True
    )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def one(words: str) -> None:
    """Run a command in this process, and print its seconds and MiB."""
    if words.startswith("train"):
        train(words.split()[1])
        return
    from vedute.cli import app
    from vedute.commands import _pages

    _pages.measure = lambda *_: None  # measurements for the page
    app(words.split(), standalone_mode=False)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"seconds": used.ru_utime + used.ru_stime, "mib": peak()}))


def peak() -> float:
    """Peak resident MiB of this process; `ru_maxrss` would include that of its parent."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def train(store: str) -> None:
    """Print the samples per second of training from a store and from memory."""
    import numpy as np

    from vedute import MVP, Views
    from vedute.training.loop import Loop

    taken: list[float] = []
    once = Loop.run

    def timed(loop: Loop) -> Any:
        start = perf_counter()
        history = once(loop)
        taken.append(perf_counter() - start)
        return history

    Loop.run = timed
    lazy = Views.open(store)
    sources = {"store": lazy, "memory": lazy.in_memory()}
    speeds: dict[str, float] = dict.fromkeys(sources, 0.0)
    for _ in range(TRIES):
        for name, views in sources.items():
            model = MVP(steps=STEPS, batch_size=BATCH, early_stopping=False, random_state=0)
            model.embed = lambda data: np.zeros((len(data), 1), np.float32)  # not measured here
            model.fit(views)
            speeds[name] = max(speeds[name], STEPS * BATCH / taken[-1])
    print(json.dumps(speeds))


def measure(sizes: list[int]) -> None:
    FILE.parent.mkdir(parents=True, exist_ok=True)
    kept = [r for r in records() if r["rows"] not in sizes]
    for rows in sizes:
        with TemporaryDirectory() as folder:
            make(Path(folder, "data"), rows)
            last = {"train": "train store"} if rows <= MOST else {}
            for verb, words in (VERBS | last).items():
                kept.append({"rows": rows, "verb": verb, **measured(words, Path(folder))})
                lines.write(FILE, kept)


def records() -> list[dict[str, Any]]:
    return lines.read(FILE)


def table() -> str:
    known = {(r["rows"], r["verb"]): r for r in records()}
    heads = [f"`{verb}`, {unit}" for verb in VERBS for unit in ("s", "MiB")]
    heads += ["samples/s, store", "samples/s, memory"]
    lines = [["rows", "store, MiB", *heads], ["--:"] * (2 + len(heads))]
    for rows in sorted({rows for rows, _ in known}):
        by_verb = [known.get((rows, verb)) for verb in VERBS]
        cells = [f"{r[k]:.0f}" if r else "–" for r in by_verb for k in ("seconds", "mib")]
        speed = known.get((rows, "train"), {})
        cells += [f"{speed[k]:,.0f}" if k in speed else "–" for k in ("store", "memory")]
        lines.append([f"{rows:,}", f"{rows * VIEWS * WIDTH * 4 / 2**20:.0f}", *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rows", type=int, nargs="*", help="numbers of rows")
    parser.add_argument("--table", action="store_true", help="print the table of the records")
    parser.add_argument("--one", metavar="WORDS", help="run one command and print its costs")
    options = parser.parse_args()
    if options.one:
        one(options.one)
    elif options.table:
        print(table())
    else:
        measure(options.rows or [*ROWS])


if __name__ == "__main__":
    main()
