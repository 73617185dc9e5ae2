"""Latents of MVP during training: the t-SNE figure of its paper, and measures of its claims.

    python -m vedute_bench.experiments.dynamics [handwritten] [--epochs 150] [--warmup 100]

MVP has the paper's settings for the dataset; half of the samples are incomplete. At ten epochs,
samples with all views (of the test split, if there is one) are scored:

    predicted       |f_ij(z_i) - z_j| / |z_j|, distance of predicted latents from the view's own.

    identity        |f_ij(z_i) - z_i| / |z_i|, distance of the maps from the identity.

    by_target       Silhouette of all latents z_ij by the target view j.

    by_source       Silhouette of all latents z_ij by the source view i.

    consensus       Silhouette of the consensus w_i by its source, at most 0 if sources agree.

    nmi             NMI of k-means on the mean consensus, ten starts, in percent.

    error           Error of hidden views of training samples, 1 for the mean.

The first two are means over samples and pairs i != j. The folder `--out` gets one JSON line per
epoch, replacing those of the same dataset, and <dataset>.png with latents by view, consensuses by
source and mean consensuses by class.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from vedute import datasets, drop_views
from vedute.data.views import Views
from vedute.estimators import front
from vedute.figures import plots
from vedute.methods import presets
from vedute.methods.mvp import MVP
from vedute.metrics import scores as scoring
from vedute.nn.correspondences import Sources
from vedute_bench.figures import files
from vedute_bench.places import RESULTS
from vedute_bench.runner import lines, run

Array = NDArray[Any]
RATE, MASK_SEED, SEED = 0.5, 42, 42
CHECKPOINTS, SAMPLES, POINTS = 10, 500, 1000  # POINTS: per t-SNE or silhouette
STRIPS = ("z by view", "consensus by source", "mean consensus by class")


class Latents(NamedTuple):
    """Latents z (n, L, L, D) of view j predicted from view i; consensus w (n, L, k) of each row."""

    z: Array
    w: Array

    @classmethod
    @torch.no_grad()
    def of(cls, model: MVP, complete: Views) -> Latents:
        network: Any = model.model_.eval()
        narrow = front.narrow(model.front_, model.learner.scaled(complete).bare())
        batch = narrow.to(model.torch_device()).floating()
        sources = Sources.of(batch.mask, batch.present() is None)
        z = network.latents(batch, sources)
        means = (sources.spread(t.mean) for t in (z, network.rows(z)))
        return cls(*(t.float().cpu().numpy() for t in means))

    def points(self) -> tuple[Array, Array, Array]:
        """All latents (n L L, D) with their sources and targets."""
        n, L, _, D = self.z.shape
        source, target = np.indices((n, L, L))[1:].reshape(2, -1)
        return self.z.reshape(-1, D), source, target

    def consensuses(self) -> tuple[Array, Array]:
        """Consensuses (n L, k) with their sources."""
        n, L, k = self.w.shape
        return self.w.reshape(-1, k), np.tile(np.arange(L), n)


def numbers(latents: Latents, y: Array) -> dict[str, float]:
    z, L = latents.z, latents.z.shape[1]
    own_latents = z[:, range(L), range(L)]  # (n, L, D)
    others = ~np.eye(L, dtype=bool)
    points, source, target = latents.points()
    w, w_source = latents.consensuses()
    kmeans = KMeans(len(np.unique(y)), n_init=10, random_state=SEED)
    clusters = kmeans.fit_predict(latents.w.mean(1))
    return {
        "predicted": float(_distance(z, own_latents[:, None])[:, others].mean()),
        "identity": float(_distance(z, own_latents[:, :, None])[:, others].mean()),
        "by_target": _silhouette(points, target),
        "by_source": _silhouette(points, source),
        "consensus": _silhouette(w, w_source),
        "nmi": 100 * scoring.clustering_scores(y, clusters)["nmi"],
    }


def _distance(a: Array, b: Array) -> Array:
    return np.asarray(np.linalg.norm(a - b, axis=-1) / np.linalg.norm(b, axis=-1))


def _silhouette(points: Array, labels: Array) -> float:
    few = min(POINTS, len(points) - 1)
    return float(silhouette_score(points, labels, sample_size=few, random_state=SEED))


@torch.no_grad()
def hidden_error(model: MVP, truth: Views, seen: Views) -> float:
    """Error of decoded hidden views, before calibration."""
    true = front.narrow(model.front_, model.learner.scaled(truth).bare()).floating().x
    decoded = [x[0] for x in model.decode(model.learner.scaled(seen))]
    hidden = (truth.mask & ~seen.mask).numpy()
    return scoring.imputation_error([x.numpy() for x in true], decoded, hidden)


@dataclass
class Watcher:
    """Callback that measures the model at some epochs."""

    model: MVP
    shown: Views
    truth: Views
    seen: Views
    epochs: Sequence[int]
    records: list[dict[str, Any]] = field(default_factory=list)
    strips: list[list[tuple[Array, Array]]] = field(default_factory=list)

    def __call__(self, record: dict[str, Any]) -> None:
        y = self.shown.y
        if record["epoch"] not in self.epochs or y is None:
            return
        with torch.random.fork_rng():
            latents = Latents.of(self.model, self.shown)
            scores = numbers(latents, y)
            scores["error"] = hidden_error(self.model, self.truth, self.seen)
        rounded = {k: round(v, 4) for k, v in scores.items()}
        self.records.append({"epoch": record["epoch"], "stage": record["stage"], "scores": rounded})
        self.strips.append(_planes(latents, y))
        print(f"epoch {record['epoch']}:", *(f"{k} {v:.3g}" for k, v in scores.items()), flush=True)


def _planes(latents: Latents, y: Array) -> list[tuple[Array, Array]]:
    """Points in the plane with their labels, for each strip."""
    points, _, target = latents.points()
    w, source = latents.consensuses()
    classes = np.unique(y, return_inverse=True)[1]
    strips = [(points, target), (w, source), (latents.w.mean(1), classes)]
    rng, planes = np.random.default_rng(SEED), []
    for values, labels in strips:
        rows = rng.permutation(len(values))[:POINTS]
        planes.append((plots.plane(values[rows]), labels[rows]))
    return planes


@plots.styled
def figure(watcher: Watcher) -> Any:
    from matplotlib.figure import Figure

    columns = len(watcher.records)
    drawn = Figure(figsize=(1.3 * columns, 4.4), layout="constrained")
    axes = drawn.subplots(len(STRIPS), columns, squeeze=False)
    for column, (record, strips) in enumerate(zip(watcher.records, watcher.strips, strict=True)):
        axes[0, column].set_title(f"epoch {record['epoch']}", fontsize=8)
        for row, (points, labels) in enumerate(strips):
            colors = np.array(plots.cycle(int(labels.max()) + 1))[labels]
            axes[row, column].scatter(*points.T, s=1.5, c=colors, linewidths=0)
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    for ax, name in zip(axes[:, 0], STRIPS, strict=True):
        ax.set_ylabel(name, fontsize=8)
    return drawn


def sampled(views: Views, wanted: Array) -> Views:
    """Draw at most SAMPLES of the wanted rows."""
    rows = np.random.default_rng(SEED).permutation(np.flatnonzero(wanted))[:SAMPLES]
    return views[np.sort(rows)]


def parts(dataset: str) -> tuple[Views, Views]:
    """Train and test split, or the whole dataset twice if it has no splits."""
    try:
        return datasets.load(dataset, "train"), datasets.load(dataset, "test")
    except ValueError:
        whole = datasets.load(dataset)
        return whole, whole


def watch(dataset: str, changed: dict[str, Any]) -> tuple[MVP, Watcher, float]:
    """Fit MVP with a watcher; returns both and the seconds of the fit."""
    truth, test = parts(dataset)
    views = drop_views(truth, RATE, MASK_SEED)
    settings = {**presets.find("mvp", dataset), **changed, "random_state": SEED}
    model = MVP(**settings)
    incomplete = ~views.mask.all(1).numpy()
    epochs = sorted({round(e) for e in np.linspace(1, settings["epochs"], CHECKPOINTS)})
    shown = sampled(test, test.mask.all(1).numpy())
    hidden = sampled(truth, incomplete), sampled(views, incomplete)
    watcher = Watcher(model, shown, *hidden, epochs)
    model.callbacks = [watcher]
    start = perf_counter()
    model.fit(views)
    return model, watcher, perf_counter() - start


def main(words: list[str] | None = None) -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("dataset", nargs="?", default="handwritten")
    parser.add_argument("--epochs", type=int, help="instead of the published number")
    parser.add_argument(
        "--warmup", type=int, help="epochs of the warm-up instead of the published number"
    )
    parser.add_argument("--out", type=Path, default=RESULTS / "paper-dynamics")
    options = parser.parse_args(words)
    changed = {k: v for k in ("epochs", "warmup") if (v := vars(options)[k]) is not None}
    model, watcher, seconds = watch(options.dataset, changed)
    about = {"dataset": options.dataset, "rate": RATE, "seed": SEED, "mask_seed": MASK_SEED}
    about |= {"epochs": model.epochs, "warmup": model.warmup, "seconds": round(seconds, 1)}
    about |= {"device": run._device(model), "samples": len(watcher.shown), **run.code()}
    file: Path = options.out / "records.jsonl"
    old = lines.read(file)
    kept = [r for r in old if r["dataset"] != options.dataset]
    lines.write(file, [*kept, *(record | about for record in watcher.records)])
    files.save(figure(watcher), options.out / f"{options.dataset}.png", 110)


if __name__ == "__main__":
    main()
