"""Helpers of the speed scripts: the training step of a model, clocks and gauges."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from vedute.data.views import Views
from vedute.estimators.fitted_view import FittedView, scaled
from vedute.estimators.neural import NeuralEstimator
from vedute.methods.mvp import MVP
from vedute.nn.likelihoods import LIKELIHOODS
from vedute.training.model import Stage, Terms
from vedute.training.step import Step, make_optimizer
from vedute_bench.runner import workers

Loss = Callable[[Views], Terms]
MIB = 2**20


class Job(NamedTuple):
    """A model and its scaled data on a device."""

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
        hp.front_, hp.settings_ = [None] * len(hp.views_), {}
        data = scaled(hp.views_, views).bare().to(device)
        hp.steps_ = hp.amounts(views.shapes, len(views))[0]
        torch.manual_seed(0)
        return cls(hp.build_networks().to(device), data, hp.bf16(data, torch.device(device)))

    def step(self, model: Any = None, capture: bool = True, loss: Loss | None = None) -> Step:
        """Make the step of training for the model or a reference, with its last or another loss."""
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
        return min(self.model.hp.amounts(self.data.shapes, rows)[1], rows)

    def flops(self, loss: Loss | None = None) -> int:
        """Count the operations of the matrix products in one step."""
        step = self.step(capture=False, loss=loss)
        with FlopCounterMode(display=False) as counter:
            step(self.rows())
        return int(counter.get_total_flops())

    def step_ms(self, step: Step, budget: float) -> float:
        rows = [self.rows() for _ in range(16)]
        turn = iter(range(10**9))
        return 1e3 * seconds(lambda: step(rows[next(turn) % 16]), budget)


def seconds(f: Callable[[], object], budget: float) -> float:
    """Median seconds of synchronised calls in `budget` seconds, at least three, after two more."""
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
    """Maximum FLOP/s of large square products in the precision of training."""
    best, kind = 0.0, torch.bfloat16 if bf16 else torch.float32
    for size in (4096, 8192) if device == "cuda" else (1024, 2048):
        a, b = torch.randn(2, size, size, device=device, dtype=kind)
        best = max(best, 2 * size**3 / seconds(lambda a=a, b=b: a @ b, budget / 2))  # type: ignore[misc]
    return best


class PeakMemory:
    """Peak MiB in use since the start: allocated on a GPU, resident on a CPU."""

    def __init__(self, device: str) -> None:
        self.device = device
        synchronize()
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
            return
        gc.collect()
        with suppress(OSError, AttributeError):  # not on Linux: peak since the process began
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
