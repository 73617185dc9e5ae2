"""How long a training takes, by its first steps."""

import logging

import numpy as np
import pytest
from every_method import small

from vedute import MVP
from vedute.estimators import neural_training


@pytest.fixture
def said(monkeypatch, caplog):
    """What is said of so many steps of so many seconds, and when; the first takes longer."""

    def of(steps, each, first=0.0):
        now = [first]
        caplog.clear()
        caplog.set_level(logging.INFO, "vedute")

        def clock():  # asked after every step, until the pace is known
            now[0] += each
            return now[0]

        monkeypatch.setattr(neural_training, "monotonic", clock)
        X = list(np.random.default_rng(0).normal(size=(2, 40, 3)))
        small(MVP, steps=steps, early_stopping=False, verbose=True).fit(X)
        lines = [r.getMessage() for r in caplog.records if "up to" in r.getMessage()]
        return [line.partition(";")[0] for line in lines], now[0]

    return of


def test_it_is_said_once_after_some_seconds_without_the_first_step(said):
    assert said(300, 2.0, first=30.0) == (["MVP: up to 10 min for 300 steps of 2 s"], 38.0)


def test_one_slow_step_is_enough(said):
    assert said(300, 40.0) == (["MVP: up to 3.3 h for 300 steps of 40 s"], 80.0)


def test_short_trainings_say_nothing(said):
    assert not said(300, 0.1)[0]
    assert not said(2, 100.0)[0]
