"""Input data of commands: options for reading them, and output files of the same kind."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, get_type_hints

import typer

from vedute.commands import _answer, _options
from vedute.commands._answer import Answer
from vedute.commands._terminal import say

if TYPE_CHECKING:
    from vedute import io
    from vedute.data.frames import ViewSpec
    from vedute.data.views import Entry, Views
    from vedute.estimators.base import Estimator

T = TypeVar("T")
INPUTS = (
    "a folder with one file per view (.csv, .tsv, .parquet, .npy, images), .npz, .mat, .xlsx, "
    ".h5mu, .h5ad, one table with --views, a store, or the name of a dataset"
)
Source = Annotated[str, typer.Argument(metavar="DATA", help=f"{INPUTS[0].upper()}{INPUTS[1:]}.")]
OptionalSource = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help=f"Any views missing: {INPUTS}; default: what RUN was fitted on.",
        show_default=False,
    ),
]
OutViews = Annotated[Path, _options.out("What to write: a folder or file like DATA, or .npz.")]
OutRows = Annotated[
    Path, _options.out("The .csv, .parquet or .npz file to write (.h5mu, .h5ad if DATA is one).")
]

Groups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN|FILE",
        help="Which samples belong together: a column of DATA, if that is one table, or a file "
        "(.csv, .tsv, .parquet) of ids and groups.",
    ),
]


class ReadingOptions(NamedTuple):
    """Options for reading DATA; `reads` adds them to a command."""

    views: Annotated[
        Path | None,
        typer.Option(
            metavar="SPEC",
            help='TOML file: columns of one table that make a view, rna = "rna_*" under \\[views].',
        ),
    ] = None
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Take it out of the data; for evaluation only."),
    ] = None
    one_hot: Annotated[bool, typer.Option("--one-hot", help="Columns of text are categories.")] = (
        False
    )
    samples: Annotated[
        str | None, typer.Option(metavar="rows|columns", help="Where samples are in a .mat file.")
    ] = None
    decimal: Annotated[
        str | None, typer.Option(metavar=",", help="For numbers like 1,234 that are not thousands.")
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Leave a column of the tables out; repeatable, or a,b for several.",
        ),
    ] = None

    def checked(self) -> io.Reading:
        from vedute import io

        if self.samples not in (None, "rows", "columns"):
            raise ValueError(f"--samples takes rows or columns, got {self.samples!r}")
        if self.decimal not in (None, ","):
            raise ValueError(
                f"--decimal takes a comma, got {self.decimal!r}; points need no option"
            )
        spec, column = (None, None) if self.views is None else io.read_spec(self.views)
        return io.Reading(
            *(spec, column, self.label, self.one_hot, self.samples, self.decimal), drop=self.drop
        )

    def words(self) -> list[str]:
        """The options as typed on the command line."""
        given = {k: v for k, v in self._asdict().items() if v and k not in ("one_hot", "drop")}
        pairs = [*given.items(), *(("drop", name) for name in self.drop or ())]
        typed = [str(word) for name, v in pairs for word in (f"--{name}", v)]
        return [*typed, "--one-hot"] if self.one_hot else typed


def reads(run: Callable[..., T]) -> Callable[..., T]:
    """Add `ReadingOptions` to a command before its last option; `run` takes them first."""

    @wraps(run)
    def command(**options: Any) -> T:
        reading = ReadingOptions(*(options.pop(name) for name in ReadingOptions._fields))
        return run(reading, **options)

    _, *parameters, last = inspect.signature(run, eval_str=True).parameters.values()
    shared = [
        inspect.Parameter(
            name, last.kind, default=ReadingOptions._field_defaults[name], annotation=kind
        )
        for name, kind in get_type_hints(ReadingOptions, include_extras=True).items()
    ]
    _options.declare(command, [*parameters, *shared, last])
    return command


def open_data(source: str, how: io.Reading) -> io.Data:
    """Read files of views, or a dataset by its name."""
    from vedute import datasets, io

    if datasets.has(source):
        if Path(source).is_dir() and not (Path(source) / "model.json").is_file():
            raise ValueError(
                f"{source} is a dataset and a folder here; write ./{source} for the folder, or "
                "rename it to have the dataset"
            )
        io.check_options(how, (), source)
        return io.of_views(datasets.load(source))
    if not Path(source).exists() and not Path(source).suffix:
        known = ", ".join(datasets.available())
        raise FileNotFoundError(f"{source} is neither a file nor a dataset; datasets are {known}")
    return io.read(source, how)


def groups_of(word: str | None, data: io.Data) -> Any:
    """Groups of samples, read from what --groups names and matched by id."""
    from vedute.io import table

    return None if word is None else table.read_groups(word, data)


def check(views: Views) -> None:
    """Reject unusable data: empty columns, or views without common samples."""
    from vedute.data.problems import incomplete, noted

    specs = views.specs or ()
    for v, spec in enumerate(specs):
        with noted(part=False):
            _check_columns(views, v, spec)
    if len(specs) > 1 and int(views.mask.sum(1).max()) < 2 and not incomplete():
        firsts = []
        for v, name in enumerate(views.names):
            rows = views.mask[:, v].nonzero().flatten().tolist()[:1]
            if not rows:
                raise ValueError(f"view {name!r} has no value in any row; leave it out")
            firsts += [f"{name} {r if views.ids is None else views.ids[r]}" for r in rows]
        raise ValueError(
            f"no sample has two views: no id is in two of them (first ids: {', '.join(firsts)}); "
            "give a sample the same id in all views"
        )


def _check_columns(views: Views, v: int, spec: ViewSpec) -> None:
    """Reject columns without any value."""
    from shlex import quote

    from vedute.data.frames import listed, numbers
    from vedute.data.views import ever_seen

    empty = (~ever_seen(views, v).flatten()).nonzero().flatten().tolist()
    if not empty or not bool(views.mask[:, v].any()):
        return
    columns = list(spec.columns or range(len(ever_seen(views, v).flatten())))
    if spec.columns and spec.levels:  # a column of categories takes several numbers
        levels_by_column = zip(spec.columns, spec.levels, strict=True)
        columns = [name for name, levels in levels_by_column for _ in range(numbers(levels))]
    names = list(dict.fromkeys(columns[j] for j in empty))
    fix = f" (--drop {quote(','.join(map(str, names[:5])))})" if spec.columns else ""
    which = f"column {names[0]!r} has no value; drop the column"
    if len(names) > 1:
        which = f"columns {listed(names)} have no value; drop the columns"
    raise ValueError(f"view {spec.name!r}, {which}{fix}")


def opened(source: str, how: io.Reading, groups: str | None = None) -> tuple[io.Data, Views, Any]:
    """Training data as read, their checked views, and the groups of samples; lists all problems."""
    from vedute import io
    from vedute.data.problems import all_at_once, noted

    known: Any = None
    with all_at_once():
        given = open_data(source, how)
        with noted(part=False):
            known = groups_of(groups, given)
        views = io.enter(given).views
        check(views)
    return given, views, known


def source_of(run: Path, source: str | None) -> str:
    """DATA, or the data that RUN was fitted on."""
    from vedute.estimators import saving
    from vedute.report import run_folder

    if source is not None:
        return source
    if not (run / "data.json").is_file():
        saving.read(run)  # raises where this is no RUN at all
        raise FileNotFoundError(f"{run} does not say what it was fitted on; name DATA as well")
    return run_folder.source_of(run)


def load(run: Path, method: str | None) -> Estimator:
    """Load a fitted estimator; `method` is the value of --method."""
    from vedute import methods
    from vedute.commands import _settings

    return methods.load(run, None if method is None else _settings.method(method))


def open_run(
    run: Path, source: str, how: io.Reading, method: str | None
) -> tuple[Estimator, io.Data, Entry]:
    """Load a fitted estimator, the data to apply it to, and their checked views.

    Data are read like those of the RUN, except for options that `how` sets.
    """
    from vedute import io
    from vedute.report import run_folder

    model = load(run, method)
    known = run_folder.reading_of(run)
    given = how.given()
    known = {k: v for k, v in known.items() if k in io.Reading._fields}
    given |= {"drop": [*known.get("drop", ()), *given["drop"]]} if "drop" in given else {}
    known |= given
    data = open_data(source, io.Reading(**known)._replace(lenient="label" not in given))
    return model, data, io.enter(data, model.specs)


@contextmanager
def guarded_ids(safe: bool) -> Iterator[None]:
    """Escape formulas among the ids of .csv files with an apostrophe if `safe`, else warn once."""
    from vedute.io import csv

    with csv.formula_guard(safe) as formulas:
        yield
    if formulas:
        say(
            f"vedute: ids like {formulas[0]!r} are formulas to a spreadsheet; --safe-csv puts an "
            "apostrophe before them",
            file=sys.stderr,
        )


def writes_rows(columns: Callable[[Estimator, Views], Mapping[str, Any]]) -> Callable[..., None]:
    """A command that writes `columns` computed by a fitted estimator, one row per sample."""

    def run(
        reading: ReadingOptions,
        run: _options.RunFolder,
        out: OutRows,
        data: OptionalSource = None,
        method: _options.OutsideMethod = None,
        safe_csv: _options.SafeCsv = False,
        force: _options.Force = False,
    ) -> Answer:
        return _write_rows(run, data, reading, out, method, force, safe_csv, columns)

    run.__doc__ = columns.__doc__
    return _answer.offers_json(reads(run))


def _write_rows(
    run: Path,
    source: str | None,
    how: ReadingOptions,
    out: Path,
    method: str | None,
    force: bool,
    safe_csv: bool,
    columns: Callable[[Estimator, Views], Mapping[str, Any]],
) -> Answer:
    """Write computed columns as a table with a row per sample, or as annotations of the data in
    formats that hold both."""
    from vedute import io

    reading, source = how.checked(), source_of(run, source)
    check_place(out, source)
    ending = out.suffix.lower()
    annotated = ending in io.ANNOTATED
    if annotated and ending != Path(source).suffix.lower():
        raise ValueError(f"OUT may end in {out.suffix} only if DATA does, got {source}")
    endings = [ending] if annotated else [*io.RESULT_FORMATS]
    with guarded_ids(safe_csv), new_file(out, force, endings) as part:
        model, given, entry = open_run(run, source, reading, method)
        if annotated:
            written = _rows(columns, model, given, entry.views)
            written.pop("")
            io.annotate(part, Path(source), written)
        else:
            written = write_table(part, columns, model, given, entry.views)
    shapes = {name: column.shape for name, column in written.items()}
    return Answer({"samples": len(entry.views), "columns": shapes, "wrote": [out]})


def new_table(out: Path, force: bool, source: str) -> AbstractContextManager[Path]:
    """A context with the temporary path of a new table, outside the data."""
    from vedute import io

    check_place(out, source)
    return new_file(out, force, [*io.RESULT_FORMATS])


def write_table(
    part: Path,
    columns: Callable[[Estimator, Views], Mapping[str, Any]],
    model: Estimator,
    given: io.Data,
    views: Views,
) -> dict[str, Any]:
    """Write a row per sample with columns computed by a fitted estimator; return the columns."""
    from vedute import io

    table, ending = _rows(columns, model, given, views), part.suffix.lower()
    ids = table.pop("")
    io.RESULT_FORMATS[ending](part, io.with_ids(ids, given.id_name, table, ending))
    return table


def _rows(
    columns: Callable[[Estimator, Views], Mapping[str, Any]],
    model: Estimator,
    given: io.Data,
    views: Views,
) -> dict[str, Any]:
    """Columns of all samples, and their ids, or else row numbers, under "". A store is processed
    in blocks, and its results are put into the order of the original data."""
    import numpy as np

    from vedute.estimators import progress
    from vedute.io import store

    ids = views.index.numpy() if views.ids is None else views.ids
    if given.whole is None:
        return {"": ids, **columns(model, views)}
    parts = []
    with progress.shown(), progress.task("processing the store", len(views), "row"):
        for block in store.blocks(given.whole, model.specs):
            parts.append(columns(model, block))
            progress.advance(len(block), "row")
    table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    row_ids = ids if given.ids is not None or given.order is None else given.order
    return store.in_order({"": row_ids, **table}, given.order)


@contextmanager
def new_file(out: Path, force: bool, endings: Sequence[str] = (".npz",)) -> Iterator[Path]:
    """A context with the temporary path of a new file `out`; bad paths raise before any work."""
    from vedute import io

    if out.suffix.lower() not in endings:
        raise ValueError(f"OUT must end in {' or '.join(endings)}, got {out}")
    with io.atomic_file(out, force) as part:
        yield part
    say(f"wrote {out}")


@contextmanager
def new_views(out: Path, force: bool, source: str, tables: bool = False) -> Iterator[Path]:
    """A context with the temporary path of `out`, a file or folder like `source`, or .npz.

    tables: write a folder of tables where `source` is a store.
    """
    from vedute import datasets, io
    from vedute.io import store, table

    check_place(out, source)
    ending = out.suffix.lower()
    ends = ("lower", "upper")  # of intervals, from an earlier call
    if store.is_store(source):
        if ending in io.FORMATS:
            what = "" if tables else f", a store as {source} is"
            raise ValueError(f"OUT must be a folder{what}; got {out}")
        if tables and store.is_store(out):
            raise FileExistsError(f"{out} is a store; choose another name for tables")
        place = io.atomic_folder(out, force, ends) if tables else store.new_store(out, force)
        with place as part:
            yield part
        say(f"wrote {out}")
        return
    like = ".npz" if datasets.has(source) else io.ending(source)
    if like == "" and ending in io.FORMATS and ending != ".npz":
        raise ValueError(f"OUT must be a folder, as {source} is, or end in .npz; got {out}")
    if like != "" and table.ending(out) not in (like, ".npz"):
        endings = " or ".join(dict.fromkeys((like, ".npz")))
        raise ValueError(f"OUT must end in {endings}, got {out}")
    folder = like == "" and ending != ".npz"
    with io.atomic_folder(out, force, ends) if folder else io.atomic_file(out, force) as part:
        yield part
    say(f"wrote {out}")


def check_place(out: Path, source: str) -> None:
    """Reject an output path that is the data, or inside their folder."""
    from vedute import datasets

    home, place = Path(source).resolve(), out.resolve()
    if datasets.has(source) or not home.exists():
        return
    if place == home:
        raise ValueError(f"{out} holds the data; choose another name")
    if home.is_dir() and home in place.parents:
        raise ValueError(f"{out} is inside the data; write it outside the data folder {source}")
