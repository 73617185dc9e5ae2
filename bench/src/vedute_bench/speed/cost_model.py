"""Cost model of a training step of MVP, compared with records, and its predictions for more rows.

    python -m vedute_bench.speed.cost_model --measure    constants of this machine, one thread
    python -m vedute_bench.speed.cost_model --table      the tables in docs/costs.md

A step has L views with widths d_v, hidden layers of h, maps of m, D dimensions, B rows and T = 2
tables, one of them permuted. A share `known` of the L slots of a row is observed and decoded, and a
share `seen` of all slots is not hidden in the step and is encoded. Matrix products are counted with
2 operations per multiplication and addition, forward and backward. Encoders pass no gradients to
the data, maps exist for mean and log-variance, and decoders have a linear path:

    encoders   B seen  sum_v (4 d_v h + 6 h 2D)

    maps       B seen  6 * 2 L (L-1) (D m + m D + D D)

    decoders   B known T sum_v 6 (2D h + h d_v + 2D d_v)

Values are the outputs of layers and tables, each of which is written, read, and read again for
gradients, and eight per parameter for the optimizer. The time of a step on one thread is

    t = (a + b L) + products / F + values / W

with a, b (calls), F and W measured on steps of several sizes. With N ranks, each processes B / N
rows and sends 8 P (N - 1) / N bytes for P parameters in one all_reduce.
"""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vedute_bench.places import RESULTS
from vedute_bench.runner import lines

FILE = RESULTS / "cost-model" / "constants.json"
DROPPED = 0.3  # MVP's view_dropout
HANDWRITTEN = (240, 76, 216, 47, 64, 6)
MEASURED = [  # views, width, rows, hidden
    *((2, 50, 256, 128), (4, 50, 256, 128), (8, 50, 256, 128), (16, 50, 256, 128)),
    *((3, 50, 64, 128), (3, 50, 1024, 128), (4, 500, 256, 128), (4, 500, 256, 512)),
]
STEPS, TURNS = 3, 4
FIT_STEPS = 500  # steps of MVP's defaults
VERBS, BASES = ("convert", "fit", "impute"), (100_000, 1_000_000)


@dataclass(frozen=True)
class Sizes:
    widths: Sequence[int]
    batch: float = 256
    hidden: int = 128
    latent: int = 32
    maps: int = 64
    tables: int = 2
    known: float = 1.0
    seen: float = 1.0

    @property
    def views(self) -> int:
        return len(self.widths)

    @property
    def pairs(self) -> int:
        return self.views * (self.views - 1)

    @property
    def row_bytes(self) -> int:
        """Bytes of a sample in a store, float32."""
        return 4 * sum(self.widths) + self.views


def kept(views: int, dropped: float = DROPPED) -> float:
    """Expected number of a row's observed views that are not hidden in a step.

    Each is hidden with probability `dropped`, but never the last.
    """
    return views * (1 - dropped) + dropped**views


def parameters(s: Sizes) -> int:
    D, h, m = s.latent, s.hidden, s.maps
    encoders = sum(_linear(d, h) + _linear(h, 2 * D) for d in s.widths)
    decoders = sum(_linear(2 * D, h) + _linear(h, d) + 2 * D * d for d in s.widths)
    return encoders + decoders + 2 * s.pairs * (_linear(D, m) + _linear(m, D) + _linear(D, D))


def _linear(a: int, b: int) -> int:
    return a * b + b


def products(s: Sizes) -> float:
    """Operations of a step in matrix products."""
    D, h, m = s.latent, s.hidden, s.maps
    encoders = sum(4 * d * h + 6 * h * 2 * D for d in s.widths)
    maps = 6 * 2 * s.pairs * (2 * D * m + D * D)
    decoders = s.tables * sum(6 * (2 * D * h + h * d + 2 * D * d) for d in s.widths)
    return s.batch * (s.seen * (encoders + maps) + s.known * decoders)


def forward_products(s: Sizes, decoded: bool) -> float:
    """Operations per row to encode it and, if `decoded`, to decode it once."""
    D, h, m = s.latent, s.hidden, s.maps
    encoders = sum(2 * (d * h + h * 2 * D) for d in s.widths)
    decoders = sum(2 * (2 * D * h + h * d + 2 * D * d) for d in s.widths)
    encoded = s.known * (encoders + 4 * s.pairs * (2 * D * m + D * D))
    return encoded + decoded * decoders


def values(s: Sizes) -> float:
    """Count of values that a step writes and reads: outputs of layers and tables, parameters."""
    D, h, m = s.latent, s.hidden, s.maps
    encoders = s.seen * sum(d + 2 * h + 4 * D for d in s.widths)
    maps = s.seen * 2 * s.pairs * (m + 3 * D)
    tables = s.seen * 2 * 2 * s.views**2 * D
    decoders = s.known * s.tables * sum(2 * D + h + 2 * d for d in s.widths)
    return 3 * s.batch * (encoders + maps + tables + decoders) + 8 * parameters(s)


def sent(s: Sizes, ranks: int) -> float:
    """Bytes that a rank sends in a step."""
    return 8 * parameters(s) * (ranks - 1) / ranks


def step_seconds(s: Sizes, c: dict[str, Any]) -> float:
    """Predicted seconds of a step on one thread."""
    calls = c["call_seconds"] + c["view_seconds"] * s.views
    return float(calls + products(s) / c["flops"] + values(s) / c["values"])


def ranks_seconds(s: Sizes, ranks: int, c: dict[str, Any]) -> float:
    """Predicted seconds of a step distributed over ranks."""
    step = step_seconds(replace(s, batch=s.batch / ranks), c)
    if ranks == 1:
        return step
    return float(step + c["message_seconds"] + parameters(s) * c["message_seconds_per_number"])


# Constants of this machine.


def measure() -> None:
    import torch

    from vedute_bench.runner import workers

    torch.set_num_threads(1)
    constants = {"cpu": workers.cpu_name(), "torch": torch.__version__}
    constants |= _fitted(_times(), _product_rate()) | {"load": os.getloadavg()[0]}
    constants |= {"read_bytes_per_second": _reading()} | _messages()
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(json.dumps(constants, indent=1) + "\n", encoding="utf-8")


def _sizes(views: int, width: int, batch: int, hidden: int) -> Sizes:
    return Sizes([width] * views, batch, hidden, seen=kept(views) / views)


def _times() -> list[float]:
    """Minimum CPU seconds of a step over several, for each of the measured sizes."""
    from time import process_time

    from vedute.estimators.neural_training import thread_settings

    jobs = [job(_sizes(*size)) for size in MEASURED]
    steps = [j.step() for j in jobs]
    best = [float("inf")] * len(jobs)
    for _ in range(TURNS):
        for i, (j, step) in enumerate(zip(jobs, steps, strict=True)):
            with thread_settings(j.model, j.data, j.batch):  # as in training
                for _ in range(STEPS):
                    rows, start = j.rows(), process_time()
                    step(rows)
                    best[i] = min(best[i], process_time() - start)
    return best


def job(s: Sizes, **settings: Any) -> Any:
    """Training job of these sizes on complete data."""
    import numpy as np

    from vedute.data.views import Views
    from vedute_bench.speed.stopwatch import Job

    rng = np.random.default_rng(0)
    n = max(int(s.batch), 1000)  # smaller data have other defaults
    views = Views.of([rng.normal(size=(n, d)).astype(np.float32) for d in s.widths])
    known = {"batch_size": int(s.batch), "hidden": (s.hidden,), "latent_dim": s.latent}
    return Job.of(views, "cpu", known | {"map_hidden": (s.maps,), "steps": 100} | settings)


def _product_rate(size: int = 1024) -> float:
    """Maximum operations per second of a core in products of large matrices."""
    from time import process_time

    import torch

    a, best = torch.randn(2, size, size), 0.0
    for _ in range(10):
        start = process_time()
        a[0] @ a[1]
        best = max(best, 2 * size**3 / (process_time() - start))
    return best


def _fitted(times: Sequence[float], flops: float) -> dict[str, Any]:
    """Fit the other constants of a step by non-negative least squares of relative errors."""
    import numpy as np
    from scipy.optimize import nnls

    sizes, taken = [_sizes(*size) for size in MEASURED], np.array(times)
    terms = np.array([[1.0, s.views, values(s)] for s in sizes])
    unit, rest = terms.max(0), 1 - np.array([products(s) for s in sizes]) / flops / taken
    a, b, w = nnls(terms / unit / taken[:, None], rest)[0] / unit
    return {
        "steps": [[*size, t] for size, t in zip(MEASURED, times, strict=True)],
        "call_seconds": a,
        "view_seconds": b,
        "flops": flops,
        "values": 1 / w,
    }


def _reading(rows: int = 200_000) -> float:
    """Bytes of a store that a core reads per second."""
    from tempfile import TemporaryDirectory
    from time import process_time

    import numpy as np

    from vedute.data.views import Views
    from vedute.io import store as stores
    from vedute_bench.speed import store

    with TemporaryDirectory() as folder:
        place = Path(folder)
        store.make(place / "data", rows)
        X = [np.load(place / "data" / f"v{v}.npy") for v in range(store.VIEWS)]
        (place / "store").mkdir()
        stores.write(place / "store", Views.of(X), None)
        views, start = Views.open(place / "store", check=False), process_time()
        size = sum(sum(x.nbytes for x in piece.x) for piece in views.pieces())
        return float(size / (process_time() - start))


def _messages() -> dict[str, float]:
    """Latency and seconds per number of an all_reduce between two ranks, from the last records."""
    import numpy as np

    known = [r for r in _records("ranks") if "all_reduce" in r][-4:]
    numbers, taken = (np.array([r[k] for r in known]) for k in ("all_reduce", "seconds"))
    per = (taken[-1] - taken[0]) / (numbers[-1] - numbers[0])
    return {"message_seconds": float(taken[0]), "message_seconds_per_number": float(per)}


def _records(folder: str) -> list[dict[str, Any]]:
    return lines.read(RESULTS / folder / "records.jsonl")


# Predictions beside records.


def step_table(c: dict[str, Any]) -> str:
    """Table of steps by the number of views, half of them missing (step-by-views-aarch64.md)."""
    from vedute.data.missing import make_mask

    text = (RESULTS / "step-by-views-aarch64.md").read_text(encoding="utf-8").splitlines()
    cells = [line.strip("| ").split(" | ") for line in text if line.startswith("| ")]
    rows = [["a step with", "operations", "values", "predicted, ms", "recorded, ms", "ratio"]]
    for views, *_, taken in (c for c in cells if c[0].isdigit()):
        L, counts = int(views), make_mask(1000, int(views), 0.5, 42).sum(1)
        shares = counts.mean() / L, sum(map(kept, counts.tolist())) / len(counts) / L
        s = Sizes([50] * L, known=shares[0], seen=shares[1])
        t = 1e3 * step_seconds(s, c)
        ratio = f"{t / float(taken):.2f}"
        counted = [f"{products(s) / 1e9:.2f} G", f"{values(s) / 1e6:.0f} M"]
        rows.append([f"{L} views of 50", *counted, f"{t:.0f}", taken, ratio])
    return _table(rows)


def store_sizes() -> Sizes:
    """Sizes of `speed.store`.

    Each of three views is missing in a quarter of the rows; a tenth of the rest is hidden for early
    stopping.
    """
    seen = 0.75 * kept(2) + 0.25 * kept(3)
    return Sizes([50] * 3, known=0.9 * 0.75, seen=0.9 * seen / 3)


@dataclass(frozen=True)
class Scan:
    """Cost of a verb besides the model: seconds to start, and a rate of reading and writing."""

    seconds: float
    bytes_per_second: float


def scans(c: dict[str, Any]) -> dict[str, Scan]:
    """Costs by verb, linear in the rows, from the records of stores with BASES rows."""
    seconds = {(r["rows"], r["verb"]): r.get("seconds") for r in _records("store")}
    s, rates = store_sizes(), {}
    for verb in VERBS:
        few, many = (seconds[n, verb] - _known_seconds(verb, s, n, c) for n in BASES)
        rate = (BASES[1] - BASES[0]) * s.row_bytes / (many - few)
        rates[verb] = Scan(many - BASES[1] * s.row_bytes / rate, rate)
    return rates


def _known_seconds(verb: str, s: Sizes, rows: int, c: dict[str, Any]) -> float:
    """Predicted seconds of the model in a verb: training steps, and forward passes of rows."""
    if verb == "convert":
        return 0.0
    forward_values = (values(s) - 8 * parameters(s)) / s.batch / 3
    per_row = forward_products(s, verb == "impute") / c["flops"] + forward_values / c["values"]
    return float(rows * per_row + (FIT_STEPS * step_seconds(s, c) if verb == "fit" else 0.0))


def verb_seconds(verb: str, rows: int, c: dict[str, Any]) -> float:
    """Predicted seconds of a core for a verb on a store of `rows` rows."""
    s, scan = store_sizes(), scans(c)[verb]
    read = scan.seconds + rows * s.row_bytes / scan.bytes_per_second
    return read + _known_seconds(verb, s, rows, c)


def store_table(c: dict[str, Any]) -> str:
    lines = [["rows", "verb", "predicted, s", "recorded, s", "ratio"]]
    for r in sorted(_records("store"), key=lambda r: (r["rows"], r["verb"])):
        if r["verb"] == "train":
            continue
        t, taken = verb_seconds(r["verb"], r["rows"], c), r["seconds"]
        ratio = "set by it" if r["rows"] in BASES else f"{t / taken:.2f}"
        lines.append([f"{r['rows']:,}", f"`{r['verb']}`", f"{t:.0f}", f"{taken:.0f}", ratio])
    return _table(lines)


def ranks_table(c: dict[str, Any]) -> str:
    """Table of CPU seconds per step on one rank and on two (results/ranks)."""
    large = Sizes([1000] * 4, 1024, 1024, 64, known=0.9, seen=0.9 * kept(4) / 4)
    small = Sizes(HANDWRITTEN, known=0.9, seen=0.9 * kept(6) / 6)
    names = "ranks", "parameters", "sent, MB", "predicted, s", "recorded, s", "ratio"
    lines = [["MVP", *names]]
    last = {(r["case"], r["ranks"]): r for r in _records("ranks") if "core_seconds_per_step" in r}
    for (case, ranks), r in last.items():
        s = small if case.startswith("handwritten") else large
        t, taken = ranks_seconds(s, ranks, c), r["core_seconds_per_step"]
        counted = [f"{r['parameters'] / 1e6:.1f} M", f"{sent(s, ranks) / 1e6:.1f}"]
        row = [str(ranks), *counted, f"{t:.3f}", f"{taken:.3f}", f"{t / taken:.2f}"]
        lines.append([case, *row])
    return _table(lines)


# Predictions without records.

ROWS = 10**9
LINKS = {1: (0.0, 1.0), 8: (30e-6, 300e9), 64: (100e-6, 40e9)}  # assumed: start, bytes per second
GPU = {"handwritten, defaults": "defaults", "handwritten, preset": "published settings"}


def prediction_table(c: dict[str, Any]) -> str:
    """Table of one pass over ROWS samples of six views on several GPUs.

    Each GPU processes the rows of a step recorded on an H200 (results/speed-nvidia-h200.jsonl).
    """
    names = "settings", "GPUs", "rows per step", "message, ms", "step, ms", "samples/s"
    table = [[*names, "one pass", "reading, GB/s"]]
    row_bytes = Sizes(HANDWRITTEN).row_bytes
    known = lines.read(RESULTS / "speed-nvidia-h200.jsonl")
    steps = [r for r in known if r["part"] == "step" and r["name"] in GPU]
    for r in sorted(steps, key=lambda r: str(r["name"])):
        for gpus, (start, bandwidth) in LINKS.items():
            message = start + 8 * r["parameters"] * (gpus - 1) / gpus / bandwidth
            step, rows = r["step_ms"] / 1e3 + message, gpus * r["batch"]
            speed, times = rows / step, [f"{1e3 * message:.2f}", f"{1e3 * step:.2f}"]
            numbers = [f"{rows:,}", *times, f"{speed / 1e6:.2f} M", _duration(ROWS / speed)]
            reading = f"{speed * row_bytes / 1e9:.1f}"
            table.append([GPU[r["name"]], str(gpus), *numbers, reading])
    return _table(table)


def scan_sentence(c: dict[str, Any]) -> str:
    """Sentence on the predicted time of other passes."""
    s = Sizes(HANDWRITTEN)
    size = ROWS * s.row_bytes
    known = {verb: _duration(size / scan.bytes_per_second) for verb, scan in scans(c).items()}
    return (
        f"{ROWS:,} samples of {sum(s.widths)} numbers in {s.views} views are a store of "
        f"{size / 1e12:.1f} TB. On one thread, beside the model, `convert` would take "
        f"{known['convert']}, the passes of `fit` {known['fit']}, and `impute` {known['impute']}."
    )


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *others = rows
    lines = [head, ["--:" if i else "---" for i in range(len(head))], *others]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def constants_table(c: dict[str, Any]) -> str:
    calls = f"{1e3 * c['call_seconds']:.1f} + {1e3 * c['view_seconds']:.1f} L ms"
    per = f"{1e9 * c['message_seconds_per_number']:.1f} ms per million numbers"
    rows = [
        ("calls of a step, a + b L", calls),
        ("products, F", f"{c['flops'] / 1e9:.0f} G operations/s"),
        ("values, W", f"{c['values'] / 1e6:.0f} M values/s"),
        ("reading a store that the system has in memory", _megabytes(c["read_bytes_per_second"])),
        ("all_reduce of two ranks", f"{1e3 * c['message_seconds']:.1f} ms + {per}"),
    ]
    for verb, scan in scans(c).items():
        rate = f"{scan.seconds:.0f} s + {_megabytes(scan.bytes_per_second)}"
        rows.append((f"`{verb}`, beside the model", rate))
    return _table([("constant", "measured"), *rows])


def _megabytes(rate: float) -> str:
    return f"{rate / 1e6:.0f} MB/s"


def tables() -> list[str]:
    """Tables of the page, in their order."""
    c = json.loads(FILE.read_text(encoding="utf-8"))
    parts = constants_table, step_table, store_table, ranks_table, prediction_table, scan_sentence
    return [part(c) for part in parts]


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--measure", action="store_true", help="measure the constants of this machine"
    )
    parser.add_argument("--table", action="store_true", help="print the tables of the records")
    options = parser.parse_args()
    if options.measure:
        measure()
    if options.table:
        print("\n\n".join(tables()))


if __name__ == "__main__":
    main()
