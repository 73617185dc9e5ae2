"""Pictures from sentences and sentences from pictures, on the generated set `captions`.

    python -m vedute_bench.experiments.captions [--quick] [--device cuda]

MVP is fitted on pairs, half of which lack one side, and scored on the test split. Captions inferred
from pictures are scored by the shares that name the right class and colour. Pictures inferred from
captions are scored by a classifier of real pictures, and by the share whose pixels show the colour,
beside real pictures and chance (`vedute_bench.metrics.colors`). The script writes
bench/results/captions-<device>.json.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from vedute.data.missing import drop_views
from vedute.data.views import Views
from vedute.methods.mvp import MVP
from vedute_bench.datasets import captions
from vedute_bench.generation import classifiers
from vedute_bench.metrics import colors
from vedute_bench.paper_mvp import PaperMVP
from vedute_bench.places import RESULTS
from vedute_bench.speed import stopwatch

RATE, MASK_SEED = 0.5, 42
SETTINGS: dict[str, Any] = {
    "network": "polymnist",
    "latent_dim": 64,
    "likelihood": {"image": "normal"},
    "output": "tanh",
    "average": False,  # a picture has more information than a sentence
    "rec_weight": 4.0,
    "batch_size": 256,
    "lr": 2e-3,
    "cooldown": 2000,
    "early_stopping": False,  # pictures get worse while sentences still get better
    "random_state": 0,
}


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a short trial run")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--samples", type=int, default=25_000)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=7_000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    samples, steps = (200, 10) if options.quick else (options.samples, options.steps)
    train, test = (captions.load(samples, split=s, size=options.size) for s in ("train", "test"))
    start = perf_counter()
    model = PaperMVP(**SETTINGS, steps=steps, device=options.device)
    model.fit(drop_views(train, RATE, MASK_SEED))
    fact = {"samples": samples, "size": options.size, "steps": model.history_[-1]["step"]}
    fact |= {"seconds": round(perf_counter() - start, 1)}
    fact |= {"device": stopwatch.device_name(options.device), "torch": torch.__version__}
    fact |= {"settings": SETTINGS | {"steps": steps}, "rate": RATE, "mask_seed": MASK_SEED}
    fact |= from_pictures(model, test) | from_captions(model, train, test, options)
    print(json.dumps(fact, indent=1))
    options.out.mkdir(parents=True, exist_ok=True)
    name = f"captions-{stopwatch.slug(fact['device'])}{'-quick' if options.quick else ''}.json"
    (options.out / name).write_text(json.dumps(fact, indent=1) + "\n", encoding="utf-8")


def alone(test: Views, view: int) -> Views:
    """Test samples with all other views hidden."""
    hidden = torch.ones_like(test.mask)
    hidden[:, view] = False
    return test.hide(hidden)


def from_pictures(model: MVP, test: Views) -> dict[str, Any]:
    """Shares of inferred captions whose first class and first colour are those of the object."""
    imputed = model.impute(alone(test, 0)).x[1]
    inferred, true = captions.meaning(imputed), captions.meaning(test.x[1])
    kind, color = (i == t for i, t in zip(inferred, true, strict=True))
    examples = [captions.words(t) for t in imputed[:10]]
    shares = {"class": kind, "colour": color, "both": kind & color}
    percent = {f"captions_{k}": round(100 * float(np.mean(v)), 2) for k, v in shares.items()}
    return percent | {"examples": examples}


def from_captions(model: MVP, train: Views, test: Views, options: Any) -> dict[str, Any]:
    """Shares of inferred pictures in which classifiers find the class and colour of the caption."""
    drawn = model.impute(alone(test, 1)).x[0]
    scores: dict[str, Any] = {}
    for part, name in enumerate(("class", "colour")):
        real, true = (
            torch.from_numpy(captions.meaning(views.x[1])[part]) for views in (train, test)
        )
        recipe = classifiers.RECIPES["shared"]
        judge = classifiers.train(train.x[0], real, int(real.max()) + 1, recipe, options.device)
        inferred, real_ones = (classifiers.accuracy(judge, x, true) for x in (drawn, test.x[0]))
        scores[f"pictures_{name}"] = round(100 * inferred, 2)
        scores[f"classifier_{name}"] = round(100 * real_ones, 2)
    sentences = [captions.words(t) for t in test.x[1]]
    for name, x in {"pictures": drawn, "real": test.x[0]}.items():
        shares = colors.agreement(torch.as_tensor(x), sentences, ground="white")
        scores |= {f"{name}_pixels_{k}": round(100 * v, 2) for k, v in shares.items()}
    return scores


if __name__ == "__main__":
    main()
