"""One run: fit, score, and record everything that is needed to do it again.

A record has what was asked (`Run`), the rates of its mask, versions, device, threads, and

    seconds, wall   of `fit`, and of the whole run; jobs: how many runs there were at once
    steps           of training, if there was any
    scores          acc nmi ari of `labels_` in percent, kmeans_* where these have another rule;
                    error of hidden views; coverage of 90 % intervals in percent
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from sklearn.cluster import KMeans

from vedute import __version__, datasets, io, methods, metrics, missing, workers
from vedute.estimator import Estimator
from vedute.records import Record
from vedute.trained import Trained
from vedute.views import Views

INTERVAL = 0.9


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

    def __str__(self) -> str:
        return f"{self.label} on {self.dataset} at {self.rate:g}, seed {self.seed}"


def measure(run: Run, masks: Path, jobs: int) -> Record:
    """The record of a run; masks: the folder; jobs: how many runs there are at once."""
    start = perf_counter()
    truth = load(run.dataset)
    seen = torch.from_numpy(missing.load_mask(masks / run.mask_file, truth))
    views = truth.hide(~seen)
    _warm_up(run.method, run.settings.get("device"))
    model = methods.find(run.method)(**run.settings)
    before = perf_counter()
    model.fit(views)
    seconds = perf_counter() - before
    scores = _scores(model, truth, views, run.seed)
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
        "scores": {k: round(v, 5) for k, v in scores.items()},
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


def _percent(y: io.Array, labels: io.Array) -> dict[str, float]:
    return {k: 100 * v for k, v in metrics.clustering_scores(y, labels).items()}


def _versions() -> dict[str, str]:
    packages = {"torch": "torch", "numpy": "numpy", "sklearn": "scikit-learn"}
    found = {"vedute": __version__, "python": platform.python_version()}
    return found | {name: version(package) for name, package in packages.items()}


def _device(model: Estimator) -> str:
    weights = next(model.model_.parameters(), None) if isinstance(model, Trained) else None
    if weights is not None and weights.is_cuda:
        return torch.cuda.get_device_name(weights.device)
    return f"{workers.cpu_name()}, {workers.cores()} cores"


@cache
def load(dataset: str) -> Views:
    return datasets.load(dataset)


@cache
def _warm_up(method: str, device: Any) -> None:
    """A first fit loads and sets up what the others find there; it is not to be timed."""
    cls = methods.find(method)
    few = {"steps": 2, "device": device} if issubclass(cls, Trained) else {}
    cls(n_clusters=2, random_state=0, **few).fit(load("synthetic")[:64])
