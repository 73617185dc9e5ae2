"""Inferred images for contact sheets: a few samples or a latent traversal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from vedute.data.views import Views
from vedute.estimators.base import Estimator
from vedute.estimators.method import Array
from vedute.estimators.neural import NeuralEstimator
from vedute.methods.mvp import MVPModel
from vedute_bench.figures import contact_sheet
from vedute_bench.generation import cross_view
from vedute_bench.generation.classifiers import Judge
from vedute_bench.summaries.method_grid import Shown

CLASSES, PER_CLASS = 10, 2  # numbers of classes and of samples per class in `shown`


@torch.no_grad()
def infer(
    estimator: Estimator,
    test: Views,
    rows: Sequence[int],
    given: Sequence[int],
    judge: Judge | None = None,
) -> tuple[Array, Array]:
    """Infer all views of the samples `rows` from one given view per sample.

    Returns images (B, 1 + L, C, H, W) of bytes, the given view and then all views decoded from it,
    and flags (B, 1 + L) of images that the judge rejects.
    """
    at = torch.tensor(list(rows))
    samples = cross_view.enter(estimator, test[at]).bare()
    hidden = torch.ones(samples.shape, dtype=torch.bool)
    hidden[range(len(at)), list(given)] = False
    decoded = cross_view.by_model(estimator)(samples.hide(hidden)).images
    inputs = torch.stack([samples.x[v][i] for i, v in enumerate(given)])
    images = torch.stack([inputs, *map(_bytes, decoded)], dim=1)
    wrong = torch.zeros(images.shape[:2], dtype=torch.bool)
    for v, image in enumerate(decoded):
        if judge is not None:
            wrong[:, 1 + v] = judge.wrong(image, v, at).cpu()
    return images.cpu().numpy(), wrong.numpy()


def sheet(estimator: Estimator, test: Views, judge: Judge | None = None) -> contact_sheet.Bytes:
    """Contact sheet of the first sample per class, each inferred from another given view."""
    rows = firsts(test, 1)
    given = [i % test.shape[1] for i in range(len(rows))]
    images, wrong = infer(estimator, test, rows, given, judge)
    return contact_sheet.sheet(images, wrong, lead=1)


def shown(estimator: Estimator, test: Views, view: int, judge: Judge | None = None) -> Shown:
    """Infer all views of the first samples of some classes from the given view."""
    rows = firsts(test, PER_CLASS)[: CLASSES * PER_CLASS]
    images, wrong = infer(estimator, test, rows, [view] * len(rows), judge)
    truth = np.stack([x[rows].numpy() for x in test.x], axis=1)
    classes = np.asarray(test.y)[rows]
    return Shown(images, wrong, truth, classes, np.array(test.names), test.names[view])


def firsts(test: Views, per_class: int) -> list[int]:
    """Row numbers of the first samples of every class, class by class."""
    y = np.asarray(test.y)
    return [int(i) for k in np.unique(y) for i in np.flatnonzero(y == k)[:per_class]]


@torch.no_grad()
def traverse(
    estimator: NeuralEstimator, view: int, axes: int = 6, steps: int = 9, reach: float = 2.5
) -> Array:
    """Decode a view along principal axes of MVP's posteriors of training samples.

    The steps go from -reach to +reach standard deviations: (axes, steps, C, H, W) in bytes. Only
    MVP keeps its posteriors.
    """
    model = estimator.model_.eval()
    if not isinstance(model, MVPModel):
        raise TypeError(f"{type(estimator).__name__} keeps no posteriors to traverse; use MVP")
    codes = walk(model.posteriors, axes, steps, reach)  # (axes, steps, k + L D)
    outs = model.decode_code(codes.flatten(0, 1))
    images = _bytes(cross_view.unit(estimator.views_[view].likelihood, outs[view][0]))
    return images.reshape(*codes.shape[:2], *images.shape[1:]).cpu().numpy()


def walk(points: Tensor, axes: int, steps: int, reach: float) -> Tensor:
    """Steps from the mean of points (n, D) along their principal axes: (axes, steps, D)."""
    rows = points.double()
    mean = rows.mean(0)
    _, widths, vectors = torch.linalg.svd(rows - mean, full_matrices=False)
    moves = (vectors * (widths / len(rows) ** 0.5)[:, None])[:axes]  # one deviation each
    stride = torch.linspace(-reach, reach, steps, dtype=rows.dtype, device=rows.device)
    path: Tensor = mean + stride[None, :, None] * moves[:, None]
    return path.to(points)


def _bytes(images: Tensor) -> Tensor:
    return (255 * images).round().to(torch.uint8)
