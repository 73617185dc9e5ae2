"""Two modalities: birds as photographs and as text, half of them with only one of the two.

    python examples/birds.py             about a minute on two cores
    python examples/birds.py --quick     a few seconds, and worse numbers

The views are features: 1024 numbers of an image network, 300 of a text model (dataset cub, fetched
from its authors at first use into the folder VEDUTE_DATA). The model finds the species without
labels. For birds without a text it infers one, which is looked up among the real texts: is the
nearest one about the same species?
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from vedute import MVP, Views, datasets, drop_views
from vedute.metrics.scores import clustering_scores


def main() -> None:
    quick = arguments().quick
    try:
        birds = datasets.load("cub")
    except FileNotFoundError as error:
        sys.exit(f"this example needs the dataset cub: {error}")
    birds = birds[::3] if quick else birds
    half = drop_views(birds, rate=0.5, seed=42)  # these keep the photograph, or the text
    print(half)

    settings = {"steps": 20, "cooldown": 5, "hidden": (32,)} if quick else {}
    model = MVP(n_clusters=10, random_state=0, **settings).fit(half)
    scores = clustering_scores(birds.y, model.labels_)
    print("clusters against species:", "  ".join(f"{k} {v:.1%}" for k, v in scores.items()))

    found, asked = look_up(half, model.impute(half), "text")
    hits = (birds.y[found] == birds.y[asked]).mean()
    print(f"{len(asked)} birds had no text; the inferred one is nearest to a real text of the same")
    print(f"species in {hits:.0%} of the cases (by luck: 10 %)")

    texts, photographs = model.r2_["text"], model.r2_["image"]
    print(f"explained: {texts:.0%} of hidden texts by photographs, {photographs:.0%} the other way")


def look_up(views: Views, filled: Views, name: str) -> tuple[np.ndarray, np.ndarray]:
    """For each sample without this view, the sample whose observed view is nearest to its own."""
    v = views.names.index(name)
    seen = views.mask[:, v].numpy()
    values = filled.x[v].numpy()
    scale = StandardScaler().fit(values[seen])
    near = NearestNeighbors(n_neighbors=1).fit(scale.transform(values[seen]))
    asked = np.flatnonzero(~seen)
    nearest = near.kneighbors(scale.transform(values[asked]), return_distance=False)[:, 0]
    return np.flatnonzero(seen)[nearest], asked


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few samples, few steps")
    return parser.parse_args()


if __name__ == "__main__":
    main()
