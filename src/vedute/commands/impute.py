"""vedute impute: the views that are missing."""

from __future__ import annotations

from typing import Annotated

import typer

from vedute.commands import _options

EXAMPLE = "vedute impute run data.npz -o filled.npz --interval 0.9"


def run(
    run: _options.Run,
    out: _options.Views,
    data: _options.OptionalSource = None,
    interval: Annotated[
        float | None,
        typer.Option(metavar="Q", help="Also write <view>_lower and <view>_upper, e.g. for 0.9."),
    ] = None,
    force: _options.Force = False,
) -> None:
    """Write DATA with missing views and entries filled in, the rest as it was.

    OUT has the keys, units and dtypes of DATA.
    """
    from vedute import io
    from vedute.commands import _outputs, _runs

    with _outputs.npz(out, force) as part:
        model, given, views = _runs.open_run(run, data)
        told = model.impute(views, interval=interval)
        ends = {"": told} if interval is None else told._asdict()
        arrays = {k: io.filled(given, views, values, model.views_) for k, values in ends.items()}
        mean = arrays.pop("" if interval is None else "mean")
        io.write_views(part, given, mean, arrays)
