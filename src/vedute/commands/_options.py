"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Source = Annotated[
    str, typer.Argument(metavar="DATA", help="A file of views (.npz), or the name of a dataset.")
]
OptionalSource = Annotated[
    str | None,
    typer.Argument(
        metavar="[DATA]",
        help="A file of views (.npz) or a dataset, any views missing; default: what RUN was "
        "fitted on.",
        show_default=False,
    ),
]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `vedute fit` wrote.")]
RunOut = Annotated[
    Path,
    typer.Option("-o", "--out", metavar="RUN", help="The folder to write.", show_default=False),
]
Views = Annotated[
    Path,
    typer.Option("-o", "--out", metavar="OUT", help="The .npz file to write.", show_default=False),
]
Table = Annotated[
    Path,
    typer.Option(
        "-o", "--out", metavar="OUT", help="The .npz or .csv file to write.", show_default=False
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
