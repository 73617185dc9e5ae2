"""One run: fit, score, and record everything that is needed to repeat it.

A record has the fields of `Run`, the rates of its mask, versions, device, threads, and

    commit          Commit of the code, or unknown; with -dirty if the code was changed.

    seconds, wall   Time of `fit` and of the whole run; jobs: number of runs in parallel.

    steps           Training steps, if any.

    parameters      Number of weights of its networks, if any.

    settled         Settings that the fit replaced, such as those of MVP for images.

    scores          See below; in percent, except for SSIM, errors and bits.

    pair_score      For a search of a pair of views: stability of its clusters, or their accuracy if
                    masks are redrawn. Without labels, pair_silhouette breaks ties.

    history         For a study with `curves`: the step of every epoch, and the terms of its loss.

    subsets         Generation: scores of each subset of views, evaluated in `evaluation` seconds.

    shown           Generation: file in `pictures` with images inferred from `shown_view`.

    failed          Reason why there are no scores: an error, or a score was NaN.

Scores of clustering:

    acc nmi ari     Scores of `labels_`; kmeans_*: those of k-means, if `labels_` has another rule;
                    one_start_*: those of k-means from one start, as in papers.

    error           Error of hidden views; coverage: that of 90 % intervals; crps: the score of the
                    predictive distributions, in standard deviations.

Scores of generation:

    *_1, *_2, ...            Scores of `cross_view` from one given view, from two, ...

    generated_coherence      Coherence of unconditional samples.

    bits                     `likelihood` per entry.

    hidden_ssim, _error      Quality of views hidden from training.

    own_ssim_given,          SSIM of MVP's given views if they are decoded by the other rule.
    fused_ssim_given

    classifier_*             Accuracy on real images.

    mean_*, nearest_*        Baselines without a model.

Generation runs cache classifiers and baselines for other runs in folders beside the masks. They
also write pictures: a contact sheet, images for `method_grid`, and for MVP a latent traversal.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from types import MethodType
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans

from vedute import __version__, datasets, io, methods
from vedute.data import missing
from vedute.data.views import Views
from vedute.estimators import clustering
from vedute.estimators.base import Estimator
from vedute.estimators.neural import NeuralEstimator
from vedute.figures.png import png
from vedute.io.contents import Array
from vedute.methods import best_pair
from vedute.methods.mvp import MVP, MVPModel
from vedute.metrics import scores as scoring
from vedute.training.history import Record
from vedute_bench.figures import contact_sheet
from vedute_bench.generation import classifiers, cross_view, densities, likelihood
from vedute_bench.generation.classifiers import Judge
from vedute_bench.paper_mvp import decode_given_views_alone
from vedute_bench.runner import samples, workers
from vedute_bench.runner.records import BERNOULLI, RunRecord

INTERVAL = 0.9
LIKELIHOOD_SAMPLES = 1000  # samples whose likelihood is estimated
HIDDEN_SAMPLES = 4000  # training samples whose hidden views are compared
LONGEST_NAME = 200  # bytes of a file name, without its suffix
SPLIT: Mapping[str, str] = {"generation": "train"}  # for tasks that are fitted on a split


@dataclass(frozen=True)
class Run:
    """One fit. settings: all of the estimator's; overrides: those that the user changed."""

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
    shown_view: str = ""  # the view whose images are stored, if any
    drawn: bool = False  # judge images from a draw of the posterior as well
    curves: bool = False  # record the terms of the loss by epoch
    pair: tuple[str, str] | None = None  # which two views, for a method that takes two
    redraw: bool = False  # the mask is the pair's own
    search: bool = False  # one of all pairs, to choose one
    file: str = ""  # path of the user's own dataset

    def __str__(self) -> str:
        views = "" if self.pair is None else f" ({' + '.join(self.pair)})"
        how = "" if self.protocol == BERNOULLI else f"{self.protocol} "
        return f"{self.label} on {self.dataset}{views} at {how}{self.rate:g}, seed {self.seed}"


def measure(run: Run, masks: Path, jobs: int) -> RunRecord:
    """Fit, score and return the record; masks: their folder; jobs: number of parallel runs."""
    start = perf_counter()
    truth = load(run.dataset, SPLIT.get(run.task), run.file)
    truth = pick(truth, run.pair) if run.pair and run.redraw else truth
    seen = torch.from_numpy(missing.load_mask(masks / run.mask_file, truth))
    views = truth.hide(~seen)
    _warm_up(run.method, run.settings.get("device"))
    model = best_pair.for_views(methods.find(run.method)(**run.settings), len(truth.x))
    if isinstance(model, best_pair.BestPair) and run.pair:
        model.set_params(pair=run.pair)
    before = perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the views form groups")  # intended by the study
        model.fit(views)
    seconds = perf_counter() - before
    if run.task == "generation":
        measured = _generation(model, truth, views, run, masks.parent)
    else:
        measured = {"scores": _rounded(_scores(model, truth, views, run.seed))}
        measured |= _pair_score(model, truth, views) if run.search else {}
    rates, history = missing.rates(views.mask.numpy()), getattr(model, "history_", None)
    return {
        **asdict(run),
        "row_rate": round(rates.rows, 6),
        "slot_rate": round(rates.slots, 6),
        **code(),
        "device": _device(model),
        "threads": torch.get_num_threads(),
        "jobs": jobs,
        "seconds": round(seconds, 4),
        "wall": round(perf_counter() - start, 4),
        "steps": history[-1]["step"] if history else None,
        "parameters": _parameters(model),
        **({"settled": settled} if (settled := _settled(model)) else {}),
        **measured,
        **({"history": _curves(history)} if run.curves and history else {}),
    }


def _curves(history: Sequence[Record]) -> dict[str, list[float]]:
    """Steps and loss terms by epoch; terms that a stage lacks are 0."""
    names = list(dict.fromkeys(name for epoch in history for name in epoch["terms"]))
    terms = {k: [float(f"{e['terms'].get(k, 0):.5g}") for e in history] for k in names}
    return {"step": [e["step"] for e in history], **terms}


def failure(run: Run, error: Exception) -> RunRecord:
    """Make the record of a run that ended in an error."""
    message = " ".join(str(error).split()) or type(error).__name__
    return {**asdict(run), **code(), "scores": {}, "failed": message}


def _scores(model: Estimator, truth: Views, views: Views, seed: int) -> dict[str, float]:
    scores: dict[str, float] = {}
    if truth.y is not None:
        scores |= _percent(truth.y, model.labels_)
        if not hasattr(model, "centers_"):  # the labels are not k-means'
            kmeans = KMeans(model.n_clusters, n_init=10, random_state=seed)
            second = _percent(truth.y, kmeans.fit_predict(model.embedding_))
            scores |= {f"kmeans_{k}": v for k, v in second.items()}
        z = model.embedding_
        centers = clustering.centers(z, len(np.unique(truth.y)), seed, starts=1)
        once = _percent(truth.y, clustering.nearest(z, centers))
        scores |= {f"one_start_{k}": v for k, v in once.items()}
    hidden = (truth.mask & ~views.mask).numpy()
    if model.generative and hidden.any():
        true = list(io.of_views(truth).views.values())
        imputed = model.impute(views, interval=INTERVAL)
        mean, low, high = ([x.numpy() for x in end.x] for end in imputed)
        scores["error"] = scoring.imputation_error(true, mean, hidden)
        scores["coverage"] = 100 * scoring.coverage(true, low, high, hidden)
        scores["crps"] = scoring.crps(true, mean, low, high, hidden, INTERVAL)
    return scores


def _pair_score(model: Estimator, truth: Views, views: Views) -> dict[str, float]:
    """Score a pair of views: without labels as in `BestPair`, or by labels as in papers."""
    if isinstance(model, best_pair.BestPair):
        both = views.mask[:, list(model.chosen())].all(1).numpy()
        quality = best_pair.cluster_quality(model.embedding_[both], model.n_clusters, model.seed_)
        return dict(zip(("pair_score", "pair_silhouette"), quality, strict=True))
    assert truth.y is not None
    return {"pair_score": round(scoring.clustering_accuracy(truth.y, model.labels_), 5)}


def _generation(model: Estimator, real: Views, views: Views, run: Run, folder: Path) -> RunRecord:
    """Score views inferred in the test split and the baselines, and write pictures."""
    start = perf_counter()
    test = load(run.dataset, "test")
    device = cross_view.device_of(model)
    judges = classifiers.judges(run.judges, real, test, device, folder / "classifiers")
    judged = perf_counter()
    predictor = cross_view.by_model(model, run.drawn)
    evaluation = cross_view.evaluate(predictor, cross_view.enter(model, test), judges)
    seconds = perf_counter() - judged
    scores = _by_size("", evaluation) | {f"classifier_{j.name}": j.accuracy for j in judges}
    if isinstance(model, NeuralEstimator) and model.generates:
        coherence = (judge for judge in judges if judge.name == "coherence")
        scores |= {f"generated_{j.name}": cross_view.agreement(model, j) for j in coherence}
        scores |= _bits(model, real, test)
    kept: RunRecord = {}
    if model.generative:
        training = (cross_view.enter(model, v[:HIDDEN_SAMPLES]) for v in (real, views))
        scores |= cross_view.hidden_in_training(predictor, *training)
        scores |= _other_rule(model, cross_view.enter(model, test))
        scores |= _floors(run.dataset, real, test, device, folder / "floors")
        kept = _pictures(model, test, judges[0] if judges else None, run, folder / "pictures")
    return {
        "classifying": round(judged - start, 4),
        "evaluation": round(seconds, 4),
        "scores": _rounded({k: 100 * v if _is_share(k) else v for k, v in scores.items()}),
        "subsets": json.loads(
            json.dumps(evaluation.subsets), parse_float=lambda s: round(float(s), 5)
        ),
        **kept,
    }


def _is_share(score: str) -> bool:
    """Whether a score is recorded in percent."""
    return "ssim" not in score and score not in ("bits", "hidden_error")


def _other_rule(model: Estimator, test: Views) -> dict[str, float]:
    """SSIM of MVP's given views if the same weights decode them by the other rule."""
    if not isinstance(model, MVP):
        return {}
    alone = getattr(model, "observed", "fused") == "own"
    other, rule = ("fused", MVPModel.decode) if alone else ("own", decode_given_views_alone)
    twin, network = copy(model), copy(model.model_.eval())
    network.decode = MethodType(rule, network)  # type: ignore[assignment]
    twin.model_ = network
    evaluation = cross_view.evaluate(cross_view.by_model(twin), test, [])
    return {f"{other}_ssim_given_{n}": s["ssim_given"] for n, s in evaluation.sizes.items()}


def _bits(model: NeuralEstimator, real: Views, test: Views) -> dict[str, float]:
    """Bits per entry of some test samples, if latent codes have a density."""
    codes = densities.of(model.model_.eval())
    if codes is None:
        return {}
    learned, new = (cross_view.enter(model, views[:LIKELIHOOD_SAMPLES]) for views in (real, test))
    likelihoods = [view.likelihood for view in model.views_]
    return {"bits": likelihood.bits_per_entry(codes, likelihoods, learned, new)}


def _floors(
    dataset: str, real: Views, test: Views, device: torch.device, folder: Path
) -> dict[str, float]:
    """SSIM of baselines without a model, computed once per dataset and cached in the folder."""
    path, data = folder / f"{dataset}.json", _fingerprint(real, test)
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if known["data"] == data:
            return dict(known["scores"])
    except (OSError, ValueError, KeyError, TypeError):  # absent or damaged: computed again
        pass
    real, test = real.to(device), test.to(device)
    mean = cross_view.evaluate(cross_view.by_mean(real), test, [])
    nearest = cross_view.evaluate(cross_view.by_nearest(real), test, [])
    scores = _by_size("mean_", mean) | _by_size("nearest_", nearest)
    with io.atomic_file(path, force=True) as part:
        part.write_text(json.dumps({"data": data, "scores": scores}, indent=1), encoding="utf-8")
    return scores


def _fingerprint(real: Views, test: Views) -> str:
    """Sixteen hex digits from the sizes and first samples of both splits."""
    digest = hashlib.sha256(repr([real.shape, test.shape]).encode())
    for x in (*real[:1000].x, *test[:1000].x):
        digest.update(x.contiguous().numpy().data)
    return digest.hexdigest()[:16]


def _by_size(prefix: str, evaluation: cross_view.Evaluation) -> dict[str, float]:
    """Scores with the number of given views: coherence_all_1 from one view, _2 from two, ..."""
    sizes = evaluation.sizes.items()
    return {f"{prefix}{k}_{n}": v for n, scores in sizes for k, v in scores.items()}


def _pictures(
    model: Estimator, test: Views, judge: Judge | None, run: Run, folder: Path
) -> RunRecord:
    """Write a sheet, a latent traversal, and a file for `method_grid`, which the record names."""
    name = _file(run)
    shown = test.names.index(run.shown_view) if run.shown_view else None
    _save(folder / f"{name}.png", samples.sheet(model, test, judge))
    if isinstance(model, MVP):
        walks = samples.traverse(model, shown or 0)
        _save(folder / f"{name}-traversal.png", contact_sheet.sheet(walks))
    if shown is None:
        return {}
    with io.atomic_file(folder / f"{name}.npz", force=True) as part:
        samples.shown(model, test, shown, judge).save(part)
    return {"shown": f"{name}.npz"}


def _save(path: Path, picture: contact_sheet.Bytes) -> None:
    with io.atomic_file(path, force=True) as part:
        part.write_bytes(png(picture))


def _file(run: Run) -> str:
    """File name that is unique for the label, dataset, rate, seed and overrides."""
    changes = "".join(f" {k}={v}" for k, v in run.overrides.items())
    name = re.sub(r"[^\w.+-]+", "-", f"{run}{changes}").lstrip(".")
    if len(name.encode()) <= LONGEST_NAME:
        return name
    return name[: LONGEST_NAME // 4] + hashlib.sha256(name.encode()).hexdigest()[:16]


def _rounded(scores: Mapping[str, float]) -> dict[str, float]:
    return {k: round(v, 5) for k, v in scores.items()}


def _percent(y: Array, labels: Array) -> dict[str, float]:
    return {k: 100 * v for k, v in scoring.clustering_scores(y, labels).items()}


def code() -> RunRecord:
    """Releases and commit with which a run is made."""
    packages = {"torch": "torch", "numpy": "numpy", "sklearn": "scikit-learn"}
    versions = {"vedute": __version__, "python": platform.python_version()}
    versions |= {name: version(package) for name, package in packages.items()}
    return {"versions": versions, "commit": commit()}


@cache
def commit() -> str:
    """Commit of the checkout that contains the package; without a checkout, VEDUTE_COMMIT."""
    try:
        _git("ls-files", "--error-unmatch", "__init__.py")  # fails in another project's checkout
        return _git("rev-parse", "HEAD") + ("-dirty" if _git("status", "--porcelain", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return os.environ.get("VEDUTE_COMMIT") or "unknown"


def _git(*words: str) -> str:
    """Output of git in the folder of the package."""
    folder = Path(__file__).parents[1]
    done = subprocess.run(
        ["git", *words], cwd=folder, capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout.strip()


def _neural(model: Estimator) -> NeuralEstimator | None:
    """Estimator with the networks, if there are any."""
    part = next(iter(model.parts()), model)
    return part if isinstance(part, NeuralEstimator) else None


def _weights(model: Estimator) -> list[torch.Tensor]:
    neural = _neural(model)
    return [] if neural is None else list(neural.model_.parameters())


def _settled(model: Estimator) -> Record:
    neural = _neural(model)
    return {} if neural is None else neural.decided()


def _parameters(model: Estimator) -> int | None:
    return sum(w.numel() for w in _weights(model)) or None


def _device(model: Estimator) -> str:
    weights = _weights(model)
    if weights and weights[0].is_cuda:
        return torch.cuda.get_device_name(weights[0].device)
    return f"{workers.cpu_name()}, {workers.cores()} cores"


@cache
def load(dataset: str, split: str | None = None, file: str = "") -> Views:
    """Load a dataset by its name, or the user's own file."""
    if file:
        if split is not None:
            raise ValueError(f"{file} has no train and test splits, which generation needs")
        return io.enter(io.read(file)).views
    return datasets.load(dataset) if split is None else datasets.load(dataset, split)


def pick(views: Views, names: Sequence[str]) -> Views:
    """Select views by name."""
    return views.pick(*(views.names.index(name) for name in names))


@cache
def _warm_up(method: str, device: Any) -> None:
    """Make a first fit, not timed, which loads libraries and sets up the device."""
    cls = methods.find(method)
    wanted = {"steps": 2, "warmup": 2, "pretrain": 2, "device": device}
    few: Any = {f.name: wanted[f.name] for f in fields(cls) if f.name in wanted}
    cls(n_clusters=2, random_state=0, **few).fit(load("synthetic")[:64].pick(0, 1))
