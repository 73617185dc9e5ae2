"""Views predicted from every subset of views: the evaluation of papers on images.

Every subset of the L views (31 for L = 5) of a complete test set is given alone. The scores are

    nmi             NMI of classes and k-means on the representation, one start as in the paper.

    nmi_ten         NMI with ten starts, computed on the model's device (`kmeans`).

    same_clusters   Adjusted Rand index of these clusters and those from all views.

    coherence       Share of decoded images with the right class, according to a classifier.

    angle           Share of decoded images with the right view.

    ssim            Structural similarity of decoded images to the true ones.

Images are decoded at posterior means, as MVP's; optionally, `coherence_drawn` uses one draw of the
posterior, as in the tables of the multimodal VAEs. Coherence and SSIM are averaged over the views
that were not given (`_missing`, as in most papers), over the given views (`_given`) and over all
(`_all`, as for MVP). Scores are then averaged over the subsets of a size.

There are two baselines without a model: the mean image of a view, and that view of the nearest
training sample. `hidden_in_training` scores views that were hidden from training instead of test
samples. Unconditional samples have no right class: `agreement` is the share whose views are
predicted to have the same class.
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
ROWS = 2000  # batch size


class Prediction(NamedTuple):
    """Prediction for a batch.

    z: the representation (B, D), if there is one; images: those of all views (B, C, H, W) in
    [0, 1], or empty; drawn: images from one draw of the posterior.
    """

    z: Tensor | None
    images: Sequence[Tensor]
    drawn: Sequence[Tensor] = ()


Predictor = Callable[[Views], Prediction]


class Evaluation(NamedTuple):
    """Scores of an evaluation.

    sizes: scores by number of given views; subsets: scores of each subset with its `given` views,
    and `by_view` with the L numbers that are averaged over views.
    """

    sizes: dict[int, Scores]
    subsets: list[dict[str, Any]]


def subsets(L: int) -> list[tuple[int, ...]]:
    """All non-empty subsets of L views, small ones first."""
    return [given for size in range(1, L + 1) for given in combinations(range(L), size)]


@torch.no_grad()
def evaluate(
    predictor: Predictor, test: Views, judges: Sequence[Judge], seed: int = 42
) -> Evaluation:
    """Evaluate all subsets of the views of a complete, labelled test set, converted by `enter`."""
    if test.y is None or not bool(test.mask.all()):
        raise ValueError("evaluation needs a complete test set with labels; pass one")
    rows, clusters = [], []
    for given in subsets(test.shape[1]):
        with noise.alone():
            torch.manual_seed(seed)
            z, by_view = _means(predictor, test, given, judges)
        row: dict[str, Any] = {"given": list(given)}
        if z is not None:
            K = len(np.unique(test.y))
            points = z.cpu().numpy()
            one = clustering.nearest(points, clustering.centers(points, K, seed, starts=1))
            ten = clustering.nearest(points, kmeans.centers(z, K, seed).cpu().numpy())
            row |= {"nmi": _nmi(test.y, one), "nmi_ten": _nmi(test.y, ten)}
            clusters.append(ten)
        for name, values in by_view.items():
            observed = np.isin(np.arange(len(values)), given)
            if not observed.all():
                row[f"{name}_missing"] = float(values[~observed].mean())
            row[f"{name}_given"] = float(values[observed].mean())
            row[f"{name}_all"] = float(values.mean())
        row["by_view"] = {name: values.tolist() for name, values in by_view.items()}
        rows.append(row)
    for row, labels in zip(rows[:-1], clusters, strict=False):  # the last has all views
        row["same_clusters"] = float(adjusted_rand_score(clusters[-1], labels))
    return Evaluation(_by_size(rows), rows)


@torch.no_grad()
def hidden_in_training(predictor: Predictor, real: Views, seen: Views) -> Scores:
    """SSIM and mean squared error in [0, 1] of views hidden from training.

    They are the views that training samples have in `real` but not in `seen`, both converted by
    `enter`. Settings may be chosen by these scores. Empty if nothing was hidden.
    """
    if bool((real.mask == seen.mask).all()):
        return {}
    similar, square = [], []
    for start in range(0, len(real), ROWS):
        whole, given = (views[start : start + ROWS].bare() for views in (real, seen))
        for v, image in enumerate(predictor(given).images):
            hidden = whole.mask[:, v] & ~given.mask[:, v]
            inferred, true = image[hidden], whole.x[v][hidden] / 255
            similar.append(ssim(inferred, true))
            square.append((inferred - true).square().flatten(1).mean(1))
    means = (torch.cat(parts).double().mean() for parts in (similar, square))
    return dict(zip(("hidden_ssim", "hidden_error"), map(float, means), strict=True))


@torch.no_grad()
def agreement(model: NeuralEstimator, judge: Judge, n: int = ROWS, seed: int = 42) -> float:
    """Share of n unconditional samples whose views are all predicted to have one class."""
    network: Any = model.model_.eval()
    with noise.alone():
        torch.manual_seed(seed)
        outs = network.prior(n)
    kinds = [view.likelihood for view in model.views_]
    images = [unit(kind, out[0]) for kind, out in zip(kinds, outs, strict=True)]
    classes = torch.stack([c.predict(x) for c, x in zip(judge.classifiers, images, strict=True)])
    return float((classes == classes[0]).all(0).double().mean())


def _nmi(y: Array, labels: Array) -> float:
    return scoring.clustering_scores(y, labels)["nmi"]


def _means(
    predictor: Predictor, test: Views, given: Iterable[int], judges: Sequence[Judge]
) -> tuple[Tensor | None, dict[str, Array]]:
    """Representation (n, D), and the means (L,) of each score per view."""
    n, L = test.shape
    hidden = torch.ones(L, dtype=torch.bool, device=test.mask.device)
    hidden[list(given)] = False
    parts, sums = [], dict[str, Tensor]()
    for start in range(0, n, ROWS):
        rows = slice(start, start + ROWS)
        batch = test[rows].bare()
        z, images, drawn = predictor(batch.hide(hidden.expand(len(batch), L)))
        parts += [] if z is None else [z]
        for v in range(len(images)):
            scores = {judge.name: ~judge.wrong(images[v], v, rows) for judge in judges}
            scores["ssim"] = ssim(images[v], batch.x[v] / 255)
            if drawn:
                scores |= {f"{j.name}_drawn": ~j.wrong(drawn[v], v, rows) for j in judges}
            for name, values in scores.items():
                total = sums.setdefault(name, values.new_zeros(L, dtype=torch.float64))
                total[v] += values.double().sum()
    means = {name: (total / n).cpu().numpy() for name, total in sums.items()}
    return torch.cat(parts) if parts else None, means


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
    """Scale images of bytes for the estimator, and move them to its device."""
    if any(x.dtype != torch.uint8 or x.ndim != 4 for x in test.x):
        raise ValueError("generated images are compared in bytes; pass views (n, C, H, W) of uint8")
    return estimator.learner.scaled(test).to(device_of(estimator))


def by_model(estimator: Estimator, drawn: bool = False) -> Predictor:
    """Predictor of a fitted estimator; without a decoder, it gives only the representation."""
    times = (0, 1) if drawn else (0,)  # numbers of draws; 0: posterior means
    if not isinstance(estimator, NeuralEstimator):
        return partial(_in_arrays, estimator, times)
    return partial(
        _on_device, estimator.model_.eval(), [v.likelihood for v in estimator.views_], times
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
    """Convert network outputs for bytes, in [-1, 1], to images in [0, 1]."""
    return ((kind.mean(out.float()) + 1) / 2).clamp(0, 1)


def by_mean(real: Views) -> Predictor:
    """Predictor of each view as its mean image in the complete training set."""
    means = [x.float().mean(0) / 255 for x in real.x]
    return lambda batch: Prediction(None, [m.expand(len(batch), *m.shape) for m in means])


def by_nearest(real: Views) -> Predictor:
    """Predictor of each view from the training sample whose given views are nearest in pixels.

    All training samples are complete here, unlike in the training of models.
    """

    def predict(batch: Views) -> Prediction:
        distance = torch.zeros(len(batch), len(real), device=batch.mask.device)
        for v in batch.mask[0].nonzero()[:, 0].tolist():
            a, b = (x.flatten(1) / 255 for x in (batch.x[v], real.x[v]))
            distance += b.square().sum(1) - 2 * a @ b.T  # up to |a|^2
        rows = distance.argmin(1)
        return Prediction(None, [x[rows] / 255 for x in real.x])

    return predict
