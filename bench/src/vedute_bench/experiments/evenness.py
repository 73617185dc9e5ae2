"""Whitening power of a representation of images with the best clusters.

    python -m vedute_bench.experiments.evenness [DATASET] [--methods mvp] [--whole] [--out FILE]
    python -m vedute_bench.experiments.evenness --tables    for docs/pictures.md, from the records

Each training is scored at five powers: dimensions are divided by their standard deviation in
training to that power. 0 leaves the representation as it is, with 1 all dimensions have the same
variance. Apart from NMI, the scores need no labels; `same_clusters` is the agreement of clusters
from few views and from all. Data, seed and length are those of image_defaults.py, that is, a fifth
of the usual length, or the whole with `--whole`. For `shapes` there is also the share of the
representation's variance that class, color, size and place of the objects explain linearly.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from vedute import drop_views
from vedute.data.views import Views
from vedute.estimators.neural import NeuralEstimator
from vedute.methods import presets
from vedute.methods.mvp import whitening_factors
from vedute_bench import paper_mvp
from vedute_bench.experiments.image_defaults import (
    BOTH,
    EPOCHS,
    RATE,
    RIVALS,
    SAMPLES,
    SEED,
    _length,
    read,
)
from vedute_bench.generation import cross_view
from vedute_bench.places import RESULTS
from vedute_bench.runner.run import code, load
from vedute_bench.shapes import objects

FOLDER = RESULTS / "evenness"
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
NAMES = {"mvp": "mvp"} | RIVALS
COLUMNS = {
    "same_clusters_1": "same clusters from 1",
    "same_clusters_4": "from 4",
    "nmi_ten_1": "NMI from 1",
    "nmi_ten_5": "from 5",
}
EXPLAIN = ("class", "color", "size", "place")
Record = dict[str, Any]
Array = NDArray[np.float64]


def estimator(method: str, dataset: str, whole: bool) -> NeuralEstimator:
    """MVP with its defaults and without whitening; other methods with their presets."""
    if method == "mvp":
        settings: Record = {"evenness": 0.0} | ({} if whole else _length(dataset))
    else:
        epochs = 100 if whole else EPOCHS[dataset]["epochs"]
        settings = presets.find(method, dataset) | {"epochs": epochs}
    model = paper_mvp.find(method)(**settings, random_state=SEED)
    assert isinstance(model, NeuralEstimator)
    return model


def measure(method: str, dataset: str, whole: bool) -> list[Record]:
    seen, test = drop_views(load(dataset, "train"), RATE, SEED), load(dataset, "test")[:SAMPLES]
    model = estimator(method, dataset, whole).fit(seen)
    network = model.model_.eval()
    device = cross_view.device_of(model)
    learned = torch.from_numpy(model.transform(seen[:SAMPLES])).to(device)
    causes = factors(len(test)) if dataset == "shapes" else {}
    facts = {"dataset": dataset, "method": method, "whole": whole, "device": str(device)} | code()
    records = []
    for power in POWERS:
        scale = whitening_factors(learned, power)

        def predict(batch: Views, scale: torch.Tensor = scale) -> cross_view.Prediction:
            return cross_view.Prediction(network.embed(batch.floating()).float() * scale, [])

        sizes = cross_view.evaluate(predict, cross_view.enter(model, test), []).sizes
        scores = {f"{k}_{n}": round(v, 5) for n, row in sizes.items() for k, v in row.items()}
        z = model.transform(test) * scale.cpu().numpy()
        scores |= {f"by_{k}": round(explained(x, z), 5) for k, x in causes.items()}
        records.append(facts | {"power": power, "scores": scores})
    return records


def factors(n: int) -> dict[str, Array]:
    """Factors of the first n test objects of `shapes`, (n, ...) each."""
    rows, seed = objects.split_rows(objects.FULL, "test"), 0
    y = objects.labels(objects.FULL, seed)
    colors, places = [], []
    for i in range(objects.FULL)[rows][:n]:
        made, rng = objects.design(int(y[i]), i, seed)
        colors.append(np.mean([solid.color for solid in made.solids], axis=0))
        _, wide, at = objects.place(rng)
        places.append([wide, *at])
    size, place = np.split(np.array(places), [1], axis=1)
    parts = (np.eye(len(objects.CLASSES))[y[rows][:n]], np.array(colors), size, place)
    return dict(zip(EXPLAIN, parts, strict=True))


def explained(x: Array, z: Array) -> float:
    """Share of the variance of z (n, D) that x (n, ...) explains linearly."""
    predicted = LinearRegression().fit(x, z).predict(x)
    return float(r2_score(z, predicted, multioutput="variance_weighted"))


def table(records: list[Record], dataset: str) -> str:
    """Table of a dataset, with the best power of every training in bold."""
    shares = {f"by_{k}": f"variance by {k}" for k in EXPLAIN} if dataset == "shapes" else {}
    heads = (COLUMNS | shares).values()
    lines = ["| | power | " + " | ".join(heads) + " |", "|---|--:|" + "--:|" * len(heads)]
    for whole, method in ((w, m) for w in (False, True) for m in NAMES):
        facts = (dataset, method, whole)
        powers = [r for r in records if (r["dataset"], r["method"], r["whole"]) == facts]
        best = {k: max(r["scores"][k] for r in powers) for k in COLUMNS} if powers else {}
        for r in powers:
            values = ((r["scores"][k], best.get(k)) for k in COLUMNS | shares)
            cells = (f"**{100 * v:.1f}**" if v == top else f"{100 * v:.1f}" for v, top in values)
            name = NAMES[method] + (", whole training" if whole else "")
            lines.append(f"| {name} | {r['power']:g} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("dataset", nargs="?", choices=BOTH)
    parser.add_argument("--methods", default=",".join(NAMES))
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--out", type=Path, default=FOLDER / "records.jsonl")
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if options.tables:
        for name in BOTH:
            text = table(read(options.out), name)
            (options.out.parent / f"{name}.md").write_text(text, encoding="utf-8")
    else:
        for name in [options.dataset] if options.dataset else BOTH:
            for method in options.methods.split(","):
                options.out.parent.mkdir(parents=True, exist_ok=True)
                with options.out.open("a", encoding="utf-8") as file:
                    for record in measure(method, name, options.whole):
                        file.write(json.dumps(record) + "\n")
                print(name, method, flush=True)
