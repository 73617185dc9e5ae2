"""vedute fit: learn from data and keep the model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vedute.commands import _data, _options

EXAMPLE = "vedute fit data/ -o run --clusters 10 --set latent_dim=32"


def run(
    data: _data.Source,
    out: _options.RunOut,
    method: Annotated[
        str | None, typer.Option(help="`vedute list methods` shows them.", show_default="mvp")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Published settings for this dataset.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the method; repeatable."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Settings from a .toml file; --set goes before it."),
    ] = None,
    save_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all settings to a .toml file.")
    ] = None,
    clusters: Annotated[
        str | None, typer.Option(metavar="K|auto", help="Cluster the samples, too.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Same seed, same result.", show_default="0")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Write a page (.html) about it, too.")
    ] = None,
    spec: _data.Spec = None,
    label: _data.Label = None,
    one_hot: _data.OneHot = False,
    samples: _data.Samples = None,
    decimal: _data.Decimal = None,
    force: _options.Force = False,
) -> None:
    """Learn from DATA and write the model and its results to the folder RUN.

    Samples that a view lacks and rows without values are missing views, single gaps missing
    entries; labels in DATA are not used. Ctrl-C ends training early and keeps the best weights
    so far.
    """
    from contextlib import ExitStack

    from rich.console import Console

    from vedute import io, methods, pairs, presets, saving
    from vedute.commands import _pages, _runs, _settings, _toml
    from vedute.commands._progress import following

    given = {"method": "mvp", "preset": None} | ({} if config is None else _read_config(config))
    named = given.pop("method"), given.pop("preset")
    method, preset = method or named[0], preset or named[1]
    cls = methods.find(method)
    wanted: dict[str, Any] = {} if preset is None else presets.find(method, preset)
    wanted = {"random_state": 0} | wanted | given | _settings.parse(settings or [])
    wanted |= {"n_clusters": _settings.clusters(clusters)} if clusters is not None else {}
    wanted |= {"random_state": seed} if seed is not None else {}
    if cls.soft and wanted.get("n_clusters") is None:
        raise ValueError(f"{method} learns clusters while it trains; say how many: --clusters K")
    model = cls(**_settings.check(cls, wanted))
    how = _data.reading(spec, label, one_hot, samples, decimal)
    _data.check_place(out, data)
    with ExitStack() as whole:
        if save_config is not None:
            part = whole.enter_context(io.atomic_file(save_config, force))
            kept = {"method": method, "settings": model.get_params(deep=False)}
            part.write_text(_toml.dumps(kept), encoding="utf-8")
        page = whole.enter_context(_pages.new(report, force)) if report is not None else None
        with io.atomic_folder(out, force) as folder:
            views, specs = io.enter(_data.open_data(data, how))
            _data.check(views, specs)
            model = pairs.for_views(model, len(specs))
            with following(model):
                model.fit(views)
            _runs.write(folder, model, views, data, preset)
            _data.remember(folder, how)
            before = saving.tensors_of(out)
            (out / "report.npz").unlink(missing_ok=True)  # it tells of the model that was here
        saving.clean(out, before)
        _pages.measure(out)  # the model is safe by now, whatever becomes of its page
        if page is not None:
            _pages.write(out, page)
    told = Console(soft_wrap=True, highlight=False)
    told.print(f"{views!r}", markup=False)
    history = vars(model).get("history_", [])
    if model.get_params().get("early_stopping") and not any(r["hidden_error"] for r in history):
        told.print("too few rows with two views to watch any: trained for a fixed number of steps")
    if isinstance(model, pairs.BestPair):
        told.print(f"best pair: {' and '.join(views.names[v] for v in model.chosen())}")
    if "r2_" in vars(model):
        shares = [f"{name} {share:.0%}" for name, share in model.r2_.items()]
        told.print(f"hidden views explained: {', '.join(shares)}")
    told.print(f"wrote {out}{'' if report is None else f' and {report}'}", markup=False)


def _read_config(path: Path) -> dict[str, Any]:
    """Names of the constructor, at the top or under [settings]; method and preset beside them."""
    import tomllib

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeError) as e:
        raise ValueError(f"{path} is not TOML ({e}); write lines like latent_dim = 32") from None
    inside = content.pop("settings", {})
    if not isinstance(inside, dict):
        raise ValueError(f"{path}: settings is a table; write [settings] above its lines")
    return content | inside
