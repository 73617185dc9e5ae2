"""What is captured on a GPU may not look at values: shapes that depend on data, or numbers that
Python waits for, end a capture. Fake tensors have shapes and no values: they show it on a CPU."""

from __future__ import annotations

import traceback
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import METHODS, PAIRED, small
from torch._subclasses.fake_tensor import FakeTensorMode

from vedute import Views
from vedute.methods import mvae
from vedute.training import loop
from vedute.training.model import Stage
from vedute.training.step import Step

NETWORKS = [name for name, cls in METHODS.items() if hasattr(cls, "build")]


def blind(step: Step, rows: torch.Tensor) -> None:
    """Loss and gradients of a step whose batch has shapes and no values."""
    with pytest.MonkeyPatch.context() as patch, FakeTensorMode(allow_non_fake_inputs=True) as mode:
        patch.setattr(Views, "present", lambda self: None)  # as on a GPU
        batch = step.data._map(mode.from_tensor)[mode.from_tensor(rows)].floating()
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


def views(name):
    """Incomplete arrays with a hole, two where a method takes no more."""
    g = torch.Generator().manual_seed(0)
    X = [torch.randn(60, w, generator=g) for w in (4, 3, 5)][: 2 if name in PAIRED else 3]
    X[0][5, 1] = torch.nan
    mask = torch.rand(60, len(X), generator=g) < 0.7
    mask[torch.arange(60), torch.arange(60) % len(X)] = True
    return Views.of([x.numpy() for x in X], mask=mask.numpy())


def losses_captured(name, monkeypatch):
    monkeypatch.setattr(loop, "Step", BlindFirst)
    monkeypatch.setattr(BlindFirst, "seen", ())
    small(METHODS[name], n_clusters=3).fit(views(name))
    return set(BlindFirst.seen)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_loss_of_a_captured_stage_needs_no_values(name, monkeypatch):
    losses_captured(name, monkeypatch)


def test_every_stage_is_looked_at(monkeypatch):
    found = losses_captured("mvp", monkeypatch)
    assert found == {"warmup_loss", "loss", "cooldown_loss"}


def by_index(batch):
    return batch.x[0][batch.mask[:, 0]].mean()


def by_item(batch):
    return batch.x[0].sum() / batch.mask.sum().item()


def by_nonzero(batch):
    return batch.x[0][batch.mask[:, 0].nonzero()[:, 0]].mean()


def by_condition(batch):
    return batch.x[0].mean() if batch.mask.all() else batch.x[0].sum()


def by_numpy(batch):
    return batch.x[0].mean() * float(batch.mask.cpu().numpy().mean())


@pytest.mark.parametrize(
    ("wrong", "operation"),
    [
        (by_index, "nonzero"),
        (by_nonzero, "nonzero"),
        (by_item, "_local_scalar_dense"),
        (by_condition, "_local_scalar_dense"),
        (by_numpy, "numpy"),
    ],
)
def test_a_loss_that_looks_at_values_is_named(wrong, operation, monkeypatch):
    right = mvae.MVAEModel.loss

    def loss(self, batch):
        return right(self, batch) | {"wrong": wrong(batch)}

    monkeypatch.setattr(mvae.MVAEModel, "loss", loss)
    sentence = rf"MVAEModel\.loss cannot be captured on a GPU: \S*{operation}.* in test_capture.py:"
    with pytest.raises(AssertionError, match=sentence):
        losses_captured("mvae", monkeypatch)


def test_a_stage_that_is_not_captured_may_look_at_values(monkeypatch):
    right = mvae.MVAEModel.stages

    def loss(self, batch):
        return {"all": sum(p.sum() for p in self.parameters()) * by_index(batch)}

    def stages(self, data):
        for stage in right(self, data):
            yield replace(stage, capture=False)

    monkeypatch.setattr(mvae.MVAEModel, "loss", loss)
    monkeypatch.setattr(mvae.MVAEModel, "stages", stages)
    assert losses_captured("mvae", monkeypatch) == set()
