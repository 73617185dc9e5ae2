"""Reuters: news of six kinds in five languages, each reduced to ten numbers by an autoencoder.

The file of the authors of MvCLN (CVPR 2021); research use. Downloaded at first use.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vedute.data.views import Views
from vedute.datasets._files import REMEDY, Content, Facts, load_files, read_mat

ADDRESS = "https://github.com/XLearning-SCU/2021-CVPR-MvCLN/raw/main/datasets/Reuters_dim10.mat"
LANGUAGES = ("english", "french", "german", "italian", "spanish")
FACTS = Facts("reuters", dict.fromkeys(LANGUAGES, 10), n=18758, classes=6)


def load() -> Views:
    """18758 samples, five views, six kinds; the file's train and test parts in this order."""
    return load_files(FACTS, _read, ADDRESS)


def _read(path: Path) -> Content:
    *x, y_train, y_test = read_mat(path, ["x_train", "x_test", "y_train", "y_test"])
    if any(part.ndim != 3 for part in x):
        raise ValueError(f"{path} lacks x_train and x_test of rank 3; {REMEDY}")
    views = np.concatenate(x, axis=1)  # (5, 18758, 10)
    return list(views), np.concatenate([y_train.ravel(), y_test.ravel()])
