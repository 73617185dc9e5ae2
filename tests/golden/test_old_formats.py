"""Models and runs that the first release wrote are still read, and say what they said then."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from shell import done

import vedute
from vedute.estimators.saving import sealed

sys.path.insert(0, str(Path(__file__).parent))
import cases

pytestmark = pytest.mark.filterwarnings("ignore:.*without a checksum of model.json")
FIRST = Path(__file__).parent / "format1"


@pytest.mark.parametrize("name", ["mvp", "pair", "lowrank"])
def test_a_model_of_the_first_release_says_what_it_said(name):
    few = {k: v.iloc[:6] for k, v in cases.frames(90).items()}
    X = few if name == "mvp" else cases.numbers(5, seed=9)
    model = vedute.load(FIRST / name)
    with np.load(FIRST / "told.npz") as told:
        np.testing.assert_allclose(model.transform(X), told[name], rtol=1e-4, atol=1e-5)
    assert len(model.predict(X)) == len(model.transform(X))
    filled = model.impute(X, interval=0.9)
    assert len(filled) == 3
    for view in model.views_:  # it knew of no reach but the normal one
        assert view.calibrated.reach_of(0.9) == pytest.approx(1.6449, abs=1e-4)


def test_a_run_of_the_first_release_gets_its_page_and_is_used_on_data(tmp_path):
    done("report", FIRST / "run", "-o", tmp_path / "page.html")
    assert "<svg" in (tmp_path / "page.html").read_text()
    done("impute", FIRST / "run", FIRST / "data.npz", "-o", tmp_path / "filled.npz")
    with np.load(tmp_path / "filled.npz") as filled:
        assert not any(np.isnan(filled[k]).any() for k in "abc")
    done("embed", FIRST / "run", FIRST / "data.npz", "-o", tmp_path / "z.npz")
    with np.load(tmp_path / "z.npz") as now, np.load(FIRST / "run" / "embedding.npz") as then:
        np.testing.assert_allclose(now["embedding"], then["embedding"], rtol=1e-4, atol=1e-5)


def test_a_model_of_images_keeps_the_defaults_it_was_saved_with(tmp_path):
    """`for_images` came later."""
    images = np.random.default_rng(0).integers(0, 256, (2, 12, 1, 8, 8)).astype(np.uint8)
    small = {"steps": 1, "network": "polymnist", "hidden": (4,), "latent_dim": 2, "random_state": 0}
    model = vedute.MVP(**small, for_images=False).fit(list(images))
    model.save(tmp_path)
    facts = json.loads((tmp_path / "model.json").read_text())
    kept = [pair for pair in facts["params"]["$dict"] if pair[0] != "for_images"]
    facts["params"]["$dict"] = kept
    (tmp_path / "model.json").write_text(sealed(facts))
    again = vedute.load(tmp_path)
    assert again.for_images is False
    np.testing.assert_array_equal(again.transform(list(images)), model.transform(list(images)))
