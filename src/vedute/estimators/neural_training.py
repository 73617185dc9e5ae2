"""One training run of the networks of a method."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager
from copy import deepcopy
from typing import Any

import torch

from vedute.data.holdout import HoldOut
from vedute.data.views import Shapes, Views
from vedute.estimators import front, progress
from vedute.estimators.context import FitContext
from vedute.estimators.digest import digest
from vedute.estimators.network_method import NetworkMethod
from vedute.estimators.pace import Pace
from vedute.estimators.settings import LOOSE
from vedute.estimators.threads import thread_settings
from vedute.nn import coders, convolutions
from vedute.training.checkpoints import Checkpoint
from vedute.training.history import Record, continued, ended, useful_steps
from vedute.training.loop import INTERRUPTED, Loop, Settings, batches

log = logging.getLogger("vedute")
UNWATCHED_STEPS = 1000  # without hidden views, hence without early stopping
UNSIGNED = (*LOOSE, "n_clusters")  # may differ when training is resumed
FROM_CALLBACK = "raised by a callback"  # a note on errors
COMPILED_STEPS = 40_000  # least steps for which image networks are compiled on a GPU


class Training:
    """One training run of a method: the first, or the refit with the views that were hidden."""

    def __init__(self, model: NetworkMethod, context: FitContext) -> None:
        self.model, self.context = model, context
        refit = context.number > 1
        self.before: list[Record] = model.history_ if refit else []
        self.length = model.length_ if refit else None  # of the first run, if stopped early

    def learn(self, data: Views, held: HoldOut | None) -> None:
        """Train on data without the hidden views, which are used for early stopping."""
        model = self.model
        device = model.torch_device()
        settings = self._prepare(data, device, watched=held is not None)
        inputs = front.narrow(model.front_, data)
        watched_views = None if held is None else front.narrow_held(model.front_, held)
        loop = Loop(
            model.model_,
            inputs.to(device),
            settings,
            None if watched_views is None else watched_views.to(device),
            [view.likelihood for view in model.views_],
            self.report,
            self._pace(data) if device.type == "cpu" else None,  # a GPU does not wait for steps
        )
        with thread_settings(model.model_, inputs, settings.batch_size), self._counted():
            history = loop.run()
        self._end(loop.reason)
        comparable = settings.refit or self.length is not None
        model.history_ = continued(self.before if comparable else [], ended(history, loop.reason))
        model.length_ = None if held is None else useful_steps(history)

    def _prepare(self, data: Views, device: torch.device, watched: bool) -> Settings:
        """Make the model that training starts from, and its settings."""
        model = self.model
        steps, batch_size = model.amounts(data.shapes, len(data))
        refit_steps = model.refit_length(steps) if self.context.number > 1 else None
        if refit_steps is None:
            fixed = watched or not model.early_stopping or model.epochs is not None
            model.steps_ = steps if fixed else min(steps, self.length or UNWATCHED_STEPS)
            model.settings_ = self._used(data)
            model.start(data, device)
        else:
            model.steps_ = refit_steps
            model.go_on(device)
        hp = model.having(model.settings_)
        return Settings(
            steps=model.steps_,
            epochs=model.epochs,
            batch_size=batch_size,
            lr=hp.lr,
            weight_decay=hp.weight_decay,
            clip=hp.clip,
            patience=hp.patience,
            bf16=model.bf16(data, device),
            compiled=self._pays_to_compile(data, device),
            refit=refit_steps is not None,
            checkpoint=self._checkpoint(data),
        )

    def _used(self, data: Views) -> dict[str, Any]:
        """Return the settings of training on these data."""
        model = self.model
        steps, batch_size = model.amounts(data.shapes, len(data))
        hp = model.settled(data.shapes, model.epochs or model.steps_, len(data))
        patience = model.patience_for(data.shapes, model.total_steps(data))
        amounts = {"batch_size": batch_size, "patience": patience}
        amounts |= {"steps": steps} if model.epochs is None else {}
        params = hp.get_params(deep=False) | amounts
        return {k: v for k, v in params.items() if k not in (*LOOSE, "columns", "random_state")}

    def _pays_to_compile(self, data: Views, device: torch.device) -> bool:
        """Return whether to compile: half a minute saves half a millisecond per step on images."""
        steps = self.model.total_steps(data)
        images = any(len(s) > 1 for s in data.shapes)
        return device.type == "cuda" and images and steps >= COMPILED_STEPS

    def _checkpoint(self, data: Views) -> Checkpoint | None:
        """Return the checkpoint of this run, in a folder by its number."""
        if self.context.checkpoint is None:
            return None
        folder = self.context.checkpoint / f"training-{self.context.number}"
        return Checkpoint(folder, self._signature(data), self.model.checkpoint_minutes)

    def _signature(self, data: Views) -> str:
        unsigned = [k for k in UNSIGNED if k != "n_clusters" or not self.model.soft]
        params = self.model.get_params(deep=False) | self.model.settings_
        params = {k: v for k, v in params.items() if k not in unsigned}
        return digest(params, [data.mask, *data.parts, *data.hole_parts])

    def _pace(self, data: Views) -> Pace:
        """Return a callback that reports the duration of long training, and what is faster."""
        size = self.model.settings_["batch_size"]
        steps = (
            self.model.steps_
            if self.model.epochs is None
            else self.model.epochs * batches(len(data), size)
        )

        def say(step: float, left: float) -> None:
            faster = ", ".join(self._faster(data.shapes))
            line = f"up to {progress.duration(left)} for {steps} steps of {step:.2g} s"
            self.model.log(f"{type(self.model).__name__}: {line}; faster: {faster}")
            progress.say(f"{line}; faster: {faster}")

        return Pace(steps, say)

    def _faster(self, shapes: Shapes) -> Iterator[str]:
        """Yield ways to shorten training on a CPU."""
        yield "fewer `epochs`" if self.model.epochs else "fewer `steps`"
        network = self.model.settings_.get("network", "mlp")
        if any(coders.by_convolution(shape, network) for shape in shapes):
            if network == convolutions.LARGE:
                yield f"network={convolutions.SMALL!r}"
            yield "smaller images"
        yield "a GPU"

    def _counted(self) -> AbstractContextManager[None]:
        """Show progress in the unit of training."""
        if self.model.epochs is None:
            return progress.counted(self.model.steps_, "step")
        return progress.counted(self.model.epochs, "epoch")

    def _end(self, reason: str) -> None:
        """Report that training has ended, and why."""
        which = "second training, with all views: " if self.before else ""
        if reason == INTERRUPTED:  # a warning was logged
            self.context.interrupted = True
            return
        log.info("%s: %s%s", type(self.model).__name__, which, reason)
        progress.ended(f"{which}{reason}")

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
            terms = "  ".join(f"{k} {v:.4g}" for k, v in record["terms"].items())
            hidden = f"hidden error {record['hidden_error']:.4f}"
            self.model.log(f"step {record['step']:5d}  {terms}  {hidden}")
