"""Diagnosis of MoPoE's clusters of incomplete PolyMNIST, which are poor (NMI 9 to 18).

    python -m vedute_bench.experiments.mopoe_clusters [--epochs 30] [--out FILE]

MoPoE is trained on complete and on incomplete data (half of the samples), with MVP's networks and
with those of the PolyMNIST tables. Further trainings have the prior in all products instead of only
in that of all views, or a smaller latent. The representation of test samples from one, four and
five views is scored:

    nmi        NMI of k-means with ten starts on the latent means.

    nmi_pca    NMI on as many principal components as classes.

    nmi_lda    NMI on the discriminant directions of the training samples' classes. Since it uses
               labels, it is a diagnosis, not a score.

    linear     Accuracy of a linear classifier on the means.

    between    Share of the means' variance that is between classes.

    used       Number of latent dimensions with a posterior std below half of the prior's.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from vedute import MoPoE, drop_views
from vedute.data.views import Views
from vedute.estimators import clustering
from vedute.methods import presets
from vedute.metrics import scores
from vedute_bench.generation import cross_view, kmeans
from vedute_bench.places import RESULTS
from vedute_bench.runner.run import code, load

FILE = RESULTS / "mopoe-clusters" / "records.jsonl"
GIVEN = ((0,), (1, 2, 3, 4), (0, 1, 2, 3, 4))
Variant = tuple[str, float, dict[str, Any]]  # table of presets, missing rate, settings
VARIANTS: tuple[Variant, ...] = (
    ("polymnist", 0.5, {}),
    ("polymnist", 0.0, {}),
    ("polymnist-reference", 0.5, {}),
    ("polymnist-reference", 0.0, {}),
    ("polymnist", 0.5, {"prior_expert": "always"}),
    ("polymnist", 0.5, {"latent_dim": 64}),
)


@torch.no_grad()
def represented(model: MoPoE, views: Views, given: tuple[int, ...]) -> tuple[Any, Any]:
    """Means and standard deviations (n, D) of the posterior from the given views alone."""
    network: Any = model.model_.eval()
    hidden = torch.ones(views.shape[1], dtype=torch.bool)
    hidden[list(given)] = False
    means, stds = [], []
    for start in range(0, len(views), cross_view.ROWS):
        batch = views[start : start + cross_view.ROWS].bare()
        seen = batch.hide(hidden.to(batch.mask.device).expand(batch.shape)).floating()
        means.append(network.embed(seen).float().cpu())
        stds.append(network.std(seen).float().cpu())
    return torch.cat(means).numpy(), torch.cat(stds).numpy()


def nmi(z: Any, y: Any) -> float:
    K = len(np.unique(y))
    points = torch.as_tensor(z, device="cuda" if torch.cuda.is_available() else "cpu")
    labels = clustering.nearest(z, kmeans.centers(points, K, 42).cpu().numpy())
    return 100 * scores.clustering_scores(y, labels)["nmi"]


def diagnose(model: MoPoE, train: Views, test: Views, given: tuple[int, ...]) -> dict[str, Any]:
    z, std = represented(model, test, given)
    z_train, _ = represented(model, train, given)
    y, K = np.asarray(test.y), len(np.unique(test.y))
    lda = LinearDiscriminantAnalysis(n_components=K - 1).fit(z_train, np.asarray(train.y))
    means = np.stack([z[y == k].mean(0) for k in np.unique(y)])
    between = (means[y] - z.mean(0)).var(0).sum() / z.var(0).sum()
    return {
        "given": list(given),
        "nmi": nmi(z, y),
        "nmi_pca": nmi(PCA(K, random_state=0).fit_transform(z).astype(np.float32), y),
        "nmi_lda": nmi(lda.transform(z).astype(np.float32), y),
        "linear": 100 * float((lda.predict(z) == y).mean()),
        "between": float(between),
        "used": int((std.mean(0) < 0.5).sum()),
    }


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    train, test = load("polymnist", "train"), load("polymnist", "test")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for table, rate, settings in VARIANTS:
        changed = presets.find("mopoe", table) | {"epochs": options.epochs, **settings}
        views = drop_views(train, rate, 42, "bernoulli") if rate else train
        model = MoPoE(**changed, random_state=42).fit(views)
        entered = [cross_view.enter(model, part) for part in (train[:10000], test)]
        results = [diagnose(model, *entered, given) for given in GIVEN]
        record = {"table": table, "rate": rate, "settings": settings, "epochs": options.epochs}
        line = json.dumps({**record, **code(), "found": results})
        with options.out.open("a") as file:
            file.write(line + "\n")
        print(table, rate, settings, results, flush=True)


if __name__ == "__main__":
    main()
