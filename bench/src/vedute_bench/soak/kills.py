"""Fits killed (SIGKILL) at a random moment of a random phase, and resumed.

The result has the same bytes as that of an uninterrupted fit.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from blobs import blobs
from every_method import METHODS, small
from shell import done

from vedute.commands import _pages
from vedute.estimators import saving
from vedute.estimators.learner import Learner
from vedute.estimators.neural import NeuralEstimator
from vedute.report import run_folder

SIZE = 15
BATCHES, QUICK = 21, range(21, 23)
SIZES = {"steps": 20, "warmup": 4, "pretrain": 4, "hidden": (8,), "map_hidden": (6,)}
SIZES |= {"latent_dim": 2, "batch_size": 32, "device": "cpu", "random_state": 0, "n_clusters": 3}
SIZES |= {"checkpoint_minutes": 0.0, "cooldown": 0}
METHOD = ("mvp", "mopoe", "dvimc")
PHASES = (
    "start",
    "training",
    "calibration",
    "second training",
    "embedding",
    "clustering",
    "save",
)
_phase = mmap.mmap(-1, 1)  # shared with child processes


def cases(batch: int) -> Iterator[tuple[str, Callable[[Path], str]]]:
    for seed in range(batch * SIZE, (batch + 1) * SIZE):
        yield str(seed), partial(case, seed)


def warm() -> None:
    """Make first fits, which load libraries, before processes are forked."""
    for method in METHOD:
        small(METHODS[method], SIZES).fit(blobs(40))


def case(seed: int, place: Path) -> str:
    """Kill a fit, resume it, and compare the result."""
    rng = np.random.default_rng([1, seed])
    method, typed = METHOD[seed % len(METHOD)], bool(seed // len(METHOD) % 2)
    work = partial(fit_typed if typed else fit_called, method)
    whole, spans = uninterrupted(method, typed)
    (place / "d.npz").write_bytes(_data())
    reached = ""
    while not reached:  # a fit may end before it is killed
        shutil.rmtree(place / "run", ignore_errors=True)
        at = int(rng.choice([p for p in spans if p > 0]))
        reached = _killed(partial(work, place), at, rng.random() * spans[at])
    child = _start(partial(work, place))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    published = (place / "run" / "model.json").exists()
    assert code == 0 or (typed and published), f"the resumed fit ended with {code}"
    assert facts(place / "run") == whole, f"{method}: other bytes after a kill in {reached}"
    scratch = {p.name for p in place.iterdir()} - {"run", "d.npz"}
    if code == 0:
        assert not scratch, f"left behind: {scratch}"
    return f"in {reached}"


def facts(run: Path) -> tuple[str, str]:
    """Contents of a model except times and paths: checksum of its arrays, and the rest."""
    learned = json.loads((run / "model.json").read_text())
    params = [pair for pair in learned["params"]["$dict"] if pair[0] != "checkpoint"]
    rest = [pair for pair in learned["learned"]["$dict"] if pair[0] != "history_"]
    return learned["tensors"], json.dumps([params, rest])


@cache
def uninterrupted(method: str, typed: bool) -> tuple[Any, dict[int, float]]:
    """Result of an uninterrupted fit, and the seconds of its phases."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        (home / "d.npz").write_bytes(_data())
        child = _start(partial(fit_typed if typed else fit_called, method, home))
        spans, phase, since = dict[int, float](), 0, time.monotonic()
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
            if _phase[0] != phase:
                now = time.monotonic()
                spans[phase] = now - since
                phase, since = _phase[0], now
            time.sleep(0.0005)
        assert ended[1] == 0, "the fit that nothing ended failed"
        spans[phase] = time.monotonic() - since
        return facts(home / "run"), spans


@cache
def _data() -> bytes:
    import io

    X, file = blobs(120), io.BytesIO()
    np.savez(file, **dict(zip(X.names, X.arrays(), strict=True)))
    return file.getvalue()


def fit_called(method: str, place: Path) -> None:
    """Fit in Python, where the checkpoint is deleted before the model is saved."""
    with np.load(place / "d.npz") as file:
        X = dict(file)
    model = small(METHODS[method], SIZES, checkpoint=str(place / "checkpoint"))
    model.fit(X).save(place / "run")


def fit_typed(method: str, place: Path) -> None:
    """Fit on the command line, where the checkpoint is kept until the run is published."""
    model = small(METHODS[method], SIZES)
    skipped = ("n_clusters", "random_state")  # separate options, or defaults
    settings = [f"{k}={v}" for k, v in SIZES.items() if hasattr(model, k) and k not in skipped]
    words = [word for pair in settings for word in ("--set", pair)]
    fit = ["fit", place / "d.npz", "-o", place / "run", "--method", method, "--clusters", "3"]
    done(*fit, "--resume", *words)


def _start(work: Callable[[], Any]) -> int:
    """Start a child process that does the work and announces its phase."""
    _phase[0] = 0
    child = os.fork()
    if child:
        return child
    try:
        _announce()
        work()
    except BaseException as error:
        print(f"a fit ended: {error!r}"[:300], flush=True)
        os._exit(1)
    os._exit(0)


def _announce() -> None:
    """Make every phase set its number; called in the child process."""
    trainings = 0

    def learn(self: Any, *args: Any) -> None:
        nonlocal trainings
        _phase[0] = 3 if trainings else 1
        trainings += 1
        first(self, *args)

    def announced(owner: Any, name: str, number: int) -> None:
        real = getattr(owner, name)

        def called(*args: Any, **options: Any) -> Any:
            _phase[0] = max(number, _phase[0])
            return real(*args, **options)

        setattr(owner, name, called)

    first, NeuralEstimator.learn = NeuralEstimator.learn, learn
    announced(Learner, "calibrate", 2)
    announced(NeuralEstimator, "embed", 4)
    announced(Learner, "cluster", 5)
    announced(saving, "write", 6)
    announced(run_folder, "write", 6)
    _pages.measure = lambda *_: None


def _killed(work: Callable[[], Any], at: int, after: float) -> str:
    """Kill the work some seconds into a phase; return the phase reached, or "" if it ended."""
    child = _start(work)
    with suppress(ChildProcessError):
        while _phase[0] < at:
            if os.waitpid(child, os.WNOHANG)[0]:
                return ""
            time.sleep(0.0002)
        time.sleep(after)
        reached = PHASES[_phase[0]]
        os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return reached if code == -signal.SIGKILL else ""
    return ""
