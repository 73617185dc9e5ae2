"""MVP's defaults for images: where they hold, and where not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import vedute
from vedute import drop_views
from vedute.datasets import shapes
from vedute.methods import mvp, presets
from vedute.methods.mvp import MVP

IMAGE = (3, 16, 16)


def test_images_have_defaults_of_their_own():
    hp = MVP()._settled([IMAGE, IMAGE], 1000)
    assert {k: getattr(hp, k) for k in mvp.IMAGES} == mvp.IMAGES
    assert (hp.warmup, hp.cooldown) == (200, 200)
    assert MVP()._patience([IMAGE], 1000) == 250
    assert MVP(patience=30)._patience([IMAGE], 1000) == 30


def test_settings_that_are_given_hold_for_images_too():
    hp = MVP(lr=0.01, latent_dim=8, warmup=7, prior="fusion")._settled([IMAGE], 1000)
    assert (hp.lr, hp.latent_dim, hp.warmup, hp.prior) == (0.01, 8, 7, "fusion")
    assert hp.objective == "joint"


@pytest.mark.parametrize(
    ("settings", "sizes"),
    [
        (dict(), [(4,), (5,)]),
        (dict(), [IMAGE, (5,)]),  # a table beside images
        (dict(for_images=False), [IMAGE]),
        (dict(network="mlp"), [IMAGE]),
    ],
)
def test_all_else_has_the_defaults_of_tables(settings, sizes):
    model = MVP(**settings)
    assert model._settled(sizes, 1000) is model
    assert model._amounts(sizes, 60_000) == (500, 256)
    assert model._patience(sizes, 1000) == 200


@pytest.mark.parametrize(
    ("rows", "steps"), [(50, 500), (2000, 781), (20_124, 7860), (60_000, 20_000)]
)
def test_images_are_passed_a_hundred_times_within_limits(rows, steps):
    assert MVP()._amounts([IMAGE], rows)[0] == steps
    assert MVP(steps=9)._amounts([IMAGE], rows)[0] == 9


@pytest.mark.parametrize("settings", [dict(steps=2), dict(epochs=1), dict(network="mlp")])
def test_only_a_long_training_of_images_on_a_cpu_is_warned_of(settings):
    views = drop_views(shapes.load(24, size=16), 0.5, seed=0)
    small = dict(latent_dim=4, map_hidden=(4,), hidden=(4,), random_state=0, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MVP(**small, **settings)._check(views)
    with pytest.warns(UserWarning, match="500 steps on images may take many hours"):
        MVP(**small)._check(views)


def test_presets_of_images_are_the_papers_alone():
    published = MVP(**presets.find("mvp", "polymnist"))
    assert published._settled([IMAGE], 300) is published


def test_images_with_the_defaults_are_fitted_saved_and_imputed(tmp_path):
    views = drop_views(shapes.load(24, size=16), 0.5, seed=0)
    settings = dict(steps=3, network="polymnist", latent_dim=8, map_hidden=(8,), random_state=0)
    model = MVP(**settings).fit(views)
    assert model.model_.hp.prior == "joint"
    assert model.get_params()["prior"] == "cyclic"
    model.save(tmp_path / "model")
    again = vedute.load(tmp_path / "model")
    for a, b in zip(model.impute(views).x, again.impute(views).x, strict=True):
        assert torch.equal(a, b)


def test_later_defaults_for_images_do_not_change_a_saved_model(tmp_path, monkeypatch):
    views = drop_views(shapes.load(12, size=16), 0.5, seed=0)
    model = MVP(steps=2, network="polymnist", latent_dim=8, map_hidden=(8,), random_state=0)
    model.fit(views).save(tmp_path / "model")
    monkeypatch.setitem(mvp.IMAGES, "output", "linear")
    monkeypatch.setitem(mvp.IMAGES, "bounded", True)
    again, batch = vedute.load(tmp_path / "model"), views.floating()
    assert np.array_equal(again.transform(views), model.transform(views))
    with torch.no_grad():
        images = zip(*(m._fitted().decode(batch) for m in (model, again)), strict=True)
        assert all(torch.equal(a, b) for a, b in images)


def test_more_shared_numbers_than_images_have_are_refused():
    views = shapes.load(12, size=16)
    with pytest.raises(ValueError, match="got 200 and 128"):
        MVP(steps=1, shared_dim=200).fit(views)
