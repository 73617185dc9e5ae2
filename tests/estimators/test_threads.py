"""Threads of one process: a model is used, and another is learned, as if each were alone."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from every_method import small

from vedute import MVP, MMVAEPlus
from vedute.nn import noise


def views(n=60):
    """Positive values, whose mean is that of draws, beside numbers, flags and categories."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 2))
    signal = [z @ rng.normal(size=(2, 6)) for _ in range(3)]
    X = [np.exp(signal[0]), signal[1], 1.0 * (signal[2] > 0), np.eye(3)[rng.integers(3, size=n)]]
    return [np.where(np.arange(n)[:, None] % 4 == v, np.nan, x) for v, x in enumerate(X)]


def answers(model):
    X = views()
    each = [*model.impute(X), *model.sample_imputations(X, 2)[1], *model.generate(5).values()]
    each += [end for ends in model.impute(X, interval=0.9) for end in ends]
    return [np.asarray(a).tobytes() for a in each]


@pytest.mark.parametrize("cls", [MVP, MMVAEPlus])
def test_a_model_answers_the_same_beside_another_fit(cls):
    model = small(cls).fit(views())
    alone, fit_alone = answers(model), answers(small(cls, random_state=1).fit(views()))
    with ThreadPoolExecutor(4) as threads:
        other = threads.submit(lambda: small(cls, random_state=1).fit(views()))
        found = list(threads.map(lambda _: answers(model), range(9)))
    assert found == [alone] * 9
    assert answers(other.result()) == fit_alone


def test_threads_that_start_during_a_fit_compute_with_as_many_threads_as_before():
    numbers = []

    def start(_):
        new = threading.Thread(target=lambda: numbers.append(torch.get_num_threads()))
        new.start()
        new.join()

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        small(MVP, callbacks=[start]).fit(views())
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(numbers) == {2}


def test_global_generators_are_lent_to_one_thread_at_a_time():
    torch.manual_seed(0)
    before, inside = torch.get_rng_state(), threading.Event()

    def draw():
        inside.set()
        with noise.alone():
            torch.manual_seed(1)
            return torch.rand(3)

    with ThreadPoolExecutor(1) as threads, noise.alone():
        other = threads.submit(draw)
        inside.wait()
        torch.manual_seed(1)
        mine = torch.rand(3)
        assert not other.done()
        with noise.alone():  # and again
            torch.rand(1)
    assert torch.equal(other.result(), mine)
    assert torch.equal(torch.get_rng_state(), before)


def test_draws_of_one_seed_are_those_of_a_global_generator_with_it():
    torch.manual_seed(3)
    wanted, state = torch.randn(7, 5), torch.get_rng_state()
    with noise.seeded(3):
        with noise.seeded(4):
            noise.seed()
        assert torch.equal(noise.like(torch.empty(7, 5)), wanted)
    assert torch.equal(torch.get_rng_state(), state)
    own = torch.Generator().manual_seed(3)
    with noise.WeightsFrom(own):
        weights = torch.nn.Linear(4, 3).weight
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(3)
    assert torch.equal(torch.nn.Linear(4, 3).weight, weights)
