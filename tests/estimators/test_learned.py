"""What notebooks show of estimators: scikit-learn's diagram, and what was learned."""

from __future__ import annotations

import numpy as np
import pytest
from blobs import blobs
from sklearn import config_context

from vedute import DCCA, MVP, RidgeFill, load

BAD = '<script>alert("x")</script>'


@pytest.fixture(scope="module")
def fitted():
    return RidgeFill(n_clusters=3, random_state=0).fit(blobs(60))


def test_what_was_learned_stands_below_the_diagram(fitted):
    before, after = RidgeFill()._repr_html_(), fitted._repr_html_()
    assert "Fitted on" not in before
    diagram, _, learned = after.partition("Fitted on 60 samples with 3 views")
    assert "sk-top-container" in diagram
    for view in fitted.views_:
        assert f">{view.name}<" in learned
        assert f">{round(100 * fitted.r2_[view.name])} %<" in learned
    assert ">numbers<" in learned
    assert f"3 clusters of {', '.join(map(str, np.bincount(fitted.labels_)))} samples" in learned
    assert ("Refitted" in learned) == fitted.learned_again_
    assert "<script" not in learned


def test_notebooks_get_the_same_by_either_way(fitted, tmp_path):
    assert fitted._repr_mimebundle_()["text/html"].endswith("</div>")
    assert "Fitted on" in fitted._repr_mimebundle_()["text/html"]
    with config_context(display="text"):
        assert list(fitted._repr_mimebundle_()) == ["text/plain"]
        assert not hasattr(fitted, "_repr_html_")
    fitted.save(tmp_path / "model")
    assert "Fitted on 60 samples" in load(tmp_path / "model")._repr_html_()


def test_names_are_text():
    X = {BAD: np.random.default_rng(0).normal(size=(30, 2)), "b": np.ones((30, 2))}
    model = RidgeFill(kinds={BAD: "numbers"}, random_state=0).fit(X)
    assert BAD not in model._repr_html_()
    assert "&lt;script&gt;alert" in model._repr_html_().partition("Fitted on")[2]


def test_methods_that_do_not_impute_have_no_share():
    data = blobs(60, share=0).pick(0, 1)
    settings = dict(latent_dim=2, hidden=(8,), steps=5, device="cpu")
    shown = DCCA(**settings).fit(data)._repr_html_()
    assert "Fitted on 60 samples" in shown
    assert "explained" not in shown
    assert "Fitted on" not in MVP()._repr_html_()
