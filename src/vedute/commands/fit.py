"""vedute fit: learn from data and keep the model."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vedute.commands import _options, _ranks
from vedute.commands._command import Answer, command, say
from vedute.data.escaping import escaped

if TYPE_CHECKING:
    from vedute import io
    from vedute.data.views import Views
    from vedute.estimators.base import Estimator

EXAMPLE = "vedute fit data/ -o run --clusters 10 --set mvp__latent_dim=16"


@command
def run(
    reading: _options.ReadingOptions,
    data: _options.Source,
    out: Annotated[Path, "-o --out RUN: The folder to write."],
    method: Annotated[str | None, _options.METHODS, "blend; of a preset mvp"] = None,
    preset: Annotated[str | None, "NAME: Published settings for this dataset."] = None,
    settings: Annotated[
        list[str] | None, "--set NAME=VALUE: A setting of the method; repeatable."
    ] = None,
    config: Annotated[
        Path | None, "FILE: Settings from a .toml file; --set overrides them."
    ] = None,
    save_config: Annotated[Path | None, "FILE: Write all settings to a .toml file."] = None,
    kind: _options.Kinds = None,
    clusters: Annotated[str | None, "K|auto: Cluster the samples, too."] = None,
    seed: Annotated[int | None, "Same seed, same result.", "0"] = None,
    groups: _options.Groups = None,
    resume: Annotated[bool, "Continue an interrupted fit of RUN."] = False,
    report: Annotated[Path | None, "PAGE: Write a page (.html) about it, too."] = None,
    title: _options.Title = "",
    ids: _options.Ids = True,
    values: _options.Values = True,
    force: _options.Force = False,
) -> Answer:
    """Learn from DATA and write the model and its results to the folder RUN.

    Samples that a view lacks and rows without values are missing views, single empty cells
    missing entries; labels in DATA are not used. Ctrl-C ends training early and keeps the best
    weights so far. A fit that is killed or terminated goes on with --resume from its last
    checkpoint, which is written every `checkpoint_minutes` to a folder beside RUN. --no-ids and
    --no-values keep single samples out of RUN and page. --groups names samples that belong
    together, such as visits of one patient: what is hidden to end training and to measure it is
    hidden in all of them.
    """
    from vedute import io
    from vedute.commands import _data, _pages, _settings
    from vedute.estimators import saving
    from vedute.io import toml
    from vedute.report import page as pages
    from vedute.report import run_folder
    from vedute.training import checkpoints

    number, kinds = _settings.clusters(clusters), _settings.kinds(kind or []) or None
    options = {"n_clusters": number, "random_state": seed, "kinds": kinds}
    model, method, preset = _settings.estimator(method, preset, config, settings, options, values)
    how = reading.checked()
    _data.check_place(out, data)
    if not _ranks.first():  # the first rank alone writes the RUN and reports results
        _learn(model, data, how, groups, _checkpoint(model, out, resume=True, force=False))
        return Answer({})
    with ExitStack() as whole:
        if save_config is not None:
            kept = toml.dumps({"method": method, "settings": model.get_params(deep=False)})
            whole.enter_context(io.atomic_file(save_config, force)).write_text(kept, "utf-8")
        page = whole.enter_context(_pages.new(report, force)) if report is not None else None
        with io.atomic_folder(out, force, stale=("report.npz",)) as folder:  # of the model before
            place = _checkpoint(model, out, resume, force)
            model, views = _learn(model, data, how, groups, place)
            keep = run_folder.Keep(ids, values)
            run_folder.write(folder, model, views, data, preset, how.given(), keep)
            before = saving.files_of(out)
        saving.clean(out, before)
        if place is not None:
            checkpoints.clear(place)  # the run is published
        _pages.measure(out, data, method)  # an error here does not lose the model
        if page is not None:
            pages.write_page(out, page, title=title)
    advice = run_folder.FittedRun.of(out).advice()
    wrote = [path for path in (out, report, save_config) if path is not None]
    outputs = {"method": method, "preset": preset, "advice": advice, "wrote": wrote}
    last = f"wrote {out}{'' if report is None else f' and {report}'}"
    return _summary(model, views, outputs, last)


def _checkpoint(model: Estimator, out: Path, resume: bool, force: bool) -> Path | None:
    """Let a method that trains write checkpoints beside RUN; return their folder, or None."""
    from vedute.training import checkpoints

    if model.get_params().get("checkpoint", "none") is not None or model.random_state is None:
        return None
    place = out.resolve().parent / f".{out.name}.checkpoint"
    if checkpoints.are_in(place) and not resume and _ranks.first() and not _ranks.restarted():
        if not force:
            fix = "--resume goes on from it, --force begins anew"
            raise FileExistsError(f"{place} has a checkpoint of a fit that was ended; {fix}")
        checkpoints.clear(place)
    model.set_params(checkpoint=place)
    return place


def _learn(
    model: Estimator, source: str, how: io.Reading, groups: str | None, place: Path | None
) -> tuple[Estimator, Views]:
    """Read the data and fit, with checkpoints in the folder `place`, on all ranks."""
    from vedute.commands import _data
    from vedute.methods import best_pair
    from vedute.scale import ranks
    from vedute.training import checkpoints, stopping

    with _ranks.joined():
        try:
            views, known = _data.opened(source, how, groups)
            model = best_pair.for_views(model, len(views.names))
            model.keep_checkpoint = True  # until the run is published
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "the views form groups")  # said below
                model.fit(views, groups=known)
        except stopping.TerminatedError as ended:
            if place is not None and checkpoints.are_in(place):
                ended.advice = "the same command with --resume goes on from here"
            raise
        ranks.all_have("fitted")
    model.keep_checkpoint = False
    for part in (model, *model.parts()):
        if "checkpoint" in part.get_params(deep=False):
            part.set_params(checkpoint=None)
    return model, views


def _summary(model: Estimator, views: Views, outputs: dict[str, Any], last: str) -> Answer:
    """Describe the fitted model, and print that with the advice of `outputs` and a last line."""
    from vedute.commands import _settings
    from vedute.data import kinds, missing
    from vedute.methods import best_pair

    summary: dict[str, Any] = {
        "samples": len(views),
        "views": [{"name": v.name, "kind": v.kind, "why": v.why} for v in model.views_],
        "explained": getattr(model, "r2_", None),
        "explained_in_units": getattr(model, "r2_in_units_", None),
        "n_clusters": getattr(model, "n_clusters_", None),
        "stability": getattr(model, "stability_", {}),
    }
    lines = [repr(views), *(f"  {kinds.sentence(view)}" for view in model.views_)]
    lines.append(missing.components_warning(missing.components(views.mask, views.names)) or "")
    ends = [r["hidden_error"] for r in getattr(model, "history_", [])]
    if model.get_params().get("early_stopping") and all(e is None for e in ends):
        few = "too few rows with two views for early stopping"
        lines.append(f"{few}: trained a fixed number of steps")
    lines += _settings.chosen_clusters(summary["n_clusters"], summary["stability"])
    if isinstance(model, best_pair.BestPair):
        lines.append(f"best pair: {' and '.join(escaped(views.names[v]) for v in model.chosen())}")
    if hasattr(model, "r2_"):
        seen = "" if model.hidden_predictions_ else ", which training had seen,"
        shares = [f"{escaped(name)} {_share(model, v)}" for v, name in enumerate(model.r2_)]
        lines.append(f"hidden views{seen} explained: {', '.join(shares)}")
    lines += [outputs["advice"] or "", last]
    return Answer(summary | outputs, lambda: say("\n".join(filter(None, lines))))


def _share(model: Estimator, v: int) -> str:
    """R2 of view v in percent, or the reason why it is unknown."""
    share = model.r2_[model.views_[v].name]
    if share == share:
        in_units = model.r2_in_units_[model.views_[v].name]
        return f"{share:.0%}" + (f" ({in_units:.0%} in units)" if in_units != share else "")
    if not (model.hidden_["view"] == v).any():
        return "not known (none of it was hidden)"
    constant = not model.views_[v].scaler.std.any()
    return f"not known (nothing varies in {'it' if constant else 'what was hidden of it'})"
