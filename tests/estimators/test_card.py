"""The card of a model says what is so, and nothing of single samples."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import vedute
from vedute import DCCA, BestPair, LowRankFill, MeanFill
from vedute.estimators import card


def frames(n=120):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 2))
    ids = [f"secret-{i}" for i in range(n)]
    blood = pd.DataFrame(z @ rng.normal(size=(2, 4)) + 777.0, ids)
    scan = pd.DataFrame(z @ rng.normal(size=(2, 3)), ids)
    scan.iloc[5:11, 0] = np.nan
    return {"blood": blood[:90], "scan": scan[30:]}


@pytest.fixture(scope="module")
def model():
    return LowRankFill(n_clusters=3, max_rank=2, random_state=7).fit(frames())


def text(model):
    return card.text(model, model.saved().params, "model-0.safetensors")


def test_it_says_what_the_model_was_fitted_on_and_how(model):
    said = text(model)
    for line in (
        "120 samples. 2 views:",
        "| blood | 4 | numbers | 90 of 120 | 0.0 % |",
        "| scan | 3 | numbers | 90 of 120 | 0.0 % |",
        "| blood, scan | 60 |",
        "| blood | 30 |",
        "| `n_clusters` | 3 |",
        "| `max_rank` | 2 |",
        f"Fitted with vedute {vedute.__version__}, seed 7.",
    ):
        assert line in said, said
    assert "scaling" not in said  # the default


def test_its_errors_are_those_of_hidden_views(model):
    at, error = (model.hidden_predictions_[k] for k in ("at", "error"))
    mine = model.hidden_["view"][at] == 1
    line = f"| scan | {mine.sum()} | {error[mine].mean():.3f} |"
    covered = model.hidden_predictions_["covered"][1]
    share = covered[np.abs(model.hidden_predictions_["levels"] - 0.9).argmin()]
    assert line in text(model)
    assert f" | {100 * share:.1f} % |\n" in text(model)


def test_it_names_no_sample_and_no_value(model, tmp_path):
    model.save(tmp_path)
    said = (tmp_path / "model-card.md").read_text(encoding="utf-8")
    assert "secret" not in said
    assert "777" not in said
    (arrays,) = tmp_path.glob("*.safetensors")
    assert f"`{arrays.name}`" in said


def test_a_loaded_model_has_the_same_card_and_needs_none(model, tmp_path):
    model.save(tmp_path / "a")
    (tmp_path / "a" / "model-card.md").write_bytes(b"\xff nonsense")
    with pytest.warns(UserWarning, match="model-card.md is not as it was saved"):
        again = vedute.load(tmp_path / "a")
    assert text(again) == text(model)
    (tmp_path / "a" / "model-card.md").unlink()
    vedute.load(tmp_path / "a").save(tmp_path / "b")
    assert (tmp_path / "b" / "model-card.md").exists()


def test_methods_inside_others_and_those_that_do_not_impute():
    X = {k: f.fillna(0.0).to_numpy()[:60] for k, f in frames().items()}
    said = text(BestPair(DCCA(steps=5), n_clusters=2, random_state=0).fit(X))
    assert "| `method` | DCCA |\n| `method__steps` | 5 |" in said
    assert "This method infers nothing" in said
    assert "interval" not in said


def test_names_are_no_markup():
    X = {"<b>|`a`\n# x": np.random.default_rng(0).normal(size=(30, 2)), "b": np.ones((30, 1))}
    X["b"][::2] = 0.0
    said = text(MeanFill(random_state=0).fit(X))
    assert "| &lt;b&gt;&#124;&#96;a&#96; &#35; x | 2 |" in said


def test_of_many_patterns_the_commonest_are_named():
    rng = np.random.default_rng(0)
    X = list(rng.normal(size=(6, 300, 2)))
    for x in X:
        x[rng.random(300) < 0.3] = np.nan
    seen = ~np.isnan(np.stack(X)[:, :, 0])
    X = [x[seen.any(0)] for x in X]
    known = MeanFill(random_state=0).fit(X).fitted_on_
    assert len(known["patterns"]) == card.NAMED
    counts = list(known["patterns"].values())
    assert counts == sorted(counts, reverse=True)
    assert (
        known["other_patterns"]
        == len(np.unique(seen, axis=1).T) - card.NAMED - (~seen.any(0)).any()
    )
