"""MNIST, from mnist.npz or from its four IDX files in the data folder; else downloaded."""

from __future__ import annotations

import gzip
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from vedute.datasets import _files

Bytes = NDArray[np.uint8]
ADDRESS = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz"
SHA256 = "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"  # as Keras checks it
PREFIX = {"train": "train", "test": "t10k"}  # of IDX files


def digits(split: str) -> tuple[Bytes, Bytes]:
    """Images (n, 28, 28) and labels (n,): 60000 of "train", 10000 of "test"."""
    images, labels = (
        _idx(f"{PREFIX[split]}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1")
    )
    if images is not None and labels is not None:
        return _checked(images, labels, split, _files.folder() / f"{PREFIX[split]}-*-ubyte")
    return _files.fetch(lambda path: _npz(path, split), ADDRESS, sha256=SHA256)


def _checked(x: Bytes, y: Bytes, split: str, source: Path) -> tuple[Bytes, Bytes]:
    if x.ndim != 3 or x.shape[1:] != (28, 28) or y.shape != x.shape[:1] or y.max(initial=0) > 9:
        raise ValueError(
            f"{source} has {split} images of shape {x.shape} and labels of {y.shape}; MNIST has "
            f"(n, 28, 28) and a digit for each{_files.DELETE}"
        )
    return x, y


def _npz(path: Path, split: str) -> tuple[Bytes, Bytes]:
    try:
        with np.load(path, allow_pickle=False) as file:
            x, y = file[f"x_{split}"].astype(np.uint8), file[f"y_{split}"].astype(np.uint8)
    except (BadZipFile, EOFError, KeyError, IndexError, ValueError):
        raise ValueError(f"{path} lacks x_{split} and y_{split}{_files.DELETE}") from None
    return _checked(x, y, split, path)


def _idx(name: str) -> Bytes | None:
    """Read an IDX file: two zeros, the type (8: bytes), the rank, the sizes, then the values."""
    path = next(
        (p for end in ("", ".gz") if (p := _files.folder() / f"{name}{end}").is_file()), None
    )
    if path is None:
        return None
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        if data[:3] != b"\0\0\x08":
            raise ValueError("its values are not bytes")
        sizes = np.frombuffer(data, ">u4", count=data[3], offset=4)
        return np.frombuffer(data, np.uint8, offset=4 + 4 * len(sizes)).reshape(sizes)
    except (OSError, EOFError, IndexError, ValueError) as e:
        raise ValueError(f"{path} is not an IDX file ({e}){_files.DELETE}") from None
