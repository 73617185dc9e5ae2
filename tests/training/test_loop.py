"""The one loop: every field of a Stage, early stopping, checkpoints, interruptions."""

from __future__ import annotations

import errno
import json
from functools import partial
from itertools import chain, pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from vedute.data.holdout import HoldOut
from vedute.data.views import Views
from vedute.methods.mvp import MVP
from vedute.nn.likelihoods import LIKELIHOODS
from vedute.training import checkpoints, loop
from vedute.training.checkpoints import Checkpoint
from vedute.training.history import kept as kept_record
from vedute.training.history import second, useful_steps
from vedute.training.loop import Loop, Settings
from vedute.training.model import Generative, Model, Stage


def data_of(n=10, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = (torch.randn(n, 2, generator=g), 9 * torch.randn(n, 3, generator=g))
    return Views(x, torch.ones(n, 2).bool(), torch.arange(n), (None, None), ("small", "big"))


class Ramp(Model):
    """Constant gradients: AdamW moves both parameters by exactly the learning rate a step."""

    def __init__(self, plan):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.zeros(())), nn.Parameter(torch.zeros(()))
        self.plan, self.batches = plan, []

    def stages(self, data):
        return self.plan(self, data)

    def loss(self, batch):
        assert self.training
        self.batches.append(batch.index.tolist())
        return {"a": self.a + 0.0, "b": self.b + 0.0}

    def back(self, batch):
        return {"a": -self.a, "b": -self.b}

    def embed(self, batch):
        return batch.x[0]


def run(plan, n=10, **settings):
    """Train a Ramp on n rows in batches of 4: three steps an epoch."""
    model = Ramp(plan)
    torch.manual_seed(0)
    history = Loop(model, data_of(n), Settings(**(dict(batch_size=4, lr=0.1) | settings))).run()
    return model, history


def moved(model):
    return -model.a.item(), -model.b.item()


def one(make):
    """A plan of stages, each made by a function of the model."""
    return lambda model, data: (f(model) for f in make)


@pytest.mark.parametrize(
    ("length", "settings", "steps", "epochs"),
    [
        (dict(steps=5), {}, 5, 2),
        (dict(epochs=2), {}, 6, 2),
        (dict(steps=5, epochs=1), {}, 3, 1),
        (dict(steps=2, epochs=4), {}, 2, 1),
        ({}, dict(steps=7), 7, 3),
        ({}, dict(steps=7, epochs=1), 3, 1),
        (dict(steps=4), dict(epochs=9), 4, 2),
        (dict(steps=0), {}, 0, 0),
        (dict(epochs=0), {}, 0, 0),
    ],
)
def test_length(length, settings, steps, epochs):
    model, history = run(one([lambda m: Stage(m.loss, **length)]), **settings)
    assert len(history) == epochs
    assert len(model.batches) == steps
    assert moved(model) == pytest.approx((0.1 * steps,) * 2)
    if epochs:
        assert (history[-1]["step"], history[-1]["epoch"]) == (steps, epochs)


@pytest.mark.parametrize(
    ("first", "second", "a", "b"),
    [
        ({}, {}, 0.4, 0.4),
        (dict(lr=0.5), {}, 2.0, 2.0),  # None: as it was
        (dict(lr=0.5), dict(lr=0.2), 1.4, 1.4),
        (dict(lr=0.5), dict(fresh=True), 1.2, 1.2),  # a new optimizer, the estimator's rate
        (dict(rates=(("a", 0.3),)), {}, 0.8, 0.4),  # exceptions hold for their stage
        (dict(rates=(("a", 0.3), ("b", 0.0)), lr=0.7), dict(lr=0.2), 1.0, 0.4),
        ({}, dict(rates=(("b", 0.0),), lr=0.0), 0.2, 0.2),
    ],
)
def test_rates(first, second, a, b):
    plan = [lambda m: Stage(m.loss, steps=2, **first), lambda m: Stage(m.loss, steps=2, **second)]
    assert moved(run(one(plan))[0]) == pytest.approx((a, b))


def test_decay_is_by_epoch_and_stays():
    first = dict(epochs=3, decay=0.5, batch_size=0, rates=(("b", 1.0),))
    plan = [lambda m: Stage(m.loss, **first), lambda m: Stage(m.loss, steps=1)]
    a, b = moved(run(one(plan))[0])
    assert a == pytest.approx(0.1 * (1 + 0.5 + 0.25 + 0.125))
    assert b == pytest.approx(1.0 * (1 + 0.5 + 0.25) + 0.1 * 0.125)


@pytest.mark.parametrize("fresh", [True, False])
def test_only_a_fresh_optimizer_forgets_its_moments(fresh):
    plan = [lambda m: Stage(m.loss, steps=20), lambda m: Stage(m.back, steps=1, fresh=fresh)]
    turned = moved(run(one(plan))[0])[0] - 2.0
    assert (turned == pytest.approx(-0.1)) == fresh
    assert (turned > 0) == (not fresh)  # still on its way


@pytest.mark.parametrize("same", [True, False])
def test_the_same_stage_again_goes_on_with_its_optimizer(same):
    def plan(model, data):
        stages = [Stage(model.loss, steps=1, decay=0.5, fresh=True) for _ in range(3)]
        yield from stages[:1] * 3 if same else stages

    model, history = run(plan)
    assert moved(model)[0] == pytest.approx(0.1 * (1 + 0.5 + 0.25) if same else 0.3)
    assert [r["stage"] for r in history] == [0, 1, 2]


@pytest.mark.parametrize("rows", [torch.tensor([7, 2, 5]), torch.arange(10) % 3 == 1])
def test_rows(rows):
    model, _ = run(one([lambda m: Stage(m.loss, epochs=4, rows=rows, batch_size=2)]))
    chosen = rows.tolist() if rows.dtype != torch.bool else rows.nonzero()[:, 0].tolist()
    assert sorted(chain(*model.batches)) == sorted(4 * chosen)


def test_batch_size_zero_is_all_rows_in_order():
    rows = torch.tensor([7, 2, 5])
    plan = [lambda m: Stage(m.loss, epochs=2, batch_size=0),
            lambda m: Stage(m.loss, epochs=1, batch_size=0, rows=rows)]  # fmt: skip
    assert run(one(plan))[0].batches == [list(range(10))] * 2 + [[7, 2, 5]]


@pytest.mark.parametrize(
    ("n", "size", "sizes"),
    [
        (10, 4, [4, 4, 2]),
        (8, 4, [4, 4]),
        (3, 16, [3]),  # B = min(B, rows)
        (1, 16, [1]),
        (34, 16, [16, 16, 2]),
        (33, 16, [16, 16]),  # under B / 8
        (9, 8, [8, 1]),  # not under
    ],
)
def test_an_epoch_is_a_permutation_cut_into_batches(n, size, sizes):
    model, _ = run(one([lambda m: Stage(m.loss, epochs=2)]), n=n, batch_size=size)
    assert [len(b) for b in model.batches] == sizes * 2
    rows = list(chain(*model.batches))
    first, second = rows[: sum(sizes)], rows[sum(sizes) :]
    assert len(set(first)) == len(set(second)) == sum(sizes)
    assert first != second or n == 1


def test_code_between_stages_is_in_eval_mode_without_gradients():
    def plan(model, data):
        for _ in range(2):
            assert not model.training
            assert not torch.is_grad_enabled()
            yield Stage(model.loss, steps=1)
        assert not model.training
        model.b.fill_(5.0)  # after the last yield, too

    model, _ = run(plan)
    assert model.b.item() == 5.0
    assert not model.training


def test_history_has_the_average_of_every_term_over_the_rows():
    def loss(model, batch):
        return {"index": batch.index.float().mean() + 0 * model.a, "one": 1 + 0 * model.b}

    plan = [lambda m: Stage(partial(loss, m), epochs=2), lambda m: Stage(m.loss, steps=1)]
    _, history = run(one(plan))
    terms = {"index": pytest.approx(4.5), "one": pytest.approx(1.0)}
    unseen = {"hidden_error": None, "watched": False}
    assert history[:2] == [
        {"step": 3, "epoch": 1, "stage": 0, "terms": terms, **unseen},
        {"step": 6, "epoch": 2, "stage": 0, "terms": terms, **unseen},
    ]
    assert history[2]["stage"] == 1
    assert set(history[2]["terms"]) == {"a", "b"}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_stops_being_finite_says_where_and_what_to_try(value):
    def loss(model, batch):
        return {"good": model.a + 0.0, "bad": model.b + (value if model.a < -0.25 else 0.0)}

    with pytest.raises(FloatingPointError) as told:
        run(one([lambda m: Stage(partial(loss, m), epochs=5)]))
    for word in (f"term 'bad' became {value} by step 6", "view 'big'", "smaller lr", "clip=1.0"):
        assert word in str(told.value)


# Early stopping.


class Walker(Generative):
    """Its one parameter walks down by lr a step; it tells all views as that number."""

    def __init__(self, plan):
        super().__init__()
        self.w, self.plan = nn.Parameter(torch.zeros(())), plan
        self.register_buffer("closing", torch.zeros(()))

    def stages(self, data):
        yield from self.plan(self)
        self.closing.copy_(self.w)

    def loss(self, batch):
        return {"w": self.w + 0.0}

    def embed(self, batch):
        return batch.x[0]

    def decode(self, batch, draws=0):
        assert not self.training
        return [self.w.expand(max(draws, 1), *x.shape) for x in batch.x]

    def prior(self, n):
        return []


def walk(plan, target, patience=50, hide=True, on_epoch=None, **settings):
    """One step an epoch, 0.01 down; the hidden views are `target`, the error (w - target)^2."""
    data = data_of(4)
    truth = Views(tuple(torch.full_like(x, target) for x in data.x), data.mask, data.index,
                  data.holes, data.names)  # fmt: skip
    hidden = torch.tensor([[True, False]]).expand(4, 2)
    ones = tuple(torch.ones(x.shape[1:]) for x in data.x)
    held = HoldOut(truth.hide(hidden), truth, hidden, ones, ones) if hide else None
    model = Walker(plan)
    s = Settings(lr=0.01, patience=patience, batch_size=4, steps=400, **settings)
    history = Loop(model, data, s, held, [LIKELIHOODS["normal"]] * 2, on_epoch).run()
    return model, history


def test_the_best_weights_come_back():
    model, history = walk(lambda m: [Stage(m.loss, watch=True)], target=-1.0)
    assert history[-1]["step"] == 150  # best at 100, patience 50
    assert model.w.item() == pytest.approx(-1.0, abs=1e-5)
    assert model.closing == model.w  # the code after the stages finds them there
    looks = {r["step"]: r["hidden_error"] for r in history if r["hidden_error"] is not None}
    assert list(looks) == [25, 50, 75, 100, 125, 150]
    assert looks[50] == pytest.approx(0.25, abs=1e-4)


def test_without_hidden_views_or_outside_watched_stages_nothing_stops():
    model, history = walk(lambda m: [Stage(m.loss, watch=True)], target=-1.0, hide=False)
    assert history[-1]["step"] == 400
    assert all(r["hidden_error"] is None for r in history)
    model, history = walk(lambda m: [Stage(m.loss)], target=-1.0)
    assert model.w.item() == pytest.approx(-4.0, abs=1e-4)
    assert sum(r["hidden_error"] is not None for r in history) == 16  # watched, in vain


def test_weights_of_a_warm_up_never_win():
    plan = [dict(steps=50), dict(watch=True)]
    model, history = walk(lambda m: [Stage(m.loss, **p) for p in plan], target=-0.25)
    assert min(history, key=lambda r: r["hidden_error"] or 9.0)["step"] == 25
    assert model.w.item() == pytest.approx(-0.75, abs=1e-4)
    assert history[-1]["step"] == 75 + 50


def test_from_one_watched_stage_to_the_next_it_only_gets_better():
    model, _ = walk(lambda m: [Stage(m.loss, steps=50, watch=True)] * 2, target=-0.5)
    assert model.w.item() == pytest.approx(-0.5, abs=1e-4)
    plan = [dict(watch=True), dict(), dict(watch=True)]  # one between that is not
    model, _ = walk(lambda m: [Stage(m.loss, steps=50, **p) for p in plan], target=-0.5)
    assert model.w.item() < -0.5 - 0.2


def distance(goal):
    return lambda held, values: abs(float(values[0].mean()) - goal)


@pytest.mark.parametrize(
    ("goal", "kept"), [(-2.0, -1.0), (-0.75, -0.75), (-0.4, -0.5)], ids=["last", "best", "before"]
)
def test_a_stage_may_be_watched_by_a_measure_of_its_own(goal, kept):
    plan = [dict(watch=True), dict(watch=True, measure=distance(goal))]
    model, history = walk(
        lambda m: [Stage(m.loss, steps=50, **p) for p in plan], target=-0.5, patience=99
    )
    assert model.w.item() == pytest.approx(kept, abs=1e-4)
    assert model.closing == model.w
    assert kept_record(history)["hidden_error"] == pytest.approx((kept + 0.5) ** 2, abs=1e-4)
    assert useful_steps(history) == pytest.approx(-100 * kept)
    assert second(history) == 0  # nothing was learned again


def test_what_a_measure_found_is_not_compared_with_errors():
    def depth(held, values):  # negative, as a logarithm may be
        return float(values[0].mean())

    plan = [dict(), dict(watch=True, measure=depth), dict(watch=True)]
    model, _ = walk(
        lambda m: [Stage(m.loss, steps=50, **p) for p in plan], target=-1.5, patience=99
    )
    assert model.w.item() == pytest.approx(-1.5, abs=1e-4)


def test_a_stage_with_a_measure_is_not_cut_short_by_patience():
    plan = [dict(watch=True, steps=50), dict(watch=True, steps=90, measure=distance(-0.4))]
    model, history = walk(lambda m: [Stage(m.loss, **p) for p in plan], target=-0.5, patience=30)
    assert history[-1]["step"] == 140
    assert model.w.item() == pytest.approx(-0.5, abs=1e-4)


def test_a_stage_with_a_measure_is_left_out_where_nothing_is_hidden():
    plan = [dict(), dict(watch=True, measure=distance(-9.0)), dict()]
    model, history = walk(
        lambda m: [Stage(m.loss, steps=50, **p) for p in plan], target=-0.5, hide=False
    )
    assert model.w.item() == pytest.approx(-1.0, abs=1e-4)
    assert {r["stage"] for r in history} == {0, 2}


def test_the_end_of_a_stage_is_looked_at():
    model, history = walk(lambda m: [Stage(m.loss, steps=33, watch=True)], target=-1.0)
    assert [r["step"] for r in history if r["hidden_error"] is not None] == [25, 33]
    assert model.w.item() == pytest.approx(-0.33, abs=1e-4)


def test_ctrl_c_keeps_the_best_weights(tmp_path, caplog):
    def stop(record):
        if record["step"] == 130:
            raise KeyboardInterrupt

    plan = [dict(steps=10), dict(watch=True), dict(steps=5, lr=1.0)]
    model, history = walk(
        lambda m: [Stage(m.loss, **p) for p in plan],
        target=-0.85,
        on_epoch=stop,
        checkpoint=Checkpoint(tmp_path, "", minutes=0),
    )
    assert history[-1]["step"] == 130
    assert model.w.item() == pytest.approx(-0.85, abs=1e-4)
    assert model.closing == model.w  # what comes after the stages is done all the same
    assert not model.training
    assert "interrupted at step 130; keeping the best" in caplog.text
    assert (
        checkpoints.read(tmp_path).facts["progress"]["step"] == 129
    )  # to go on from, if one likes


@pytest.mark.parametrize(("goal", "kept"), [(-0.75, -0.75), (-0.4, -0.5)])
def test_ctrl_c_keeps_what_is_best_by_the_measure_of_a_stage(goal, kept):
    def stop(record):
        if record["step"] == 80:
            raise KeyboardInterrupt

    plan = [dict(watch=True), dict(watch=True, measure=distance(goal))]
    model, history = walk(
        lambda m: [Stage(m.loss, steps=50, **p) for p in plan], -0.5, patience=99, on_epoch=stop
    )
    assert model.w.item() == pytest.approx(kept, abs=1e-4)
    assert kept_record(history)["hidden_error"] == pytest.approx((kept + 0.5) ** 2, abs=1e-4)


# Checkpoints.


class Killed(Exception):  # noqa: N818
    pass


class Toy(Generative):
    """A noisy linear autoencoder with every kind of stage."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(5, 2), nn.Linear(2, 5)
        self.register_buffer("centre", torch.zeros(2))

    def stages(self, data):
        yield Stage(self.loss, epochs=2, lr=1e-2, decay=0.9)
        self.centre.copy_(self.embed(data).mean(0) + 0.1 * torch.randn(2))
        rows, rates = data.index < 11, (("decoder", 1e-3),)
        yield Stage(self.error, epochs=2, fresh=True, rates=rates, rows=rows, batch_size=0)
        yield Stage(self.error, steps=3, lr=2e-2)
        last = Stage(self.loss, epochs=3, watch=True, decay=0.8)
        for _ in range(2):
            self.centre.mul_(0.5).add_(0.1 * torch.randn(2))
            yield last
        yield Stage(self.error, epochs=3, lr=4e-3, watch=True, measure=HoldOut.mean_error)
        self.centre.copy_(self.embed(data).mean(0) + torch.randn(2))

    def error(self, batch):
        x = torch.cat(batch.x, 1)
        z = self.encoder(x) + 0.1 * torch.randn(len(x), 2)
        return {"error": (self.decoder(z) - x).square().mean()}

    def loss(self, batch):
        pull = (self.embed(batch) - self.centre).square().mean()
        return self.error(batch) | {"pull": pull}

    def embed(self, batch):
        return self.encoder(torch.cat(batch.x, 1))

    def decode(self, batch, draws=0):
        return list(self.decoder(self.embed(batch))[None].split([2, 3], -1))

    def prior(self, n):
        return []


EPOCHS = 2 + 2 + 1 + 3 + 2 + 3  # the hidden views end the last but one


def toy_run(folder=None, signature="", kill=None):
    """Seeded from the start, as `fit` is; dies in the epoch numbered `kill` of this run."""
    torch.manual_seed(3)
    data, model, count = data_of(14), Toy(), iter(range(1, 99))
    hidden = torch.zeros(14, 2).bool()
    hidden[:5, 0] = True
    ones = tuple(torch.ones(x.shape[1:]) for x in data.x)
    held = HoldOut(data[:5].hide(hidden[:5]), data[:5], hidden[:5], ones, ones)

    def on_epoch(record):
        if next(count) == kill:
            raise Killed

    s = Settings(batch_size=4, lr=1e-2, weight_decay=0.01, clip=1.0, patience=5,
                 checkpoint=folder and Checkpoint(folder, signature, 0))  # fmt: skip
    history = Loop(model, data.hide(hidden), s, held, [LIKELIHOODS["normal"]] * 2, on_epoch).run()
    return {**model.state_dict(), "random": torch.get_rng_state()}, history


@pytest.fixture
def often(monkeypatch):
    """Look at the hidden views after every epoch."""
    monkeypatch.setattr(loop, "CHECK_STEPS", 1)


def assert_equal_bits(found, expected):
    (weights, history), (same_weights, same_history) = found, expected
    assert history == same_history
    assert weights.keys() == same_weights.keys()
    assert all(torch.equal(weights[k], same_weights[k]) for k in weights)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("epoch", range(1, EPOCHS + 1))
def test_resuming_is_bit_equal_wherever_training_died(tmp_path, epoch):
    whole = toy_run()
    assert len(whole[1]) == EPOCHS
    with pytest.raises(Killed):
        toy_run(tmp_path, kill=epoch)
    if epoch > 1:
        assert checkpoints.read(tmp_path).facts["progress"]["epoch"] == epoch - 1
    assert_equal_bits(toy_run(tmp_path), whole)
    assert_equal_bits(toy_run(tmp_path, kill=1), whole)  # done: no epoch is trained again
    assert checkpoints.read(tmp_path).facts["history"] == whole[1]


@pytest.mark.usefixtures("often")
def test_a_run_may_die_many_times(tmp_path):
    whole = toy_run()
    for _ in range(EPOCHS - 1):
        with pytest.raises(Killed):
            toy_run(tmp_path, kill=2)
    assert_equal_bits(toy_run(tmp_path), whole)


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    with pytest.raises(Killed):
        toy_run(tmp_path, "one", kill=3)
    with pytest.raises(ValueError, match="other data or settings; delete it or name another"):
        toy_run(tmp_path, "another")
    toy_run(tmp_path, "one")


def test_checkpoints_are_written_at_their_time(tmp_path, monkeypatch):
    clock = iter(range(0, 600, 20))  # one epoch in 20 seconds, a checkpoint every minute
    monkeypatch.setattr(checkpoints, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    written, save = [], checkpoints.save_file

    def saved(tensors, path, metadata):
        written.append(json.loads(metadata["facts"])["progress"])
        save(tensors, path, metadata=metadata)

    monkeypatch.setattr(checkpoints, "save_file", saved)
    checkpoint = Checkpoint(tmp_path, "", minutes=1, saved_at=0)
    plan = one([lambda m: Stage(m.loss, epochs=10, batch_size=0)])
    run(plan, checkpoint=checkpoint)
    epochs = [progress["epoch"] for progress in written]
    assert 2 <= len(epochs[:-1]) <= 4
    assert all(b - a >= 2 for a, b in pairwise(epochs[:-1]))
    assert [(p["epoch"], p["finished"]) for p in written][-1] == (10, True)  # whatever the time


def test_a_full_disk_ends_no_training(tmp_path, monkeypatch):
    whole = toy_run()

    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoints, "save_file", full)
    with pytest.warns(UserWarning, match=r"no checkpoint .* \(No space left on device\); training"):
        found = toy_run(tmp_path)
    assert_equal_bits(found, whole)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "state.safetensors").write_bytes(b"junk"),
        lambda folder: (folder / "state.safetensors").write_bytes(
            (folder / "state.safetensors").read_bytes()[:-9]
        ),
    ],
)
def test_a_damaged_checkpoint_is_ignored_with_a_sentence(tmp_path, damage):
    whole = toy_run()
    with pytest.raises(Killed):
        toy_run(tmp_path, kill=4)
    damage(tmp_path)
    with pytest.warns(UserWarning, match=r"is damaged \(.*\); training starts over"):
        found = toy_run(tmp_path)
    assert_equal_bits(found, whole)


def test_a_kill_while_a_checkpoint_is_written_leaves_the_one_before(tmp_path, monkeypatch):
    whole, real, count = toy_run(), checkpoints.save_file, iter(range(99))

    def dying(tensors, part, metadata):
        if next(count) == 3:
            part.write_bytes(b"half")
            raise Killed
        real(tensors, part, metadata=metadata)

    monkeypatch.setattr(checkpoints, "save_file", dying)
    with pytest.raises(Killed):
        toy_run(tmp_path)
    assert_equal_bits(toy_run(tmp_path), whole)


def example(seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(90, 2))
    X = [z @ rng.normal(size=(2, w)) + 0.1 * rng.normal(size=(90, w)) for w in (3, 4, 2)]
    for v, x in enumerate(X):
        x[v * 10 : v * 10 + 10] = np.nan
    return X


def mvp(folder=None, **settings):
    small = dict(latent_dim=2, hidden=(8,), map_hidden=(4,), epochs=4, warmup=2, batch_size=32)
    return MVP(**(small | dict(random_state=0, n_clusters=2, device="cpu") | settings),
               checkpoint=folder, checkpoint_minutes=0)  # fmt: skip


def dies_in(model, epoch):
    def stop(record):
        if record["epoch"] == epoch:
            raise Killed

    model.callbacks = [stop]
    return model


@pytest.mark.parametrize("epoch", [2, 3, 4])
def test_mvp_resumes_bit_equal(tmp_path, monkeypatch, epoch):
    X, folder = example(), str(tmp_path / "here")
    whole = mvp().fit(X)
    with pytest.raises(Killed):
        dies_in(mvp(folder), epoch).fit(X)
    for other, data in ((mvp(folder, lr=1e-4), X), (mvp(folder), example(seed=1))):
        with pytest.raises(ValueError, match="other data or settings"):
            other.fit(data)
    again = mvp(folder).fit(X)
    assert_equal_bits(
        (again.model_.state_dict(), again.history_), (whole.model_.state_dict(), whole.history_)
    )
    assert np.array_equal(again.embedding_, whole.embedding_)
    assert np.array_equal(again.labels_, whole.labels_)


def test_an_interrupted_mvp_has_all_its_verbs():
    def stop(record):
        raise KeyboardInterrupt

    model = mvp()
    model.callbacks = [stop]
    model.fit(example())
    assert len(model.history_) == 1
    assert len(model.generate(3)) == 3
    assert not np.isnan(np.hstack(model.impute(example()))).any()
