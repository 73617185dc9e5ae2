"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `vedute fit` wrote.")]
RunOut = Annotated[
    Path,
    typer.Option("-o", "--out", metavar="RUN", help="The folder to write.", show_default=False),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
