"""What is captured on a GPU may not look at values: shapes that depend on data, or numbers that
Python waits for, end a capture. Fake tensors have shapes and no values: they show it on a CPU."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from vedute import Views
from vedute.training import loop
from vedute.training.model import Stage
from vedute.training.step import Step


def blind(step: Step, rows: torch.Tensor) -> None:
    """Loss and gradients of a step whose batch has shapes and no values."""
    with pytest.MonkeyPatch.context() as patch, FakeTensorMode(allow_non_fake_inputs=True) as mode:
        patch.setattr(Views, "present", lambda self: None)  # as on a GPU
        data = step.data._map(lambda t: None if t is None else mode.from_tensor(t))
        batch = data[mode.from_tensor(rows)].floating()
        total = sum(step.stage.loss(batch).values())
        torch.autograd.grad(total, [*step.model.parameters()], allow_unused=True)


def complaint(error: Exception, stage: Stage) -> str:
    """What to mend, and where."""
    frames = traceback.extract_tb(error.__traceback__)
    where = [f for f in frames if "site-packages" not in f.filename][-1]
    operation = str(error.func).split(".")[1] if hasattr(error, "func") else str(error)
    return (
        f"{type(stage.loss.__self__).__name__}.{stage.loss.__name__} cannot be captured on a GPU: "
        f"{operation} in {Path(where.filename).name}:{where.lineno} `{where.line}` needs values; "
        "use masks of fixed shape (torch.where), or say Stage(..., capture=False)"
    )


class BlindFirst(Step):
    """The step of every captured stage is taken without values before it is taken with them."""

    seen: tuple[str, ...] = ()

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.blind = self.stage.capture

    def __call__(self, rows):
        if self.blind:
            try:
                blind(self, rows)
            except RuntimeError as error:
                raise AssertionError(complaint(error, self.stage)) from error
            BlindFirst.seen += (self.stage.loss.__name__,)
            self.blind = False
        super().__call__(rows)


def losses_captured(model, X, monkeypatch):
    """Fit; the names of the losses that were tried without values. Refuses those that need some."""
    monkeypatch.setattr(loop, "Step", BlindFirst)
    monkeypatch.setattr(BlindFirst, "seen", ())
    model.fit(X)
    return set(BlindFirst.seen)
