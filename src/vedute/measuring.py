"""One run: fit, score, and record everything that is needed to do it again.

A record has what was asked (`Run`), the rates of its mask, versions, device, threads, and

    seconds, wall   of `fit`, and of the whole run; jobs: how many runs there were at once
    steps           of training, if there was any
    scores          clustering: acc nmi ari of `labels_` in percent, kmeans_* where these have
                    another rule; error of hidden views; coverage of 90 % intervals in percent
                    generation: those of `generation`, _1 from one given view, _2 from two, ...,
                    classifier_* of real images, mean_* and nearest_* of what needs no model;
                    in percent, but ssim
    subsets         generation: the scores of each subset, evaluated in `evaluation` seconds

Generation runs keep classifiers, and a picture each, in folders beside the masks.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans

from vedute import (
    __version__,
    classifiers,
    datasets,
    exhibits,
    gallery,
    generation,
    io,
    methods,
    metrics,
    missing,
    pairs,
    workers,
)
from vedute.classifiers import Judge
from vedute.estimator import Estimator
from vedute.page.pictures import png
from vedute.records import Record
from vedute.trained import Trained
from vedute.views import Views

INTERVAL = 0.9
SPLIT: Mapping[str, str] = {"generation": "train"}  # of the tasks that are not fitted on all


@dataclass(frozen=True)
class Run:
    """One fit. settings: all that its estimator has; overrides: those that the user changed."""

    study: str
    label: str
    method: str
    preset: str | None
    overrides: Mapping[str, Any]
    dataset: str
    rate: float
    seed: int
    protocol: str
    mask_seed: int
    mask: str  # its fingerprint
    mask_file: str
    settings: Mapping[str, Any]
    task: str = "clustering"
    judges: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.label} on {self.dataset} at {self.rate:g}, seed {self.seed}"


def measure(run: Run, masks: Path, jobs: int) -> Record:
    """The record of a run; masks: the folder; jobs: how many runs there are at once."""
    start = perf_counter()
    truth = load(run.dataset, SPLIT.get(run.task))
    seen = torch.from_numpy(missing.load_mask(masks / run.mask_file, truth))
    views = truth.hide(~seen)
    _warm_up(run.method, run.settings.get("device"))
    model = pairs.for_views(methods.find(run.method)(**run.settings), len(truth.x))
    before = perf_counter()
    model.fit(views)
    seconds = perf_counter() - before
    if run.task == "generation":
        told = _generation(model, truth, run, masks.parent)
    else:
        told = {"scores": _rounded(_scores(model, truth, views, run.seed))}
    rates, history = missing.rates(views.mask.numpy()), vars(model).get("history_")
    return {
        **asdict(run),
        "row_rate": round(rates.rows, 6),
        "slot_rate": round(rates.slots, 6),
        "versions": _versions(),
        "device": _device(model),
        "threads": torch.get_num_threads(),
        "jobs": jobs,
        "seconds": round(seconds, 4),
        "wall": round(perf_counter() - start, 4),
        "steps": history[-1]["step"] if history else None,
        **told,
    }


def _scores(model: Estimator, truth: Views, views: Views, seed: int) -> dict[str, float]:
    found: dict[str, float] = {}
    if truth.y is not None:
        found |= _percent(truth.y, model.labels_)
        if "centers_" not in vars(model):  # the labels are not k-means'
            kmeans = KMeans(model.n_clusters, n_init=10, random_state=seed)
            second = _percent(truth.y, kmeans.fit_predict(model.embedding_))
            found |= {f"kmeans_{k}": v for k, v in second.items()}
    hidden = (truth.mask & ~views.mask).numpy()
    if model.generative and hidden.any():
        true = list(io.of_views(truth).views.values())
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            told = model.impute(views, interval=INTERVAL)
        mean, low, high = ([x.numpy() for x in end.x] for end in told)
        found["error"] = metrics.imputation_error(true, mean, hidden)
        found["coverage"] = 100 * metrics.coverage(true, low, high, hidden)
    return found


def _generation(model: Estimator, real: Views, run: Run, folder: Path) -> Record:
    """What the model makes of the test split, beside two floors; a picture."""
    start = perf_counter()
    test = load(run.dataset, "test")
    device = generation.device_of(model)
    judges = classifiers.judges(run.judges, real, test, device, folder / "classifiers")
    judged = perf_counter()
    found = generation.evaluate(generation.by_model(model), generation.enter(model, test), judges)
    seconds = perf_counter() - judged
    scores = _by_size("", found) | {f"classifier_{j.name}": j.accuracy for j in judges}
    if model.generative:
        scores |= _floors(run.dataset, device)
        _draw(model, test, judges, folder / "pictures" / f"{_file(str(run))}.png")
    return {
        "classifying": round(judged - start, 4),
        "evaluation": round(seconds, 4),
        "scores": _rounded({k: v if "ssim" in k else 100 * v for k, v in scores.items()}),
        "subsets": json.loads(json.dumps(found.subsets), parse_float=lambda s: round(float(s), 5)),
    }


@cache
def _floors(dataset: str, device: torch.device) -> dict[str, float]:
    """SSIM of what needs no model."""
    real, test = (load(dataset, split).to(device) for split in ("train", "test"))
    mean = generation.evaluate(generation.by_mean(real), test, [])
    nearest = generation.evaluate(generation.by_nearest(real), test, [])
    return _by_size("mean_", mean) | _by_size("nearest_", nearest)


def _by_size(prefix: str, found: generation.Evaluation) -> dict[str, float]:
    """coherence_all_1: from one view, _2: from two, ..."""
    return {f"{prefix}{k}_{n}": v for n, scores in found.sizes.items() for k, v in scores.items()}


def _draw(model: Estimator, test: Views, judges: Sequence[Judge], path: Path) -> None:
    """The first sample of each class, all views from one: from the first, the second, ..."""
    assert test.y is not None
    firsts = np.unique(test.y, return_index=True)[1].tolist()
    given = [i % test.shape[1] for i in range(len(firsts))]
    images, wrong = exhibits.infer(model, test, firsts, given, judges[0] if judges else None)
    with io.atomic_file(path, force=True) as part:
        part.write_bytes(png(gallery.sheet(images, wrong, lead=1)))


def _file(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name)


def _rounded(scores: Mapping[str, float]) -> dict[str, float]:
    return {k: round(v, 5) for k, v in scores.items()}


def _percent(y: io.Array, labels: io.Array) -> dict[str, float]:
    return {k: 100 * v for k, v in metrics.clustering_scores(y, labels).items()}


def _versions() -> dict[str, str]:
    packages = {"torch": "torch", "numpy": "numpy", "sklearn": "scikit-learn"}
    found = {"vedute": __version__, "python": platform.python_version()}
    return found | {name: version(package) for name, package in packages.items()}


def _device(model: Estimator) -> str:
    inside = model.best_ if isinstance(model, pairs.BestPair) else model
    weights = next(inside.model_.parameters(), None) if isinstance(inside, Trained) else None
    if weights is not None and weights.is_cuda:
        return torch.cuda.get_device_name(weights.device)
    return f"{workers.cpu_name()}, {workers.cores()} cores"


@cache
def load(dataset: str, split: str | None = None) -> Views:
    return datasets.load(dataset) if split is None else datasets.load(dataset, split)


@cache
def _warm_up(method: str, device: Any) -> None:
    """A first fit loads and sets up what the others find there; it is not to be timed."""
    cls = methods.find(method)
    few = {"steps": 2, "device": device} if issubclass(cls, Trained) else {}
    data = load("synthetic")[:64]
    pairs.for_views(cls(n_clusters=2, random_state=0, **few), len(data.x)).fit(data)
