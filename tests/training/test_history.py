"""Which record of a training has the weights that were kept, and what led to them."""

from __future__ import annotations

import pytest

from vedute.training.history import continued, kept, second, useful_steps


@pytest.mark.parametrize(
    ("errors", "watched", "step"),
    [
        ([0.1, 0.9, 0.5, 0.6], [0, 1, 1, 1], 3),  # a warm-up's weights are never kept
        ([0.1, 0.9, 0.5, 0.6], [1, 1, 1, 1], 1),  # warmup=0: the first stage is watched
        ([0.9, 0.5, None, 0.6], [1, 1, 0, 1], 2),  # errors are not measured in every epoch
        ([0.5, 0.5, 0.7], [1, 1, 1], 1),  # of equals the first
        ([0.9, 0.1, 0.7, 0.8], [0, 1, 1, 0], 4),  # a last stage without early stopping
        ([0.1, 0.9, 0.7, 0.8], [1, 0, 1, 1], 3),  # what such a stage replaced is lost
        ([0.9, 0.1, None, None], [1, 1, 0, 0], 2),  # all rows learned again, for so many steps
        ([None, None], [0, 0], 2),  # no view was hidden
    ],
)
def test_the_record_whose_weights_were_kept(errors, watched, step):
    both = enumerate(zip(errors, watched, strict=True), start=1)
    history = [{"step": i, "hidden_error": e, "watched": bool(w)} for i, (e, w) in both]
    assert kept(history)["step"] == step


@pytest.mark.parametrize(
    ("better", "step"), [([True, True], 4), ([True, False], 3), ([False, False], 2)]
)
def test_a_stage_with_a_measure_of_its_own_is_neither_a_second_training_nor_kept_as_a_whole(
    better, step
):
    plain = {"hidden_error": 0.5, "watched": True, "stage": 0}
    judged = {"hidden_error": 0.7, "watched": False, "stage": 1}
    history = [{"step": i, **plain} for i in (1, 2)]
    history[0]["hidden_error"] = 0.6
    history += [{"step": i, **judged, "better": b} for i, b in enumerate(better, start=3)]
    assert kept(history)["step"] == useful_steps(history) == step
    assert second(history) == 0


def test_a_training_that_was_interrupted_in_a_new_stage_did_not_learn_again():
    first = [
        {"step": 1, "epoch": 1, "stage": 0, "hidden_error": 0.5, "watched": True},
        {"step": 2, "epoch": 2, "stage": 1, "hidden_error": None, "watched": False},
    ]
    first[-1]["ended"] = "interrupted"
    assert second(first) == 0
    first[0]["ended"] = "done"
    again = [{"step": 1, "epoch": 1, "stage": 0, "hidden_error": None, "watched": False}]
    again[0]["ended"] = "done"
    assert second(continued(first[:1], again)) == 1
