"""Settings are declared once: what is checked, explained and listed comes from there."""

from __future__ import annotations

import doctest
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
import torch
from sklearn.base import clone
from typing_extensions import TypeAliasType

import vedute
from vedute.estimators.base import Estimator
from vedute.estimators.neural import NeuralEstimator
from vedute.estimators.settings import (
    Setting,
    attributes,
    declared,
    estimator,
    fits,
    problem_with,
    setting,
)
from vedute.methods import find, of_this_package, presets
from vedute.methods.best_pair import BestPair
from vedute.methods.deep.dcca import DCCA
from vedute.methods.deep.mmvae import MMVAE
from vedute.methods.fills.mean_fill import MeanFill
from vedute.methods.mvp import MVP
from vedute.training.model import Clusterer, Generative

CLASSES = [*(find(name) for name in of_this_package()), BestPair]
SHORT = {"steps": 5, "pretrain": 5, "warmup": 2, "cooldown": 0, "hidden": (8,), "device": "cpu"}
every_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)


def data():
    X = list(np.random.default_rng(0).normal(size=(2, 24, 3)))
    X[1][:6] = np.nan
    return X


def short(cls, **more):
    known = {k: v for k, v in SHORT.items() if k in declared(cls)}
    if "experts" in declared(cls):  # Blend: MVP inside is short
        known["expert_settings"] = {f"mvp__{k}": SHORT[k] for k in ("steps", "warmup", "hidden")}
    return cls(**{**known, "n_clusters": 2, "random_state": 0, **more})


# Declarations.


@every_class
def test_every_setting_says_what_it_means(cls):
    for name, known in declared(cls).items():
        assert known.meaning[:1].isupper() or known.meaning.startswith("`"), name
        assert known.meaning.endswith("."), name


@every_class
def test_defaults_and_presets_are_what_is_declared(cls):
    if cls is not BestPair:
        cls().check_settings()
        for preset in presets.load(cls.__module__.rpartition(".")[2]).values():
            cls(**preset).check_settings()


def test_another_default_keeps_the_rest_of_the_declaration():
    lr, inherited = declared(DCCA)["lr"], declared(NeuralEstimator)["lr"]
    assert lr == inherited
    assert DCCA().lr != MVP().lr


def test_a_subclass_adds_settings():
    @estimator
    class Twice(MeanFill):
        """Mean-fill, twice."""

        times: int = setting(2, "How often.", at_least=1)
        scaling: str = "minmax"

    assert list(declared(Twice)) == [*declared(MeanFill), "times"]
    assert Twice().scaling == "minmax"
    with pytest.raises(ValueError, match="times must be at least 1, got 0"):
        Twice(times=0).fit(data())


# Values.


@pytest.mark.parametrize(
    ("cls", "name", "value", "problem"),
    [
        (MVP, "latent_dim", 0, "latent_dim must be at least 1, got 0"),
        (MVP, "latent_dim", True, "latent_dim must be a whole number or None, got True"),
        (MVP, "latent_dim", 2.0, "latent_dim must be a whole number or None, got 2.0"),
        (MVP, "network", None, "network must be a word, got None"),
        (MMVAE, "latent_dim", None, "latent_dim must be a whole number, got None"),
        (MVP, "shared_dim", "all", "shared_dim must be a whole number or None, got 'all'"),
        (MVP, "view_dropout", 1, "view_dropout must be at least 0 and below 1, got 1"),
        (MVP, "view_dropout", float("nan"), "view_dropout must be at least 0 and below 1, got nan"),
        (MVP, "lr", "fast", "lr must be a number or None, got 'fast'"),
        (MVP, "variant", "flat", "variant must be one of tables, images, paper, got"),
        (MVP, "variant", 3, "variant must be a word or None, got 3"),
        (MVP, "hidden", (8, 0), "each of hidden must be at least 1, got (8, 0)"),
        (MVP, "hidden", {"a": (8, 0)}, "each of hidden must be at least 1, got {'a': (8, 0)}"),
        (
            MVP,
            "map_hidden",
            {"a": (8,)},
            "map_hidden must be a tuple of whole numbers or None, got",
        ),
        (MVP, "early_stopping", "no", "early_stopping must be True or False, got 'no'"),
        (
            MVP,
            "n_clusters",
            "many",
            "n_clusters must be a whole number, 'auto' or None, got",
        ),
        (MVP, "n_clusters", 0, "n_clusters must be at least 1, got 0"),
        (MVP, "random_state", "x", "random_state must be a whole number, a Generator, a RandomSta"),
        (MVP, "scaling", "log", "scaling must be one of auto, standard, minmax, none, got 'log'"),
        (MVP, "beta", float("inf"), "beta must be finite, got inf"),
        (MVP, "balance", float("nan"), "balance must be finite, got nan"),
        (MVP, "steps", 10**400, "steps must be finite, got 1000"),
        (MMVAE, "rescale", -1.0, "rescale must be above 0, got -1.0"),
        (BestPair, "pair", ("a",), "pair must be a tuple of words or None, got ('a',)"),
        (BestPair, "method", "dcca", "method must be an Estimator, got 'dcca'"),
    ],
)
def test_what_is_refused(cls, name, value, problem):
    assert (problem_with(cls, name, value) or "").startswith(problem)


@pytest.mark.parametrize(
    ("cls", "name", "values"),
    [
        (MVP, "latent_dim", (np.int64(3), np.uint8(3))),
        (MVP, "lr", (1, np.float32(0.1), np.int64(1))),
        (MVP, "dropout", (None, 0, 0.5)),
        (MVP, "hidden", ((), [8], (np.int32(8),), {"a": (8,), "b": [4]})),
        (MVP, "device", ("cpu", torch.device("cpu"))),
        (MVP, "checkpoint", (None, "here", Path("here"))),
        (MVP, "early_stopping", (True, 0, np.True_)),
        (MVP, "n_clusters", (None, "auto", np.int64(3))),
        (MVP, "likelihood", ("normal", ["normal", "auto"], {"a": "normal"})),
        (MVP, "columns", (None, {"a": slice(0, 2), "b": [2, 3]})),
        (MVP, "random_state", (None, -3, np.random.default_rng(0), np.random)),
        (MMVAE, "rescale", (True, False, 3)),
        (BestPair, "scaling", ("auto", "none")),
        (BestPair, "pair", (None, ("a", "b"), ["a", "b"])),
        (BestPair, "method", (DCCA(),)),
    ],
)
def test_what_is_accepted(cls, name, values):
    for value in values:
        assert problem_with(cls, name, value) is None


def test_settings_are_checked_when_fit_begins_and_not_before():
    model = MVP(latent_dim=0)
    assert clone(model).latent_dim == 0
    with pytest.raises(ValueError, match="latent_dim must be at least 1, got 0"):
        model.fit(data())
    with pytest.raises(ValueError, match="shared_dim must be at most latent_dim, got 9 and 4"):
        MVP(latent_dim=4, shared_dim=9).fit(data())


def test_limits_in_words():
    assert Setting("", at_least=0, below=1).limits() == "at least 0 and below 1"
    assert Setting("", above=0, at_most=0.5).limits() == "above 0 and at most 0.5"
    assert Setting("", choices=("a", 2)).limits() == "one of a, 2"
    assert Setting("").limits() == ""


# Abilities.


@every_class
def test_abilities_are_what_a_fitted_model_does(cls):
    inside = {"method": DCCA(steps=5, device="cpu")} if cls is BestPair else {}
    X = data()
    model = short(cls, **inside).fit(X)
    for able, verb in (
        (model.generative, lambda: model.impute(X)),
        (model.generates, lambda: model.generate(2)),
    ):
        if able:
            verb()
        else:
            with pytest.raises(TypeError, match="cannot"):
                verb()
    assert model.soft == hasattr(model, "predict_proba")


@pytest.mark.parametrize("name", of_this_package())
def test_abilities_follow_from_the_class_of_the_model(name):
    model = short(find(name)).fit(data())
    if isinstance(model, NeuralEstimator):
        assert model.generative == isinstance(model.model_, Generative)
        assert model.soft == isinstance(model.model_, Clusterer)
        assert model.generates == (model.generative and name != "completer")
    else:
        assert (model.generative, model.soft) == (True, False)
        assert model.generates == (name == "blend")  # by MVP inside


def test_best_pair_asks_the_method_inside():
    assert not BestPair(DCCA()).generative
    assert BestPair(find("dccae")()).generative
    assert BestPair(find("icmvc")()).soft
    assert not BestPair(find("dccae")()).generates


# Reference.


@every_class
def test_the_docstring_explains_everything(cls):
    text = cls.__doc__
    for f in fields(cls):
        assert re.search(rf"^{f.name} : .*\n    \S", text, re.MULTILINE), f.name
    titles = re.findall(r"^(\w+)\n-+$", text, re.MULTILINE)
    wanted = ["Parameters", "Attributes", "Notes", "References", "Examples"]
    assert titles == [t for t in wanted if t != "References" or cls.paper]
    assert "embedding_" in text
    assert cls().__doc__ == text if cls is not BestPair else True


@every_class
def test_the_example_runs(cls, monkeypatch):
    for made in {cls, DCCA, MVP}:  # also those inside BestPair and Blend
        for name in SHORT.keys() & declared(made).keys():
            monkeypatch.setitem(made.__init__.__kwdefaults__, name, SHORT[name])
    example = doctest.DocTestFinder(recurse=False).find(cls, cls.__name__, globs={})
    assert example[0].examples
    for part in example:
        assert doctest.DocTestRunner(verbose=False).run(part).failed == 0


def test_every_method_is_public():
    public = {getattr(vedute, name) for name in vedute.__all__}
    assert set(CLASSES) <= public
    assert set(dir(vedute)) == set(vedute.__all__)


def test_completion_shows_verbs_settings_and_results():
    model = short(MVP)
    assert {"fit", "impute", "latent_dim"} <= set(dir(model))
    assert "embedding_" not in dir(model)
    model.fit(data())
    shown = set(dir(model))
    assert set(attributes(MVP)) <= shown
    assert not {name for name in shown if name.startswith("_")}
    assert not shown & {"build", "stage", "total", "saved", "restore", "absent", "predict_proba"}
    assert "predict_proba" in dir(short(find("dimvc")))
    assert "chosen" in dir(BestPair(DCCA()))
    assert set(Estimator.verbs) - {"predict_proba"} <= shown


def test_type_aliases_stand_for_their_types():
    """NDArray is one since numpy 2.5, where Python has them: saved models did not load there."""
    Scalar = TypeVar("Scalar", bound=np.generic)
    array = np.ndarray[tuple[Any, ...], np.dtype[Scalar]]
    alias = TypeAliasType("alias", array, type_params=(Scalar,))
    for hint in (alias, alias[Any], alias[np.float64] | None):
        assert fits(np.zeros(2), hint)
        assert not fits([1.0], hint)
