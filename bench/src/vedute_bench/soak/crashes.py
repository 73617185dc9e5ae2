"""Crashes at every disk operation of `save`, `fit`, `impute` and `bench`.

Afterwards the output is completely old or completely new, and the same command succeeds.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from crashing import dies_at
from every_method import METHODS, small
from shell import done, vedute_

import vedute
from vedute import io
from vedute.commands import _pages
from vedute.datasets import synthetic
from vedute.io.files import SCRATCH
from vedute_bench.runner import run as running

AFTER = (None, 20, 0)  # at the operation itself, or after so many bytes of the next write
STUDY = 'datasets = ["synthetic"]\nrates = [0.5]\nseeds = [1, 2]\n'
STUDY += '[[runs]]\nlabel = "mean_fill"\nmethod = "mean_fill"\n'
FIT = ["--method", "mean_fill", "--clusters", "2"]
TRAIN = [word for pair in ("steps=4", "hidden=(4,)", "latent_dim=2", "device=cpu", "warmup=1",
         "map_hidden=(4,)", "checkpoint_minutes=0") for word in ("--set", pair)]  # fmt: skip


@dataclass(frozen=True)
class Attack:
    """Crash test. prepare: sets up; work: is crashed; whole: checks the result afterwards."""

    name: str
    prepare: Callable[[], Any]
    work: Callable[[], Any]
    whole: Callable[[], Any]


def cases(batch: int) -> Iterator[tuple[str, Callable[[Path], str]]]:
    attack, after = ATTACKS[batch % len(ATTACKS)], AFTER[batch // len(ATTACKS)]
    ended = False

    def case(point: int, place: Path) -> str:
        nonlocal ended
        attack.prepare()
        ended = not dies_at(point, attack.work, after)
        attack.whole()
        return attack.name

    for point in count(1):
        if ended:
            return
        yield f"{attack.name} {after} {point}", partial(case, point)


# Shared data and models.


@cache
def model(method: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(20, 3)), rng.normal(size=(20, 2))]
    return small(METHODS[method], {"steps": 3, "hidden": (4,), "latent_dim": 2}).fit(X)


def data(seed: int = 0) -> None:
    """Write d.npz, and the same data as a folder d of two tables."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(24, 3)), rng.normal(size=(24, 2))
    b[:5] = np.nan
    np.savez("d.npz", a=a, b=b)
    Path("d").mkdir(exist_ok=True)
    for name, x in (("a", a), ("b", b[5:])):
        ids = [f"p{i}" for i in range(24 - len(x), 24)]
        pd.DataFrame(x, pd.Index(ids, name="id"), list("uvw")[: x.shape[1]]).to_csv(f"d/{name}.csv")


def warm() -> None:
    """Make a first fit, which loads libraries, before processes are forked."""
    model("mvp", 0)


def scratch(*known: str) -> set[str]:
    return {p.name for p in Path().iterdir()} - {"d", "d.npz", *known}


def expire_scratch() -> None:
    """Make unlocked scratch folders old, since recent ones may be in use."""
    for folder in Path().glob(f".*{SCRATCH}"):
        os.utime(folder, (0, 0))


# save


def save_over(method: str, old: bool) -> Attack:
    """Attack on saving a model over another one, or into an empty folder."""

    def prepare() -> None:
        if old:
            model(method, 0).save("m")
        Path("m").mkdir(exist_ok=True)
        Path("m/notes.txt").write_text("mine")

    def whole() -> None:
        before = model(method, 0)
        allowed = [model(method, 1).embedding_.tobytes()]
        if old:
            allowed.append(before.embedding_.tobytes())
        if old or Path("m/model.json").exists():
            assert vedute.load("m").embedding_.tobytes() in allowed, "a mixture"
        assert Path("m/notes.txt").read_text() == "mine"
        model(method, 1).save("m")
        assert vedute.load("m").embedding_.tobytes() == allowed[0]

    return Attack("save", prepare, partial(_save, method), whole)


def _save(method: str) -> None:
    model(method, 1).save("m")


# fit -o


def fit_over(source: str, words: list[str], old: bool) -> Attack:
    fit = ["fit", source, "-o", "run", *words]

    def prepare() -> None:
        data()
        if old:
            done(*fit, "--seed", "0")

    def work() -> None:
        done(*fit, "--seed", "1", "--force")

    def whole() -> None:
        run = run_of() if old or Path("run").exists() else None
        assert run in (None, *expected(source, tuple(words))), "a run that is a mixture"
        if run is not None:
            done("impute", "run", source, "-o", "filled.npz")
        expire_scratch()
        work()
        assert run_of() == expected(source, tuple(words))[1], "another run than before"
        left = scratch("run", "filled.npz")
        assert not left, f"left behind: {left}"

    return Attack("fit", prepare, work, whole)


def run_of() -> tuple[str, ...]:
    """Contents of a run, except for times."""
    facts = json.loads(Path("run/model.json").read_text())
    assert (Path("run") / facts["tensors"]).exists(), "a model without its arrays"
    vedute.load("run")
    with np.load("run/embedding.npz") as file:
        z = file["embedding"].tobytes().hex()
    seed = json.loads(Path("run/data.json").read_text())["seed"]
    config = Path("run/config.toml").read_text()
    assert len([*Path("run").glob("history.jsonl")]) == 1, "no history"
    return facts["tensors"], z, str(seed), config


@cache
def expected(source: str, words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Contents of runs with seeds 0 and 1."""
    import tempfile

    home, runs = Path.cwd(), []
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        data()
        for seed in "01":
            done("fit", source, "-o", "run", *words, "--seed", seed, "--force")
            runs.append(run_of())
        os.chdir(home)
    return runs


# impute -o


def impute_over(source: str, out: str, old: bool) -> Attack:
    words = ["impute", "run", source, "-o", out, "--interval"]

    def prepare() -> None:
        data()
        shutil.copytree(_run(), "run")
        if old:
            done(*words, "0.5")

    def work() -> None:
        done(*words, "0.9", "--force")

    def whole() -> None:
        written = contents(out) if Path(out).exists() else None
        before, after = imputed(source, out, "0.5"), imputed(source, out, "0.9")
        assert written in (before, after) if old else written in (None, after), "a mixture"
        expire_scratch()
        work()
        assert contents(out) == after
        left = scratch("run", out)
        assert not left, f"left behind: {left}"

    return Attack("impute", prepare, work, whole)


def contents(out: str) -> dict[str, bytes]:
    """Contents of files by name, or of the arrays in a zip file."""
    if Path(out).is_file():
        with np.load(out) as file:
            return {k: file[k].tobytes() for k in file.files}
    return {str(p): p.read_bytes() for p in Path(out).rglob("*") if p.is_file()}


@cache
def _run() -> str:
    """Make a run on the data, to be copied."""
    import tempfile

    home, place = Path.cwd(), tempfile.mkdtemp(prefix="soak-run-")
    os.chdir(place)
    data()
    done("fit", "d.npz", "-o", "run", *FIT)
    os.chdir(home)
    return f"{place}/run"


@cache
def imputed(source: str, out: str, interval: str) -> dict[str, bytes]:
    import tempfile

    home = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        data()
        done("impute", _run(), source, "-o", out, "--interval", interval)
        filled = contents(out)
        os.chdir(home)
    return filled


# bench


def bench(old: bool) -> Attack:
    words = ["bench", "tiny.toml", "--jobs", "1", "-o", "r.jsonl"]

    def prepare() -> None:
        Path("tiny.toml").write_text(STUDY)
        if old:
            done(*words, "--seeds", "1")

    def whole() -> None:
        records = Path("r.jsonl")
        lines = records.read_text().split("\n")[:-1] if records.exists() else []
        seeds = [json.loads(line)["seed"] for line in lines]
        assert not old or 1 in seeds, "a record was lost"
        for claim in Path().glob("r.jsonl.claims/*"):  # truncated ones have no owner but expire
            os.utime(claim, (0, 0))
        result = vedute_(*words)
        assert result.exit_code == 0, result.output + result.stderr
        seeds = [json.loads(line)["seed"] for line in records.read_text().splitlines()]
        assert sorted(seeds) == [1, 2], f"runs {seeds}"
        assert [*Path("masks").glob("*.npz")], "no mask"
        left = {k for k in scratch("tiny.toml", "r.jsonl", "masks") if not k.endswith(SCRATCH)}
        assert left <= {"r.jsonl.claims"}, f"left behind: {left}"

    return Attack("bench", prepare, lambda: done(*words), whole)


def _in_this_process(run: Path, source: str, method: str) -> str:
    """Write measurements like `vedute fit`, without the map, which takes a second."""
    with io.atomic_file(run / "report.npz", force=True) as part:
        io.npz.write_npz(part, {"stays": np.zeros(3)})
    return ""


_pages._in_a_process = _in_this_process
running.datasets.load = lambda name: synthetic.load(40)
ATTACKS = [
    save_over("mean_fill", True),
    save_over("mvp", False),
    save_over("knn_fill", True),
    fit_over("d.npz", FIT, False),
    fit_over("d", FIT, True),
    fit_over("d.npz", [*TRAIN, "--clusters", "2"], True),
    impute_over("d.npz", "out.npz", True),
    impute_over("d", "out", False),
    impute_over("d", "out", True),
    bench(False),
    bench(True),
]
BATCHES, QUICK = 25, (0, 6, 9, 18)
