"""Which views are ever seen together."""

import numpy as np

from vedute.data import missing


def test_counts_components_and_one_sentence():
    mask = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]], bool)
    both = [[2, 2, 0, 0], [2, 3, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    assert missing.pair_counts(mask).tolist() == both
    parts = missing.components(mask, "abcd")
    assert parts == [["a", "b", "c"], ["d"]]
    assert "(a, b, c | d): fit each by itself" in missing.components_warning(parts)
    assert missing.components_warning(missing.components(mask[:3, :3], "abc")) is None
