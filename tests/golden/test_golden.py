"""The comparison behind `make golden`: what counts as a difference, and how large it is."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import golden

X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("other", "size"),
    [
        (X.copy(), 0.0),
        (X + 0.5 * X.std(), 0.5),
        (X.T, np.inf),
        (X.astype(str), np.inf),
        (np.where(X == 2, np.nan, X), np.inf),
    ],
)
def test_a_difference_is_in_standard_deviations(other, size):
    assert golden.difference(other, X) == pytest.approx(size)


def test_the_largest_difference_of_an_answer_counts():
    ours = {"case|answer|0": X, "case|answer|1": X + X.std(), "case|new": X}
    theirs = {"case|answer|0": X, "case|answer|1": X}
    assert golden.differences(ours, theirs) == {
        "case|answer": pytest.approx(1.0),
        "case|new": np.inf,
    }


def test_cases_that_one_tree_alone_has_are_named(capsys):
    ours = {"case|answer|0": X, "new|answer|0": X}
    theirs = {"case|answer|0": X, "case|other|0": X, "old|answer|0": X}
    here, there = golden.compared(ours, theirs)
    assert [*here] == ["case|answer|0"]
    assert [*there] == ["case|answer|0", "case|other|0"]  # a difference
    said = "new: in this tree alone, not compared\nold: in the reference alone, not compared\n"
    assert capsys.readouterr().out == said


def test_a_commit_that_is_not_there_cannot_be_compared_with():
    run = subprocess.run(
        [sys.executable, golden.__file__, "no-such-commit"], capture_output=True, text=True
    )
    assert run.returncode == 1
    assert "nothing to compare with" in run.stderr
