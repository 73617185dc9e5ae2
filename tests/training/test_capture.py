"""What is captured on a GPU looks at no values, whatever the method; and who does is named."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from capture import losses_captured
from every_method import METHODS, PAIRED, small

from vedute import Views
from vedute.methods.deep import mvae

NETWORKS = [name for name, cls in METHODS.items() if hasattr(cls, "build")]


def views(name):
    """Incomplete arrays with a hole, two where a method takes no more."""
    g = torch.Generator().manual_seed(0)
    X = [torch.randn(60, w, generator=g) for w in (4, 3, 5)][: 2 if name in PAIRED else 3]
    X[0][5, 1] = torch.nan
    mask = torch.rand(60, len(X), generator=g) < 0.7
    mask[torch.arange(60), torch.arange(60) % len(X)] = True
    return Views.of([x.numpy() for x in X], mask=mask.numpy())


def captured(name, monkeypatch):
    return losses_captured(small(METHODS[name], n_clusters=3), views(name), monkeypatch)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_loss_of_a_captured_stage_needs_no_values(name, monkeypatch):
    captured(name, monkeypatch)


def test_every_stage_is_looked_at(monkeypatch):
    found = captured("mvp", monkeypatch)
    assert found == {"warmup_loss", "loss", "cooldown_loss"}


@pytest.mark.parametrize("name", ["mvae", "mvtcae"])
def test_hidden_views_and_the_cool_down_need_no_values(name, monkeypatch):
    settings = dict(dropout=None, balance=None, cooldown=3, view_dropout=0.4)
    model = small(METHODS[name], n_clusters=3, **settings)
    assert losses_captured(model, views(name), monkeypatch) == {"loss", "cooldown_loss"}


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
        captured("mvae", monkeypatch)


def test_a_stage_that_is_not_captured_may_look_at_values(monkeypatch):
    right = mvae.MVAEModel.stages

    def loss(self, batch):
        return {"all": sum(p.sum() for p in self.parameters()) * by_index(batch)}

    def stages(self, data):
        for stage in right(self, data):
            yield replace(stage, capture=False)

    monkeypatch.setattr(mvae.MVAEModel, "loss", loss)
    monkeypatch.setattr(mvae.MVAEModel, "stages", stages)
    assert captured("mvae", monkeypatch) == set()
