"""Scale of MVP's latents during training, and what keeps it from growing.

    python -m vedute_bench.experiments.latent_scale           all runs, one JSON line each
    python -m vedute_bench.experiments.latent_scale --table   for docs/what-makes-mvp-work.md

The runs are those of the study `anchor`: tanh at the end of encoders (`bounded`) and weight decay,
each with and without the other. They start from the defaults, without early stopping, so that all
have the same length; half of the samples are incomplete, with one seed. The scores at some steps
are computed from the views' own latents of complete samples:

    mean     Root mean square of the posterior means.

    width    Mean of the posterior standard deviations.
"""

from __future__ import annotations

from argparse import ArgumentParser
from itertools import product
from typing import Any

import torch

from vedute import datasets, drop_views
from vedute.data.views import Views
from vedute.estimators import front
from vedute.methods.mvp import MVP
from vedute.nn import gaussian
from vedute.nn.correspondences import Sources
from vedute_bench.paper_mvp import PaperMVP
from vedute_bench.places import RESULTS
from vedute_bench.runner import lines, records, run

FILE = RESULTS / "anchor" / "scale.jsonl"
DATASETS, RATE, SEED, SAMPLES = ("cub", "handwritten"), 0.5, 42, 500
LENGTH, MARKS = {"steps": 1500, "early_stopping": False}, (50, 250, 500, 1000, 1500)
DECAY = 0.1
Scale = dict[str, float]


@torch.no_grad()
def scale(model: MVP, complete: Views) -> Scale:
    network: Any = model.model_.eval()
    narrow = front.narrow(model.front_, model.learner.scaled(complete).bare())
    batch = narrow.to(model.torch_device()).floating()
    sources = Sources.of(batch.mask, batch.present() is None)
    latents = network.latents(batch, sources).map(sources.own)
    size, width = latents.mean.square().mean().sqrt(), gaussian.std(latents).mean()
    return {"mean": round(float(size), 4), "width": round(float(width), 4)}


def watch(dataset: str, bounded: bool, decay: float) -> dict[str, Any]:
    """Scales at the first epochs that end at the marks or later, and the device."""
    truth = datasets.load(dataset)
    model = PaperMVP(bounded=bounded, weight_decay=decay, random_state=SEED, **LENGTH)
    scales: dict[int, Scale] = {}

    def measure(record: dict[str, Any]) -> None:
        due = [mark for mark in MARKS if mark <= record["step"] and mark not in scales]
        for mark in due:
            scales[mark] = scale(model, truth[:SAMPLES])

    model.callbacks = [measure]
    model.fit(drop_views(truth, RATE, SEED))
    return {"scales": {str(k): v for k, v in scales.items()}, "device": run._device(model)}


def label(bounded: bool, decay: float) -> str:
    parts = ["bounded"] * bounded + ["weight decay"] * (decay > 0)
    return " + ".join(parts) or "neither"


def recorded() -> list[dict[str, Any]]:
    return lines.read(FILE)


def table(known: list[dict[str, Any]]) -> str:
    lines = [f"| mean (width), after steps | {' | '.join(map(str, MARKS))} |"]
    lines.append("|---|" + "--:|" * len(MARKS))
    for r in known:
        cells = (f"{s['mean']:.2f} ({s['width']:.2f})" for s in r["scales"].values())
        lines.append(f"| {r['dataset']}, {r['label']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--table", action="store_true")
    if not parser.parse_args().table:
        FILE.unlink(missing_ok=True)
        for name, bounded, decay in product(DATASETS, (True, False), (DECAY, 0.0)):
            about = {"dataset": name, "label": label(bounded, decay), "seed": SEED, "rate": RATE}
            about |= watch(name, bounded, decay)
            records.append(FILE, about | run.code())
            print(name, about["label"], about["scales"], flush=True)
    FILE.with_suffix(".md").write_text(table(recorded()), encoding="utf-8")
