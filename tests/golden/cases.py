"""The cases of `make golden`: small fits with fixed seeds on one thread, and all they answer.

    python tests/golden/cases.py OUT.npz     an array for each part of an answer, "case|answer|part"

Each tree runs its own cases, in its own words: a case is known by its name.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import sparse
from threadpoolctl import threadpool_limits

import vedute
from vedute import methods
from vedute.io import store

Array = np.ndarray[Any, Any]
SMALL = {"steps": 40, "warmup": 8, "cooldown": 8, "pretrain": 10, "hidden": (12,), "latent_dim": 3}
SMALL |= {"map_hidden": (8,), "batch_size": 32, "n_neighbors": 5, "device": "cpu"}
COMMON = {"n_clusters": 3, "random_state": 0}


def numbers(n: int, seed: int = 0) -> list[np.ndarray]:
    """Three views of one hidden plane, NaN for a third of the views and a few entries."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2)) + 3 * (np.arange(n) % 3)[:, None]
    X = [z @ rng.normal(size=(2, w)) + 0.3 * rng.normal(size=(n, w)) for w in (4, 6, 5)]
    gone = rng.random((n, 3)) < 0.3
    gone[np.arange(n), rng.integers(3, size=n)] = False
    for v, x in enumerate(X):
        x[:, 1:][rng.random((n, x.shape[1] - 1)) < 0.05] = np.nan
        x[gone[:, v]] = np.nan
    return X


def frames(n: int) -> dict[str, pd.DataFrame]:
    """Numbers, whole numbers, flags and categories, joined by id; single cells are missing."""
    rng = np.random.default_rng(1)
    group = rng.integers(3, size=n)
    ids = [f"s{i}" for i in range(n)]
    blood = pd.DataFrame(
        {
            "iron": 50 + 9 * group + rng.normal(size=n),
            "count": pd.array(rng.poisson(3 + 4 * group), dtype="Int64"),
            "sex": pd.Categorical(np.where(rng.random(n) < 0.5, "f", "m")),
        },
        index=ids,
    )
    clinic = pd.DataFrame(
        {
            "stage": pd.Categorical(np.array(["i", "ii", "iii"])[group]),
            "weight": 70 + 5 * group + rng.normal(size=n),
        },
        index=ids,
    )
    flags = pd.DataFrame((rng.random((n, 4)) < 0.2 + 0.3 * group[:, None]).astype(float), index=ids)
    for frame, column in ((blood, "iron"), (blood, "sex"), (clinic, "stage"), (clinic, "weight")):
        frame.loc[rng.permutation(ids)[:6], column] = None
    return {"blood": blood[:-9], "clinic": clinic[7:], "flags": flags[3:]}


def images(n: int) -> list[np.ndarray]:
    """Bytes (n, 1, 8, 8) and (n, 3, 8, 8), and numbers; a mask says what is missing."""
    rng = np.random.default_rng(2)
    light = rng.integers(60, 200, size=(n, 1, 1, 1))
    noise = [rng.integers(-50, 50, size=(n, c, 8, 8)) for c in (1, 3)]
    return [
        *((light + e).astype(np.uint8) for e in noise),
        light[:, :, 0, 0] + rng.normal(size=(n, 2)),
    ]


def masked(X: list[np.ndarray], seed: int = 3) -> vedute.Views:
    rng = np.random.default_rng(seed)
    seen = rng.random((len(X[0]), len(X))) < 0.7
    seen[np.arange(len(seen)), rng.integers(len(X), size=len(seen))] = True
    return vedute.Views.of(X, mask=seen)


def tokens(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    words = rng.integers(1, 6, size=(n, 5))
    return [words.astype(float), words[:, :2] + 0.1 * rng.normal(size=(n, 2))]


def counts(n: int) -> list[np.ndarray]:
    """Counts (n, 40), more of them in some rows than in others, and numbers; NaN is missing."""
    rng = np.random.default_rng(5)
    group, depth = np.arange(n) % 3, rng.lognormal(0, 0.7, size=(n, 1))
    rates = rng.lognormal(1, 1, size=(3, 40))[group] * depth
    X = [rng.poisson(rates).astype(float), group[:, None] + rng.normal(size=(n, 3))]
    X[0][: n // 6], X[1][-n // 6 :] = np.nan, np.nan
    return X


def words(n: int) -> list[Any]:
    """Sparse weights (n, 60) of words, as scipy has them, and numbers."""
    rng = np.random.default_rng(6)
    group = np.arange(n) % 3
    often = np.where(np.arange(60) % 3 == group[:, None], 0.3, 0.05)
    weights = np.where(rng.random((n, 60)) < often, rng.lognormal(size=(n, 60)), 0.0)
    weights[:, 0] = 1.0  # no document is empty
    return [sparse.csr_array(weights), group[:, None] + rng.normal(size=(n, 3))]


def categories(n: int) -> dict[str, pd.DataFrame]:
    """Two views of categories alone; rows and cells of each are missing."""
    rng = np.random.default_rng(7)
    group, ids = rng.integers(3, size=n), [f"s{i}" for i in range(n)]

    def column(levels: str) -> pd.Categorical:
        code = np.where(rng.random(n) < 0.7, group, rng.integers(len(levels), size=n))
        return pd.Categorical(np.array(list(levels))[code % len(levels)])

    one = pd.DataFrame({"stage": column("abcd"), "grade": column("xyz")}, index=ids)
    two = pd.DataFrame({"site": column("uvw"), "sex": column("fm")}, index=ids)
    one.loc[ids[5:9], "grade"] = None
    return {"one": one[:-9], "two": two[7:]}


def stored(X: list[Array]) -> vedute.Views:
    """Write the views to a memory-mapped store with the rows of X."""
    folder = Path(tempfile.mkdtemp(dir=_TEMPORARY.name))
    store.write(folder, vedute.Views.of(X), seed=None)
    return vedute.Views.open(folder)


def resumed(X: Any) -> Any:
    """A fit that was killed at its second record, and goes on from its checkpoint."""
    often = {"checkpoint": tempfile.mkdtemp(dir=_TEMPORARY.name), "checkpoint_minutes": 0}

    def kill(record: Any) -> None:
        if record["step"] >= 20:
            raise _KilledError

    try:
        fitted("mvp", X, callbacks=[kill], **often)
    except _KilledError:
        return fitted("mvp", X, **often)
    raise AssertionError("the fit was not killed")


class _KilledError(BaseException):
    pass


def fitted(name: str, X: Any, views: int = 3, groups: Any = None, **settings: Any) -> Any:
    """A small model of a method; one for two views gets those that are best."""
    cls = methods.find(name)
    known = cls().get_params()
    off = {"cooldown"} if known.get("cooldown") == 0 else set()  # what is off stays off
    own = {k: v for k, v in SMALL.items() if k in known.keys() - off}
    model = cls(**{**own, **COMMON, **settings})
    if cls.two_views and views > 2:
        inside = cls(**own, **settings)
        model = vedute.BestPair(inside, **COMMON)
    return model.fit(X, groups=groups)


def _any_of(X: list[np.ndarray]) -> np.ndarray:
    """Which rows have at least one of these views."""
    return np.any([~np.isnan(x).all(1) for x in X], axis=0)


def cases() -> dict[str, Callable[[], tuple[Any, Any]]]:
    """Functions by name, each of which returns a fitted model and the data for its verbs."""
    X, new = numbers(150), numbers(20, seed=9)

    def of(name: str, data: Any, asked: Any, views: int = 3, **settings: Any) -> Any:
        return lambda: (fitted(name, data, views, **settings), asked)

    results = {name: of(name, X, new) for name in methods.of_this_package()}
    table, pictures, text = frames(90), masked(images(60)), masked(tokens(80))
    two, two_new = ([x[_any_of(A[:2])] for x in A[:2]] for A in (X, new))
    few = {k: v.iloc[:12] for k, v in table.items()}
    documents, cells, levels = words(90), counts(120), categories(120)
    some_documents, some_cells = ([x[10:30] for x in A] for A in (documents, cells))
    some_levels = {k: v.iloc[:15] for k, v in levels.items()}
    results |= {
        "mvp, frames": of("mvp", table, few),
        "mvp, images": of("mvp", pictures, pictures[:10], steps=12),
        "mvp, images, mlp": of("mvp", pictures, pictures[:10], steps=12, network="mlp"),
        "mvp, tokens": of("mvp", text, text[:10], likelihood={"view0": "tokens"}),
        "mvp, many rows": of("mvp", numbers(1100), new, steps=30),
        "mvp, paper": of("mvp", X, new, variant="paper", epochs=3, warmup=1, shared_dim=2,
                         early_stopping=False, likelihood="laplace"),
        "mvp, variant for images": of("mvp", X, new, variant="images"),
        "mvp, no stopping": of("mvp", X, new, early_stopping=False, scaling="minmax"),
        "mvae, images": of("mvae", pictures, pictures[:10], steps=12),
        "mean_fill, frames": of("mean_fill", table, few),
        "lowrank_fill, frames": of("lowrank_fill", table, few),
        "knn_fill, frames": of("knn_fill", table, few),
        "dcca, two views": of("dcca", two, two_new, views=2),
        "completer, two views": of("completer", two, two_new, views=2),
        "mvp, groups": of("mvp", X, new, groups=np.arange(150) // 3),
        "mvp, resumed": lambda: (resumed(X), new),
        "best pair by hidden views": lambda: (
            vedute.BestPair(
                methods.find("dccae")(**{k: SMALL[k] for k in ("steps", "hidden", "latent_dim")}),
                select="hidden", **COMMON).fit(X), new),
    }  # fmt: skip
    for name in ("mvp", "lowrank_fill", "blend"):
        results |= {
            f"{name}, sparse": of(name, documents, some_documents),
            f"{name}, counts": of(name, cells, some_cells, kinds={"view0": "counts"}),
            f"{name}, categories": of(name, levels, some_levels),
            f"{name}, memory-mapped": lambda name=name: (fitted(name, stored(X)), stored(new)),
        }
    return results


def answers(model: Any, X: Any) -> dict[str, Callable[[], Any]]:
    """All that a model says, by name."""
    return {
        "embedding": lambda: [model.embedding_, model.transform(X)],
        "labels": lambda: [model.labels_, model.predict(X)],
        "imputation": lambda: model.impute(X),
        "interval": lambda: list(model.impute(X, interval=0.9)),
        "draws": lambda: model.sample_imputations(X, 2),
        "reconstruction": lambda: model.reconstruct(X),
        "score": lambda: model.score(X),
        "generate": lambda: model.generate(5),
        "hidden errors": lambda: getattr(model, "hidden_", None),
        "weights": lambda: weights(model),
    }


def weights(model: Any) -> list[Array]:
    """Every tensor of its networks, by shape and mean: names and order may change."""
    network = getattr(getattr(model, "best_", model), "model_", None)
    tensors = [] if network is None else [t.cpu().numpy() for t in network.state_dict().values()]
    return sorted(tensors, key=lambda a: (a.shape, float(a.mean()) if a.size else 0.0))


def arrays(name: str, value: Any) -> Iterator[tuple[str, Array]]:
    """The values in arrays, tables and whatever holds them, each under a name of its own."""
    if isinstance(value, vedute.Views):
        value = [x.cpu().numpy() for x in value.x]
    elif sparse.issparse(value):
        value = value.toarray()
    elif isinstance(value, (pd.DataFrame, pd.Series)):
        frame = value.to_frame() if isinstance(value, pd.Series) else value
        value = {"ids": np.array(frame.index, str), **{str(c): column(frame[c]) for c in frame}}
    if isinstance(value, dict):
        for key, part in value.items():
            yield from arrays(f"{name}|{key}", part)
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from arrays(f"{name}|{i}", part)
    else:
        a = np.asarray(value)
        yield name, a.astype(str) if a.dtype == object else a


def column(values: pd.Series) -> Array:
    """Numbers where all are, else text."""
    numeric = pd.api.types.is_numeric_dtype(values.dtype)
    return values.to_numpy(float, na_value=np.nan) if numeric else values.to_numpy(object)


def main(out: str) -> None:
    torch.set_num_threads(1)
    threadpool_limits(1)
    warnings.simplefilter("ignore")
    results: dict[str, Array] = {}
    for case, make in cases().items():
        for name, ask in answers(*make()).items():
            try:
                results |= arrays(f"{case}|{name}", ask())
            except TypeError as refusal:
                if "cannot" not in str(refusal):
                    raise
                results[f"{case}|{name}"] = np.array("cannot")
    np.savez(out, **results)


_TEMPORARY = tempfile.TemporaryDirectory()
if __name__ == "__main__":
    main(sys.argv[1])
