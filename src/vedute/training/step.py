"""One optimisation step: gather rows, loss, gradients, update. On a GPU it is captured, and
compiled if that saves time."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import torch
from torch import Tensor, nn

from vedute.data.views import Views
from vedute.nn import shards
from vedute.nn.coders import Decoder, Encoder
from vedute.nn.correspondences import Correspondences
from vedute.nn.cuda_streams import in_parallel
from vedute.scale import ranks
from vedute.training.model import Model, Stage

TENSORS_PER_KERNEL = 16  # in an update


@dataclass(eq=False)
class Step:
    """One optimisation step. On a GPU it is captured once per batch size and replayed."""

    model: Model
    data: Views
    stage: Stage
    optimizer: torch.optim.Optimizer
    clip: float | None = None
    bf16: bool = False
    compiled: bool = False

    graphs: dict[int, tuple[torch.cuda.CUDAGraph, Tensor]] = field(default_factory=dict)
    names: Sequence[str] = ()  # of the terms
    totals: Tensor | None = None  # sums of the terms over `seen` rows
    seen: int = 0

    def __call__(self, rows: Tensor) -> None:
        self.seen += len(rows)
        if not (self.stage.capture and self.data.mask.is_cuda and ranks.capturable()):
            self._run(rows)
            return
        if len(rows) not in self.graphs:
            self.graphs[len(rows)] = self._record(rows)
        graph, buffer = self.graphs[len(rows)]
        buffer.copy_(rows)
        graph.replay()

    def read_terms(self, step: int) -> dict[str, float]:
        """Return the average of every term since the last call; raise if one is not finite."""
        assert self.totals is not None
        data, several = self.data, ranks.size() > 1
        totals = ranks.add_up(self.totals) if several else self.totals
        with ranks.waiting() if several else nullcontext():  # on a GPU, for the sum
            terms = dict(zip(self.names, (totals / self.seen).tolist(), strict=True))
        self.totals.zero_()
        self.seen = 0
        for name, value in terms.items():
            if not isfinite(value):
                x = (a if a.is_floating_point() and a.numel() else torch.zeros(1) for a in data.x)
                size, view = max(zip((float(a.abs().max()) for a in x), data.names, strict=True))
                raise FloatingPointError(
                    f"the loss term {name!r} became {value} by step {step}; view {view!r} has the "
                    f"largest scaled value ({size:.3g}); try a smaller lr, clip=1.0, "
                    "scaling='standard', or remove outliers from that view"
                )
        return terms

    def _run(self, rows: Tensor) -> None:
        """Take a step on this rank's share of a batch."""
        device = self.data.mask.device.type
        bf16 = torch.autocast(device, torch.bfloat16) if self.bf16 else nullcontext()
        part, count = rows, len(rows)
        shard: AbstractContextManager[None] = nullcontext()
        several = ranks.size() > 1
        if several:
            share = ranks.share(len(rows))
            count = share.stop - share.start
            if not count:  # one row of weight zero, so that noise is drawn as on the other ranks
                share = slice(0, 1)
            part, shard = rows[share], shards.of_batch(share, self.data.mask[rows])
        self.optimizer.zero_grad(set_to_none=True)
        with bf16, shard:
            terms = self.stage.loss(self.data[part].floating())
        values = torch.stack(list(terms.values()))
        loss = values.sum() if count == len(rows) else values.sum() * (count / len(rows))
        loss.backward()  # type: ignore[no-untyped-call]
        if several:
            ranks.add_gradients(self.model.parameters())
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip, foreach=True)
        self.optimizer.step()
        if self.totals is None:
            self.names, self.totals = list(terms), torch.zeros_like(values)
        self.totals.add_(values.detach(), alpha=count)

    def _record(self, rows: Tensor) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        """Capture the whole step. Warm-up iterations change the state, which is restored."""
        buffer, graph = rows.clone(), torch.cuda.CUDAGraph()
        weights = {k: v.clone() for k, v in self.model.state_dict().items()}
        moments = copy.deepcopy(self.optimizer.state_dict()["state"])
        random = torch.cuda.get_rng_state()
        totals = None if self.totals is None else self.totals.clone()
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        full = not self.graphs  # the full batch; a short last one is not worth compiling
        compiles = self.compiled and full
        with _compiled(self.model, self.model.fusible) if compiles else nullcontext():
            with torch.cuda.stream(side):
                for _ in range(3):
                    self._run(buffer)
            torch.cuda.current_stream().wait_stream(side)
            self.optimizer.zero_grad(set_to_none=True)
            with torch.cuda.graph(graph):
                self._run(buffer)
        with torch.no_grad():
            for k, v in self.model.state_dict().items():
                v.copy_(weights[k])
            parameters = [p for g in self.optimizer.param_groups for p in g["params"]]
            for i, p in enumerate(parameters):
                for key, value in self.optimizer.state.get(p, {}).items():
                    old = moments.get(i, {}).get(key)
                    value.zero_() if old is None else value.copy_(old)
            assert self.totals is not None
            self.totals.zero_() if totals is None else self.totals.copy_(totals)
        torch.cuda.set_rng_state(random)
        return graph, buffer


def make_optimizer(model: nn.Module, lr: float, weight_decay: float) -> torch.optim.Optimizer:
    parameters = list(model.parameters())
    cuda = bool(parameters) and parameters[0].is_cuda
    rate = torch.tensor(lr, device="cuda") if cuda else lr
    kind = ParallelAdamW if cuda else torch.optim.AdamW
    return kind(parameters, rate, weight_decay=weight_decay, fused=True, capturable=cuda)


class ParallelAdamW(torch.optim.AdamW):
    """Fused AdamW with its kernels in parallel: each updates a few dozen tensors, which leaves most
    of a GPU idle."""

    def step(self, closure: Any = None) -> Any:
        groups = self.param_groups
        gradients = [p.grad for g in groups for p in g["params"] if p.grad is not None]
        parts = [
            {**group, "params": group["params"][at : at + TENSORS_PER_KERNEL]}
            for group in groups
            for at in range(0, len(group["params"]), TENSORS_PER_KERNEL)
        ]
        try:
            in_parallel(self._update, parts, gradients)
        finally:
            self.param_groups = groups

    def _update(self, part: dict[str, Any]) -> tuple[Tensor, ...]:
        self.param_groups = [part]
        super().step()
        return ()


def set_rates(optimizer: torch.optim.Optimizer, model: nn.Module, stage: Stage) -> None:
    """Regroup the parameters by learning rate; their moments are kept."""
    base = optimizer.param_groups[0]
    rest, zero = dict(model.named_parameters()), base["lr"] * 0  # on a GPU a tensor
    main = base if stage.lr is None else {**base, "lr": zero + stage.lr}
    groups = []
    for prefix, lr in stage.rates:
        chosen = [rest.pop(k) for k in list(rest) if k.startswith(prefix)]
        groups.append({**base, "params": chosen, "lr": zero + lr})
    optimizer.param_groups[:] = [{**main, "params": list(rest.values())}, *groups]


@contextmanager
def _compiled(model: nn.Module, methods: Sequence[str]) -> Iterator[None]:
    """Compile the networks of a model and its `methods` while active; a step captured meanwhile
    keeps the compiled kernels."""
    networks = [m for m in model.modules() if isinstance(m, (Encoder, Decoder, Correspondences))]
    parts = [*((network, "forward") for network in networks), *((model, name) for name in methods)]
    for owner, name in parts:
        setattr(owner, name, torch.compile(getattr(owner, name), dynamic=False))
    try:
        yield
    finally:
        for owner, name in parts:
            delattr(owner, name)
