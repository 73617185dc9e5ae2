"""Which views are ever seen together."""

import numpy as np

from vedute.data import together


def test_counts_components_and_one_sentence():
    mask = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]], bool)
    both = [[2, 2, 0, 0], [2, 3, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    assert together.counts(mask).tolist() == both
    parts = together.components(mask, "abcd")
    assert parts == [["a", "b", "c"], ["d"]]
    assert "(a, b, c | d): fit each by itself" in together.warning(parts)
    assert together.warning(together.components(mask[:3, :3], "abc")) is None
