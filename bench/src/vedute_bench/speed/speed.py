"""Speed of vedute on this machine, and the growth of its costs.

    python -m vedute_bench.speed.speed [--quick] [--parts step,images,vaes,scaling,fit,verbs]

- step: One optimisation step of MVP on Handwritten, compared with its matrix products, and with the
  reference of the tests (eager, with the same precision, optimizer and loss).
- images: One step on five image views with the shape and the preset of PolyMNIST.
- vaes: One step of the multimodal VAEs on the same images, captured and eager.
- scaling: One step by the numbers of views, latent dimensions, batch size and samples.
- fit: A complete `fit`, the second of the process.
- verbs: `transform` and `impute` of 100 000 samples with three views of 50 features.

Writes bench/results/speed-<device>.jsonl, .md and .png.
"""

from __future__ import annotations

import platform
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from vedute import datasets, methods
from vedute.data.missing import drop_views
from vedute.data.views import Views
from vedute.datasets import synthetic
from vedute.methods import presets
from vedute.methods.mvp import MVP
from vedute_bench.figures import files
from vedute_bench.places import RESULTS
from vedute_bench.runner import lines
from vedute_bench.speed import reference, stopwatch
from vedute_bench.speed.stopwatch import Job, PeakMemory

Fact = dict[str, Any]
VAES = ("mvae", "mmvae", "mopoe", "mmjsd", "mvtcae", "mmvaeplus")
BASE = {"views": 4, "latent": 32, "batch": 128, "samples": 10_000}
AXES = {
    "views": (2, 4, 8, 16),
    "latent": (8, 16, 32, 64, 128),
    "batch": (64, 128, 256, 512, 1024),
    "samples": (1000, 10_000, 100_000),
}


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a short trial run")
    parser.add_argument(
        "--parts", default=",".join(PARTS), help="parts to run, separated by commas"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_float32_matmul_precision("high")  # as training does
    name = stopwatch.device_name(options.device)
    print(f"{name}, torch {torch.__version__}")
    facts: list[Fact] = []
    for part in options.parts.split(","):
        for fact in PARTS[part](options):
            facts.append({"part": part, **fact})
            print("  ".join(f"{k} {_short(v)}" for k, v in facts[-1].items()), flush=True)
    write(options, name, facts)


def step(options: Namespace) -> Iterator[Fact]:
    views = incomplete(datasets.load("handwritten"))
    for name, settings in {"preset": presets.find("mvp", "handwritten"), "defaults": {}}.items():
        yield {"name": f"handwritten, {name}", **_against_reference(options, views, settings)}


def images(options: Namespace) -> Iterator[Fact]:
    views, few = _noise(options)
    settings = presets.find("mvp", "polymnist") | few
    yield {"name": "five views 3 x 28 x 28", **_against_reference(options, views, settings)}


def vaes(options: Namespace) -> Iterator[Fact]:
    views, few = _noise(options)
    rows = [(name, {}) for name in VAES] + [("mmvae", {"samples": 10})]
    for name, more in rows:
        settings = presets.find(name, "polymnist") | {"batch_size": 256} | few | more
        job = Job.of(views, options.device, settings, methods.find(name))
        memory, budget = PeakMemory(options.device), 0.3 if options.quick else 3.0
        ours = job.step_ms(job.step(), budget)
        peak = memory.read()
        eager = job.step_ms(job.step(capture=False), budget)
        yield {
            "name": name + "".join(f", {k} {v}" for k, v in more.items()),
            "batch": job.batch,
            "parameters": stopwatch.parameters(job.model),
            "step_ms": ours,
            "eager_ms": eager,
            "ratio": eager / ours,
            "memory_mib": peak,
        }


def _noise(options: Namespace) -> tuple[Views, dict[str, Any]]:
    """Five views with the shape of PolyMNIST, and the settings for a quick run."""
    rows, few = (512, {"batch_size": 16}) if options.quick else (10_000, {})
    x = torch.randint(256, (5, rows, 3, 28, 28), dtype=torch.uint8)
    return incomplete(Views.of(list(x.numpy()))), few


def _against_reference(options: Namespace, views: Views, settings: dict[str, Any]) -> Fact:
    device, budget = options.device, 0.3 if options.quick else 3.0
    job = Job.of(views, device, settings)
    rate = stopwatch.gemm_rate(device, budget, job.bf16)
    slow, memory = reference.SlowMVP.of(job.model), PeakMemory(device)
    comparison, difference = reference.agreement(job, slow)
    ours = job.step_ms(job.step(), budget)
    peak = memory.read()
    theirs = job.step_ms(job.step(slow, capture=False), budget)
    flops = job.flops()
    return {
        "batch": job.batch,
        "precision": "bf16" if job.bf16 else "tf32" if device == "cuda" else "float32",
        "parameters": stopwatch.parameters(job.model),
        "step_ms": ours,
        "samples_per_s": 1e3 * job.batch / ours,
        "reference_ms": theirs,
        "ratio": theirs / ours,
        "loss_difference": difference,
        "compared": comparison,
        "gflop": flops / 1e9,
        "peak_tflops": rate / 1e12,
        "floor_ms": 1e3 * flops / rate,
        "fraction_of_floor": 1e3 * flops / rate / ours,
        "memory_mib": peak,
    }


def scaling(options: Namespace) -> Iterator[Fact]:
    budget = 0.1 if options.quick else 1.5
    for axis, values in AXES.items():
        for value in values[:2] if options.quick else values:
            at = BASE | {axis: value}
            views = incomplete(synthetic.load(at["samples"], (50,) * at["views"]))
            settings = {"latent_dim": at["latent"], "batch_size": at["batch"]}
            job, memory = Job.of(views, options.device, settings), PeakMemory(options.device)
            ms = job.step_ms(job.step(), budget)
            fact = {"axis": axis, "value": value, "step_ms": ms, "memory_mib": memory.read()}
            fact["samples_per_s"] = 1e3 * at["batch"] / ms
            if axis == "views":
                slow = job.step(reference.SlowMVP.of(job.model), capture=False)
                fact["reference_ms"] = job.step_ms(slow, budget)
            yield fact


def fit(options: Namespace) -> Iterator[Fact]:
    views = incomplete(datasets.load("handwritten"))
    many = {"preset": presets.find("mvp", "handwritten"), "defaults": {}}
    if options.device == "cpu":
        del many["preset"]  # ten minutes
    for name, settings in many.items():
        few = {"steps": 20, "epochs": 5 if "epochs" in settings else None} if options.quick else {}
        first, second = (_fit(views, settings | few | {"device": options.device}) for _ in range(2))
        steps = second[1].history_[-1]
        yield {
            "name": f"handwritten, {name}",
            "first_s": first[0],
            "second_s": second[0],
            "steps": steps["step"],
            "epochs": steps["epoch"],
        }


def verbs(options: Namespace) -> Iterator[Fact]:
    rows = 5000 if options.quick else 100_000
    views = incomplete(synthetic.load(rows, (50,) * 3))
    X = [np.where(views.mask[:, [v]], x.numpy(), np.nan) for v, x in enumerate(views.x)]
    _, model = _fit(views[:2000], {"steps": 100, "device": options.device})
    model.transform([x[:500] for x in X])
    for verb in ("transform", "impute"):
        memory, start = PeakMemory("cpu"), perf_counter()
        getattr(model, verb)(X)
        took = perf_counter() - start
        yield {"verb": verb, "rows": rows, "seconds": took, "resident_mib": memory.read()}


PARTS = {
    "step": step,
    "images": images,
    "vaes": vaes,
    "scaling": scaling,
    "fit": fit,
    "verbs": verbs,
}


def incomplete(views: Views) -> Views:
    return drop_views(views, 0.5, 42)


def _fit(views: Views, settings: dict[str, Any]) -> tuple[float, MVP]:
    start = perf_counter()
    model = MVP(n_clusters=10, random_state=0, **settings).fit(views)
    stopwatch.synchronize()
    return perf_counter() - start, model


def write(options: Namespace, name: str, facts: list[Fact]) -> None:
    """Write records, tables and the figure."""
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"speed-{stopwatch.slug(name)}{'-quick' if options.quick else ''}"
    about = {"device": name, "torch": torch.__version__, "python": platform.python_version()}
    lines.write(path.with_name(path.name + ".jsonl"), [{**fact, **about} for fact in facts])
    command = f"python -m vedute_bench.speed.speed --parts {options.parts}"
    text = f"# Speed on {name}\n\ntorch {torch.__version__}; `{command}`\n"
    for part in PARTS:
        of_part = [{k: v for k, v in f.items() if k != "part"} for f in facts if f["part"] == part]
        heads = list(dict.fromkeys(k for fact in of_part for k in fact))
        rows = ["|".join(_short(fact.get(k, "")) for k in heads) for fact in of_part]
        table = ["|".join(heads), "|".join("---" for _ in heads), *rows]
        if of_part:
            text += f"\n## {part}\n\n" + "".join(f"|{row}|\n" for row in table)
    path.with_name(path.name + ".md").write_text(text, encoding="utf-8")
    if any(fact["part"] == "scaling" for fact in facts):
        draw(path.with_name(path.name + ".png"), name, facts)
    print(f"wrote {path}.*")


def draw(path: Path, name: str, facts: list[Fact]) -> None:
    """Draw the growth of the time of a step."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.2), layout="constrained")
    for ax, axis in zip(figure.subplots(1, len(AXES), sharey=True), AXES, strict=True):
        on_axis = [f for f in facts if f.get("axis") == axis]
        for key, style, label in (
            ("step_ms", "o-", "vedute"),
            ("reference_ms", "s--", "reference"),
        ):
            timed = [f for f in on_axis if key in f]
            if timed:
                ax.plot([f["value"] for f in timed], [f[key] for f in timed], style, label=label)
        ax.set(xscale="log", yscale="log", xlabel=axis, xticks=[f["value"] for f in on_axis])
        ax.set_xticklabels([f"{f['value']:g}" for f in on_axis])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    figure.axes[0].set_ylabel("ms a step")
    figure.axes[0].legend(frameon=False)
    base = ", ".join(f"{v} {k}" for k, v in BASE.items())
    figure.suptitle(f"{name}; otherwise {base}, width 50", fontsize=9)
    files.save(figure, path, 150)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
