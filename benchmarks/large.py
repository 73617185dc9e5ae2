"""Every method on a set shaped like SensIT Vehicle: 98 528 samples with two views of 50 features.

    PYTHONPATH=src python benchmarks/large.py [--methods icmvc,dsimvc] [--rows 98528] [--steps 200]

Fits, clusters and embeds in a process of its own, half of the samples incomplete, every stage of
training cut to so many steps: what counts here is memory, and the time that does not depend on how
long one trains. Writes benchmarks/results/large-<device>.md.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from argparse import ArgumentParser
from dataclasses import fields
from pathlib import Path
from time import perf_counter

import stopwatch

ROWS, WIDTHS, KINDS = 98_528, (50, 50), 3
CUT = ("steps", "pretrain", "warmup")  # lengths of stages


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--methods", help="separated by commas; all if not given")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=stopwatch.RESULTS)
    parser.add_argument("--one", help="a method, in this process")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.rows, options.steps)))
        return
    from vedute import methods

    names = options.methods.split(",") if options.methods else methods.available()
    same = ["--rows", str(options.rows), "--steps", str(options.steps)]
    facts = []
    for name in names:
        done = subprocess.run(
            [sys.executable, __file__, "--one", name, *same], capture_output=True, text=True
        )
        if done.returncode:
            print(f"{name} failed: {done.stderr.strip().splitlines()[-1]}", flush=True)
            continue
        facts.append(json.loads(done.stdout.strip().splitlines()[-1]))
        print(facts[-1], flush=True)
    write(options.out, options.rows, options.steps, facts)


def measure(name: str, rows: int, steps: int) -> dict[str, object]:
    from vedute import drop_views, methods
    from vedute.datasets import synthetic
    from vedute.methods import _best_pair

    views = drop_views(synthetic.load(rows, WIDTHS), 0.5, 42)
    cls = methods.find(name)
    known = {f.name for f in fields(cls) if f.init}
    settings = {k: steps for k in CUT if k in known}
    before, start = peak(), perf_counter()
    model = _best_pair.for_views(cls(n_clusters=KINDS, random_state=0, **settings), len(WIDTHS))
    model.fit(views)
    fitted = perf_counter() - start
    model.transform(views)
    whole = perf_counter() - start
    return {
        "method": name,
        "data_gib": round(before, 2),
        "peak_gib": round(peak(), 2),
        "fit_s": round(fitted, 1),
        "transform_s": round(whole - fitted, 1),
    }


def peak() -> float:
    """The most memory that this process has held, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def write(folder: Path, rows: int, steps: int, facts: list[dict[str, object]]) -> None:
    device = stopwatch.device_name("cpu")
    heads = ["method", "data_gib", "peak_gib", "fit_s", "transform_s"]
    lines = [heads, ["---"] * len(heads), *([str(f[k]) for k in heads] for f in facts)]
    table = "".join(f"|{'|'.join(line)}|\n" for line in lines)
    text = f"# {rows} samples with two views of 50 features, on {device}\n\n"
    text += f"`PYTHONPATH=src python benchmarks/large.py --steps {steps}`; every stage has {steps} "
    text += f"steps; data_gib is what Python and the data hold before.\n\n{table}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"large-{stopwatch.slug(device)}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
