"""Input data of commands, and output files of the same kind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from vedute import datasets, io, methods
from vedute.commands import _settings
from vedute.commands._command import say
from vedute.data import missing
from vedute.data.entry import Entry
from vedute.data.escaping import listed
from vedute.data.problems import all_at_once, incomplete, noted
from vedute.data.store import manifest
from vedute.data.views import Views
from vedute.estimators import filling, progress, saving
from vedute.estimators.base import Estimator
from vedute.io import streaming

Columns = Callable[[Estimator, Views], Mapping[str, Any]]


def open_data(source: str, how: io.Reading) -> io.Data:
    """Read files of views, or a dataset by its name."""
    if datasets.has(source):
        if Path(source).is_dir() and not (Path(source) / "model.json").is_file():
            fix = f"write ./{source} for the folder, or rename it to have the dataset"
            raise ValueError(f"{source} is a dataset and a folder here; {fix}")
        io.check_options(how, (), source)
        return io.of_views(datasets.load(source))
    if not Path(source).exists() and not Path(source).suffix:
        known = ", ".join(datasets.available())
        raise FileNotFoundError(f"{source} is neither a file nor a dataset; datasets are {known}")
    return io.read(source, how)


def check(views: Views) -> None:
    """Reject unusable data: empty columns, or views without common samples."""
    for v, spec in enumerate(views.specs or ()):
        names = missing.empty_columns(views, v) if bool(views.mask[:, v].any()) else []
        if not names:
            continue
        fix = f" (--drop {quote(','.join(map(str, names[:5])))})" if spec.columns else ""
        what, have = ("columns", "have") if len(names) > 1 else ("column", "has")
        with noted(part=False):
            problem = f"{what} {listed(names)} {have} no value; drop the {what}{fix}"
            raise ValueError(f"view {spec.name!r}, {problem}")
    if len(views.names) > 1 and int(views.mask.sum(1).max()) < 2 and not incomplete():
        firsts = []
        for v, name in enumerate(views.names):
            rows = views.mask[:, v].nonzero().flatten().tolist()[:1]
            if not rows:
                raise ValueError(f"view {name!r} has no value in any row; leave it out")
            firsts += [f"{name} {r if views.ids is None else views.ids[r]}" for r in rows]
        what = f"no id is in two of them (first ids: {', '.join(firsts)})"
        raise ValueError(f"no sample has two views: {what}; give a sample the same id in all views")


def opened(source: str, how: io.Reading, groups: str | None = None) -> tuple[Views, Any]:
    """The checked views of training data, and the groups of samples; lists all problems."""
    known: Any = None
    with all_at_once():
        given = open_data(source, how)
        with noted(part=False):
            known = None if groups is None else io.table.read_groups(groups, given)
        views = io.enter(given).views
        check(views)
    return views, known


def streamed(source: str, how: io.Reading) -> tuple[Views, str | None]:
    """The views of data to make a store of, streamed if they are large, and what ids are called."""
    whole = ""
    if io.mudata.is_zarr(Path(source)):
        io.check_options(how, io.mudata.OPTIONS, source)
        kept = io.mudata.read(Path(source), how)
        return io.enter(kept, dtype=None).views, kept.id_name
    if Path(source).exists() and not datasets.has(source) and not io.store.is_store(source):
        try:
            views = streaming.opened(Path(source), how)
            if views is not None:
                return views
        except streaming.NotPlainError as e:
            whole = f"vedute: {source} was read into memory as a whole: {e}"
    given = open_data(source, how)
    if given.whole is not None:
        raise ValueError(f"{source} is a store already; copy the folder")
    read = io.enter(given, dtype=None).views
    if whole:
        say(whole, file=sys.stderr)
    return read, given.id_name


def source_of(run: Path, source: str | None) -> str:
    """DATA, or the data that RUN was fitted on."""
    from vedute.report import run_folder

    if source is None and not (run / "data.json").is_file():
        saving.read(run)  # raises where this is no RUN at all
    return source or run_folder.source_of(run)


def load(run: Path, method: str | None) -> Estimator:
    """Load a fitted estimator; `method` is the value of --method."""
    return methods.load(run, None if method is None else _settings.method(method))


def open_run(
    run: Path, source: str, how: io.Reading, method: str | None
) -> tuple[Estimator, io.Data, Entry]:
    """Load a RUN, and data that are read like its own but for what `how` sets."""
    from vedute.report import run_folder

    model, given = load(run, method), how.given()
    known = {k: v for k, v in run_folder.reading_of(run).items() if k in io.Reading._fields}
    if "drop" in given:
        given["drop"] = [*known.get("drop", ()), *given["drop"]]
    how = io.Reading(**known | given)._replace(lenient="label" not in given)
    data = open_data(source, how)
    return model, data, io.enter(data, model.specs)


@contextmanager
def guarded_ids(safe: bool) -> Iterator[None]:
    """Escape formulas among the ids of .csv files with an apostrophe if `safe`, else warn once."""
    formulas = list[str]()
    before = io.csv.formula_guard.set((safe, formulas))
    try:
        yield
    finally:
        io.csv.formula_guard.reset(before)
    if formulas:
        said = f"vedute: ids like {formulas[0]!r} are formulas to a spreadsheet; --safe-csv puts "
        say(f"{said}an apostrophe before them", file=sys.stderr)


def computed(
    columns: Columns, model: Estimator, given: io.Data, views: Views
) -> tuple[Any, dict[str, Any]]:
    """Ids or row numbers, and computed columns; those of a store in the order before it."""
    ids = views.index.numpy() if views.ids is None else views.ids
    if given.whole is None:
        return ids, dict(columns(model, views))
    read = blocks(given.whole, model, "processing the store")
    parts = [columns(model, block) for _, block in read]
    back = np.arange(len(ids)) if given.order is None else np.argsort(given.order)
    row_ids = given.order if given.order is not None and given.ids is None else ids
    table = {name: np.concatenate([part[name] for part in parts])[back] for name in parts[0]}
    return row_ids[back], table


def blocks(whole: Views, model: Estimator, task: str) -> Iterator[tuple[slice, Views]]:
    """Blocks of a store, and which rows they are; `task`: what the progress display says."""
    start = 0
    with progress.shown(), progress.task(task, len(whole), "row"):
        store = io.store.arranged(whole, model.specs)
        for block in store.batches(io.store.rows_of(whole)):
            yield slice(start, start + len(block)), block
            start += len(block)
            progress.advance(len(block), "row")


@contextmanager
def new_file(out: Path, force: bool, endings: Sequence[str] = (".npz",)) -> Iterator[Path]:
    """A context with the temporary path of a new file `out`; bad paths raise before any work."""
    if out.suffix.lower() not in endings:
        raise ValueError(f"OUT must end in {' or '.join(endings)}, got {out}")
    with io.atomic_file(out, force) as part:
        yield part
    say(f"wrote {out}")


@contextmanager
def new_views(out: Path, force: bool, source: str, tables: bool = False) -> Iterator[Path]:
    """A context with the temporary path of `out`, which is like `source`, `tables` or .npz."""
    check_place(out, source)
    ending = out.suffix.lower()
    ends = ("lower", "upper")  # of intervals, from an earlier call
    if io.store.is_store(source):
        if ending in io.FORMATS:
            what = "" if tables else f", a store as {source} is"
            raise ValueError(f"OUT must be a folder{what}; got {out}")
        if tables and io.store.is_store(out):
            raise FileExistsError(f"{out} is a store; choose another name for tables")
        place = io.atomic_folder(out, force, ends) if tables else io.store.new_store(out, force)
    else:
        like = ".npz" if datasets.has(source) else io.ending(source)
        if like == "" and ending in io.FORMATS and ending != ".npz":
            raise ValueError(f"OUT must be a folder, as {source} is, or end in .npz; got {out}")
        if like != "" and io.table.ending(out) not in (like, ".npz"):
            endings = " or ".join(dict.fromkeys((like, ".npz")))
            raise ValueError(f"OUT must end in {endings}, got {out}")
        folder = like == "" and ending != ".npz"
        place = io.atomic_folder(out, force, ends) if folder else io.atomic_file(out, force)
    with place as part:
        yield part
    say(f"wrote {out}")


def check_place(out: Path, source: str) -> None:
    """Reject an output path that is the data, or inside their folder."""
    home, place = Path(source).resolve(), out.resolve()
    if datasets.has(source) or not home.exists():
        return
    if place == home:
        raise ValueError(f"{out} holds the data; choose another name")
    if home.is_dir() and home in place.parents:
        raise ValueError(f"{out} is inside the data; write it outside the data folder {source}")


def probabilities(model: Estimator, views: Views) -> dict[str, Any]:
    """Probabilities of all categories, (n,) by view, column and category."""
    columns = {}
    for view, p in model.impute_proba(views).items():
        for label, chances in zip(p.columns, p.to_numpy().T, strict=True):
            nested = p.columns.nlevels > 1
            name = f"{view}.{label[0]}={label[1]}" if nested else f"{view}={label}"
            columns[name] = chances
    return columns


def write_filled(
    part: Path, given: io.Data, entry: Entry, model: Estimator, interval: float | None, scale: str
) -> None:
    """Write a file or folder like the data, with missing views and entries filled in."""
    filled, anew = {}, {}
    for name, end in _ends(model.impute(entry.views, interval, scale)).items():
        anew[name] = filling.written_whole(model.views_, scale, name != "mean")
        filled[name] = entry.filled(end.arrays(), anew[name])
    given = given.unknown([entry.views.names[v] for v in anew["mean"]])
    io.write_views(part, given, filled.pop("mean"), filled)
    if part.suffix.lower() in io.ANNOTATED:
        rows = {"embedding": model.transform(entry.views)}
        rows |= {"labels": model.predict(entry.views)} if hasattr(model, "labels_") else {}
        io.mudata.annotate(part, part, rows)


def write_filled_blocks(
    part: Path, given: io.Data, model: Estimator, interval: float | None, scale: str, tables: bool
) -> None:
    """Write the rows of a store in blocks, as a store or as tables; ends into folders inside."""
    assert given.whole is not None
    assert given.path is not None
    n, writers = len(given.whole), dict[str, Any]()
    row_ids = np.arange(n) if given.order is None else given.order
    ids = row_ids if given.ids is None else given.ids
    with ExitStack() as files:
        for rows, block in blocks(given.whole, model, "imputing"):
            for end, views in _ends(model.impute(block, interval, scale)).items():
                if end not in writers:
                    folder = part if end == "mean" else part / end
                    folder.mkdir(exist_ok=True)
                    table = io.parquet.Writer(folder, given.id_name) if tables else None
                    writers[end] = files.enter_context(table or io.store.Writer(folder, n))
                writers[end].add(views, ids[rows])
        for writer in () if tables else writers.values():
            writer.finish(given.order, manifest(given.path))


def _ends(imputed: Any) -> dict[str, Views]:
    """The views by name: mean, and with an interval lower and upper."""
    parts = imputed if isinstance(imputed, tuple) else (imputed,)
    return dict(zip(("mean", "lower", "upper"), parts, strict=False))
