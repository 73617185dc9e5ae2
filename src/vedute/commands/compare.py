"""vedute compare: which method for these data."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from rich.markup import escape

from vedute.commands import _engine, _options
from vedute.commands._command import Answer, command, say, table
from vedute.data.escaping import escaped

if TYPE_CHECKING:
    from vedute.analysis.comparison import MethodScores

EXAMPLE = "vedute compare data/ --methods blend,mvp -o compared"


@command
def run(
    reading: _options.ReadingOptions,
    data: _options.Source,
    methods: Annotated[
        str, "A,B|all: Beside the three simple fills; also MODULE:CLASS of your own."
    ] = "blend",
    out: Annotated[Path | None, "-o --out OUT: A folder for scores.csv and scores.png."] = None,
    clusters: Annotated[str | None, "K|auto: How many clusters.", "as many as labels"] = None,
    settings: Annotated[
        list[str] | None, "--set NAME=VALUE: A setting of the methods that have it; repeatable."
    ] = None,
    seed: Annotated[int, "Seed of the hidden views and the methods."] = 0,
    engine: _engine.Engine = None,
    scheduler: _engine.Scheduler = None,
    force: _options.Force = False,
) -> Answer:
    """Hide a tenth of the observed views of DATA and see which method imputes them best.

    All methods see the same views; the three simple fills are always among them. Where DATA has
    labels, clusters are compared with them, too; no method sees a label.
    """
    from vedute import io
    from vedute.analysis import comparison
    from vedute.commands import _data, _settings

    how = reading.checked()
    if out is not None:
        _data.check_place(out, data)
    with nullcontext() if out is None else io.atomic_folder(out, force) as folder:
        views = io.enter(_data.open_data(data, how)).views
        _data.check(views)
        number = _settings.clusters(clusters)
        if clusters is None and views.y is not None:
            number = len(set(views.y[io.contents.known_labels(views.y)].tolist()))
        common = {"n_clusters": number, "random_state": seed}
        models = _settings.estimators(methods, common, settings, len(views.names))
        trial = comparison.Trial.of(views, seed)
        with _engine.running(engine, scheduler):
            rows = comparison.ranked(comparison.compare(trial, models, views.y))
        if folder is not None:
            io.csv.write_csv(folder / "scores.csv", comparison.columns(rows))
            if find_spec("matplotlib") is None:
                say("no figure: it needs matplotlib, pip install 'vedute[plots]'")
            else:
                comparison.figure(rows).savefig(folder / "scores.png", dpi=150)
    hidden, wrote = int(trial.hidden.sum()), [] if out is None else [out]
    result = {"hidden": hidden, "methods": [asdict(row) for row in rows], "wrote": wrote}
    return Answer(result, lambda: _show(rows, hidden, out), code=all(row.failed for row in rows))


def _show(rows: list[MethodScores], hidden: int, out: Path | None) -> None:
    from vedute.commands import _settings

    console = Console(highlight=False)
    labels = ["ACC %", "NMI %", "ARI %"] if any(row.scores for row in rows) else []
    lines = []
    for row in (row for row in rows if not row.failed):
        error = "–" if row.error != row.error else f"{row.error:.3f}"
        scores = [f"{100 * x:.1f}" for x in row.scores.values()] or ["–" for _ in labels]
        lines.append([row.method, error, *scores, f"{row.seconds:.1f}"])
    console.print(table(["method", "hidden-view error", *labels, "seconds"], lines))
    unit = "Error: mean squared, in standard deviations of each feature; 1 is the mean."
    say(f"{hidden} views hidden from all methods. {unit}")
    for row in rows:
        for line in _settings.chosen_clusters(row.n_clusters, row.stability):
            say(f"{row.method}: {line}" if line[0] != " " else line)
        if row.weights:  # of experts by view, in percent
            experts, lines = list(next(iter(row.weights.values()))), []
            for view, weights in row.weights.items():
                shares = [*weights.values(), max(0.0, 1 - sum(weights.values()))]
                lines.append([escape(escaped(view)), *(f"{100 * w:.0f}" for w in shares)])
            title = {"title": f"{row.method}: expert weights, %", "title_justify": "left"}
            console.print(table(["view", *experts, "mean"], lines, **title))
        if row.failed:
            say(f"{row.method} failed: {row.failed}")
    if out is not None:
        say(f"wrote {out}")
