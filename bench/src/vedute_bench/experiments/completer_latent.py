"""Size of Completer's latent chosen without labels, by the stability of its clusters.

    python -m vedute_bench.experiments.completer_latent

Half of the samples lack a view. Stability is the agreement of halves of the complete samples on
their clusters (`vedute.estimators.clustering`); error is that of the hidden views, 1 for the mean.
"""

from __future__ import annotations

import numpy as np

from vedute import datasets, drop_views, io
from vedute.estimators import clustering
from vedute.methods.deep.completer import Completer
from vedute.metrics import scores

CASES = {"cub": (0, 1), "handwritten": (1, 2)}
SIZES = (10, 20, 40, 64, 128)

if __name__ == "__main__":
    for name, pair in CASES.items():
        truth = datasets.load(name).pick(*pair)
        views = drop_views(truth, 0.5, seed=1)
        hidden, both = (truth.mask & ~views.mask).numpy(), views.mask.all(1).numpy()
        for size in SIZES:
            K = len(np.unique(truth.y))
            model = Completer(latent_dim=size, n_clusters=K, random_state=42).fit(views)
            stable = clustering.stability(model.embedding_[both], K, model.seed_)
            imputed = [x.numpy() for x in model.impute(views).x]
            true = list(io.of_views(truth).views.values())
            error = scores.imputation_error(true, imputed, hidden)
            print(f"{name} {size:4d}  stability {stable:.3f}  error {error:.4f}", flush=True)
