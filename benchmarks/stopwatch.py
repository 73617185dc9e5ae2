"""What the speed scripts share: the real training step on some data, clocks and gauges."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "tests"))

from oracles.mvp import draw  # noqa: E402
from oracles.slow_mvp import SlowMVP  # noqa: E402

from vedute.benchmark import workers  # noqa: E402
from vedute.data.views import Views  # noqa: E402
from vedute.estimators.fitted_view import FittedView, scaled  # noqa: E402
from vedute.estimators.neural import NeuralEstimator  # noqa: E402
from vedute.methods import _trimmings, mvp  # noqa: E402
from vedute.methods.mvp import MVP, MVPModel  # noqa: E402
from vedute.nn import gaussian, kernels  # noqa: E402
from vedute.nn.likelihoods import LIKELIHOODS  # noqa: E402
from vedute.training.model import Stage, Terms  # noqa: E402
from vedute.training.step import Step, make_optimizer  # noqa: E402

RESULTS = HERE / "results"
Loss = Callable[[Views], Terms]
MIB = 2**20


class Job(NamedTuple):
    """A model and its scaled data, both on the device."""

    model: Any
    data: Views
    bf16: bool

    @classmethod
    def of(
        cls,
        views: Views,
        device: str,
        settings: dict[str, Any],
        method: type[NeuralEstimator] = MVP,
    ) -> Job:
        hp = method(random_state=0, **settings)
        views = Views.of(views)
        kind = LIKELIHOODS["normal" if hp.likelihood == "auto" else str(hp.likelihood)]
        hp.views_ = [FittedView.of(views, v, kind, "standard") for v in range(len(views.x))]
        data = scaled(hp.views_, views).bare().to(device)
        hp.steps_ = hp._amounts(views.shapes, len(views))[0]
        torch.manual_seed(0)
        return cls(hp._build().to(device), data, hp._bf16(data, torch.device(device)))

    def step(self, model: Any = None, capture: bool = True, loss: Loss | None = None) -> Step:
        """The step of the last stage, or of another loss, as training makes it; of the model, or of
        a reference."""
        hp, model = self.model.hp, model or self.model
        optimizer = make_optimizer(model, hp.lr, hp.weight_decay)
        model.train()
        stage = Stage(loss or model.loss, capture=capture)
        return Step(model, self.data, stage, optimizer, hp.clip, self.bf16, self.bf16 and capture)

    def rows(self) -> Tensor:
        return torch.randperm(len(self.data), device=self.data.mask.device)[: self.batch]

    @property
    def batch(self) -> int:
        rows = len(self.data)
        return min(self.model.hp._amounts(self.data.shapes, rows)[1], rows)

    def flops(self, loss: Loss | None = None) -> int:
        """Of the matrix products in one step; by plain operations, which torch can count."""
        step = self.step(capture=False, loss=loss)
        plain = patch.object(kernels, "of", lambda what, t: None)
        with plain, FlopCounterMode(display=False) as counter:
            step(self.rows())
        return int(counter.get_total_flops())

    def step_ms(self, step: Step, budget: float) -> float:
        rows = [self.rows() for _ in range(16)]
        turn = iter(range(10**9))
        return 1e3 * seconds(lambda: step(rows[next(turn) % 16]), budget)


def seconds(f: Callable[[], object], budget: float) -> float:
    """The median of synchronised calls in `budget` seconds; three at least, after two more."""
    for _ in range(2):
        f()
    times: list[float] = []
    synchronize()
    end = perf_counter() + budget
    while len(times) < 3 or perf_counter() < end:
        start = perf_counter()
        f()
        synchronize()
        times.append(perf_counter() - start)
    return median(times)


def gemm_rate(device: str, budget: float, bf16: bool = False) -> float:
    """The best FLOP/s of large square products in the precision of training."""
    best, kind = 0.0, torch.bfloat16 if bf16 else torch.float32
    for size in (4096, 8192) if device == "cuda" else (1024, 2048):
        a, b = torch.randn(2, size, size, device=device, dtype=kind)
        best = max(best, 2 * size**3 / seconds(lambda a=a, b=b: a @ b, budget / 2))  # type: ignore[misc]
    return best


def agreement(job: Job, slow: SlowMVP) -> tuple[str, float]:
    """How far the reference's loss is from ours: the largest relative difference of a term."""
    job.model.eval(), slow.eval()  # no dropout inside the networks
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    batch = job.data[job.rows()].floating()
    try:
        ours, theirs = _same_chance(job.model, slow, batch)
        how = "same noise"
    except (AttributeError, StopIteration, RuntimeError):  # the code has changed around the draws
        ours, theirs = (_expected(m, batch) for m in (job.model, slow))
        how = "mean of 64 draws"
    torch.set_float32_matmul_precision(precision)
    return how, max(abs(ours[k] - theirs[k]) / max(abs(theirs[k]), 1e-9) for k in theirs)


@torch.no_grad()
def _same_chance(
    model: MVPModel, slow: SlowMVP, batch: Views
) -> tuple[dict[str, float], dict[str, float]]:
    hp = model.hp
    draws = draw(batch.mask, model.shared, hp.latent_dim, hp.view_dropout)
    kinds = [draws.w, draws.z, draws.agreed, draws.told][: 4 if hp.view_dropout > 0 else 2]
    noise = iter([n[a] for a in range(2) for n in kinds])
    cycles = patch.object(mvp, "random_cycles", lambda _mask, _count: draws.cycles)
    hidden = patch.object(_trimmings, "hidden_views", lambda _mask, _share: draws.hidden)
    sample = patch.object(gaussian, "sample", lambda q: q.mean + (q.logvar / 2).exp() * next(noise))
    with cycles, hidden, sample:
        ours = model.loss(batch)
    theirs = slow.terms(batch, draws)
    return {k: float(t) for k, t in ours.items()}, {k: float(t) for k, t in theirs.items()}


@torch.no_grad()
def _expected(model: Any, batch: Views) -> dict[str, float]:
    draws = [model.loss(batch) for _ in range(64)]
    return {k: sum(float(d[k]) for d in draws) / len(draws) for k in draws[0]}


class PeakMemory:
    """MiB that were in use at most since the start: allocated on a GPU, resident on a CPU."""

    def __init__(self, device: str) -> None:
        self.device = device
        synchronize()
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
            return
        gc.collect()
        with suppress(OSError, AttributeError):  # not Linux: since the start of the process
            ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")

    def read(self) -> float:
        if self.device == "cuda":
            return round(torch.cuda.max_memory_allocated() / MIB, 1)
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return round(next(int(s.split()[1]) for s in lines if s.startswith("VmHWM")) / 1024, 1)


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def device_name(device: str) -> str:
    name = torch.cuda.get_device_name() if device == "cuda" else workers.cpu_name()
    return name if device == "cuda" else f"{name}, {torch.get_num_threads()} threads"


def slug(text: str) -> str:
    words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
    return "-".join(w for w in words if w not in ("r", "tm", "processor", "cpu"))


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())
