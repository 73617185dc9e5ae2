"""SensIT Vehicle (combined): three kinds of vehicles, measured by acoustic and seismic sensors.

M. Duarte and Y. H. Hu, Vehicle classification in distributed sensor networks, JPDC 2004; scaled
features from the LIBSVM data page. Downloaded at first use.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vedute.data.views import Views
from vedute.datasets._files import REMEDY, Content, Facts, load_files
from vedute.io.contents import errors_as

PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/vehicle/"
ADDRESSES = (PAGE + "combined_scale.bz2", PAGE + "combined_scale.t.bz2")
FACTS = Facts("sensit", {"acoustic": 50, "seismic": 50}, n=98528, classes=3)


def load() -> Views:
    """98528 samples, two views, three kinds; the page's train and test parts in this order."""
    return load_files(FACTS, _read, *ADDRESSES)


def _read(*paths: Path) -> Content:
    from sklearn.datasets import load_svmlight_files

    names = [str(path) for path in paths]
    with errors_as(f"{' or '.join(names)} is not a svmlight file with 100 features", REMEDY):
        parts = load_svmlight_files(names, n_features=100, dtype=np.float32, zero_based=False)
    x = np.concatenate([features.toarray() for features in parts[::2]])  # acoustic ones first
    return [x[:, :50], x[:, 50:]], np.concatenate(parts[1::2])
