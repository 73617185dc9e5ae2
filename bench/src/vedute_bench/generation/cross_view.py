"""Views predicted from every set of views: the evaluation of papers on images.

Of a complete test set, every subset of the L views (31 for L = 5) is given alone:

    nmi             of k-means on the representation against the classes, one start as in the paper
    nmi_ten         the same with ten starts, at once on the model's device (`kmeans`)
    same_clusters   whether these clusters are those found from all views: adjusted Rand index
    coherence       the share of decoded images in which a classifier finds the class; `angle`: the
                    view
    ssim            structural similarity of decoded images to the true ones

Images are decoded at posterior means, as MVP's; for `coherence_drawn`, where it is asked for, at
one draw of the posterior, as in the tables of the multimodal VAEs. Coherence and ssim are means
over the views that were not given (`_missing`: what most papers report), over those given
(`_given`) and over all (`_all`: MVP's), then over the subsets of a size.

Two floors need no model: the mean image of a view, and that view of the nearest training sample.
`hidden_in_training` has no test samples: it is about views that were hidden from training.
Samples that a model makes of nothing have no right class: `agreement` asks whether their views
are found to be of the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.metrics import adjusted_rand_score
from torch import Tensor

from vedute.data.views import Views
from vedute.estimators import clustering
from vedute.estimators.base import Estimator
from vedute.estimators.method import Array
from vedute.estimators.neural import NeuralEstimator
from vedute.metrics import scores as scoring
from vedute.metrics.ssim import ssim
from vedute.nn import noise
from vedute.nn.likelihoods import LIKELIHOODS, Likelihood
from vedute.training.model import Generative, Model
from vedute_bench.generation import kmeans
from vedute_bench.generation.classifiers import Judge

Scores = dict[str, float]
ROWS = 2000  # at a time


class Prediction(NamedTuple):
    """z: the representation (B, D), if there is any; images: of all views (B, C, H, W) in [0, 1],
    or of none; drawn: the same from one draw of the posterior."""

    z: Tensor | None
    images: Sequence[Tensor]
    drawn: Sequence[Tensor] = ()


Predictor = Callable[[Views], Prediction]


class Evaluation(NamedTuple):
    """sizes: by the number of given views, score by score; subsets: the same for each subset, with
    `given`, and under `by_view` what is averaged over views, L numbers each."""

    sizes: dict[int, Scores]
    subsets: list[dict[str, Any]]


def subsets(L: int) -> list[tuple[int, ...]]:
    """Which views are given, few first: all subsets but the empty one."""
    return [given for size in range(1, L + 1) for given in combinations(range(L), size)]


@torch.no_grad()
def evaluate(
    predictor: Predictor, test: Views, judges: Sequence[Judge], seed: int = 42
) -> Evaluation:
    """All subsets of a complete test set; `test` as `enter` gives it, with its labels."""
    if test.y is None or not bool(test.mask.all()):
        raise ValueError("evaluation needs a complete test set with labels; pass one")
    found, clusters = [], []
    for given in subsets(test.shape[1]):
        with noise.alone():
            torch.manual_seed(seed)
            z, by_view = _means(predictor, test, given, judges)
        row: dict[str, Any] = {"given": list(given)}
        if z is not None:
            K = len(np.unique(test.y))
            where = z.cpu().numpy()
            one = clustering.nearest(where, clustering.centers(where, K, seed, starts=1))
            ten = clustering.nearest(where, kmeans.centers(z, K, seed).cpu().numpy())
            row |= {"nmi": _nmi(test.y, one), "nmi_ten": _nmi(test.y, ten)}
            clusters.append(ten)
        for name, values in by_view.items():
            mine = np.isin(np.arange(len(values)), given)
            if not mine.all():
                row[f"{name}_missing"] = float(values[~mine].mean())
            row[f"{name}_given"] = float(values[mine].mean())
            row[f"{name}_all"] = float(values.mean())
        row["by_view"] = {name: values.tolist() for name, values in by_view.items()}
        found.append(row)
    for row, some in zip(found[:-1], clusters, strict=False):  # the last has all views
        row["same_clusters"] = float(adjusted_rand_score(clusters[-1], some))
    return Evaluation(_by_size(found), found)


@torch.no_grad()
def hidden_in_training(predictor: Predictor, real: Views, seen: Views) -> Scores:
    """SSIM, and the mean square of errors in [0, 1], of the views that training samples have in
    `real` and not in `seen`, both as `enter` gives them: by these, settings may be chosen. None
    where nothing was hidden."""
    if bool((real.mask == seen.mask).all()):
        return {}
    similar, square = [], []
    for start in range(0, len(real), ROWS):
        whole, given = (views[start : start + ROWS].bare() for views in (real, seen))
        for v, image in enumerate(predictor(given).images):
            gone = whole.mask[:, v] & ~given.mask[:, v]
            found, true = image[gone], whole.x[v][gone] / 255
            similar.append(ssim(found, true))
            square.append((found - true).square().flatten(1).mean(1))
    means = (torch.cat(parts).double().mean() for parts in (similar, square))
    return dict(zip(("hidden_ssim", "hidden_error"), map(float, means), strict=True))


@torch.no_grad()
def agreement(model: NeuralEstimator, judge: Judge, n: int = ROWS, seed: int = 42) -> float:
    """The share of n generated samples whose views are all found to be of one class."""
    network: Any = model.fitted_model()
    with noise.alone():
        torch.manual_seed(seed)
        outs = network.prior(n)
    kinds = [view.likelihood for view in model.views_]
    images = [unit(kind, out[0]) for kind, out in zip(kinds, outs, strict=True)]
    found = torch.stack([c.predict(x) for c, x in zip(judge.classifiers, images, strict=True)])
    return float((found == found[0]).all(0).double().mean())


def _nmi(y: Array, found: Array) -> float:
    return scoring.clustering_scores(y, found)["nmi"]


def _means(
    predictor: Predictor, test: Views, given: Iterable[int], judges: Sequence[Judge]
) -> tuple[Tensor | None, dict[str, Array]]:
    """The representation (n, D), and per view the mean of each score, (L,)."""
    n, L = test.shape
    hidden = torch.ones(L, dtype=torch.bool, device=test.mask.device)
    hidden[list(given)] = False
    parts, sums = [], dict[str, Tensor]()
    for start in range(0, n, ROWS):
        rows = slice(start, start + ROWS)
        batch = test[rows].bare()
        found = predictor(batch.hide(hidden.expand(len(batch), L)))
        parts += [] if found.z is None else [found.z]
        for v in range(len(found.images)):
            here = {judge.name: ~judge.wrong(found.images[v], v, rows) for judge in judges}
            here["ssim"] = ssim(found.images[v], batch.x[v] / 255)
            if found.drawn:
                here |= {f"{j.name}_drawn": ~j.wrong(found.drawn[v], v, rows) for j in judges}
            for name, values in here.items():
                total = sums.setdefault(name, values.new_zeros(L, dtype=torch.float64))
                total[v] += values.double().sum()
    z = torch.cat(parts) if parts else None
    return z, {name: (total / n).cpu().numpy() for name, total in sums.items()}


def _by_size(rows: Iterable[dict[str, Any]]) -> dict[int, Scores]:
    values: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for name in row.keys() - {"given", "by_view"}:
            values[len(row["given"])][name].append(row[name])
    return {
        size: {name: float(np.mean(scores[name])) for name in sorted(scores)}
        for size, scores in values.items()
    }


# Predictors.


def device_of(estimator: Estimator) -> torch.device:
    return (
        estimator.torch_device() if isinstance(estimator, NeuralEstimator) else torch.device("cpu")
    )


def enter(estimator: Estimator, test: Views) -> Views:
    """Images in bytes, as the estimator takes them, on its device."""
    if any(x.dtype != torch.uint8 or x.ndim != 4 for x in test.x):
        raise ValueError("generated images are compared in bytes; pass views (n, C, H, W) of uint8")
    return estimator.learner.scaled(test).to(device_of(estimator))


def by_model(estimator: Estimator, drawn: bool = False) -> Predictor:
    """A fitted estimator; one that cannot decode gives the representation only."""
    times = (0, 1) if drawn else (0,)  # how many draws: at the posterior means, then at one
    if not isinstance(estimator, NeuralEstimator):
        return partial(_in_arrays, estimator, times)
    return partial(
        _on_device, estimator.fitted_model(), [v.likelihood for v in estimator.views_], times
    )


def _on_device(
    model: Model, kinds: Sequence[Likelihood], times: Sequence[int], batch: Views
) -> Prediction:
    seen = batch.floating()
    outs = [model.decode(seen, k) for k in times] if isinstance(model, Generative) else [[]]
    images = ([unit(kinds[v], x[0]) for v, x in enumerate(out)] for out in outs)
    return Prediction(model.embed(seen).float(), *images)


def _in_arrays(estimator: Estimator, times: Sequence[int], batch: Views) -> Prediction:
    outs = [estimator.decode(batch, k) for k in times] if estimator.generative else [[]]
    images = ([unit(LIKELIHOODS["normal"], torch.from_numpy(x[0])) for x in out] for out in outs)
    return Prediction(torch.from_numpy(estimator.embed(batch)), *images)


def unit(kind: Likelihood, out: Tensor) -> Tensor:
    """From what networks see of bytes, [-1, 1], to [0, 1]."""
    return ((kind.mean(out.float()) + 1) / 2).clamp(0, 1)


def by_mean(real: Views) -> Predictor:
    """Every view is its mean image in the complete training set."""
    means = [x.float().mean(0) / 255 for x in real.x]
    return lambda batch: Prediction(None, [m.expand(len(batch), *m.shape) for m in means])


def by_nearest(real: Views) -> Predictor:
    """Every view is that of the training sample whose given views are nearest, pixel by pixel.

    All training samples are complete here, which is more than a model was shown.
    """

    def predict(batch: Views) -> Prediction:
        distance = torch.zeros(len(batch), len(real), device=batch.mask.device)
        for v in batch.mask[0].nonzero()[:, 0].tolist():
            a, b = (x.flatten(1) / 255 for x in (batch.x[v], real.x[v]))
            distance += b.square().sum(1) - 2 * a @ b.T  # up to |a|^2
        rows = distance.argmin(1)
        return Prediction(None, [x[rows] / 255 for x in real.x])

    return predict
