"""Search of MVP's defaults for images: short trainings on two image datasets.

    python -m vedute_bench.experiments.image_defaults [DATASET] [--out FILE]   missing runs
    python -m vedute_bench.experiments.image_defaults --tables    for docs/pictures.md

Trainings have a fifth of the usual length, one seed, and half of the samples incomplete. The scores
are computed on 3000 test samples; `hidden_error` and `hidden_ssim` are those of views hidden from
3000 training samples. The defaults were chosen by these two, except for the choices named in
docs/pictures.md.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

from vedute import drop_views
from vedute.data.views import Views
from vedute.estimators.base import Estimator
from vedute.methods import presets
from vedute_bench import paper_mvp
from vedute_bench.generation import classifiers, cross_view
from vedute_bench.places import RESULTS
from vedute_bench.runner import lines
from vedute_bench.runner.run import code, load

FOLDER = RESULTS / "image-defaults"
MVP = "paper_mvp"  # with all switches
SEED, RATE, SAMPLES = 42, 0.5, 3000
TIDY = {"dropout": 0.2, "weight_decay": 0.05}
FREE = TIDY | {"bounded": False}
JOINT = FREE | {"objective": "joint", "prior": "joint"}
HIDING = {"view_dropout": 0.3}
LAPLACE = {"likelihood": "laplace"}
FIRST = {  # start of our search
    **JOINT,
    **HIDING,
    "variant": "tables",
    "lr": 5e-4,
    "dropout": None,
    "latent_dim": 128,
    "map_hidden": [256, 512, 256],
    "linear_paths": False,
    "average": False,
    "rec_weight": 0.16,
    "clip": 1.0,
}
QUARTER, HALF, NONE = ({"view_dropout": rate} for rate in (0.25, 0.15, 0.0))
FOUR, SIXTEEN = {"rec_weight": 0.64}, {"rec_weight": 2.56}
TANH = {"output": "tanh"}
PRIOR = {"beta_prior": 1.0}
EPOCHS = {
    "polymnist": {"epochs": 21, "warmup": 4, "cooldown": 5},
    "shapes": {"epochs": 20, "warmup": 4, "cooldown": 5, "lr": 1e-3},
}
STEPS = {"polymnist": 5000, "shapes": 1600}
BOTH, DIGITS, OBJECTS = ("polymnist", "shapes"), ("polymnist",), ("shapes",)
Variant = tuple[str, Sequence[str], dict[str, Any]]
PUBLISHED: tuple[Variant, ...] = (  # from the preset of the paper
    ("cyclic, bounded", BOTH, TIDY | {"bounded": True}),
    ("cyclic, bounded, lr=1e-3", DIGITS, TIDY | {"bounded": True, "lr": 1e-3}),
    ("cyclic", BOTH, FREE),
    ("cyclic + hiding", BOTH, FREE | HIDING),
    ("cyclic, bounded, decoded jointly", DIGITS, JOINT | {"prior": "cyclic", "bounded": True}),
    ("cyclic + hiding, decoded jointly", OBJECTS, JOINT | HIDING | {"prior": "cyclic"}),
    ("N(0, 1)", BOTH, FREE | {"prior": "standard"}),
    ("joint", BOTH, JOINT),
    ("joint + hiding", BOTH, JOINT | HIDING),
    ("joint, no permutation", OBJECTS, JOINT | {"permutation": "none"}),
    ("joint, half of the betas", OBJECTS, JOINT | {"beta": 2.5}),
    ("joint, twice the betas", DIGITS, JOINT | {"beta": 10.0}),
)
HEAVY = "first, tanh, 4 × rec_weight, no hiding"  # the defaults, before there were whole trainings
HIDDEN = "first, tanh, a quarter hidden"  # the defaults
OURS: tuple[Variant, ...] = (  # from FIRST
    ("first", BOTH, {}),
    ("first, lr=1e-3", BOTH, {"lr": 1e-3}),
    ("first, half of the hiding", BOTH, HALF),
    ("first, no hiding", BOTH, NONE),
    ("first, beta_prior=1", DIGITS, PRIOR),
    ("first, beta_prior=1, no hiding", OBJECTS, PRIOR | NONE),
    ("first, latent_dim=256, no hiding", OBJECTS, {"latent_dim": 256} | NONE),
    ("first, 4 × rec_weight", BOTH, FOUR),
    ("first, 4 × rec_weight, no hiding", BOTH, FOUR | NONE),
    ("first, 16 × rec_weight", BOTH, SIXTEEN),
    ("first, 16 × rec_weight, half of the hiding", BOTH, SIXTEEN | HALF),
    ("first, 16 × rec_weight, no hiding", OBJECTS, SIXTEEN | NONE),
    ("first, 16 × rec_weight, beta_prior=1", OBJECTS, SIXTEEN | PRIOR),
    ("first, 64 × rec_weight", DIGITS, {"rec_weight": 10.24}),
    ("first, tanh", DIGITS, TANH),
    ("first, tanh, half of the hiding", BOTH, TANH | HALF),
    (
        "first, tanh, half of the hiding, no views held out",
        BOTH,
        TANH | HALF | {"early_stopping": False},
    ),
    ("first, tanh, half of the hiding, half shared", BOTH, TANH | HALF | {"shared_dim": 64}),
    (HEAVY, BOTH, TANH | FOUR | NONE),
    (f"{HEAVY}, laplace", BOTH, TANH | FOUR | NONE | LAPLACE),
    (f"{HEAVY}, smaller network", BOTH, TANH | FOUR | NONE | {"network": "polymnist"}),
    ("first, tanh, 16 × rec_weight, no hiding", BOTH, TANH | SIXTEEN | NONE),
    (HIDDEN, BOTH, TANH | QUARTER),
    (f"{HIDDEN}, sharpened", BOTH, TANH | QUARTER | {"sharpen": True}),
    (f"{HIDDEN}, laplace, ¼ × rec_weight", BOTH, TANH | QUARTER | LAPLACE | {"rec_weight": 0.04}),
    (f"{HIDDEN}, laplace, ⅛ × rec_weight", BOTH, TANH | QUARTER | LAPLACE | {"rec_weight": 0.02}),
    ("first, laplace", BOTH, LAPLACE),
    ("first, laplace, lr=1e-3", DIGITS, LAPLACE | {"lr": 1e-3}),
    ("first, laplace, twice rec_weight", BOTH, LAPLACE | {"rec_weight": 0.32}),
    ("first, laplace, latent_dim=256", OBJECTS, LAPLACE | {"latent_dim": 256}),
    ("first, laplace, half of the hiding", BOTH, LAPLACE | HALF),
)
OTHERS: tuple[Variant, ...] = (("", BOTH, {}), (", regularised", BOTH, TIDY))
COLUMNS = {
    "hidden_error": "hidden error",
    "hidden_ssim": "hidden SSIM",
    "ssim_missing": "SSIM from 1 view | from 4",
    "same_clusters": "same clusters from 1",
    "nmi_ten": "NMI from 1 | from 4",
    "coherence_missing": "coherence from 1 | from 4",
}
Record = dict[str, Any]


def variants() -> list[Record]:
    """Label, dataset, method, preset and settings of every training."""
    trainings = []
    for label, sets, settings in PUBLISHED:
        trainings += [
            _one(label, d, MVP, "paper", EPOCHS[d] | _faster(label, d) | settings) for d in sets
        ]
    for label, sets, settings in OURS:
        trainings += [_one(label, d, MVP, None, FIRST | _length(d) | settings) for d in sets]
    for end, sets, settings in OTHERS:
        for d, (method, name) in product(sets, RIVALS.items()):
            epochs = {"epochs": EPOCHS[d]["epochs"]}
            trainings.append(_one(name + end, d, method, "paper", epochs | settings))
    return trainings


RIVALS = {"mvtcae": "MVTCAE", "mmjsd": "mmJSD"}  # best other methods on PolyMNIST


def _length(dataset: str) -> dict[str, int]:
    steps = STEPS[dataset]
    return {"steps": steps, "warmup": steps // 5, "cooldown": steps // 5, "patience": steps // 4}


def _faster(label: str, dataset: str) -> dict[str, float]:
    """Twice the preset's learning rate for joint variants on PolyMNIST."""
    return {"lr": 1e-3} if "joint" in label and dataset == "polymnist" else {}


def _one(label: str, dataset: str, method: str, preset: str | None, settings: Any) -> Record:
    return {
        "label": label,
        "dataset": dataset,
        "method": method,
        "preset": preset,
        "settings": settings,
    }


def measure(training: Record, real: Views, test: Views, seen: Views, folder: Path) -> Record:
    published = "mvp" if training["method"] == MVP else training["method"]
    preset = presets.find(published, training["dataset"]) if training["preset"] else {}
    hp = {**preset, **training["settings"], "random_state": SEED}
    start = perf_counter()
    model: Estimator = paper_mvp.find(training["method"])(**hp).fit(seen)
    seconds = perf_counter() - start
    device, predictor = cross_view.device_of(model), cross_view.by_model(model)
    kinds = ["per_view"] if training["dataset"] == "polymnist" else []
    judges = classifiers.judges(kinds, real, test, device, folder / "classifiers")
    sizes = cross_view.evaluate(predictor, cross_view.enter(model, test), judges).sizes
    entered = (cross_view.enter(model, views[:SAMPLES]) for views in (real, seen))
    scores = cross_view.hidden_in_training(predictor, *entered)
    scores |= {f"{k}_{n}": v for n, row in sizes.items() for k, v in row.items()}
    results = {
        "device": str(device),
        "seconds": round(seconds, 1),
        "scores": {k: round(v, 5) for k, v in scores.items()},
    }
    return training | code() | results


def run(path: Path, sets: Sequence[str]) -> None:
    done = [_key(r) for r in read(path)]
    for dataset in sets:
        left = [v for v in variants() if v["dataset"] == dataset and _key(v) not in done]
        if not left:
            continue
        real, test = load(dataset, "train"), load(dataset, "test")[:SAMPLES]
        seen = drop_views(real, RATE, SEED)
        for training in left:
            record = measure(training, real, test, seen, path.parent)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            print(dataset, training["label"], f"{record['seconds']:.0f} s", flush=True)


def read(path: Path) -> list[Record]:
    return lines.read(path)


def _key(record: Record) -> tuple[str, str]:
    return record["dataset"], record["label"]


def table(records: Sequence[Record], dataset: str) -> str:
    """Table of a dataset in the order of `variants`, best in bold."""
    order = [_key(v) for v in variants()]
    on_dataset = [r for r in records if r["dataset"] == dataset]
    on_dataset.sort(key=lambda r: order.index(_key(r)))
    known = {name for r in on_dataset for name in r["scores"]}
    columns = {k: v for k, v in COLUMNS.items() if any(name.startswith(k) for name in known)}
    names = [k if k.startswith("hidden") else f"{k}_{n}" for k in columns for n in _sizes(k)]
    lines = ["| | " + " | ".join(columns.values()) + " |", "|---|" + "--:|" * len(names)]
    best = {k: _best(k, [r["scores"][k] for r in on_dataset if k in r["scores"]]) for k in names}
    for r in on_dataset:
        cells = (_shown(k, r["scores"].get(k), best[k]) for k in names)
        lines.append(f"| {r['label']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _sizes(column: str) -> tuple[int, ...]:
    return (1,) if column.startswith(("hidden", "same")) else (1, 4)


def _best(name: str, values: Sequence[float]) -> float:
    return min(values) if name == "hidden_error" else max(values)


def _shown(name: str, value: float | None, best: float) -> str:
    if value is None:  # not measured when this training was made
        return ""
    percent = name.startswith(("same_clusters", "nmi", "coherence"))
    text = f"{100 * value:.1f}" if percent else f"{value:.4f}"
    return f"**{text}**" if value == best else text


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("dataset", nargs="?", choices=BOTH)
    parser.add_argument("--out", type=Path, default=FOLDER / "records.jsonl")
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if not options.tables:
        run(options.out, [options.dataset] if options.dataset else BOTH)
    for name in BOTH:
        (FOLDER / f"{name}.md").write_text(table(read(options.out), name), encoding="utf-8")
