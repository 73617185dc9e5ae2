"""PolyMNIST: five images of the same digit in five handwritings, each on another background.

Views share the digit only (Sutter, Daunhawer & Vogt, ICLR 2021). Made here by the published recipe
from MNIST and five free photographs that come with scikit-image; the original backgrounds are not
free, so numbers on it are of "the PolyMNIST recipe on other backgrounds".

    view m of the j-th sample of a digit shows the j-th of its MNIST images in an order that is
    view m's own; x = a random 28 x 28 piece of picture m, and 255 - x where the stroke is > 128

The published images (Zenodo record 4899160) are read with source="published" from the folder
polymnist in the data folder: {train,test}/m0..m4/<i>.<digit>.png, paired by file name, or
{train,test}/m0..m4.pt with labels.pt.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vedute.data.views import Views
from vedute.datasets import _files
from vedute.io import arrays

Bytes = NDArray[np.uint8]
Part = tuple[list[Bytes], NDArray[np.int64]]  # x: views of (n, 3, 28, 28); y (n,)
SPLITS = {"train": 0, "test": 1}
NAMES = ("m0", "m1", "m2", "m3", "m4")
PHOTOGRAPHS = ("astronaut.png", "chelsea.png", "coffee.png", "hubble_deep_field.jpg", "ihc.png")
ZENODO = "https://zenodo.org/records/4899160"
ADDRESS = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz"
SHA256 = "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"  # as Keras checks it
SIDE, STROKE = 28, 128
CHUNK = 2000  # images per batch: they fit in the processor's cache


def load(
    split: str = "train",
    n: int | None = None,
    seed: int = 0,
    source: str = "recipe",
    backgrounds: Sequence[Bytes] | None = None,
) -> Views:
    """Views m0..m4 (n, 3, 28, 28) in bytes, y the digit: 60000 to train, 10000 to test, or "all".

    n: the first so many. backgrounds: pictures (H, W, 3) of your own, one per view.
    """
    if split not in (*SPLITS, "all"):
        raise ValueError(f"no split {split!r}; choose from train, test, all")
    if source not in ("recipe", "published"):
        raise ValueError(f"no source {source!r}; choose from recipe, published")
    wanted = list(SPLITS) if split == "all" else [split]
    if source == "published":
        parts = [_published(_files.folder() / "polymnist" / one) for one in wanted]
    else:
        pictures = _photographs() if backgrounds is None else backgrounds
        parts = [_made(one, n, seed, pictures) for one in wanted]
    xs, ys = zip(*parts, strict=True)
    x = [views[0] if len(views) == 1 else np.concatenate(views) for views in zip(*xs, strict=True)]
    return Views.of({f"m{v}": a[:n] for v, a in enumerate(x)}, y=np.concatenate(ys)[:n])


# The recipe.


def _made(split: str, n: int | None, seed: int, pictures: Sequence[Bytes]) -> Part:
    shown, labels = digits(split)
    y = labels.astype(np.int64)
    x = []
    for v, picture in enumerate(pictures):
        rng = np.random.default_rng((seed, SPLITS[split], v))
        if picture.ndim != 3 or picture.shape[2] != 3 or min(picture.shape[:2]) <= SIDE:
            least = f"(H, W, 3), more than {SIDE} pixels"
            raise ValueError(f"background {v} has shape {picture.shape}; pass {least}")
        order = np.empty(len(y), np.int64)  # permuted within each digit
        for digit in range(10):
            mine = np.flatnonzero(y == digit)
            order[mine] = rng.permutation(mine)
        strokes = shown[order[:n]] > STROKE
        corners = np.stack([rng.integers(side - SIDE, size=len(y)) for side in picture.shape[:2]])
        pieces = sliding_window_view(picture.transpose(2, 0, 1), (SIDE, SIDE), (1, 2))
        pieces = pieces.transpose(1, 2, 0, 3, 4)  # (row, column, 3, 28, 28)
        x.append(np.empty((len(strokes), 3, SIDE, SIDE), np.uint8))
        for start in range(0, len(strokes), CHUNK):
            rows = slice(start, min(start + CHUNK, len(strokes)))
            ink = np.where(strokes[rows], np.uint8(255), np.uint8(0))
            x[v][rows] = pieces[*corners[:, rows]] ^ ink[:, None]  # x ^ 255 = 255 - x
    return x, y[:n]


def _photographs() -> list[Bytes]:
    """Read five photographs that come with scikit-image, (H, W, 3) each."""
    package = find_spec("skimage")
    if package is None or package.origin is None or find_spec("PIL") is None:
        raise ImportError("its backgrounds come with scikit-image: pip install 'vedute[images]'")
    from PIL import Image

    paths = [Path(package.origin).parent / "data" / name for name in PHOTOGRAPHS]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} is missing; reinstall scikit-image, or pass backgrounds"
            )
    return [np.asarray(Image.open(path).convert("RGB")) for path in paths]


# MNIST.


def digits(split: str) -> tuple[Bytes, Bytes]:
    """Images (n, 28, 28) and labels (n,), 60000 of "train" or 10000 of "test", from mnist.npz."""
    keys = f"x_{split}", f"y_{split}"

    def read(path: Path) -> tuple[Bytes, Bytes]:
        x, y = (a.astype(np.uint8) for a in _files.read_npz(path, keys, " and ".join(keys)))
        if x.ndim != 3 or x.shape[1:] != (28, 28) or y.shape != x.shape[:1] or y.max(initial=0) > 9:
            differ = f"{split} images of shape {x.shape}, labels of {y.shape}"
            raise ValueError(f"{path} has {differ}; MNIST has others; {_files.REMEDY}")
        return x, y

    return _files.fetch(read, ADDRESS, sha256=SHA256)


# The published images.


def _published(folder: Path) -> Part:
    if all((folder / f"{name}.pt").is_file() for name in (*NAMES, "labels")):
        y = _tensor(folder / "labels.pt").reshape(-1).long().numpy()
        pixels = [_tensor(folder / f"{name}.pt") for name in NAMES]
        scaled = [(255 * a).round().clamp(0, 255) if a.is_floating_point() else a for a in pixels]
        x = [np.asarray(a.to(torch.uint8).numpy()) for a in scaled]
    elif all((folder / name).is_dir() for name in NAMES):
        x, y = _from_files(folder)
    else:
        raise FileNotFoundError(
            f"{folder} has neither folders m0 to m4 nor files m0.pt to m4.pt and labels.pt; "
            f"fetch PolyMNIST from {ZENODO} and unpack it there, or make it: source='recipe'"
        )
    shapes = [a.shape for a in x]
    if shapes != [(len(y), 3, SIDE, SIDE)] * len(NAMES):
        raise ValueError(f"{folder} has views {shapes} and {len(y)} labels; unpack it again")
    return x, y


def _from_files(folder: Path) -> Part:
    """Read <i>.<digit>.png: files of the same name are one sample."""
    keyed = [arrays.read_images(folder / name) for name in NAMES]
    ids = keyed[0].index
    for name, view in zip(NAMES, keyed, strict=True):
        odd = ids.symmetric_difference(view.index)
        if len(odd):
            raise ValueError(f"{folder} has {odd[0]}.png in one of m0 and {name} only; add it")
    x = [view.spread(ids)[0] for view in keyed]
    try:
        return x, np.array([int(name.rpartition(".")[2]) for name in ids])
    except ValueError:
        raise ValueError(f"rename the files in {folder} to <i>.<digit>.png") from None


def _tensor(path: Path) -> torch.Tensor:
    """Read a tensor from a file without executing code."""
    try:
        content = torch.load(path, weights_only=True)
    except Exception:  # damaged files raise anything
        content = None
    if not isinstance(content, torch.Tensor):
        raise ValueError(f"{path} holds no tensor; unpack PolyMNIST again")
    return content
