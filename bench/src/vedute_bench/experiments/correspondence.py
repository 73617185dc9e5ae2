"""Correspondence between views, and whether it predicts the error of hidden views.

    python -m vedute_bench.experiments.correspondence [--datasets cub,scene15] [--seeds 0,1]
                                                       missing runs, one JSON line each

MVP has its defaults, with and without the permutation, with and without the hiding of views, as in
the study `ingredients`; half of the samples are incomplete. After training, samples with all views
are scored as in `dynamics`, by the distance of predicted latents from the views' own and by the
silhouettes of latents by target and by source. Records also have the error of hidden views. The
table and the figure are made by `what_works`.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from scipy import stats

from vedute import datasets, drop_views
from vedute.data.views import Views
from vedute.figures import plots
from vedute.methods.mvp import MVP
from vedute_bench.experiments import dynamics
from vedute_bench.paper_mvp import PaperMVP
from vedute_bench.places import RESULTS
from vedute_bench.runner import lines, records, run

Record = dict[str, Any]
FILE = RESULTS / "correspondence" / "records.jsonl"
DATASETS = ("handwritten", "cub", "scene15", "msrc_v1", "tcga_brca", "wikipedia")
RATE, MASK_SEED, SEEDS = 0.5, 42, range(10)
PARTS: dict[str, dict[str, Any]] = {
    "permutation + hiding": {},
    "permutation": {"view_dropout": 0.0},
    "hiding": {"permutation": "none"},
    "neither": {"permutation": "none", "view_dropout": 0.0},
}
COLUMNS = {  # score: head, digits
    "predicted": ("distance to the own latent", 2),
    "by_target": ("silhouette by target", 2),
    "by_source": ("by source", 2),
    "error": ("error of hidden views", 3),
}


def measure(dataset: str, label: str, seed: int) -> Record:
    truth = datasets.load(dataset)
    seen = drop_views(truth, RATE, MASK_SEED)
    model = PaperMVP(random_state=seed, **PARTS[label]).fit(seen)
    shown = dynamics.sampled(truth, truth.mask.all(1).numpy())
    scores = _scores(model, shown) | {"error": dynamics.hidden_error(model, truth, seen)}
    about = {"study": "correspondence", "dataset": dataset, "label": label, "seed": seed}
    about |= {"rate": RATE, "mask_seed": MASK_SEED, "device": run._device(model), **run.code()}
    return about | {"scores": {k: round(v, 4) for k, v in scores.items()}}


def _scores(model: MVP, shown: Views) -> dict[str, float]:
    assert shown.y is not None
    scores = dynamics.numbers(dynamics.Latents.of(model, shown), shown.y)
    return {k: v for k, v in scores.items() if k in COLUMNS}


def recorded(file: Path) -> list[Record]:
    return lines.read(file)


def correlations(runs: Sequence[Record]) -> tuple[float, float]:
    """Spearman's correlations of distance and error in one dataset.

    The first is over the settings' means, the second over the seeds of a setting, averaged.
    """
    by_label = {k: [r["scores"] for r in runs if r["label"] == k] for k in PARTS}
    means = [(_mean(s, "predicted"), _mean(s, "error")) for s in by_label.values()]
    within = [_spearman([(s["predicted"], s["error"]) for s in runs]) for runs in by_label.values()]
    return _spearman(means), fmean(within)


def _mean(scores: Sequence[dict[str, float]], name: str) -> float:
    return fmean(s[name] for s in scores)


def _spearman(pairs: Sequence[tuple[float, float]]) -> float:
    return float(stats.spearmanr(*zip(*pairs, strict=True)).statistic)


def table(known: Sequence[Record]) -> str:
    heads = ["", *(head for head, _ in COLUMNS.values())]
    lines = [f"| {' | '.join(heads)} |", "|---|" + "--:|" * len(COLUMNS)]
    for dataset, label in product(_datasets(known), PARTS):
        scores = [r["scores"] for r in known if (r["dataset"], r["label"]) == (dataset, label)]
        cells = (f"{_mean(scores, k):.{digits}f}" for k, (_, digits) in COLUMNS.items())
        lines.append(f"| {dataset}, {label} | {' | '.join(cells)} |")
    lines += ["", "| Spearman's correlation of distance and error | over settings | over seeds |"]
    lines.append("|---|--:|--:|")
    for dataset in _datasets(known):
        over = correlations([r for r in known if r["dataset"] == dataset])
        lines.append(f"| {dataset} | {' | '.join(f'{x:+.2f}' for x in over)} |")
    return "\n".join(lines) + "\n"


def _datasets(known: Sequence[Record]) -> list[str]:
    return [d for d in DATASETS if any(r["dataset"] == d for r in known)]


@plots.styled
def figure(known: Sequence[Record]) -> Any:
    """Draw distance and error of every run, a panel per dataset."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(10, 5.6), layout="constrained")
    axes = drawn.subplots(2, 3).flat
    for ax, dataset in zip(axes, _datasets(known), strict=False):
        for label, color in zip(PARTS, plots.cycle(len(PARTS)), strict=True):
            scores = [r["scores"] for r in known if (r["dataset"], r["label"]) == (dataset, label)]
            x, y = ([s[k] for s in scores] for k in ("predicted", "error"))
            ax.scatter(x, y, s=14, color=color, label=label, alpha=0.8, linewidths=0)
        ax.set_title(dataset)
    drawn.supxlabel("distance of predicted latents from the views' own, of their length")
    drawn.supylabel("error of hidden views")
    handles, labels = drawn.axes[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside upper center", ncols=len(PARTS))
    return drawn


def main(words: list[str] | None = None) -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    options = parser.parse_args(words)
    FILE.parent.mkdir(exist_ok=True)
    done = {(r["dataset"], r["label"], r["seed"]) for r in recorded(FILE)}
    requested = product(map(int, options.seeds.split(",")), options.datasets.split(","), PARTS)
    for seed, dataset, label in requested:
        if (dataset, label, seed) not in done:
            records.append(FILE, measure(dataset, label, seed))
            print(dataset, label, seed, flush=True)


if __name__ == "__main__":
    main()
