"""SensIT Vehicle (combined): three kinds of vehicles, measured by acoustic and seismic sensors.

M. Duarte and Y. H. Hu, Vehicle classification in distributed sensor networks, JPDC 2004; scaled
features from the LIBSVM data page. Downloaded at first use.
"""

from __future__ import annotations

from bz2 import BZ2File
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vedute.data.views import Views
from vedute.datasets._files import REMEDY, Content, Facts, load_files
from vedute.io.contents import errors_as

PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/vehicle/"
ADDRESSES = (PAGE + "combined_scale.bz2", PAGE + "combined_scale.t.bz2")
FACTS = Facts("sensit", {"acoustic": 50, "seismic": 50}, n=98528, classes=3)


def load() -> Views:
    """98528 samples, two views, three kinds; the page's train and test parts in this order."""
    return load_files(FACTS, _joined, *ADDRESSES)


def _joined(*paths: Path) -> Content:
    xs, ys = zip(*map(_read, paths), strict=True)
    x, y = np.concatenate(xs), np.concatenate(ys)  # x (n, 100), acoustic features first
    return [x[:, :50], x[:, 50:]], y


def _read(path: Path) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Features (n, 100) and labels (n,) of one svmlight file."""
    from sklearn.datasets import load_svmlight_file

    problem = f"{path} is not a svmlight file with 100 features"
    with errors_as(problem, REMEDY), BZ2File(path) as file:
        x, y = load_svmlight_file(file, n_features=100, dtype=np.float32, zero_based=False)
    return x.toarray(), y
