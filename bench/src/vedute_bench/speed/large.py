"""Memory and time of every method on data shaped like SensIT Vehicle.

    python -m vedute_bench.speed.large [--methods icmvc,dsimvc] [--rows 98528] [--steps 200]
    python -m vedute_bench.speed.large --name fills --views 3 --rows 50000 100000 200000
        --methods knn_fill,kernel_fill,lowrank_fill           (the table in docs/costs.md)

The data have 98 528 samples with two views of 50 features, half of the samples incomplete. Each
method fits, clusters and embeds in a separate process. Stages of training are limited to `--steps`
steps, since this measures memory and the time that does not depend on the length of training. Times
are seconds of CPU, which hardly depend on other load. The file bench/results/<name>-<device>.md is
updated after each fit.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from argparse import ArgumentParser
from dataclasses import fields
from pathlib import Path
from time import process_time

from vedute_bench.places import RESULTS
from vedute_bench.speed import stopwatch

ROWS, WIDTH, KINDS = 98_528, 50, 3
CUT = ("steps", "pretrain", "warmup")  # settings of stages' lengths


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--methods", help="separated by commas; default: all")
    parser.add_argument("--rows", type=int, nargs="+", default=[ROWS])
    parser.add_argument("--views", type=int, default=2)
    parser.add_argument("--name", default="large", help="name of the file to write")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--one", help="measure one method in this process")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.rows[0], options.views, options.steps)))
        return
    from vedute import methods

    names = options.methods.split(",") if options.methods else methods.available()
    facts = []
    for name, rows in ((name, rows) for name in names for rows in options.rows):
        size = ["--rows", str(rows), "--views", str(options.views), "--steps", str(options.steps)]
        words = [sys.executable, __file__, "--one", name, *size]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["killed"])[-1]
            print(f"{name}, {rows} rows failed: {last}", flush=True)
            continue
        facts.append(json.loads(done.stdout.strip().splitlines()[-1]))
        print(facts[-1], flush=True)
        write(options.out, options.name, options.views, options.steps, facts)


def measure(name: str, rows: int, n_views: int, steps: int) -> dict[str, object]:
    from vedute import drop_views, methods
    from vedute.datasets import synthetic
    from vedute.methods import best_pair

    views = drop_views(synthetic.load(rows, (WIDTH,) * n_views), 0.5, 42)
    cls = methods.find(name)
    known = {f.name for f in fields(cls) if f.init}
    settings = {k: steps for k in CUT if k in known}
    before, start = peak(), process_time()
    model = best_pair.for_views(cls(n_clusters=KINDS, random_state=0, **settings), n_views)
    model.fit(views)
    fitted = process_time() - start
    model.transform(views)
    whole = process_time() - start
    return {
        "method": name,
        "rows": rows,
        "data_gib": round(before, 2),
        "peak_gib": round(peak(), 2),
        "fit_s": round(fitted, 1),
        "transform_s": round(whole - fitted, 1),
    }


def peak() -> float:
    """Peak memory of this process in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def write(
    folder: Path, name: str, n_views: int, steps: int, facts: list[dict[str, object]]
) -> None:
    device = stopwatch.device_name("cpu")
    heads = ["method", "rows", "data_gib", "peak_gib", "fit_s", "transform_s"]
    lines = [heads, ["---"] * len(heads), *([str(f[k]) for k in heads] for f in facts)]
    table = "".join(f"|{'|'.join(line)}|\n" for line in lines)
    text = f"# Samples with {n_views} views of {WIDTH} features, on {device}\n\n"
    text += f"By `python -m vedute_bench.speed.large`; every stage of training has {steps} steps; "
    text += (
        f"times are seconds of CPU; data_gib is what Python and the data hold before.\n\n{table}"
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}-{stopwatch.slug(device)}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
