"""Why MoPoE's clusters of incomplete PolyMNIST are poor (NMI 9 to 18) while its images are right.

    python -m vedute_bench.experiments.mopoe_clusters [--epochs 30] [--out FILE]

MoPoE on complete and on incomplete data (half of the samples), with MVP's networks and with those
of the PolyMNIST tables, with the prior in all products instead of that of all views, and with a
smaller latent. Of the representation of the test samples from one, four and five views:

    nmi        of k-means, ten starts, on the means of the latent
    nmi_pca    the same on as many principal components as classes
    nmi_lda    the same on the directions that tell the classes of the training samples apart: what
               k-means would find if it knew where to look (labels are used: a diagnosis, no score)
    linear     accuracy of a linear classifier on the means
    between    the share of their variance that is between classes
    used       latent dimensions whose posterior is narrower than half of the prior's deviation
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
    """Means and deviations of the posterior from these views alone, (n, D) each."""
    network: Any = model.fitted_model()
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
    on = torch.as_tensor(z, device="cuda" if torch.cuda.is_available() else "cpu")
    found = clustering.nearest(z, kmeans.centers(on, K, 42).cpu().numpy())
    return 100 * scores.clustering_scores(y, found)["nmi"]


def looked_at(model: MoPoE, train: Views, test: Views, given: tuple[int, ...]) -> dict[str, Any]:
    z, std = represented(model, test, given)
    before, _ = represented(model, train, given)
    y, K = np.asarray(test.y), len(np.unique(test.y))
    told = LinearDiscriminantAnalysis(n_components=K - 1).fit(before, np.asarray(train.y))
    middles = np.stack([z[y == k].mean(0) for k in np.unique(y)])
    between = (middles[y] - z.mean(0)).var(0).sum() / z.var(0).sum()
    return {
        "given": list(given),
        "nmi": nmi(z, y),
        "nmi_pca": nmi(PCA(K, random_state=0).fit_transform(z).astype(np.float32), y),
        "nmi_lda": nmi(told.transform(z).astype(np.float32), y),
        "linear": 100 * float((told.predict(z) == y).mean()),
        "between": float(between),
        "used": int((std.mean(0) < 0.5).sum()),
    }


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--out", type=Path, default=FILE)
    asked = parser.parse_args()
    train, test = load("polymnist", "train"), load("polymnist", "test")
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    for table, rate, settings in VARIANTS:
        wanted = presets.find("mopoe", table) | {"epochs": asked.epochs, **settings}
        views = drop_views(train, rate, 42, "bernoulli") if rate else train
        model = MoPoE(**wanted, random_state=42).fit(views)
        inside = [cross_view.enter(model, part) for part in (train[:10000], test)]
        found = [looked_at(model, *inside, given) for given in GIVEN]
        record = {"table": table, "rate": rate, "settings": settings, "epochs": asked.epochs}
        line = json.dumps({**record, **code(), "found": found})
        with asked.out.open("a") as file:
            file.write(line + "\n")
        print(table, rate, settings, found, flush=True)


if __name__ == "__main__":
    main()
