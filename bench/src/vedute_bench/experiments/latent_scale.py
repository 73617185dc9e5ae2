"""What keeps MVP's latents from growing: their scale over a training.

    python -m vedute_bench.experiments.latent_scale           all runs, one JSON line each
    python -m vedute_bench.experiments.latent_scale --table   for docs/what-makes-mvp-work.md

The runs of the study `anchor`, tanh at the end of encoders (`bounded`) and weight decay, each with
and without the other, from the defaults, with early stopping off, so that all are equally long;
half of the samples incomplete, one seed. At some steps, of complete samples and the own latents of
their views:

    mean     root mean square of the posterior means
    width    mean of the posterior deviations
"""

from __future__ import annotations

from argparse import ArgumentParser
from itertools import product
from typing import Any

import torch

from vedute import datasets, drop_views
from vedute.data.views import Views
from vedute.methods.mvp import MVP
from vedute.nn import gaussian
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
    inside: Any = model.fitted_model()
    batch = model.network_input(model.learner.scaled(complete)).to(model.torch_device()).floating()
    sources = inside.sources(batch)
    own = inside.latents(batch, sources).map(sources.own)
    size, width = own.mean.square().mean().sqrt(), gaussian.std(own).mean()
    return {"mean": round(float(size), 4), "width": round(float(width), 4)}


def watch(dataset: str, bounded: bool, decay: float) -> dict[str, Any]:
    """The scale at the first epoch that ends at a mark or later; where it was measured."""
    truth = datasets.load(dataset)
    model = PaperMVP(bounded=bounded, weight_decay=decay, random_state=SEED, **LENGTH)
    found: dict[int, Scale] = {}

    def look(record: dict[str, Any]) -> None:
        due = [mark for mark in MARKS if mark <= record["step"] and mark not in found]
        for mark in due:
            found[mark] = scale(model, truth[:SAMPLES])

    model.callbacks = [look]
    model.fit(drop_views(truth, RATE, SEED))
    return {"scales": {str(k): v for k, v in found.items()}, "device": run._device(model)}


def label(bounded: bool, decay: float) -> str:
    parts = ["bounded"] * bounded + ["weight decay"] * (decay > 0)
    return " + ".join(parts) or "neither"


def recorded() -> list[dict[str, Any]]:
    return lines.read(FILE)


def table(found: list[dict[str, Any]]) -> str:
    lines = [f"| mean (width), after steps | {' | '.join(map(str, MARKS))} |"]
    lines.append("|---|" + "--:|" * len(MARKS))
    for r in found:
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
