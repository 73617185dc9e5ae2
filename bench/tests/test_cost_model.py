"""What the cost model counts is what torch counts."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest


@pytest.fixture
def model(monkeypatch):
    return import_module("vedute_bench.speed.cost_model")


@pytest.mark.parametrize(
    ("widths", "batch", "hidden", "latent", "maps"),
    [((5, 7, 4), 20, 6, 3, 5), ((9, 4), 12, 5, 4, 3), ((50, 50, 50), 64, 128, 32, 64)],
)
def test_products_and_parameters_are_those_of_a_step(model, widths, batch, hidden, latent, maps):
    s = model.Sizes(widths, batch, hidden, latent, maps)
    job = model.job(s, view_dropout=0.0)
    assert job.flops() == model.products(s)
    assert sum(p.numel() for p in job.model.parameters()) == model.parameters(s)


def test_views_that_a_step_hides_are_not_encoded(model):
    s = model.Sizes([30] * 4, batch=256)
    less = replace(s, seen=model.kept(4) / 4)
    assert model.job(s).flops() == pytest.approx(model.products(less), rel=0.05)
    assert model.products(less) < 0.9 * model.products(s)
    assert model.kept(1) == pytest.approx(1.0)
    assert model.kept(2, 0.5) == pytest.approx(1.25)


def test_ranks_share_rows_and_send_gradients(model):
    s = model.Sizes([50] * 3)
    assert model.sent(s, 1) == 0
    assert model.sent(s, 2) == 4 * model.parameters(s)
    free = {"message_seconds": 0.0, "message_seconds_per_number": 0.0}
    c = free | {"call_seconds": 0.0, "view_seconds": 0.0, "flops": 1.0, "values": float("inf")}
    assert model.ranks_seconds(s, 2, c) == pytest.approx(model.ranks_seconds(s, 1, c) / 2)
    c["message_seconds_per_number"] = 1.0
    assert model.ranks_seconds(s, 2, c) > model.ranks_seconds(s, 1, c) / 2 + model.parameters(s) - 1


def test_constants_are_found_again(model):
    c = {"call_seconds": 0.01, "view_seconds": 0.002, "flops": 1e11, "values": 2e8}
    times = [model.step_seconds(model._sizes(*size), c) for size in model.MEASURED]
    found = model._fitted(times, c["flops"])
    assert {k: found[k] for k in c} == pytest.approx(c)
