"""Odd data in files, read in Python and by the command line in this process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from PIL import Image
from scipy.io import savemat
from shell import vedute_

from vedute import cli, io, methods
from vedute.commands import _pages
from vedute_bench.soak import inputs
from vedute_bench.soak.inputs import chance, pick
from vedute_bench.soak.watching import refused, watched

ENDINGS = ("folder", "folder", "npz", "csv", "mat", "parquet", "npy")
MISTAKES = (ValueError, TypeError, OSError, ImportError)
_pages.measure = lambda *_: None  # it starts a process, which is not tested here


def write(rng: Generator, place: Path) -> str:
    """Write random data to a file or folder; return its name."""
    X = inputs.arrays(rng)
    kind = pick(rng, ENDINGS)
    if kind == "folder":
        _folder(rng, place / "d", X)
        return "d"
    if kind == "npy":
        _npy(rng, place / "d", X)
        return "d"
    {"npz": _npz, "csv": _table, "parquet": _table, "mat": _mat}[kind](rng, place / f"d.{kind}", X)
    return f"d.{kind}"


def _plain(x: Any) -> Any:
    return x.reshape(len(x), -1)


def _folder(rng: Generator, path: Path, X: list[Any]) -> None:
    """Write one file per view, usually text, sometimes images."""
    path.mkdir()
    index = inputs.ids(rng, len(X[0]))
    for v, x in enumerate(X):
        name, frame = f"v{v}", inputs.frame(rng, _plain(x), index)
        frame = frame.to_frame() if isinstance(frame, pd.Series) else frame
        match int(rng.integers(8)):
            case 0:
                frame.to_csv(path / f"{name}.tsv", sep="\t")
            case 1:
                frame.to_csv(path / f"{name}.csv.gz")
            case 2:
                frame.rename(columns=str).to_parquet(path / f"{name}.parquet")
            case 3:
                frame.to_csv(path / f"{name}.csv", sep=";", decimal=",")
            case 4:
                _images(rng, path / name, index)
            case _:
                odd = ("utf-8-sig", "utf-16") if chance(rng, 0.1) else ("utf-8",)
                frame.to_csv(path / f"{name}.csv", encoding=pick(rng, odd))


def _images(rng: Generator, path: Path, index: pd.Index) -> None:
    path.mkdir()
    for name in index[: 1 + int(rng.integers(len(index)))]:
        pixels = rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)
        file = "".join(c for c in str(name) if c not in "/\0")[:100]
        Image.fromarray(pixels).save(path / f"{file}.png")


def _npy(rng: Generator, path: Path, X: list[Any]) -> None:
    path.mkdir()
    for v, x in enumerate(X):
        a = np.asarray(inputs._dense(inputs.cast(rng, x))) if chance(rng, 0.3) else x
        np.save(path / f"v{v}.npy", a, allow_pickle=True)
        if chance(rng, 0.7):
            lines = [f"p{i}" for i in range(len(x) - int(chance(rng, 0.1)))]
            (path / f"v{v}.ids.txt").write_text("\n".join(lines) + "\n")


def _npz(rng: Generator, path: Path, X: list[Any]) -> None:
    names = [pick(rng, inputs.NAMES) if chance(rng, 0.2) else f"view{v}" for v in range(len(X))]
    arrays = {
        (k or "empty").replace("/", "_")[:100]: np.asarray(inputs._dense(inputs.cast(rng, x)))
        if chance(rng, 0.2)
        else x
        for k, x in zip(names, X, strict=True)
    }
    n = len(X[0])
    if chance(rng, 0.2):
        arrays["ids"] = np.array([f"p{i}" for i in range(n)])
    if chance(rng, 0.2):
        arrays["y"] = rng.integers(3, size=n)
    if chance(rng, 0.1):
        arrays["mask"] = rng.random((n, len(X))) < 0.7
    if chance(rng, 0.1):
        arrays["view_names"] = np.array([pick(rng, inputs.NAMES) for _ in X])
    np.savez(path, **arrays)


def _mat(rng: Generator, path: Path, X: list[Any]) -> None:
    if chance(rng, 0.5):
        cell = np.empty((1, len(X)), object)
        for v, x in enumerate(X):
            cell[0, v] = x
        savemat(path, {"X": cell, "Y": np.arange(len(X[0]))[:, None]})
    else:
        savemat(path, {f"view{v + 1}": x for v, x in enumerate(X)})


def _table(rng: Generator, path: Path, X: list[Any]) -> None:
    wide = np.hstack([_plain(x) for x in X])
    table = inputs.frame(rng, wide, inputs.ids(rng, len(wide)))
    table = table.to_frame() if isinstance(table, pd.Series) else table
    table.columns = [f"{'ab'[j % 2]}{j}" for j in range(table.shape[1])]
    if path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index_label="id")
    names = pick(rng, (("a", "b"), ("a", "x/y"), ("../x", "b"), ("a",)))
    lines = [f'"{name}" = "{k}*"' for name, k in zip(names, "ab", strict=False)]
    path.with_name("views.toml").write_text("[views]\n" + "\n".join(lines) + "\n")


def written(rng: Generator, place: Path) -> str | None:
    """Write random data; None if the library that writes it refuses."""
    try:
        return write(rng, place)
    except Exception:
        return None


def options(source: str) -> list[str]:
    return ["--views", "views.toml"] if source in ("d.csv", "d.parquet") else []


def reading(rng: Generator, place: Path) -> str:
    """Read data by `vedute.io.read`, and fit on them."""
    source = written(rng, place)
    if source is None:
        return "not written"
    with watched(place):
        try:
            spec, column = (
                io.table.read_spec(place / "views.toml") if options(source) else (None, None)
            )
            data = io.read(place / source, io.Reading(spec, column))
            entry = io.enter(data)
            model = methods.find(pick(rng, ("mean_fill", "knn_fill")))(random_state=0)
            filled = entry.filled([x.numpy() for x in model.fit(entry.views).impute(entry.views).x])
        except Exception as error:
            return refused(error, MISTAKES)
    from vedute_bench.soak.fuzz import check_frame, floats, parts

    for v, (a, b) in enumerate(zip(data.views.values(), parts(filled), strict=True)):
        seen = entry.views.seen(v).numpy()
        if isinstance(b, pd.DataFrame):
            check_frame(None, b, entry.views)
            continue
        values = floats(b)
        assert np.isfinite(values).all(), "not finite"
        assert (floats(a)[seen] == values[seen]).all(), "an observed entry changed"
    return "answered"


# The command line.


@contextmanager
def errors() -> Any:
    """Collect the errors that the command line turns into sentences."""
    raised: list[Exception] = []
    real: Callable[[Exception], tuple[str, int]] = cli.answer

    def answer(error: Exception) -> tuple[str, int]:
        raised.append(error)
        return real(error)

    cli.answer = answer
    try:
        yield raised
    finally:
        cli.answer = real


def command(*words: Any) -> int:
    """Run a command: it succeeds, or ends with one sentence and exit code 2 or 3."""
    with errors() as raised:
        result = vedute_(*words)
    text = result.stderr.strip()
    message = f"{words[0]} ended with {result.exit_code}: {text[-300:]}"
    assert "Traceback" not in result.output + text, message
    if result.exit_code == 0:
        return 0
    assert result.exit_code in (2, 3), f"{message} {result.exception!r}"
    assert "this is a bug" not in text, message
    for error in raised:
        refused(error, (*MISTAKES, KeyError))
        *_, last = (line for line in text.splitlines() if not line.startswith("  - "))
        assert last.startswith("vedute: "), message  # the problems of all files follow
    return int(result.exit_code)


def commands(rng: Generator, place: Path) -> str:
    """Run `vedute fit` and the commands that use its run."""
    source = written(rng, place)
    if source is None:
        return "not written"
    read = options(source)
    fit = ["fit", source, "-o", "run", "--method", pick(rng, ("mean_fill", "knn_fill")), *read]
    fit += ["--clusters", "2"] if chance(rng, 0.3) else []
    fit += ["--no-ids"] if chance(rng, 0.1) else []
    with watched(place):
        if command(*fit):
            assert not (place / "run").exists(), "a refused fit left a run"
            command("inspect", source, *read)
            return "refused"
        like = Path(source).suffix
        out = f"out{like if chance(rng, 0.7) else '.npz'}"
        code = command(
            "impute", "run", source, "-o", out, *(["--interval", "0.9"] if chance(rng, 0.2) else [])
        )
        command("embed", "run", source, "-o", pick(rng, ("z.csv", "z.npz", "z.parquet")))
        command("cluster", "run", source, "-o", "labels.csv")
        command("ampute", source, "--rate", "0.3", "-o", f"less{like}", *read)
    if code:
        assert not (place / out).exists(), "a refused impute left something"
        return "refused"
    _compare(place, source, out)
    return "answered"


def _compare(place: Path, source: str, out: str) -> None:
    """Check that the output is complete and keeps observed entries."""
    spec, column = io.table.read_spec(place / "views.toml") if options(source) else (None, None)
    before = io.enter(io.read(place / source, io.Reading(spec, column))).views
    how = io.Reading(spec, column) if Path(out).suffix == Path(source).suffix else io.Reading()
    after = io.enter(io.read(place / out, how)).views
    assert set(after.names) == set(before.names), f"views {before.names} became {after.names}"
    assert len(after) == len(before), f"{len(before)} samples became {len(after)}"
    if before.ids is not None and after.ids is not None:  # images are in the order of their names
        after = after[[list(after.ids).index(i) for i in before.ids]]
    for v, name in enumerate(before.names):
        w = after.names.index(name)
        assert bool(after.seen(w).all()), "an entry is still missing"
        if after.x[w].shape == before.x[v].shape:
            seen = before.seen(v)
            assert bool((after.x[w][seen] == before.x[v][seen]).all()), "an observed entry changed"
