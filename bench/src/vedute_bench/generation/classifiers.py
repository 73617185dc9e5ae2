"""Judges of generated images: classifiers trained on real images, and the right answers.

The network is that of the PolyMNIST literature: convolutions with kernel 4 and stride 2 until a
side is below 8 (10, 20, ... channels), each with dropout of channels and ReLU, then a layer of 128
and the classes. It has 130568 parameters for 28 x 28 pixels, and is trained by cross-entropy with
Adam. Published code leaves dropout on during evaluation; here a judge is always in eval mode.

Kinds of judges:

    per_view   One classifier of the class per view.

    shared     One classifier of the class for all views.

    angle      One classifier for all views of the view that an image shows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from vedute import io
from vedute.data.views import Views
from vedute.nn import noise

SMALL = 8  # sides below this are not halved
CHUNK = 4096  # batch size of predictions
KINDS = ("per_view", "shared", "angle")


@dataclass(frozen=True)
class Recipe:
    """Recipe of a classifier. `width`: channels of the first layer, doubled in each further one."""

    width: int = 10
    dense: int = 128
    dropout: float = 0.1  # published: 0.5, with which 20 epochs are not enough: 95.6 against 97.4 %
    softened: float = 0.0  # share of images that are blurred in training
    epochs: int = 20
    batch_size: int = 256
    lr: float = 3e-3  # maximum of the one-cycle schedule
    seed: int = 0


class Classifier(nn.Sequential):
    """Network from images (B, C, H, W) in [0, 1] to logits (B, classes)."""

    def __init__(self, shape: Sequence[int], classes: int, recipe: Recipe) -> None:
        sides = [min(shape[1:])]
        while sides[-1] >= SMALL:
            sides.append(sides[-1] // 2)
        channels = [shape[0], *(recipe.width * 2**i for i in range(len(sides) - 1))]
        layers: list[nn.Module] = []
        for a, b in pairwise(channels):
            layers += [nn.Conv2d(a, b, 4, stride=2, padding=1), nn.Dropout2d(recipe.dropout)]
            layers.append(nn.ReLU())
        halved = [side // 2 ** (len(sides) - 1) for side in shape[1:]]
        layers += [nn.Flatten(), nn.Linear(channels[-1] * halved[0] * halved[1], recipe.dense)]
        layers += [nn.Dropout(recipe.dropout), nn.ReLU(), nn.Linear(recipe.dense, classes)]
        super().__init__(*layers)

    @torch.no_grad()
    def predict(self, images: Tensor) -> Tensor:
        """Predict the class of each image, (n,); images are bytes, or floats in [0, 1]."""
        self.eval()
        device = next(self.parameters()).device
        parts = [self(_unit(x.to(device))).argmax(1) for x in torch.split(images, CHUNK)]
        return torch.cat(parts)


def accuracy(classifier: Classifier, images: Tensor, labels: Tensor) -> float:
    """Share of images (n, C, H, W) whose class (n,) is predicted correctly."""
    predicted = classifier.predict(images)
    return float((predicted == labels.to(predicted.device)).double().mean())


def train(
    images: Tensor,
    labels: Tensor,
    classes: int,
    recipe: Recipe | None = None,
    device: str | torch.device = "cpu",
    cache: Path | None = None,
) -> Classifier:
    """Train a classifier of bytes (n, C, H, W) with labels (n,); it is returned in eval mode.

    cache: folder with earlier classifiers, which are reused for the same images and recipe.
    """
    recipe = recipe or Recipe()
    if images.dtype != torch.uint8 or len(images) != len(labels) or not len(images):
        raise ValueError(
            f"images are {images.dtype} {tuple(images.shape)} with {len(labels)} labels; pass "
            "bytes (n, C, H, W) and a label for each"
        )
    with noise.alone():
        torch.manual_seed(recipe.seed)
        network = Classifier(images.shape[1:], classes, recipe)
        path = None if cache is None else cache / _name(images, labels, classes, recipe)
        if path is None or not _restored(network, path):
            _learn(network, images, labels, recipe, torch.device(device))
            if path is not None:
                with io.atomic_file(path, force=True) as part:
                    save_file({k: v.cpu() for k, v in network.state_dict().items()}, part)
    return network.to(device).eval()


def _learn(
    network: Classifier, images: Tensor, labels: Tensor, recipe: Recipe, device: torch.device
) -> None:
    network.to(device).train()
    images, labels = images.to(device), labels.to(device)
    steps = recipe.epochs * -(-len(images) // recipe.batch_size)
    optimizer = torch.optim.Adam(network.parameters(), recipe.lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, recipe.lr, total_steps=steps)
    for _ in range(recipe.epochs):
        order = torch.randperm(len(images), device=device)
        for rows in torch.split(order, recipe.batch_size):
            optimizer.zero_grad()
            seen = _soften(_unit(images[rows]), recipe.softened)
            loss = F.cross_entropy(network(seen), labels[rows])
            torch.autograd.backward(loss)
            optimizer.step()
            schedule.step()


def _soften(images: Tensor, share: float) -> Tensor:
    """Blur some images by means of 3 x 3 pixels, once or twice.

    Decoded images are smooth, which a classifier trained only on sharp images would misinterpret.
    """
    for _ in range(2 if share else 0):
        chosen = torch.rand(len(images), 1, 1, 1, device=images.device) < share
        blurred = F.avg_pool2d(images, 3, stride=1, padding=1, count_include_pad=False)
        images = torch.where(chosen, blurred, images)
    return images


def _restored(network: Classifier, path: Path) -> bool:
    try:
        network.load_state_dict(load_file(path))
    except (OSError, SafetensorError, RuntimeError):  # absent or damaged: trained again
        return False
    return True


def _name(images: Tensor, labels: Tensor, classes: int, recipe: Recipe) -> str:
    """File name of the classifier for these images, labels and recipe."""
    facts = {"format": 1, "shape": tuple(images.shape), "classes": classes, **asdict(recipe)}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for t in (images, labels):
        digest.update(t.cpu().contiguous().numpy().data)
    return f"{digest.hexdigest()[:16]}.safetensors"


def _unit(images: Tensor) -> Tensor:
    """Convert bytes to floats in [0, 1]."""
    return images / 255 if images.dtype == torch.uint8 else images


class Judge(NamedTuple):
    """Question about images of every view.

    - name: `coherence`, whether images have the right class, or `angle`, the right view.
    - classifiers: L classifiers, possibly the same.
    - answers: The right answers (n, L).
    - accuracy: Mean over views on real images, an upper bound for generated ones.
    """

    name: str
    classifiers: Sequence[Classifier]
    answers: Tensor
    accuracy: float

    def wrong(self, images: Tensor, v: int, rows: slice | Tensor) -> Tensor:
        """Flags (B,) of images (B, C, H, W) of view v and these rows with wrong predictions."""
        predicted = self.classifiers[v].predict(images)
        return predicted != self.answers[rows, v].to(predicted.device)


def judges(
    kinds: Sequence[str],
    real: Views,
    test: Views,
    device: str | torch.device = "cpu",
    cache: Path | None = None,
    recipe: Recipe | None = None,
) -> list[Judge]:
    """Train classifiers on the complete images of `real`, with the right answers for `test`."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ValueError(f"no judge {unknown[0]!r}; choose from {', '.join(KINDS)}")
    learn = partial(train, device=device, cache=cache)
    return [_judge(k, real, test, partial(learn, recipe=recipe or RECIPES[k])) for k in kinds]


def _judge(kind: str, real: Views, test: Views, learn: Callable[..., Classifier]) -> Judge:
    labels, answers = (_answers(kind, views) for views in (real, test))
    classes = int(max(labels.max(), answers.max())) + 1
    if kind == "per_view":
        networks = [learn(x, y, classes) for x, y in zip(real.x, labels.unbind(1), strict=True)]
    else:
        networks = [learn(torch.cat(tuple(real.x)), labels.T.reshape(-1), classes)] * len(real.x)
    pairs = zip(networks, test.x, strict=True)
    right = [accuracy(network, x, answers[:, v]) for v, (network, x) in enumerate(pairs)]
    name = "angle" if kind == "angle" else "coherence"
    return Judge(name, networks, answers, float(np.mean(right)))


def _answers(kind: str, views: Views) -> Tensor:
    """Right answers (n, L) for the images of all views."""
    n, L = views.shape
    if kind == "angle":
        return torch.arange(L).expand(n, L)
    if views.y is None or views.y.dtype.kind not in "iu":
        raise ValueError("judges need classes 0, 1, ... in y; load the dataset with its labels")
    return torch.from_numpy(views.y.astype(np.int64))[:, None].expand(n, L)


RECIPES = {
    "per_view": Recipe(),
    "shared": Recipe(width=32, dense=256, dropout=0.3, softened=0.5, epochs=10),
    "angle": Recipe(width=32, dense=256, dropout=0.3, softened=0.5, epochs=10),
}
