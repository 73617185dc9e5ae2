"""Parts of a batch: their losses and gradients, weighted by their rows, are those of the whole."""

import numpy as np
import pytest
import torch
from every_method import METHODS, PAIRED, small

from vedute import Views
from vedute.estimators.neural import models
from vedute.nn import shards
from vedute.nn.likelihoods import LIKELIHOODS
from vedute.training.loop import Loop, Settings
from vedute.training.step import Step

NETWORKS = {name: cls for name, cls in METHODS.items() if hasattr(cls, "build")}
SHARED = [name for name, cls in NETWORKS.items() if all(m.adds_over_rows for m in models(cls))]
DRAWING = {  # settings that draw noise which the defaults do not
    "mvp": [dict(variant="images", dropout=0.5), dict(variant="paper", view_dropout=0.3)],
    "mvae": [dict(subsample="unimodal+k", warmup=4, dropout=0.3)],
    "mmvae": [dict(objective="dreg", samples=2), dict(objective="moe_elbo")],
    "mmvaeplus": [dict(samples=2, dropout=0.2)],
    "mmjsd": [dict(prior_in_mixture=True)],
}
CASES = [(name, settings) for name in SHARED for settings in ({}, *DRAWING.get(name, []))]


def views(shapes=((4,), (3,), (5,))):
    """90 samples: batches of 32, 32 and 26; a third of the views is missing, and an entry."""
    g = torch.Generator().manual_seed(0)
    X = [torch.randn(90, *shape, generator=g) for shape in shapes]
    X[0][5, 1] = torch.nan
    mask = torch.rand(90, len(X), generator=g) < 0.7
    mask[torch.arange(90), torch.arange(90) % len(X)] = True
    return Views.of([x.numpy() for x in X], mask=mask.numpy())


def gradients(step, terms, share=1.0):
    step.optimizer.zero_grad()
    (share * torch.stack(list(terms.values())).sum()).backward()
    found = [p.grad for p in step.model.parameters() if p.grad is not None]
    return torch.cat([g.flatten() for g in found])


def compared(step, rows, cuts):
    """The loss of a batch, and of its parts between these rows, from the same random numbers."""
    start = torch.get_rng_state()
    whole = step.stage.loss(step.data[rows].floating())
    slope, after = gradients(step, whole), torch.get_rng_state()
    total, sums = torch.zeros_like(slope), dict.fromkeys(whole, 0.0)
    for a, b in zip((0, *cuts), (*cuts, len(rows)), strict=True):
        torch.set_rng_state(start)
        with shards.of_batch(slice(a, b), step.data.mask[rows]):
            terms = step.stage.loss(step.data[rows[a:b]].floating())
        total += gradients(step, terms, (b - a) / len(rows))
        sums = {k: v + float(terms[k].detach()) * (b - a) / len(rows) for k, v in sums.items()}
        assert torch.equal(torch.get_rng_state(), after)
    assert sums == pytest.approx(
        {k: float(v.detach()) for k, v in whole.items()}, rel=1e-5, abs=1e-6
    )
    torch.testing.assert_close(total, slope, rtol=1e-4, atol=1e-5 * float(slope.abs().max()))
    torch.set_rng_state(start)


def watch(monkeypatch):
    """Compare in training, once for every loss and size of a batch; a set of these."""
    real, seen = Step._run, set()

    def run(self, rows):
        case = self.stage.loss.__name__, len(rows)
        if case not in seen:
            seen.add(case)
            compared(self, rows, (1, len(rows) // 2))
        real(self, rows)

    monkeypatch.setattr(Step, "_run", run)
    return seen


def learn(name, data, **settings):
    """Train a small model, and do nothing else."""
    hp, likelihoods = small(METHODS[name], **settings), [LIKELIHOODS["normal"]] * len(data.x)
    hp = hp.settled(data.shapes, hp.steps, len(data))
    torch.manual_seed(0)
    model = hp.build(data.shapes, likelihoods, data.names, hp.steps)
    Loop(model, data, Settings(steps=hp.steps, batch_size=hp.batch_size, lr=hp.lr)).run()


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_parts_of_a_batch_have_the_loss_and_the_gradients_of_the_whole(name, settings, monkeypatch):
    seen = watch(monkeypatch)
    learn(name, views(), n_clusters=3, **settings)
    assert {size for _, size in seen} >= {32, 26}


def test_images_and_complete_views_too(monkeypatch):
    watch(monkeypatch)
    rng = np.random.default_rng(0)
    X = [rng.integers(256, size=(40, 1, 8, 8), dtype=np.uint8), rng.normal(size=(40, 3))]
    learn("mvp", Views.of(X), dropout=0.5, steps=3)


def test_who_may_share_a_batch():
    coupled = {"completer", "cpspan", "dcca", "dccae", "dsimvc", "icmvc"}
    assert set(NETWORKS) - set(SHARED) == coupled
    assert {*PAIRED} <= coupled


def test_noise_lies_in_memory_as_that_of_the_whole():
    turned = torch.zeros(3, 4, 6).permute(2, 0, 1)
    torch.manual_seed(0)
    whole = torch.randn_like(turned)
    for a, b in ((0, 2), (2, 6)):
        torch.manual_seed(0)
        with shards.of_batch(slice(a, b), torch.ones(6, 1, dtype=torch.bool)):
            assert torch.equal(shards.draw(turned[a:b], torch.Tensor.normal_), whole[a:b])
