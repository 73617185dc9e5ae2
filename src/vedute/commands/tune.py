"""vedute tune: find settings for a dataset without labels."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vedute.commands import _engine, _options
from vedute.commands._command import Answer, command, say

if TYPE_CHECKING:
    from vedute.analysis.tuning import Tried, Tuned

EXAMPLE = "vedute tune data/ --time 10 -o tuned.toml"


@command
def run(
    reading: _options.ReadingOptions,
    data: _options.Source,
    out: Annotated[Path, "-o --out OUT: The .toml file to write."] = Path("tuned.toml"),
    method: Annotated[str, _options.METHODS] = "mvp",
    trials: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Candidates to try.", show_default="20")
    ] = None,
    minutes: Annotated[float | None, "--time MINUTES: Time limit of the search."] = None,
    settings: Annotated[
        list[str] | None, "--set NAME=VALUE: Keep this as it is; repeatable."
    ] = None,
    seed: Annotated[int, "Seed of hidden views, candidates and fits."] = 0,
    engine: _engine.Engine = None,
    scheduler: _engine.Scheduler = None,
    force: _options.Force = False,
) -> Answer:
    """Find settings that impute hidden views of DATA best; write them for `vedute fit --config`.

    The search covers latent_dim, hidden, dropout, view_dropout, the betas and lr. It uses Optuna if
    installed, else (and always with --engine) successive halving. The best settings are compared
    with the defaults on other hidden views, and that difference is printed. No labels are used.
    """
    from vedute import io
    from vedute.analysis import tuning
    from vedute.commands import _data, _settings
    from vedute.io import toml

    if out.suffix.lower() != ".toml":
        raise ValueError(f"OUT must end in .toml, got {out}")
    if minutes is not None and not 0 < minutes < float("inf"):
        raise ValueError(f"--time takes minutes above 0, got {minutes:g}")
    cls = _settings.method(method)
    fixed = _settings.check(cls, _settings.parse(settings))
    how, on_tried = reading.checked(), partial(_print_trial, before=[])
    with io.atomic_file(out, force) as part:
        views = io.enter(_data.open_data(data, how)).views
        _data.check(views)
        with _engine.running(engine, scheduler):
            tuned = tuning.tune(cls, views, fixed, trials, minutes, seed, on_tried)
        config = {"method": method, "settings": fixed | tuned.settings()}
        text = f"# vedute tune {data}: {_verdict(tuned)}\n{toml.dumps(config)}"
        part.write_text(text, encoding="utf-8")

    def show() -> None:
        say(f"{len(tuned.tried)} measured; {_verdict(tuned)}")
        for name, value in tuned.settings().items():
            say(f"  {name} = {value}")
        named = f" --method {method}" if ":" in method else ""
        say(f"wrote {out}; use it with: vedute fit {data} -o run --config {out}{named}")

    default, best = tuned.confirmed  # on views held out from the search
    measured = {"measured": len(tuned.tried), "default_error": default, "error": best}
    return Answer(config | measured | {"wrote": [out]}, show)


def _print_trial(tried: Tried, before: list[Tried]) -> None:
    """Print a candidate to stderr, and put it with those before."""
    best = min((other.error for other in before if other.share == 1), default=float("inf"))
    better = " *" if tried.share == 1 and tried.error < best else ""
    before.append(tried)
    what = " ".join(f"{k}={v}" for k, v in tried.settings.items()) or "the defaults"
    share = f"{tried.share:4.0%} of training"
    say(f"{len(before):3} {share}  {tried.error:.4f}{better}  {what}", file=sys.stderr)


def _verdict(tuned: Tuned) -> str:
    default, best = tuned.confirmed
    if len(tuned.tried) == 1:
        return f"the time allowed the defaults only; hidden-view error {default:.4f}"
    if not tuned.settings():
        return f"nothing beats the defaults; hidden-view error {default:.4f}"
    gain = f"on views held out from the search: {tuned.gain:.1%} less"
    return f"hidden-view error {best:.4f} against {default:.4f} of the defaults, {gain}"
