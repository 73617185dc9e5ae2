"""vedute fit: learn from data and keep the model."""

from __future__ import annotations

from typing import Annotated

import typer

from vedute.commands import _options

EXAMPLE = "vedute fit data.npz -o run --clusters 10 --set latent_dim=32"


def run(
    data: _options.Source,
    out: _options.RunOut,
    method: Annotated[str, typer.Option(help="`vedute list methods` shows them.")] = "mvp",
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Published settings for this dataset.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the method; repeatable."),
    ] = None,
    clusters: Annotated[
        int | None, typer.Option(metavar="K", help="Cluster the samples, too.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Same seed, same result.", show_default="0")
    ] = None,
    force: _options.Force = False,
) -> None:
    """Learn from DATA and write the model and its results to the folder RUN.

    Rows of NaN are missing views, single NaN missing entries; labels in DATA are not used.
    Ctrl-C ends training early and keeps the best weights so far.
    """
    from rich.console import Console

    from vedute import io, methods, presets
    from vedute.commands import _runs, _settings
    from vedute.commands._progress import following

    cls = methods.find(method)
    wanted = presets.find(method, preset) if preset is not None else {}
    wanted = {"random_state": 0} | wanted | _settings.parse(settings or [])
    wanted |= {"n_clusters": clusters} if clusters is not None else {}
    wanted |= {"random_state": seed} if seed is not None else {}
    model = cls(**_settings.check(cls, wanted))
    with io.atomic_folder(out, force) as folder:
        views = io.as_views(_runs.open_data(data))
        with following(model):
            model.fit(views)
        _runs.write(folder, model, views, data, preset)
    told = Console(soft_wrap=True, highlight=False)
    told.print(f"{views!r}", markup=False)
    if "r2_" in vars(model):
        shares = [f"{name} {share:.0%}" for name, share in model.r2_.items()]
        told.print(f"hidden views explained: {', '.join(shares)}")
    told.print(f"wrote {out}", markup=False)
