"""The demo of images: objects seen from some sides, the other sides inferred by MVP."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from vedute.data.missing import drop_views
from vedute.data.views import Views
from vedute.estimators.base import Estimator
from vedute.estimators.method import Array
from vedute.figures.png import png
from vedute_bench.datasets import shapes
from vedute_bench.figures import contact_sheet
from vedute_bench.generation import cross_view
from vedute_bench.paper_mvp import PaperMVP
from vedute_bench.runner import samples

TITLE = "Tables, chairs, cars, airplanes and rifles; half of them lack some sides."
OBJECTS, SIZE = 2000, 32
RATE, MASK_SEED = 0.5, 42
PER_CLASS = 2  # objects per class on the sheet
SCORED = 100  # objects used for the scores
SETTINGS: dict[str, Any] = {
    "variant": "tables",  # for longer trainings
    "network": "polymnist",  # the smaller convolutions
    "output": "tanh",
    "latent_dim": 64,
    "rec_weight": 500.0,  # pixels differ less than standardised features do
    "view_dropout": 0.0,  # more steps for the time
    "dropout": 0.0,  # such a short training does not overfit
    "batch_size": 64,
    "steps": 800,
    "lr": 3e-3,
}


class Result(NamedTuple):
    """SSIM of inferred views by number of given views, for the model and for mean images."""

    ssim: dict[int, float]
    mean_ssim: dict[int, float]
    seconds: float

    def scores(self) -> dict[str, float]:
        scores = {f"ssim_{n}": round(x, 4) for n, x in self.ssim.items()}
        return scores | {f"mean_ssim_{n}": round(x, 4) for n, x in self.mean_ssim.items()}

    def show(self, console: Console, out: Path) -> None:
        for given, ssim in self.ssim.items():
            scored = f"SSIM {ssim:.3f}, a side's mean image {self.mean_ssim[given]:.3f}"
            console.print(f"inferred from {given} of 5 sides: {scored}")
        caption = "each object from its last side alone; below, the truth"
        console.print(f"In {out}: inferred.png ({caption})")


def run(folder: Path, seed: int) -> Result:
    """Fit, evaluate on new objects, and write inferred.png to `folder`."""
    train, test = (shapes.load(OBJECTS, split=s, size=SIZE) for s in ("train", "test"))
    start = perf_counter()
    model = PaperMVP(random_state=seed, **SETTINGS)
    model.fit(drop_views(train, RATE, MASK_SEED))
    seconds = perf_counter() - start
    (folder / "inferred.png").write_bytes(png(sheet(model, test)))
    scores, mean_scores = (
        cross_view.evaluate(predictor, cross_view.enter(model, test[:SCORED]), [])
        for predictor in (cross_view.by_model(model), cross_view.by_mean(train))
    )
    return Result(_ssim(scores), _ssim(mean_scores), seconds)


def sheet(model: Estimator, test: Views) -> Array:
    """Sheet of row pairs: the given view and all five views inferred from it; below, the truth."""
    assert test.y is not None
    firsts = [np.flatnonzero(test.y == k)[:PER_CLASS] for k in np.unique(test.y)]
    blocks = [_block(model, test, [int(i) for i in rows]) for rows in zip(*firsts, strict=True)]
    return np.hstack(blocks)


def _block(model: Estimator, test: Views, rows: list[int]) -> Array:
    """Stack the row pairs of several objects."""
    inferred, _ = samples.infer(model, test, rows, [test.shape[1] - 1] * len(rows))
    truth = np.stack([x[rows].numpy() for x in test.x], axis=1)
    blank = np.full_like(inferred[:, :1], 255)
    pairs = np.stack([inferred, np.concatenate([blank, truth], axis=1)], axis=1)
    return contact_sheet.sheet(pairs.reshape(-1, *inferred.shape[1:]), lead=1)


def _ssim(evaluation: cross_view.Evaluation) -> dict[int, float]:
    return {
        size: scores["ssim_missing"]
        for size, scores in evaluation.sizes.items()
        if "ssim_missing" in scores
    }
