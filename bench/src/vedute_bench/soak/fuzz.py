"""Odd inputs to the simple fills in every container: a valid answer, or one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from vedute import methods
from vedute.data.views import Views
from vedute.estimators.base import Estimator
from vedute_bench.soak import inputs, through_files
from vedute_bench.soak.inputs import chance, pick
from vedute_bench.soak.watching import refused, watched

Array = NDArray[Any]
SIZE = 100
BATCHES, QUICK = 202, range(5)
FILLS = ("mean_fill", "mean_fill", "knn_fill", "knn_fill", "lowrank_fill")
DOORS: dict[str, Callable[[Generator], Any]] = {
    "arrays": inputs.any_arrays,
    "frames": inputs.any_frames,
    "views": inputs.any_views,
}


def cases(batch: int) -> Iterator[tuple[str, Callable[[Path], str]]]:
    for seed in range(batch * SIZE, (batch + 1) * SIZE):
        yield str(seed), partial(case, seed)


def case(seed: int, place: Path) -> str:
    rng = np.random.default_rng([3, seed])
    kind = rng.random()
    if kind < 0.12:
        return "commands: " + through_files.commands(rng, place)
    if kind < 0.24:
        return "files: " + through_files.reading(rng, place)
    door = pick(rng, ("arrays",) * 8 + ("frames",) * 5 + ("views",) * 2)
    with watched(place):
        use = used if chance(rng, 0.3) else fitted
        return f"{door}: {use(rng, DOORS[door])}"


def fitted(rng: Generator, draw: Callable[[Generator], Any]) -> str:
    """Fit on an odd input, and use the model on it."""
    method, settings = pick(rng, FILLS), inputs.fill_settings(rng)
    try:
        X = draw(rng)
        model = methods.find(method)(**settings).fit(X)
    except Exception as error:
        return refused(error)
    check(model, X, rng)
    if model.generative and chance(rng, 0.1):
        same(model.impute(X), methods.find(method)(**settings).fit(X).impute(X))
    return "answered"


@cache
def known(method: str, frames: bool) -> Estimator:
    """Fitted model, shared by many cases."""
    rng = np.random.default_rng(0)
    X: Any = [inputs.with_gaps(rng, rng.normal(size=(20, w)), 0.2, 0.05) for w in (3, 2)]
    X[0][:, 0] = rng.normal(size=20)
    if frames:
        X = [pd.DataFrame(x, columns=[f"c{j}" for j in range(x.shape[1])]) for x in X]
    return methods.find(method)(n_clusters=2, random_state=0).fit(X)


def used(rng: Generator, draw: Callable[[Generator], Any]) -> str:
    """Use a fitted model on an odd input, usually of the right size."""
    model = known(pick(rng, FILLS), chance(rng, 0.5))
    try:
        X = draw(rng) if chance(rng, 0.3) else similar(rng)
        model.transform(X)
    except Exception as error:
        return refused(error)
    check(model, X, rng)
    return "answered"


def similar(rng: Generator) -> Any:
    """Draw views of widths 3 and 2."""
    n = int(pick(rng, (1, 2, 5, 20)))
    X: list[Any] = [inputs.with_gaps(rng, inputs.numbers(rng, n, w), 0.2, 0.1) for w in (3, 2)]
    if chance(rng, 0.3):
        X[int(rng.integers(2))] = None
    if chance(rng, 0.3) and X[0] is not None:
        X[0] = inputs.cast(rng, X[0])
    if chance(rng, 0.4):
        index = inputs.ids(rng, n)
        X = [
            None if x is None else inputs.frame(rng, np.asarray(inputs._dense(x), float), index)
            for x in X
        ]
    whole = all(x is not None for x in X)
    return inputs.spoiled(rng, X) if whole and chance(rng, 0.1) else X


# Properties of every answer.


def check(model: Estimator, X: Any, rng: Generator) -> None:
    n = len(entry := Views.of(X, columns=model.columns, like=model.specs))
    z = model.transform(X)
    assert z.shape == (n, model.embedding_.shape[1]), f"representation of shape {z.shape}"
    assert np.isfinite(z).all(), "a representation that is not finite"
    if model.n_clusters is not None:
        labels = model.predict(X)
        assert labels.shape == (n,), "labels"
        most = vars(model).get("n_clusters_", model.n_clusters)
        assert set(labels) <= set(range(most)), "a label out of range"
    if not model.generative:
        return
    filled = model.impute(X)
    check_filled(X, filled, entry)
    if chance(rng, 0.3):
        same(filled, model.impute(X))
        mean, lower, upper = model.impute(X, interval=float(pick(rng, (0.5, 0.9, 0.999))))
        same(filled, mean)
        for low, middle, high in zip(*map(parts, (lower, mean, upper)), strict=True):
            check_order(low, middle, high)
        for end in (lower, upper):
            check_filled(X, end, entry)
    if chance(rng, 0.1):
        for draw in model.sample_imputations(X, 2):
            check_filled(X, draw, entry)


def parts(X: Any) -> list[Any]:
    """Views in any returned container."""
    if isinstance(X, Views):
        return [x.numpy() for x in X.x]
    if isinstance(X, dict):
        return [*X.values()]
    return [*X] if isinstance(X, (list, tuple)) else [X]


def floats(view: Any) -> Array:
    """Convert a view to numbers, NaN where missing."""
    if sparse.issparse(view):
        view = view.toarray()
    if np.ma.isMaskedArray(view):
        view = np.ma.filled(view.astype(float), np.nan)
    values: Array = np.asarray(view).astype(float)
    return values


def check_filled(X: Any, filled: Any, views: Views) -> None:
    """Check that shapes and observed values are kept, and that nothing is missing or infinite."""
    given = [None] * len(parts(filled)) if isinstance(X, Views) else parts(X)
    if isinstance(X, Views):
        assert filled.mask.all(), "a mask with gaps"
        for v, (a, b) in enumerate(zip(X.x, filled.x, strict=True)):
            seen = X.seen(v)
            assert a.dtype == b.dtype, "another dtype"
            assert bool((a[seen] == b[seen]).all()), "an observed entry changed"
            assert np.isfinite(b.numpy()).all(), "not finite"
        return
    assert len(given) == len(parts(filled)), "another number of views"
    if isinstance(X, dict):
        assert [*X] == [*filled], "other names"
    for a, b in zip(given, parts(filled), strict=True):
        if isinstance(b, (pd.DataFrame, pd.Series)):
            check_frame(a, b, views)
            continue
        values = floats(b)
        assert np.isfinite(values).all(), "an imputed entry is not finite"
        if a is None:
            continue
        before = floats(a)
        assert before.shape == values.shape, f"shape {before.shape} became {values.shape}"
        observed = ~np.isnan(before)
        assert (before[observed] == values[observed]).all(), "an observed entry changed"
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype.kind == "f":
            assert a.dtype == b.dtype, f"{a.dtype} became {b.dtype}"


def check_frame(a: Any, b: Any, views: Views) -> None:
    """Check that there is a row for every sample, and that columns and observed cells are kept."""
    assert len(b) == len(views), "rows were lost"
    assert bool(b.notna().to_numpy().all()), "a cell is still missing"
    b = b.to_frame() if isinstance(b, pd.Series) else b
    for j in range(b.shape[1]):
        if b.dtypes.iloc[j].kind in "fc":
            assert np.isfinite(b.iloc[:, j].to_numpy(dtype=float)).all(), "not finite"
    if a is None or not len(a):
        return
    a = a.to_frame() if isinstance(a, pd.Series) else a
    assert a.columns.equals(b.columns), "other columns"
    rows = b.index.get_indexer(a.index)
    assert (rows >= 0).all(), "ids were lost"
    for j in range(a.shape[1]):
        observed = a.iloc[:, j].notna().to_numpy()
        before, after = a.iloc[:, j].to_numpy()[observed], b.iloc[rows, j].to_numpy()[observed]
        assert all(x == y for x, y in zip(before, after, strict=True)), "an observed cell changed"


def check_order(low: Any, middle: Any, high: Any) -> None:
    if isinstance(low, (pd.DataFrame, pd.Series)):
        frames = [x.to_frame() if isinstance(x, pd.Series) else x for x in (low, middle, high)]
        for j in range(frames[0].shape[1]):
            columns = [f.iloc[:, j] for f in frames]
            if columns[0].dtype.kind in "fiu":
                check_order(*(c.to_numpy(dtype=float) for c in columns))
        return
    low, middle, high = floats(low), floats(middle), floats(high)
    assert (low <= middle).all(), "a lower end above the mean"
    assert (middle <= high).all(), "an upper end below the mean"


def same(one: Any, other: Any) -> None:
    """Check that two answers to the same call are equal."""
    for a, b in zip(parts(one), parts(other), strict=True):
        if isinstance(a, (pd.DataFrame, pd.Series)):
            assert a.equals(b), "the same call gave another answer"
        else:
            assert floats(a).tobytes() == floats(b).tobytes(), "the same call gave another answer"
