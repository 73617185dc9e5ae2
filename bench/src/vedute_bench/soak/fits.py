"""Tiny fits of every method on odd inputs and with odd settings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from every_method import METHODS, small
from numpy.random import Generator

from vedute.methods.best_pair import for_views
from vedute_bench.soak import fuzz, inputs
from vedute_bench.soak.inputs import chance, pick
from vedute_bench.soak.watching import refused, watched

SIZE = 50
BATCHES, QUICK = 31, range(2)
TINY = {"steps": 3, "warmup": 1, "pretrain": 1, "hidden": (4,), "map_hidden": (4,), "latent_dim": 2}
TINY |= {"batch_size": 16, "n_neighbors": 3, "device": "cpu", "random_state": 0}
NAMES = [*METHODS]
REFUSALS = (ValueError, TypeError, FloatingPointError)


def cases(batch: int) -> Iterator[tuple[str, Callable[[Path], str]]]:
    for seed in range(batch * SIZE, (batch + 1) * SIZE):
        yield str(seed), partial(case, seed)


def settings(rng: Generator, method: str) -> dict[str, Any]:
    chosen: dict[str, Any] = {"n_clusters": int(pick(rng, (2, 3)))}
    options: list[dict[str, Any]] = [
        {"epochs": 2}, {"latent_dim": 1}, {"batch_size": 1}, {"batch_size": 3}, {"lr": 10.0},
        {"hidden": ()}, {"scaling": "minmax"}, {"scaling": "none"}, {"early_stopping": False},
        {"likelihood": "laplace"}, {"likelihood": "bernoulli"}, {"n_clusters": 1},
        {"n_clusters": 40}, {"n_neighbors": 50}, {"steps": 1}, {"clip": 1e-3}, {"lr": 1e6},
    ]  # fmt: skip
    for _ in range(int(rng.integers(3))):
        chosen |= pick(rng, options)
    known = METHODS[method].__dataclass_fields__
    return {k: v for k, v in chosen.items() if k in known}


def case(seed: int, place: Path) -> str:
    rng = np.random.default_rng([4, seed])
    method = NAMES[seed % len(NAMES)]
    chosen = settings(rng, method)
    with watched(place):
        try:
            if chance(rng, 0.6):
                X: Any = inputs.arrays(rng, n=int(pick(rng, (6, 16, 24))), L=int(pick(rng, (2, 3))))
            else:
                X = pick(rng, (inputs.any_arrays, inputs.any_frames, inputs.any_views))(rng)
            views = len(X.x) if isinstance(X, fuzz.Views) else len(X)
            model = for_views(small(METHODS[method], TINY, **chosen), views).fit(X)
        except Exception as error:
            return f"{method}: {refused(error, REFUSALS)}"
        fuzz.check(model, X, rng)
        if chance(rng, 0.2):
            second = for_views(small(METHODS[method], TINY, **chosen), views).fit(X)
            assert second.embedding_.tobytes() == model.embedding_.tobytes(), "another answer"
        if chance(rng, 0.2):
            interrupted(model, X, rng)
    return f"{method}: answered"


def interrupted(model: Any, X: Any, rng: Generator) -> None:
    """Check that a refit interrupted at a random call leaves the old model, or completes."""
    before = model.transform(X).tobytes(), model.labels_.tobytes()
    left = int(rng.integers(20_000))

    def count(*_: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt

    model.set_params(random_state=1)
    sys.setprofile(count)
    try:
        model.fit(X)
    except KeyboardInterrupt:
        after = model.transform(X).tobytes(), model.labels_.tobytes()
        assert after == before, "neither the model before nor a new one"
    finally:
        sys.setprofile(None)
