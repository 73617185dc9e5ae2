"""One training run of the networks of a method."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from threading import Thread
from time import monotonic
from typing import Any

import torch
from torch import Tensor

from vedute.data.holdout import HoldOut
from vedute.data.views import Views
from vedute.estimators import front, progress
from vedute.estimators.context import FROM_CALLBACK, FitContext, digest
from vedute.estimators.networks import ARM
from vedute.estimators.settings import LOOSE
from vedute.nn import coders, convolutions
from vedute.training.checkpoints import Checkpoint
from vedute.training.history import Record, continued, useful_steps
from vedute.training.loop import INTERRUPTED, Loop, Settings, batches
from vedute.training.model import Model, load_state

log = logging.getLogger("vedute")
UNWATCHED_STEPS = 1000  # without hidden views, hence without early stopping
UNUSED = (*LOOSE, "columns", "random_state")  # settings that training does not depend on
COMPILED_STEPS = 40_000  # least steps for which image networks are compiled on a GPU
MEASURED = 5.0  # seconds of steps for the estimate
LONG = 120.0  # seconds from which on it is reported
SMALL_STEP = 1e9  # weights times batch size, below which one thread is as fast as several


@dataclass
class Training:
    """One training run of a `NeuralEstimator`: the first, or the refit with the hidden views."""

    model: Any
    context: FitContext
    before: Sequence[Record] = ()  # the history of the first run
    length: int | None = None  # of the first run, if stopped early

    def learn(self, data: Views, held: HoldOut | None) -> None:
        """Train on data without the hidden views, which are used for early stopping."""
        model = self.model
        device = model.torch_device()
        settings = self._prepare(data, device, watched=held is not None)
        inputs = front.narrow(model.front_, data)
        loop = Loop(
            model.model_,
            inputs.to(device),
            settings,
            None if held is None else front.narrow_held(model.front_, held, device),
            model.model_.observation,
            self.report,
            # a GPU does not wait for steps
            partial(next, self._pace(data), None) if device.type == "cpu" else None,
        )
        count = (model.steps_, "step") if model.epochs is None else (model.epochs, "epoch")
        with thread_settings(model.model_, inputs, settings.batch_size), progress.task("", *count):
            history = loop.run()
        which = "second training, with all views: " if self.before else ""
        if loop.reason == INTERRUPTED:  # a warning was logged
            self.context.interrupted = True
        else:
            log.info("%s: %s%s", type(model).__name__, which, loop.reason)
            progress.say(f"{which}{loop.reason}", ended=True)
        comparable = settings.refit or self.length is not None
        model.history_ = continued(self.before if comparable else [], history)
        if history:
            model.history_[-1]["ended"] = loop.reason
        model.length_ = None if held is None else useful_steps(history)

    def _prepare(self, data: Views, device: torch.device, watched: bool) -> Settings:
        """Make the model that training starts from, and its settings."""
        model = self.model
        steps, batch_size = model.amounts(data.shapes, len(data))
        total = steps if model.epochs is None else model.epochs * len(data) // batch_size
        refit_steps = model.refit_length(steps) if self.context.number > 1 else None
        if refit_steps is None:
            fixed = watched or not model.early_stopping or model.epochs is not None
            model.steps_ = steps if fixed else min(steps, self.length or UNWATCHED_STEPS)
            hp = model.settled(data.shapes, model.epochs or model.steps_, len(data))
            params = hp.get_params(deep=False) | {"batch_size": batch_size}
            params |= {"patience": model.patience_for(data.shapes, total)}
            params |= {"steps": steps} if model.epochs is None else {}
            for unused in UNUSED:
                params.pop(unused, None)
            model.settings_ = params
            model.front_ = front.learn(model.views_, data, model.components, model.seed_)
            model.model_ = model.build_networks().to(device)
            coders.start_at(model.model_, [*map(attrgetter("mean"), model.scalers)])
        else:
            model.steps_, before = refit_steps, model.model_.state_dict()
            model.model_ = model.build_networks().to(device)
            load_state(model.model_, before)
        used, images = model.settings_, max(map(len, data.shapes)) > 1
        return Settings(
            steps=model.steps_,
            epochs=used["epochs"],
            batch_size=batch_size,
            lr=used["lr"],
            weight_decay=used["weight_decay"],
            clip=used["clip"],
            patience=used["patience"],
            bf16=model.bf16(data, device),
            # half a minute saves half a millisecond per step
            compiled=device.type == "cuda" and images and total >= COMPILED_STEPS,
            refit=refit_steps is not None,
            checkpoint=None if self.context.checkpoint is None else self._checkpoint(data),
        )

    def _checkpoint(self, data: Views) -> Checkpoint:
        """Return the checkpoint of this run, in a folder by its number."""
        assert self.context.checkpoint is not None
        unsigned = LOOSE if self.model.soft else (*LOOSE, "n_clusters")  # may differ when resumed
        params = self.model.get_params(deep=False) | self.model.settings_
        params = {k: v for k, v in params.items() if k not in unsigned}
        signature = digest(params, [data.mask, *data.parts, *data.hole_parts])
        folder = self.context.checkpoint / f"training-{self.context.number}"
        return Checkpoint(folder, signature, self.model.checkpoint_minutes)

    def _pace(self, data: Views) -> Iterator[None]:
        """Measure the pace of training, advancing after every step; if it is long, report its
        duration and what is faster. The first step includes preparation and is not counted."""
        model, start = self.model, monotonic()
        steps, faster = model.steps_, ["fewer `steps`"]
        if model.epochs is not None:
            steps = model.epochs * batches(len(data), model.settings_["batch_size"])
            faster = ["fewer `epochs`"]
        for counted in range(1, steps):
            yield
            step = (monotonic() - start) / counted
            left = step * (steps - 1 - counted)
            if step * counted >= MEASURED:
                break
        else:
            return
        if left < LONG:
            return
        network = model.settings_.get("network", "mlp")
        if any(coders.by_convolution(shape, network) for shape in data.shapes):
            faster += [f"network={convolutions.SMALL!r}"] * (network == convolutions.LARGE)
            faster += ["smaller images"]
        line = f"up to {progress.duration(left)} for {steps} steps of {step:.2g} s"
        line = f"{line}; faster: {', '.join([*faster, 'a GPU'])}"
        model.log(f"{type(model).__name__}: {line}")
        progress.say(line)

    def report(self, record: Record) -> None:
        """Show a record of the history, and pass it to the callbacks."""
        progress.trained(record)
        for call in self.context.callbacks:
            try:
                call(deepcopy(continued(self.before, [record])[-1]))
            except Exception as error:
                error.add_note(FROM_CALLBACK)
                raise
        if record["hidden_error"] is not None:
            line = f"step {record['step']:5d}"
            for name, value in record["terms"].items():
                line = f"{line}  {name} {value:.4g}"
            self.model.log(f"{line}  hidden error {record['hidden_error']:.4f}")


@contextmanager
def thread_settings(model: Model, data: Views, batch_size: int) -> Iterator[None]:
    """Set TF32 on a GPU, and one thread if steps are so small that synchronisation would dominate.
    On ARM, disable oneDNN, whose products of small matrices take up to seven times as long."""
    exact, threads = torch.get_float32_matmul_precision(), torch.get_num_threads()
    images = max(map(len, data.shapes)) > 1
    work = sum(map(Tensor.numel, model.parameters())) * min(batch_size or len(data), len(data))
    torch.set_float32_matmul_precision("high")
    _set_threads(1 if work < SMALL_STEP and not images else threads, threads)
    set_one_dnn: Any = torch.backends.mkldnn.set_flags  # returns what was set
    before = set_one_dnn(False) if ARM and not images else None
    try:
        yield
    finally:
        if before is not None:
            set_one_dnn(before[0])
        torch.set_float32_matmul_precision(exact)
        _set_threads(threads, threads)


def _set_threads(number: int, others: int) -> None:
    """Set the number of threads for this thread; threads that start later use `others`."""
    torch.set_num_threads(number)
    if number != others:
        new = Thread(target=torch.set_num_threads, args=(others,))
        new.start()
        new.join()
