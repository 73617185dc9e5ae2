"""Sections A.4 and A.5: objectives, priors, their costs, and the dynamics of latents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median

from vedute_bench import studies
from vedute_bench.paper import figures, numbers
from vedute_bench.paper.exhibit import (
    NONE,
    SAME,
    Made,
    World,
    both_starts,
    one_start,
)
from vedute_bench.paper.numbers import PRINTED, table, text
from vedute_bench.runner.records import RunRecord
from vedute_bench.summaries.summary import Cell, Summary


def curves(world: World) -> Made:
    runs = [r for r in world.results.all("paper-curves") if "history" in r]
    source = numbers.source(world.results, "paper-curves")
    if not runs:
        return Made(NONE, [source])
    mean = mean_history(runs)
    names, warm = [k for k in mean if k != "step"], int(runs[0]["settings"]["warmup"])
    total = [sum(mean[k][e] for k in names) for e in range(len(mean["step"]))]
    shown = {"all": total, **{k: mean[k] for k in names}}
    epochs = [e for e in (1, warm, warm + 1, len(total)) if 1 <= e <= len(total)]
    rows = [[k, *(f"{values[e - 1]:.1f}" for e in epochs)] for k, values in shown.items()]
    accuracies = _accuracies(world, runs)
    begin, end = total[min(warm, len(total) - 1)], total[-1]
    worse = fmean(a - b for a, b in accuracies) < 0 if accuracies else False
    word = ("Partly reproduced" if worse else "Reproduced") if end < begin else "Not reproduced"
    sentence = (
        f"{word}: the loss changes at the end of the warm-up, and "
        f"{'falls' if end < begin else 'rises'} from then on to the last epoch, from {begin:.1f} "
        f"to {end:.1f}. The figure prints no numbers."
    )
    if accuracies:
        long, usual = map(fmean, zip(*accuracies, strict=True))
        sentence += (
            f" Accuracy after {len(total)} epochs is {long:.1f} % on average, after those of the "
            f"preset {usual:.1f} % (ten k-means starts)."
        )
    link = world.picture(
        "paper-curves", "Loss by epoch", lambda: figures.curves({"": shown}, warm, list(shown))
    )
    return Made(sentence, [link, table(["epoch", *map(str, epochs)], rows), source])


def _accuracies(world: World, runs: Sequence[RunRecord]) -> list[tuple[float, float]]:
    """Accuracy after these long runs and after runs of the preset, for seeds that both have."""
    records = world.results.summary("mvp-clustering").records
    preset = records.get(("mvp (paper)", "handwritten", runs[0]["rate"]), [])
    usual = {r["seed"]: r["scores"]["acc"] for r in preset}
    return [(r["scores"]["acc"], usual[r["seed"]]) for r in runs if r["seed"] in usual]


def mean_history(runs: Sequence[RunRecord]) -> dict[str, list[float]]:
    """Mean history over seeds, for the epochs that all runs have."""
    histories = [r["history"] for r in runs]
    epochs = min(len(h["step"]) for h in histories)
    return {k: [fmean(h[k][e] for h in histories) for e in range(epochs)] for k in histories[0]}


def convergence(world: World) -> Made:
    """Exhibit of the results and the smoothness of training by objective."""
    source = numbers.source(world.results, "paper-convergence")
    summary = world.results.summary("paper-convergence")
    labels = [entry.label for entry in studies.load("paper-convergence").entries]
    histories: dict[str, dict[str, list[float]]] = {}
    rows, rough = [], {}
    for dataset in SAME:
        for label in labels:
            runs = [r for r in summary.records.get((label, dataset, 0.5), []) if "history" in r]
            if not runs:
                continue
            rough[label, dataset] = fmean(roughness(r) for r in runs)
            error = text(summary.cell(label, dataset, 0.5, "error"), 3)
            both = both_starts(summary, label, dataset, 0.5, "acc")
            rows.append([f"{dataset}: {label}", *both, error, f"{rough[label, dataset]:.2f}"])
            histories.setdefault(label, mean_history(runs))  # only the first dataset
    if not rows:
        return Made(NONE, [source])
    heads = ["", "ACC, one start", "ten", "error of hidden views", "change per epoch, %"]
    terms = ["reconstruction", "kl_views", "kl_consensus"]
    link = world.picture(
        "paper-convergence",
        "Terms of the loss by epoch, for four objectives",
        lambda: figures.curves(histories, None, terms),
    )
    return Made(_claims(summary, rough), [link, table(heads, rows), source])


def roughness(record: RunRecord) -> float:
    """Median change of the loss between consecutive epochs after the warm-up, in percent."""
    history, warm = record["history"], int(record["settings"]["warmup"])
    names = [k for k in history if k != "step"]
    total = [sum(history[k][e] for k in names) for e in range(warm, len(history["step"]))]
    changes = [abs(b - a) / a for a, b in pairwise(total) if a]
    return 100 * median(changes) if changes else 0.0


def _claims(summary: Summary, rough: Mapping[tuple[str, str], float]) -> str:
    """Sentence on the paper's claims for symmetric divergences and for the combined objective."""
    steady, n_steady = _steadier(summary, rough)
    best, n_best = _together(summary)
    if not n_steady:
        return NONE
    held = [n == n_steady for n in steady.values()] + [n == n_best for n in best.values()]
    word = "Reproduced" if all(held) else "Partly reproduced" if any(held) else "Not reproduced"
    divergence = " and ".join(f"the smaller {k} on {n}" for k, n in steady.items())
    objective = " and ".join(f"the {k} on {n}" for k, n in best.items())
    return (
        f"{word}: beside the one-sided, the symmetric divergence has {divergence} of {n_steady} "
        f"datasets. Of eq3, eq1 and eq2, eq3 has {objective} of {n_best}."
    )


def _steadier(
    summary: Summary, rough: Mapping[tuple[str, str], float]
) -> tuple[dict[str, int], int]:
    """Numbers of datasets where the symmetric divergence is steadier, and of all datasets.

    Datasets with two views are left out, because both divergences are the same there.
    """
    names = ("eq3, symmetric", "eq3, forward")
    many = [d for d in SAME if PRINTED["datasets"][d]["views"] > 2]
    known = [d for d in many if all((k, d) in rough for k in names)]
    spread = {(k, d): _cell(summary, k, d, "acc").std or 0.0 for k in names for d in known}
    wins = {
        measure: sum(values[names[0], d] < values[names[1], d] for d in known)
        for measure, values in (("spread of ACC over seeds", spread), ("change per epoch", rough))
    }
    return wins, len(known)


def _together(summary: Summary) -> tuple[dict[str, int], int]:
    """Numbers of datasets where the combined objective is best, and of all datasets."""
    labels = ("eq3, symmetric", "eq1", "eq2")
    known = [d for d in SAME if all((k, d, 0.5) in summary.records for k in labels)]
    best = sum(
        max(labels, key=lambda k: _cell(summary, k, d, "acc").mean) == labels[0] for d in known
    )
    least = sum(
        min(labels, key=lambda k: _cell(summary, k, d, "error").mean) == labels[0] for d in known
    )
    return {"best accuracy": best, "least error of hidden views": least}, len(known)


def _cell(summary: Summary, label: str, dataset: str, score: str) -> Cell:
    cell = summary.cell(label, dataset, 0.5, score)
    assert cell is not None
    return cell


def prior(world: World) -> Made:
    summary = world.results.summary("paper-prior")
    source = numbers.source(world.results, "paper-prior")
    labels = [entry.label for entry in studies.load("paper-prior").entries]
    rows, better, compared = [], 0, 0
    for dataset in SAME:
        plain = one_start(summary, "standard", dataset, 0.5, "acc")
        for label in labels:
            ours = one_start(summary, label, dataset, 0.5, "acc")
            if ours is None:
                continue
            error = summary.cell(label, dataset, 0.5, "error")
            both = both_starts(summary, label, dataset, 0.5, "acc")
            rows.append([f"{dataset}: {label}", *both, text(error, 3)])
            if plain is not None and label != "standard":
                compared += 1
                better += ours.mean > plain.mean + (plain.std or 0.0)
    if not rows:
        return Made(NONE, [source])
    word = "Reproduced" if compared and better == compared else "Partly reproduced"
    word = word if better else "Not reproduced"
    sentence = (
        f"{word}: an informational prior is ahead of N(0, 1) by more than one standard deviation "
        f"over seeds in {better} of {compared} cases (accuracy, one k-means start)."
    )
    heads = ["", "ACC, one start", "ten", "error of hidden views"]
    return Made(sentence, [table(heads, rows), source])


def complexity(world: World) -> Made:
    known = world.results.all("paper-complexity")
    source = numbers.facts(known, "python -m vedute_bench.speed.complexity")
    if not known:
        return Made(NONE, [source])
    body, sentences = [], []
    for device in sorted({r["device"] for r in known}):
        kinds: dict[str, dict[int, Mapping[str, float]]] = {}
        for r in known:
            if r["device"] == device:
                kinds.setdefault(f"{r['objective']}, {r['prior']}", {})[r["views"]] = r["scores"]
        body.append(f"**{device}**\n\n{_costs(kinds)}")
        sentences.append(_ratios(device, kinds))
    rule = "A tenth more time counts as no additional computation."
    return Made(" ".join([*sentences, rule]), [*body, source])


def _costs(kinds: Mapping[str, Mapping[int, Mapping[str, float]]]) -> str:
    views = sorted({n for by_views in kinds.values() for n in by_views})
    fastest = min(by_views[n]["ms"] for by_views in kinds.values() for n in views)
    quick = fastest < 10  # as on a GPU
    rows = []
    for cost, digits in (("ms", 1 + quick), ("time", 2), ("gflop", 2), ("mib", 1)):
        title = {"time": "times eq2", "gflop": "GFLOP", "mib": "MiB kept"}.get(cost, cost)
        rows += [
            [f"{kind}: {title}", *(f"{by_views[n][cost]:.{digits}f}" for n in views)]
            for kind, by_views in kinds.items()
        ]
    return table(["views", *map(str, views)], rows)


def _ratios(device: str, kinds: Mapping[str, Mapping[int, Mapping[str, float]]]) -> str:
    def between(a: str, b: str, score: str = "time") -> list[float]:
        return [kinds[a][n][score] / kinds[b][n][score] for n in kinds[b]]

    more, fused = between("eq3, cyclic", "eq2, cyclic"), between("eq3, fusion", "eq3, cyclic")
    work = between("eq3, cyclic", "eq2, cyclic", "gflop")
    word = "Reproduced" if max(more) <= 1.1 and min(fused) > 1 else "Partly reproduced"
    return (
        f"{word} ({device}): eq3 takes {min(more):.2f} to {max(more):.2f} times as long as eq2 "
        f"(it decodes both tables: {min(work):.2f} to {max(work):.2f} times the operations), and "
        f"the fusion prior {min(fused):.2f} to {max(fused):.2f} times as long as the cyclic one."
    )


def dynamics(world: World) -> Made:
    known = world.results.all("paper-dynamics")
    if not known:
        command = "python -m vedute_bench.experiments.dynamics"
        return Made(NONE, [f"{numbers.facts([], command)}, or `{command} polymnist` with a GPU"])
    body, sentences = [], []
    for dataset in sorted({r["dataset"] for r in known}):
        epochs = [r for r in known if r["dataset"] == dataset]
        strips = world.results.folder / "paper-dynamics" / f"{dataset}.png"
        if strips.exists():
            name = f"paper-dynamics-{dataset}"
            alt = f"Latents of {dataset} by view, consensus by source, mean consensus by class"
            body.append(world.picture(name, alt, strips.read_bytes))
        first, last = epochs[0], epochs[-1]
        heads = ["epoch", *first["scores"]]
        rows = [[str(r["epoch"]), *(f"{v:.3f}" for v in r["scores"].values())] for r in epochs]
        options = f"{dataset} --epochs {first['epochs']} --warmup {first['warmup']}"
        line = numbers.facts(epochs, f"python -m vedute_bench.experiments.dynamics {options}")
        body += [f"**{dataset}**\n\n{table(heads, rows)}", line]
        sentences.append(_moved(dataset, first["scores"], last["scores"]))
    return Made(" ".join(sentences), body)


def _moved(dataset: str, first: Mapping[str, float], last: Mapping[str, float]) -> str:
    """Sentence on the claims that latents gather by view, consensuses mix and classes separate.

    A claim must hold at the end, and training must contribute to it.
    """
    claims = {  # score, at the end, by training
        "latents gather by view": ("by_target", last["by_target"] > 0, 1),
        "consensuses mix": ("consensus", last["consensus"] < 0.1, -1),
        "classes part": ("nmi", last["nmi"] > first["nmi"], 1),
        "maps are not the identity": ("identity", last["identity"] > 0.1, 0),
    }
    texts, held = [], []
    for claim, (k, holds, sign) in claims.items():
        learned = sign * (last[k] - first[k]) >= 0
        start, end = "" if holds else "not that ", "" if learned or not holds else " from the start"
        texts.append(f"{start}{claim}{end} (`{k}` {first[k]:.2f} to {last[k]:.2f})")
        held.append(holds and learned)
    word = "Reproduced" if all(held) else "Partly reproduced" if any(held) else "Not reproduced"
    return f"{word} on {dataset}: {'; '.join(texts)}."


EXHIBITS = (curves, convergence, prior, complexity, dynamics)
