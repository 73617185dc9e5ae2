"""How long a training takes, by its first steps."""

from vedute.estimators import neural_training


def said(monkeypatch, steps, each, first=0.0):
    """What is said of so many steps of so many seconds; the first takes longer."""
    now, heard = [0.0], []
    monkeypatch.setattr(neural_training, "monotonic", lambda: now[0])
    pace = neural_training.pace(steps, lambda step, left: heard.append((now[0], step, left)))
    for i in range(steps):
        now[0] += each + (first if i == 0 else 0.0)
        next(pace, None)
    return heard


def test_it_is_said_once_after_some_seconds_without_the_first_step(monkeypatch):
    ((when, step, left),) = said(monkeypatch, 300, 2.0, first=30.0)
    assert (when, step, left) == (38.0, 2.0, 2.0 * 296)


def test_one_slow_step_is_enough(monkeypatch):
    ((when, step, left),) = said(monkeypatch, 300, 40.0)
    assert (when, step, left) == (80.0, 40.0, 40.0 * 298)


def test_short_trainings_say_nothing(monkeypatch):
    assert not said(monkeypatch, 300, 0.1)
    assert not said(monkeypatch, 2, 100.0)
