"""Regularization of MVP and the VAEs: dropout and shares of views that depend on the data, a
cool-down at the end, and views that are hidden and predicted."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from blobs import blobs
from building import model_of
from every_method import METHODS, small
from oracles import vaes
from scipy.linalg import hadamard
from torch import nn

from vedute.data.views import Views
from vedute.estimators.settings import declared
from vedute.methods.deep.shared.vae import VAEEstimator
from vedute.methods.mvp import MVPModel
from vedute.nn import shards

VAES = {name: cls for name, cls in METHODS.items() if issubclass(cls, VAEEstimator)}
TRIMMED = [*VAES, "mvp"]
WAYS = [(name, {}) for name in VAES] + [("mmvaeplus", dict(trunks=2))]
every_method = pytest.mark.parametrize("name", TRIMMED)
every_vae = pytest.mark.parametrize(("name", "settings"), WAYS, ids=str)


def data(n: int) -> Views:
    """One column four times, and four columns that are orthogonal: 1 and 4 dimensions."""
    H = torch.tensor(hadamard(8)).float()[:, 1:].repeat(-(-n // 8), 1)[:n]
    x = (H[:, :1].repeat(1, 4), H[:, 1:5])
    return Views(x, torch.ones(n, 2).bool(), torch.arange(n), (None, None), ("a", "b"))


def model(name, rows=None, **settings):
    hp, shapes = small(METHODS[name], **settings), [(4,), (4,)]
    torch.manual_seed(0)
    return model_of(hp.settled(shapes, hp.steps, rows), shapes)


def started(model, n):
    """The stages of a model that has seen the data, and the dropouts it trains with."""
    with torch.no_grad():
        stages = list(model.stages(data(n)))
    return stages, {m.p for m in model.modules() if isinstance(m, nn.Dropout)}


def test_there_are_six_vaes():
    assert sorted(VAES) == ["mmjsd", "mmvae", "mmvaeplus", "mopoe", "mvae", "mvtcae"]
    hiding = [name for name in TRIMMED if "view_dropout" in declared(METHODS[name])]
    assert hiding == ["mvae", "mvtcae", "mvp"]


# Dropout.


@every_method
@pytest.mark.parametrize(("n", "share"), [(992, 0.4), (1000, 0.2)])
def test_dropout_goes_by_the_number_of_samples(name, n, share):
    assert started(model(name, n, dropout=None), n)[1] == {share}
    assert started(model(name, n, dropout=0.1), n)[1] == {0.1}
    assert started(model(name, n, dropout=0.0), n)[1] == set()


def test_both_trunks_of_an_encoder_have_it():
    both = model("mmvaeplus", 40, dropout=None, trunks=2)
    started(both, 40)
    found = [m.p for m in both.own_encoders.modules() if isinstance(m, nn.Dropout)]
    assert found == [0.4] * 2


# The balance of views.


@every_method
@pytest.mark.parametrize(
    ("balance", "n", "power"),
    [(0.0, 40, 0.0), (1.0, 40, 1.0), (None, 992, 0.5), (None, 1000, 0.2)],
)
def test_views_weigh_their_dimensions_to_a_power(name, balance, n, power):
    found = model(name, n, balance=balance)
    started(found, n)
    rich = torch.tensor([1.0, 4.0]) ** power
    torch.testing.assert_close(found.share, rich / rich.mean())


@every_vae
def test_the_share_of_a_view_multiplies_its_error(name, settings):
    plain, other = model(name, **settings), model(name, **settings)
    other.share.copy_(torch.tensor([0.4, 1.6]))
    batch, z = data(8), torch.randn(2, 8, 1, plain.latent_dim)
    torch.testing.assert_close(other.errors(batch, z), plain.errors(batch, z) * other.share)


# The cool-down.


@pytest.mark.parametrize(
    ("settings", "lengths"),
    [
        (dict(steps=100, cooldown=0), [(100, None)]),
        (dict(steps=100, cooldown=5), [(95, None), (5, None)]),
        (dict(steps=100, cooldown=60), [(75, None), (25, None)]),  # a quarter at most
        (dict(epochs=9, cooldown=1), [(None, 8), (None, 1)]),
        (dict(steps=3, cooldown=2), [(3, None)]),
    ],
)
@pytest.mark.parametrize("name", VAES)
def test_the_training_ends_at_a_tenth_of_the_rate(name, settings, lengths):
    found = model(name, **settings | (dict(warmup=0) if name == "mvae" else {}))
    stages, _ = started(found, 40)
    assert [(s.steps, s.epochs) for s in stages] == lengths
    assert [s.lr for s in stages] == [None, found.hp.lr / 10][: len(stages)]
    assert all(s.watch for s in stages)


def test_the_growth_of_beta_comes_before_the_cool_down():
    found = model("mvae", steps=20, warmup=30, cooldown=5)
    stages, _ = started(found, 40)
    assert [(s.steps, s.watch, s.lr) for s in stages[:-1]] == [(1, False, None)] * 15
    assert (stages[-1].steps, stages[-1].watch, stages[-1].lr) == (5, True, found.hp.lr / 10)
    assert found.grown == 1


@every_vae
def test_nothing_is_dropped_in_the_cool_down(name, settings):
    found, batch = model(name, dropout=0.5, **settings), data(40)

    def terms(loss):
        torch.manual_seed(1)
        return loss(batch)

    expected = terms(found.eval().loss)
    found.train()
    assert terms(found.loss) != expected
    assert terms(found.cooldown_loss) == expected
    found.train()
    assert terms(found.loss) != expected  # it drops again where training goes on


@every_method
def test_early_stopping_watches_the_cool_down(name):
    settings = dict(steps=40, cooldown=10, warmup=4, dropout=0.3, n_clusters=None)
    known = {k: v for k, v in settings.items() if k in declared(METHODS[name])}
    fitted = small(METHODS[name], **known).fit([x.numpy() for x in data(1000).x])
    last = fitted.history_[-1]
    assert (last["step"], last["watched"]) == (40, True)
    assert next(r["step"] for r in fitted.history_ if r["stage"] == last["stage"]) > 30


# Hidden views.


@pytest.mark.parametrize("name", ["mvae", "mvtcae"])
def test_a_hidden_view_is_predicted_and_never_seen(name, monkeypatch):
    """The decoder of a view that is hidden everywhere learns, its encoder does not."""
    found, batch = vaes.build(METHODS[name], 2, view_dropout=0.5), vaes.complete(2)
    hidden = torch.tensor([[False, True]]).expand_as(batch.mask)
    monkeypatch.setattr(shards, "hide", lambda batch, share: batch.hide(hidden))
    slopes = vaes.gradients(found, found.loss(batch))
    still = {tuple(k.split(".")[:2]) for k, g in slopes.items() if (g == 0).all()}
    assert still == {("encoders", "1")}


def test_without_view_dropout_a_batch_stays_as_it_is():
    batch = vaes.batch_of(3)
    assert shards.hide(batch, 0.0) is batch
    torch.manual_seed(0)
    kept = shards.hide(batch, 0.9)
    assert kept.mask.any(1).all()
    assert kept.mask.sum() < batch.mask.sum()
    assert not (kept.mask & ~batch.mask).any()


@every_method
def test_going_on_is_half_training_and_half_cool_down(name):
    one = model(name)
    one.length = 7
    stages = list(one.stages_again(data(8)))
    assert [s.steps for s in stages] == [4, 3]
    assert [s.lr for s in stages] == [one.hp.lr, one.hp.lr / 10]


def test_a_second_learning_goes_on_from_the_first(monkeypatch):
    cls, ends, begins = METHODS["mvp"], [], []
    finish, again = MVPModel.finish, MVPModel.stages_again

    def finished(self, data):
        finish(self, data)
        ends.append(deepcopy(self.state_dict()))

    def begun(self, data):
        begins.append(deepcopy(self.state_dict()))
        return again(self, data)

    monkeypatch.setattr(MVPModel, "finish", finished)
    monkeypatch.setattr(MVPModel, "stages_again", begun)
    assert small(cls, steps=6, again=2).fit(blobs(60)).steps_ == 2
    assert all(torch.equal(ends[0][k], begins[0][k]) for k in begins[0])
    assert small(cls, again=None).fit(blobs(60)).learned_again_
    assert len(begins) == 1  # anew


def test_steps_and_batches_by_the_number_of_rows():
    MVP = METHODS["mvp"]
    assert MVP().amounts([(4,)], 999) == (240, 128)
    assert MVP().amounts([(4,)], 1000) == (500, 256)
    assert MVP(steps=7, batch_size=3).amounts([(4,)], 999) == (7, 3)
