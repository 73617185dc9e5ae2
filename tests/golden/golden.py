"""Whether results are what they were, byte for byte: small fits with fixed seeds on one thread.

    python tests/golden/golden.py            compare with golden.json; exit code 1 where they differ
    python tests/golden/golden.py --write    make golden.json again, after a change that is meant

golden.json holds a digest of the values of each result, by case, and the machine they were made
on: floating-point sums differ between processors and releases of torch. It is made for one
processor (`machine` in the file); on another the comparison says so and ends with exit code 0.
"""

from __future__ import annotations

import json
import platform
import sys
import warnings
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from threadpoolctl import threadpool_limits

import vedute
from vedute import methods

FILE = Path(__file__).with_name("golden.json")
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


def fitted(name: str, X: Any, views: int = 3, **settings: Any) -> Any:
    """A small model of a method; one for two views gets those that are best."""
    cls = methods.find(name)
    known = cls().get_params()
    off = {"cooldown"} if known.get("cooldown") == 0 else set()  # what is off stays off
    own = {k: v for k, v in SMALL.items() if k in known.keys() - off}
    model = cls(**{**own, **COMMON, **settings})
    if cls.two_views and views > 2:
        inside = cls(**own, **settings)
        model = vedute.BestPair(inside, **COMMON)
    return model.fit(X)


def _any_of(X: list[np.ndarray]) -> np.ndarray:
    """Which rows have at least one of these views."""
    return np.any([~np.isnan(x).all(1) for x in X], axis=0)


def cases() -> dict[str, Callable[[], tuple[Any, Any]]]:
    """By name: a function that gives a fitted model and the data to ask it about."""
    X, new = numbers(150), numbers(20, seed=9)

    def of(name: str, data: Any, asked: Any, views: int = 3, **settings: Any) -> Any:
        return lambda: (fitted(name, data, views, **settings), asked)

    found = {name: of(name, X, new) for name in methods.available()}
    table, pictures, text = frames(90), masked(images(60)), masked(tokens(80))
    two, two_new = ([x[_any_of(A[:2])] for x in A[:2]] for A in (X, new))
    few = {k: v.iloc[:12] for k, v in table.items()}
    found |= {
        "mvp, frames": of("mvp", table, few),
        "mvp, images": of("mvp", pictures, pictures[:10], steps=12),
        "mvp, images, mlp": of("mvp", pictures, pictures[:10], steps=12, network="mlp"),
        "mvp, tokens": of("mvp", text, text[:10], likelihood={"view0": "tokens"}),
        "mvp, many rows": of("mvp", numbers(1100), new, steps=30),
        "mvp, epochs": of("mvp", X, new, epochs=3, warmup=1, cooldown=0, view_dropout=0.0,
                          output="tanh", linear_paths=False, average=False, lr_halving=2),
        "mvp, other objective": of("mvp", X, new, prior="fusion", permutation="random",
                                   maps="linear", shared_dim=2, likelihood="laplace"),
        "mvp, no stopping": of("mvp", X, new, early_stopping=False, scaling="minmax"),
        "mvae, images": of("mvae", pictures, pictures[:10], steps=12),
        "mean_fill, frames": of("mean_fill", table, few),
        "lowrank_fill, frames": of("lowrank_fill", table, few),
        "knn_fill, frames": of("knn_fill", table, few),
        "dcca, two views": of("dcca", two, two_new, views=2),
        "completer, two views": of("completer", two, two_new, views=2),
        "best pair by hidden views": lambda: (
            vedute.BestPair(
                methods.find("dccae")(**{k: SMALL[k] for k in ("steps", "hidden", "latent_dim")}),
                select="hidden", **COMMON).fit(X), new),
    }  # fmt: skip
    return found


def digest(value: Any) -> str:
    """Of the values in arrays, tables and whatever holds them."""
    found = sha256()
    _feed(found, value)
    return found.hexdigest()[:16]


def _feed(found: Any, value: Any) -> None:
    if isinstance(value, vedute.Views):
        value = [x.cpu().numpy() for x in value.x]
    if isinstance(value, (pd.DataFrame, pd.Series)):
        frame = value.to_frame() if isinstance(value, pd.Series) else value
        value = {"ids": list(map(str, frame.index)), **{str(c): list(frame[c]) for c in frame}}
    if isinstance(value, dict):
        for key, part in value.items():
            found.update(str(key).encode())
            _feed(found, part)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        found.update(repr((value.shape, value.dtype.kind)).encode())
        found.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, (list, tuple)):
        for part in value:
            _feed(found, part)
    else:
        found.update(repr(value.item() if isinstance(value, np.generic) else value).encode())


def weights(model: Any) -> list[str]:
    """A digest of every tensor of its networks, sorted: names and order may change."""
    inside = getattr(model, "best_", model)
    network = getattr(inside, "model_", None)
    tensors = {} if network is None else network.state_dict()
    return sorted(digest(t.cpu().numpy()) for t in tensors.values())


def results(model: Any, X: Any) -> dict[str, str]:
    """Digests of all that a model says."""
    asked: dict[str, Callable[[], Any]] = {
        "embedding": lambda: [model.embedding_, model.transform(X)],
        "labels": lambda: [model.labels_, model.predict(X)],
        "imputation": lambda: model.impute(X),
        "interval": lambda: list(model.impute(X, interval=0.9)),
        "draws": lambda: model.sample_imputations(X, 2),
        "reconstruction": lambda: model.reconstruct(X),
        "score": lambda: model.score(X),
        "generate": lambda: model.generate(5),
        "hidden errors": lambda: vars(model).get("hidden_"),
        "weights": lambda: weights(model),
    }
    found = {}
    for name, ask in asked.items():
        try:
            found[name] = digest(ask())
        except TypeError as told:
            if "cannot" not in str(told):
                raise
            found[name] = "cannot"
    return found


def machine() -> dict[str, str]:
    cpu = platform.machine()
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = {w.partition(":")[2].strip() for w in lines if w.startswith(("model name", "CPU part"))}
    versions = {"torch": torch.__version__, "numpy": np.__version__, "pandas": pd.__version__}
    return {"cpu": " ".join([cpu, *sorted(names)]), **versions}


def main() -> int:
    torch.set_num_threads(1)
    threadpool_limits(1)
    warnings.simplefilter("ignore")
    known = json.loads(FILE.read_text()) if FILE.exists() else {"machine": None, "results": {}}
    write = "--write" in sys.argv
    if not write and known["machine"] != machine():
        print(f"made on {known['machine']}, this is {machine()}: nothing to compare, not checked")
        return 0
    found = {name: results(*make()) for name, make in cases().items()}
    if write:
        FILE.write_text(json.dumps({"machine": machine(), "results": found}, indent=1) + "\n")
        print(f"wrote {FILE}: {len(found)} cases")
        return 0
    wrong = [
        f"{name}: {what}"
        for name, then in known["results"].items()
        for what, value in then.items()
        if found.get(name, {}).get(what) != value
    ]
    print("\n".join(wrong) or f"all {len(found)} cases are as they were")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
