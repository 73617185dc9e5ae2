"""Arguments and options that several commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from vedute import io

INPUTS = (
    "a folder with one file per view (.csv, .tsv, .parquet, .npy, images), .npz, .mat, .xlsx, "
    ".h5mu, .h5ad, one table with --views, a store, or the name of a dataset"
)
METHODS = "`vedute list methods` shows them; also MODULE:CLASS of your own."

Source = Annotated[str, typer.Argument(metavar="DATA", help=f"{INPUTS[0].upper()}{INPUTS[1:]}.")]
NEW = f"Any views missing: {INPUTS}; default: what RUN was fitted on."
OptionalSource = Annotated[str | None, typer.Argument(metavar="DATA", help=NEW)]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `vedute fit` wrote.")]
OutViews = Annotated[Path, "-o --out OUT: What to write: a folder or file like DATA, or .npz."]
Groups = Annotated[
    str | None,
    "COLUMN|FILE: Which samples belong together: a column of DATA, if that is one table, or a file "
    "(.csv, .tsv, .parquet) of ids and groups.",
]
OwnMethod = Annotated[str | None, "MODULE:CLASS: The class RUN was fitted with, if it is yours."]
SafeCsv = Annotated[bool, "Put an apostrophe before ids that spreadsheets read as formulas."]
Kinds = Annotated[list[str] | None, "VIEW=KIND: What a view holds: counts, text, ..."]
Force = Annotated[bool, "Replace existing output."]
Ids = Annotated[bool, "Name samples, and the files and folders of DATA."]
Title = Annotated[str, "TEXT: The heading of the page, instead of the name of DATA."]
Values = Annotated[bool, "Keep values and labels of single samples."]


class ReadingOptions(NamedTuple):
    """Options for reading DATA, of each command whose first parameter is `reading`."""

    views: Annotated[
        Path | None,
        'SPEC: TOML file: columns of one table that make a view, rna = "rna_*" under \\[views].',
    ] = None
    label: Annotated[str | None, "COLUMN: Take it out of the data; for evaluation only."] = None
    one_hot: Annotated[bool, "Columns of text are categories."] = False
    samples: Annotated[str | None, "rows|columns: Where samples are in a .mat file."] = None
    decimal: Annotated[str | None, ",: For numbers like 1,234 that are not thousands."] = None
    drop: Annotated[
        list[str] | None,
        "COLUMN: Leave a column of the tables out; repeatable, or a,b for several.",
    ] = None

    def checked(self) -> "io.Reading":
        from vedute import io

        if self.samples not in (None, "rows", "columns"):
            raise ValueError(f"--samples takes rows or columns, got {self.samples!r}")
        if self.decimal not in (None, ","):
            raise ValueError(
                f"--decimal takes a comma, got {self.decimal!r}; points need no option"
            )
        spec, column = (None, None) if self.views is None else io.table.read_spec(self.views)
        return io.Reading(spec, column, *self[1:5], drop=self.drop)

    def words(self) -> list[str]:
        """The options as typed on the command line."""
        given = {k: v for k, v in self._asdict().items() if v and k not in ("one_hot", "drop")}
        pairs = [*given.items(), *(("drop", name) for name in self.drop or ())]
        typed = [str(word) for name, v in pairs for word in (f"--{name}", v)]
        return [*typed, "--one-hot"] if self.one_hot else typed
