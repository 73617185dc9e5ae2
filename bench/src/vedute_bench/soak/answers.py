"""Properties of answers on random data."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Context, Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.random import Generator
from pyarrow import parquet

import vedute
from vedute import io
from vedute.data.entry import Entry
from vedute.estimators.base import Estimator
from vedute_bench.soak.inputs import pick

SIZE = 40
BATCHES, QUICK = 25, range(3)
ROWS = 12
EXACT = Context(prec=100)
SCALES = (1e-30, 1e-3, 1.0, 1e6, 1e30)
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
KINDS = (*INTEGERS, "float16", "float32", "float64", "decimal", "bool", "text", "kind")


def cases(batch: int) -> Iterator[tuple[str, Callable[[Path], str]]]:
    for seed in range(batch * SIZE, (batch + 1) * SIZE):
        for name, holds in PROPERTIES.items():
            yield f"{name}-{seed}", partial(holds, seed)


def observed_cells_stay(seed: int, place: Path) -> str:
    """Check that observed cells keep their values and types when gaps are filled."""
    rng = np.random.default_rng([7, seed])
    kind = pick(
        rng, (*INTEGERS, "float16", "float32", "float64", "decimal", "bool", "text", "kind")
    )
    gaps = rng.random(ROWS) < 0.4
    gaps[:2] = False, True
    array = _column(rng, kind, gaps)
    table = pa.table({"id": [f"p{i}" for i in range(ROWS)], "x": array, "y": rng.normal(size=ROWS)})
    door = pick(rng, [*DOORS])
    after = DOORS[door](rng, table, place)
    for old, new in zip(array.to_pylist(), after, strict=True):
        assert not pd.isna(new), f"{kind} of {door}: a cell is still missing"
        same = old is None or (type(old), repr(old)) == (type(new), repr(new))
        assert same, f"{kind} of {door}: {old!r} became {new!r}"
    return f"{door}: kept"


def _column(rng: Generator, kind: str, gaps: Any) -> pa.Array:
    """Draw cells over the whole range of a type."""
    if kind in INTEGERS:
        info = np.iinfo(kind)
        return pa.array(rng.integers(info.min, info.max, ROWS, kind, endpoint=True), mask=gaps)
    if kind == "decimal":
        digits = int(rng.integers(3, 39))
        places = int(rng.integers(0, digits))
        whole = [int("".join(map(str, rng.integers(0, 10, digits)))) for _ in gaps]
        cells = [Decimal(pick(rng, (1, -1)) * x).scaleb(-places, EXACT) for x in whole]
        return _with(cells, gaps, pa.decimal128(digits, places))
    if kind == "bool":
        return pa.array(rng.random(ROWS) < 0.5, mask=gaps)
    if kind == "kind":
        return _with([pick(rng, "abc") for _ in gaps], gaps).dictionary_encode()
    values = rng.normal(size=ROWS) * pick(rng, SCALES[1:3])
    if kind == "text":
        return _with([f"{x:.5f}0" for x in values], gaps)
    return pa.array(values.astype(kind), mask=gaps)


def _with(cells: list[Any], gaps: Any, kind: Any = None) -> pa.Array:
    return pa.array([None if gap else x for gap, x in zip(gaps, cells, strict=True)], kind)


def _filled(rng: Generator, entry: Entry) -> Any:
    """Fill the gaps of a copy with random numbers."""
    return entry.filled([rng.normal(size=x.shape) * pick(rng, SCALES) for x in entry.views.x])


def _arrow(rng: Generator, table: Any, place: Path) -> list[Any]:
    filled = _filled(rng, Entry.of(table.drop(["id"])))
    assert filled.schema == table.drop(["id"]).schema, "another schema"
    return filled["x"].to_pylist()


def _polars(rng: Generator, table: Any, place: Path) -> list[Any]:
    X = pl.from_arrow(table.drop(["id"]))
    filled = _filled(rng, Entry.of(X))
    assert filled.schema == X.schema, "another schema"
    return filled["x"].to_list()


def _pandas(rng: Generator, table: Any, place: Path) -> list[Any]:
    """Fill a frame with arrow columns, except for categories."""
    known = {} if pa.types.is_dictionary(table["x"].type) else {"types_mapper": pd.ArrowDtype}
    X = table.drop(["id"]).to_pandas(**known)
    filled = _filled(rng, Entry.of(X))
    assert (filled.dtypes == X.dtypes).all(), "another type"
    return filled["x"].tolist()


def _objects(rng: Generator, table: Any, place: Path) -> list[Any]:
    X = pd.DataFrame({"x": pd.Series(table["x"].to_pylist(), dtype=object), "y": table["y"]})
    X = X.astype({"x": "category"}) if pa.types.is_dictionary(table["x"].type) else X
    return _filled(rng, Entry.of(X))["x"].tolist()


def _parquet(rng: Generator, table: Any, place: Path) -> list[Any]:
    parquet.write_table(table, place / "d.parquet")
    data = io.read(place / "d.parquet", io.Reading({"v": ["x", "y"]}, one_hot=True))
    io.write_views(place / "out.parquet", data, _filled(rng, io.enter(data)))
    filled = parquet.read_table(place / "out.parquet")
    assert filled.schema.types == table.schema.types, "another schema"
    return filled["x"].to_pylist()


DOORS: dict[str, Callable[[Generator, Any, Path], list[Any]]] = {
    "arrow": _arrow, "polars": _polars, "pandas": _pandas, "objects": _objects, "parquet": _parquet,
}  # fmt: skip


def draws_are_as_likely_as_probabilities_say(seed: int, place: Path) -> str:
    """Check that draws have categories as often as `impute_proba` predicts."""
    rng, m = np.random.default_rng([1, seed]), 100
    X = _people(rng)
    model = _fitted(rng, X)
    p, draws = model.impute_proba(X)["clinic"]["stage"], model.sample_imputations(X, m)
    drawn = pd.concat([draw["clinic"]["stage"].astype(object) for draw in draws], axis=1)
    drawn = drawn.loc[p.index]
    assert drawn.notna().all(axis=None), "a draw without a category"
    shares = np.stack([(drawn == stage).mean(axis=1) for stage in p], 1)
    sure = (p < 1e-9) | (p > 1 - 1e-9)
    assert np.allclose(shares[sure], p.to_numpy()[sure], atol=1e-6), "an impossible category"
    z = (shares - p) / np.sqrt((p * (1 - p)).clip(1e-9) / m)
    far = np.abs(z.to_numpy()[~sure]).max(initial=0)
    assert far < 6, f"drawn {far:.1f} standard errors from its probability"
    return "as likely"


def threads_have_the_same_answers(seed: int, place: Path) -> str:
    """Check that a verb gives the same bytes in four parallel threads as in one."""
    rng = np.random.default_rng([2, seed])
    X = _people(rng)
    model = _fitted(rng, X)
    verb = pick(rng, [*VERBS])
    alone = VERBS[verb](model, X)
    with ThreadPoolExecutor(4) as pool:
        for answer in pool.map(lambda _: VERBS[verb](model, X), range(8)):
            assert answer == alone, f"{verb} differs between threads"
    return f"{verb}: the same"


def categories_have_no_interval(seed: int, place: Path) -> str:
    """Check that missing categories have no interval ends, and that their sets reach the level."""
    rng = np.random.default_rng([8, seed])
    X, level = _people(rng), float(rng.uniform(0.1, 0.99))
    model = _fitted(rng, X)
    mean, *ends = (filled["clinic"] for filled in model.impute(X, interval=level))
    stages = X["clinic"]["stage"].reindex(mean.index)
    assert mean.notna().all(axis=None), "a cell is still missing"
    for end in ends:
        assert (end["stage"].isna() == stages.isna()).all(), "an interval of categories"
        assert end["age"].notna().all(), "no interval of numbers"
    p, sets = model.impute_proba(X)["clinic"]["stage"], model.category_sets(X, level)["clinic"]
    for person, chosen in sets["stage"].items():
        chances = [p.loc[person, stage] for stage in chosen]
        assert sum(chances) >= level - 1e-6, "a set that does not reach the level"
        assert sum(chances[:-1]) < level, "a set that is too large"
    return "empty"


def edits_of_a_saved_model_are_noticed(seed: int, place: Path) -> str:
    """Check that a changed digit or letter in model.json is refused."""
    rng = np.random.default_rng([12, seed])
    _fitted(rng, _people(rng)).save(place / "run")
    file = place / "run" / "model.json"
    text = file.read_text(encoding="utf-8")
    at = pick(rng, [match.start() for match in re.finditer(r"[A-Za-z0-9]", text)])
    new = pick(rng, [c for c in "0123456789abcXYZ" if c != text[at]])
    file.write_text(text[:at] + new + text[at + 1 :], encoding="utf-8")
    try:
        vedute.load(place / "run")
    except ValueError:
        return "refused"
    raise AssertionError(f"{text[max(at - 30, 0) : at + 30]!r} was changed without a word")


def _people(rng: Generator) -> dict[str, pd.DataFrame]:
    """Draw two views of people, one with a column of categories; both lack rows and cells."""
    n, k = int(rng.integers(30, 60)), int(rng.integers(3, 6))
    z, index = rng.normal(size=(n, 2)), [f"p{i}" for i in range(n)]
    stages = pd.Categorical.from_codes(rng.integers(k, size=n), [f"s{i}" for i in range(k)])
    clinic = pd.DataFrame({"age": 60 + 5 * z[:, 0], "stage": stages}, index)
    clinic.loc[rng.random(n) < 0.2, "stage"] = None
    blood = pd.DataFrame(z @ rng.normal(size=(2, 3)) + 3, index, list("abc"))
    return {"blood": blood.iloc[: n - n // 5], "clinic": clinic.iloc[n // 5 :]}


def _fitted(rng: Generator, X: dict[str, pd.DataFrame]) -> Estimator:
    model: Estimator = METHODS[pick(rng, [*METHODS])]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few rows
        return model.set_params(random_state=0).fit(X)


def _bytes(answer: Any) -> bytes:
    if isinstance(answer, (tuple, list)):
        return b"".join(map(_bytes, answer))
    if isinstance(answer, dict):
        return b"".join(map(_bytes, answer.values()))
    return answer.to_csv().encode() if hasattr(answer, "to_csv") else np.asarray(answer).tobytes()


VERBS: dict[str, Callable[[Estimator, Any], bytes]] = {
    "impute": lambda model, X: _bytes(model.impute(X)),
    "interval": lambda model, X: _bytes(model.impute(X, interval=0.9)),
    "draws": lambda model, X: _bytes(model.sample_imputations(X, 3)),
    "probabilities": lambda model, X: _bytes(model.impute_proba(X)),
    "transform": lambda model, X: _bytes(model.transform(X)),
}
METHODS: dict[str, Callable[[], Any]] = {
    "mvp": partial(vedute.MVP, steps=5, hidden=(8,)),
    "lowrank_fill": vedute.LowRankFill,
    "mean_fill": vedute.MeanFill,
    "knn_fill": vedute.KNNFill,
}
PROPERTIES: dict[str, Callable[[int, Path], str]] = {
    holds.__name__: holds
    for holds in (
        observed_cells_stay,
        draws_are_as_likely_as_probabilities_say,
        threads_have_the_same_answers,
        categories_have_no_interval,
        edits_of_a_saved_model_are_noticed,
    )
}
