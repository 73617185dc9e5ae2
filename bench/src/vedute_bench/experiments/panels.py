"""R² of proteins measured beside RNA, by the kind that their views are given.

    python -m vedute_bench.experiments.panels

The dataset citeseq_pbmc_two_panels has 400 cells, RNA and two panels of 14 and 15 proteins, one per
experimental batch. A third of the measured rows of each panel is hidden, three times. The score is
the R² of log(1 + x), averaged over proteins. The methods are compared with ridge regression of
log(1 + x) on 30 components of log-normalised RNA.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeCV

from vedute.data.views import Views
from vedute.methods import find

Array = NDArray[Any]
NAME = "citeseq_pbmc_two_panels"
METHODS = ("gaussian_fill", "kernel_fill", "lowrank_fill", "mvp", "blend")
KINDS = ("counts", "auto", "numbers")
SEEDS = range(3)
PANELS = (1, 2)


def main() -> None:
    whole = data()
    for name in sys.argv[1:] or METHODS:
        for kind in KINDS:
            report(f"{name}, {kind}", [of_method(whole, name, kind, seed) for seed in SEEDS])
    report("ridge", [of_ridge(whole, seed) for seed in SEEDS])


def data() -> Views:
    """Load RNA and both panels; every cell lacks one panel."""
    with np.load(Path(os.environ["VEDUTE_DATA"], f"{NAME}.npz")) as file:
        names = [str(name) for name in file["view_names"]]
        x = {name: file[f"view{v}"].astype(float) for v, name in enumerate(names)}
        return Views.of(x)


def report(name: str, scores: list[list[float]]) -> None:
    print(name, *(f"{score:.2f}" for score in np.mean(scores, 0)), flush=True)


def hidden_rows(whole: Views, seed: int) -> dict[int, Array]:
    """Draw a third of the measured rows of each panel."""
    rng = np.random.default_rng(seed)
    measured = {v: np.flatnonzero(whole.mask[:, v].numpy()) for v in PANELS}
    return {v: rng.permutation(rows)[: len(rows) // 3] for v, rows in measured.items()}


def of_method(whole: Views, name: str, kind: str, seed: int) -> list[float]:
    """R² of a method in each panel."""
    hidden, mask = hidden_rows(whole, seed), whole.mask.clone()
    for v, rows in hidden.items():
        mask[rows, v] = False
    views, names = whole.hide(whole.mask & ~mask), [whole.names[v] for v in PANELS]
    model = find(name)(kinds=dict.fromkeys(names, kind), random_state=seed).fit(views)
    filled = model.impute(views, scale="kind" if kind == "auto" else "units")
    scores = []
    for v, rows in hidden.items():
        value = filled.x[v].numpy()[rows].astype(float)
        logarithms = kind == "auto" and not model.views_[v].scaler.signed
        value = value if logarithms else np.log1p(value.clip(0))
        scores.append(r2(np.log1p(whole.x[v].numpy()[rows]), value))
    return scores


def of_ridge(whole: Views, seed: int) -> list[float]:
    rna = whole.x[0].numpy().astype(float)
    z = PCA(30, random_state=0).fit_transform(np.log1p(1e4 * rna / rna.sum(1, keepdims=True)))
    scores = []
    for v, rows in hidden_rows(whole, seed).items():
        measured = np.setdiff1d(np.flatnonzero(whole.mask[:, v].numpy()), rows)
        y = np.log1p(whole.x[v].numpy())
        ridge = RidgeCV(np.logspace(-2, 5, 15)).fit(z[measured], y[measured])
        scores.append(r2(y[rows], ridge.predict(z[rows])))
    return scores


def r2(truth: Array, value: Array) -> float:
    """R² averaged over columns."""
    off, base = ((truth - a) ** 2 for a in (value, truth.mean(0)))
    return float(np.mean(1 - off.sum(0) / base.sum(0)))


if __name__ == "__main__":
    main()
