"""Text of truth values in frames: yes and no come back as they are written."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from vedute import LowRankFill, Views

N = 24


def frames(*words):
    f = pd.DataFrame({"a": np.arange(N) * 0.5})
    f["q"] = pd.Series([words[i % len(words)] for i in range(N)], dtype=object)
    f.loc[5, "q"] = None
    return {"f": f, "g": pd.DataFrame({"b": np.sin(np.arange(N))})}


@pytest.mark.parametrize("words", [("Yes", "No"), ("y", "n"), ("TRUE", "FALSE"), ("YES", "no")])
@pytest.mark.parametrize("dtype", ["object", "string"])
def test_truth_values_in_words(words, dtype):
    X = frames(*words)
    X["f"]["q"] = X["f"]["q"].astype(dtype)
    model = LowRankFill(random_state=0).fit(X)
    new = model.impute(X)["f"]["q"]
    assert new.dtype == X["f"]["q"].dtype
    seen = X["f"]["q"].notna()
    assert new[seen].equals(X["f"]["q"][seen])
    assert new[5].lower() in {word.lower() for word in words}


@pytest.mark.parametrize(
    "words", [("male", "female"), ("yes", "maybe"), ("t", "f"), ("ja", "nein")]
)
def test_other_words_are_no_truth_values(words):
    with pytest.raises(ValueError, match="which is not a number"):
        Views.of(frames(*words))
