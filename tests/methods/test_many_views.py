"""Many views: what a step, a batch and a fit take, and what Blend leaves out."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import vedute
from vedute import MVP, Blend, Views
from vedute.analysis.inspection import inspect
from vedute.data.holdout import HiddenEntries, HoldOut, choose
from vedute.estimators import explanation
from vedute.estimators.imputation import TABLE, Imputer

QUICK = {"mvp__steps": 2, "mvp__again": 1, "mvp__cooldown": 0, "mvp__map_hidden": (4,)}
DIM = 8
ALONE = {k.removeprefix("mvp__"): v for k, v in QUICK.items()} | {"latent_dim": DIM}
BAR = """
import resource, sys, time, warnings
import numpy as np
from vedute import Blend
rng = np.random.default_rng(0)
z = rng.normal(size=(200, 4))
X = [z @ rng.normal(size=(4, 2)) + 0.3 * rng.normal(size=(200, 2)) for _ in range(64)]
for x in X:
    x[rng.random(200) < 0.3] = np.nan
warnings.simplefilter("ignore")
Blend(random_state=0).fit(X).impute(X)
unit = 2**10 if sys.platform == "linux" else 1
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, time.process_time())
"""


@pytest.fixture
def four(monkeypatch):
    """Five views are many."""
    monkeypatch.setattr(MVP, "most_views", 4)


def many(L=5, n=60):
    """L views of two columns; a fifth of them missing."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 3))
    X = [z @ rng.normal(size=(3, 2)) + 0.3 * rng.normal(size=(n, 2)) for _ in range(L)]
    for x in X:
        x[rng.random(n) < 0.2] = np.nan
    return X


def test_blend_leaves_mvp_out_of_many_views_and_says_so(four, tmp_path):
    X = many()
    with pytest.warns(UserWarning, match=r"without mvp \(5 views: with more than 4 "):
        model = Blend(random_state=0).fit(X)
    assert [*model.left_out_] == ["mvp"]
    assert [*model.experts_] == ["lowrank_fill", "kernel_fill", "gaussian_fill"]
    assert all(np.isfinite(x).all() for x in model.impute(X))
    model.save(tmp_path / "model")
    again = vedute.load(tmp_path / "model")
    assert again.left_out_ == model.left_out_
    np.testing.assert_array_equal(again.impute(X)[0], model.impute(X)[0])


@pytest.mark.parametrize("settings", [{}, {"experts": ("mvp",)}])
def test_blend_keeps_an_expert_that_is_asked_for(four, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Blend(random_state=0, device="cpu", expert_settings=QUICK, **settings).fit(many())
    assert "mvp" in model.experts_
    assert not model.left_out_


def test_a_few_views_leave_nothing_out():
    names = ("mvp", "lowrank_fill")
    assert not Blend().slow(names, MVP.most_views)
    assert [*Blend().slow(names, MVP.most_views + 1)] == ["mvp"]
    assert not Blend().slow(("mvp",), 1000)  # nothing else could learn


def test_inspect_says_what_blend_will_leave_out(four):
    X = many()
    assert any("Blend will leave out mvp" in line for line in inspect(Views.of(X)).warnings())
    few = inspect(Views.of(X[:-1])).warnings()
    assert not any("leave out" in line for line in few)


def test_of_a_hidden_view_no_other_is_cut(monkeypatch):
    views = Views.of(many(9))
    scalers = [view.scaler for view in vedute.MeanFill().fit(many(9)).views_]
    held = HoldOut.of(views, choose(views.mask, 1), scalers)
    entries = HiddenEntries(held.inputs, held.truth)
    cut = []
    monkeypatch.setattr(Views, "_map", lambda self, f: cut.append(len(self.x)) or self)
    held.truth_of(3)
    entries.truth_of(3)
    assert cut == [1, 1]


def test_a_batch_is_as_small_as_the_tables_of_the_model_ask():
    X = many(6, 40)
    model = MVP(random_state=0, device="cpu", **ALONE).fit(X)
    table = 6 * 6 * DIM
    assert model.learner.imputer().table == table
    assert model.learner.imputer().rows() * table <= TABLE
    assert Imputer(model.decode, model.views_, TABLE // 3).rows() == 3
    few = Imputer(model.decode, model.views_, TABLE // 7)
    whole, parts = (i.decoded(Views.of(X).floating()) for i in (model.learner.imputer(), few))
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_contributions_are_of_fewer_instances_where_tables_are_large(monkeypatch):
    L, instances, cases = 6, 5, []
    for room in (explanation.TABLE_NUMBERS, instances * L**3 * DIM):
        monkeypatch.setattr(explanation, "TABLE_NUMBERS", room)
        model = MVP(random_state=0, device="cpu", **ALONE).fit(many(L))
        cases.append(model.hidden_predictions_["alone"][2].sum())
    assert instances <= cases[1] <= instances * (L - 1) < cases[0]


@pytest.mark.all
def test_64_views_of_200_rows_take_two_minutes_and_two_gigabytes():
    run = subprocess.run([sys.executable, "-c", BAR], capture_output=True, text=True, check=True)
    memory, seconds = map(float, run.stdout.split())
    assert memory < 2 * 2**30
    assert seconds < 2 * 120  # of two cores
