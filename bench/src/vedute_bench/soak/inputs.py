"""Random multi-view inputs, valid and invalid, like those that users pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from vedute.data.views import Views

Array = NDArray[Any]
SCALES = (1.0, 1.0, 1.0, 1e-3, 1e6, 1e-30, 1e30, 1e-300, 1e150, 1e300)
NAMES = (
    "a",
    "b",
    "x y",
    "Größe",
    "",
    "a/b",
    "../x",
    "0",
    "n" * 300,
    "样本",
    "a\nb",
    "=1+1",
    "mask",
)
TEXTS = ("red", "green", "", "nan", "NA", "1e5", "  ", "=cmd()", "inf", "0x10", "1,5", "💧")


def pick(rng: Generator, options: Any) -> Any:
    """Draw one of the options without converting it, unlike numpy's `choice`."""
    return options[int(rng.integers(len(options)))]


def chance(rng: Generator, p: float) -> bool:
    return bool(rng.random() < p)


def numbers(rng: Generator, n: int, *shape: int) -> Array:
    """Draw numbers (n, *shape) without gaps, of one of several distributions."""
    x = rng.normal(size=(n, *shape))
    match int(rng.integers(9)):
        case 0:
            x = np.round(x * 3)
        case 1:
            x = (x > 0).astype(float)
        case 2:
            x[:, 0] = pick(rng, (0.0, 1.0, -0.0, 1e9))
        case 3:
            x = rng.standard_cauchy(size=x.shape)
        case 4:
            x = 1e9 + x
        case 5:
            x[:] = x[:1]
        case _:
            x = x * pick(rng, SCALES)
    return x


def with_gaps(rng: Generator, x: Array, rows: float, holes: float) -> Array:
    """Replace whole rows and single entries with NaN."""
    x = x.copy()
    x[rng.random(len(x)) < rows] = np.nan
    x[rng.random(x.shape) < holes] = np.nan
    return x


def arrays(rng: Generator, n: int | None = None, L: int | None = None) -> list[Array]:
    """Draw L arrays of floats, with or without gaps."""
    n = int(pick(rng, (1, 2, 3, 5, 8, 13, 30))) if n is None else n
    L = int(pick(rng, (1, 2, 2, 2, 3, 3, 4))) if L is None else L
    rows, holes = pick(rng, (0.0, 0.1, 0.3)), pick(rng, (0.0, 0.0, 0.1))
    drawn = []
    for _ in range(L):
        shape = (int(rng.integers(1, 5)),) if chance(rng, 0.9) else (2, 3)
        drawn.append(with_gaps(rng, numbers(rng, n, *shape), rows, holes))
    blank = np.all([np.isnan(x).reshape(n, -1).all(1) for x in drawn], axis=0)
    if chance(rng, 0.95):  # usually no row lacks all views
        drawn[0][blank] = rng.normal(size=drawn[0][blank].shape)
    return drawn


def cast(rng: Generator, x: Array) -> Any:
    """Convert numbers to another type, as far as possible."""
    with np.errstate(all="ignore"):
        whole = np.nan_to_num(x, nan=0.0, posinf=0, neginf=0).clip(-100, 100)
        kinds: list[Callable[[], Any]] = [
            lambda: x.astype(np.float32),
            lambda: x.astype(np.float16),
            lambda: x.astype(np.longdouble),
            lambda: whole.astype(np.int64),
            lambda: whole.astype(np.int8),
            lambda: whole.astype(np.uint8),
            lambda: whole > 0,
            lambda: x.astype(object),
            lambda: x.tolist(),
            lambda: np.ma.masked_invalid(x),
            lambda: torch.from_numpy(x),
            lambda: np.asfortranarray(x),
            lambda: x[::-1][::-1],
            lambda: sparse.csr_matrix(whole) if x.ndim == 2 else x,
            lambda: x[:, 0] if x.ndim == 2 else x,
            lambda: x.astype(">f8"),
        ]
        return pick(rng, kinds)()


def spoiled(rng: Generator, views: list[Any]) -> Any:
    """Make one thing wrong, or at least strange."""
    v = int(rng.integers(len(views)))
    x = np.array(views[v], dtype=object)
    views = list(views)

    if x.ndim < 2 or not x.size:
        return views
    i = int(rng.integers(len(x)))

    def put(value: Any) -> Any:
        y = x.copy()
        y.reshape(len(y), -1)[i, 0] = value
        return y

    odd: list[Callable[[], Any]] = [
        lambda: put(np.inf),
        lambda: put(pick(rng, TEXTS)),
        lambda: put(None),
        lambda: put([1, 2]),
        lambda: put(1 + 2j),
        lambda: put(10**400),
        lambda: x[1:],
        lambda: x[:0],
        lambda: np.asarray(x[:, :0]),
        lambda: np.asarray(3.0),
        lambda: None,
        lambda: np.full(x.shape, np.nan),
        lambda: "text",
        lambda: [[1.0], [1.0, 2.0]],
        lambda: np.asarray(x, dtype=str),
        lambda: np.zeros(x.shape, "datetime64[s]"),
        lambda: np.zeros(x.shape, [("a", float)]),
        lambda: np.zeros(x.shape, complex),
        lambda: {"inner": x},
        lambda: (row for row in x),
        lambda: np.array([b"bytes"] * len(x)),
        lambda: [x],
    ]
    views[v] = pick(rng, odd)()
    return views


def contained(rng: Generator, views: list[Any]) -> Any:
    """Put views into one of the containers."""
    match int(rng.integers(7)):
        case 0:
            return tuple(views)
        case 1 | 2:
            names = rng.permutation(len(NAMES))[: len(views)]
            keys = [NAMES[k] if chance(rng, 0.3) else f"v{k}" for k in names]
            return dict(zip(keys, views, strict=True))
        case 3:
            return dict(enumerate(views))
        case _:
            return views


def any_arrays(rng: Generator) -> Any:
    """Draw views as arrays, usually valid ones."""
    views: list[Any] = arrays(rng)
    if chance(rng, 0.4):
        v = int(rng.integers(len(views)))
        views[v] = cast(rng, views[v])
    if chance(rng, 0.25):
        return contained(rng, spoiled(rng, [np.asarray(_dense(v)) for v in views]))
    if chance(rng, 0.03):
        return pick(
            rng, ([], {}, None, 3, "text", [None], [[]], np.zeros(3), np.zeros((0, 2)), set())
        )
    return contained(rng, views)


def _dense(view: Any) -> Any:
    return view.toarray() if sparse.issparse(view) else view


# Frames.


def ids(rng: Generator, n: int) -> pd.Index:
    kinds: list[Callable[[], pd.Index]] = [
        lambda: pd.RangeIndex(n),
        lambda: pd.Index([f"p{i}" for i in range(n)]),
        lambda: pd.Index(rng.permutation(n)),
        lambda: pd.Index(rng.permutation(n) / 7),
        lambda: pd.date_range("2020-01-01", periods=n),
        lambda: pd.Index([f"p{i}" if i % 2 else i for i in range(n)], dtype=object),
        lambda: pd.MultiIndex.from_arrays([np.arange(n) // 2, np.arange(n) % 2]),
        lambda: pd.Index([f"{pick(rng, TEXTS)}{i}" for i in range(n)]),
        lambda: pd.Index(rng.integers(max(n - 1, 1), size=n)),  # with repetitions
        lambda: pd.Index([None, *range(1, n)][:n], dtype=object),
        lambda: pd.CategoricalIndex([f"p{i}" for i in range(n)]),
    ]
    return kinds[0 if chance(rng, 0.3) else int(rng.integers(len(kinds)))]()


def columns(rng: Generator, w: int) -> Any:
    kinds: list[Callable[[], Any]] = [
        lambda: [f"c{j}" for j in range(w)],
        lambda: range(w),
        lambda: ["c"] * w,
        lambda: [(0, j) for j in range(w)],
        lambda: pd.date_range("2020-01-01", periods=w),
        lambda: [pick(rng, NAMES) + str(j) for j in range(w)],
        lambda: [None, *range(1, w)],
    ]
    return kinds[0 if chance(rng, 0.6) else int(rng.integers(len(kinds)))]()


def column(rng: Generator, x: Array) -> Any:
    """Convert a column of a frame to another type."""
    i = np.nan_to_num(x, nan=0.0).clip(-100, 100).round()
    absent = np.isnan(x)
    texts = [None if a else f"k{int(k) % 3}" for k, a in zip(i, absent, strict=True)]
    kinds: list[Callable[[], Any]] = [
        lambda: x,
        lambda: x.astype(np.float32),
        lambda: i.astype(np.int64),
        lambda: pd.array(np.where(absent, None, i).astype(object), dtype="Int64"),
        lambda: pd.array(x, dtype="Float64"),
        lambda: pd.array(
            [None if a else bool(k % 2) for k, a in zip(i, absent, strict=True)], dtype="boolean"
        ),
        lambda: i > 0,
        lambda: pd.Categorical(texts),
        lambda: pd.Categorical(texts, categories=["k2", "k1", "k0", "unused"], ordered=True),
        lambda: pd.array(texts, dtype="string"),
        lambda: np.array(texts, dtype=object),
        lambda: np.array([str(k) for k in x], dtype=object),
        lambda: pd.to_datetime(i, unit="D"),
        lambda: np.array([[k] for k in x] + [None], dtype=object)[:-1],
        lambda: pd.arrays.SparseArray(x),
    ]
    return kinds[0 if chance(rng, 0.7) else int(rng.integers(len(kinds)))]()


def frame(rng: Generator, x: Array, index: pd.Index) -> Any:
    x = x.reshape(len(x), -1)
    made = {j: column(rng, x[:, j]) for j in range(x.shape[1])}
    drawn = pd.DataFrame(made, index=index)
    drawn.columns = pd.Index(columns(rng, x.shape[1]))
    if chance(rng, 0.2):
        drawn = drawn.iloc[rng.permutation(len(drawn))]
    if chance(rng, 0.2):
        drawn = drawn.iloc[: int(rng.integers(len(drawn) + 1))]
    return drawn.iloc[:, 0] if chance(rng, 0.05) else drawn


def any_frames(rng: Generator) -> Any:
    views = arrays(rng)
    index = ids(rng, len(views[0]))
    frames: list[Any] = [frame(rng, x, index) for x in views]
    if chance(rng, 0.05):
        frames[0] = views[0]
    if chance(rng, 0.05):
        frames[-1] = pick(rng, (None, pd.DataFrame(), pd.DataFrame(index=index)))
    return contained(rng, frames)


def any_views(rng: Generator) -> Any:
    """Draw a Views, made with or without a mask."""
    X = arrays(rng)
    n, L = len(X[0]), len(X)
    observed = np.stack([~np.isnan(x).reshape(n, -1).all(1) for x in X], axis=1)
    mask: Any = None
    if chance(rng, 0.5):
        mask = observed & (rng.random((n, L)) < 0.8)
        mask[~mask.any(1)] = observed[~mask.any(1)]
        mask = pick(rng, (mask, mask.astype(int), mask.tolist(), pd.DataFrame(mask)))
    if chance(rng, 0.1):
        mask = pick(rng, (np.ones((n, L + 1)), np.full((n, L), 0.5), "x", np.zeros((n, L)), True))
    views = Views.of(X, mask=mask)
    return views[rng.permutation(n)] if chance(rng, 0.3) else views


# Settings.


def fill_settings(rng: Generator) -> dict[str, Any]:
    """Draw settings of the simple fills, sometimes an invalid one."""
    chosen: dict[str, Any] = {"random_state": int(rng.integers(5))}
    if chance(rng, 0.4):
        chosen["n_clusters"] = pick(rng, (1, 2, 2, 3, 3, 50, "auto"))
    if chance(rng, 0.2):
        chosen["scaling"] = pick(rng, ("standard", "minmax", "none"))
    if chance(rng, 0.2):
        chosen["likelihood"] = pick(
            rng,
            (
                "auto",
                "normal",
                "laplace",
                "bernoulli",
                "categorical",
                "tokens",
                ["normal", "bernoulli"],
                {"view0": "laplace"},
            ),
        )
    if chance(rng, 0.05):
        chosen |= pick(
            rng,
            (
                {"n_clusters": -1},
                {"n_clusters": 2.5},
                {"scaling": "x"},
                {"likelihood": 3},
                {"random_state": "x"},
                {"columns": 3},
                {"columns": {"a": slice(1)}},
                {"random_state": 2**80},
            ),
        )
    return chosen
