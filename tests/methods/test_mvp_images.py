"""MVP's defaults for images: where they hold, and where not."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

import vedute
from vedute import Views, drop_views
from vedute.data.holdout import HoldOut
from vedute.datasets import shapes
from vedute.estimators import neural
from vedute.methods import _sharpening, _trimmings, mvp, presets
from vedute.methods.mvp import MVP
from vedute.metrics.ssim import ssim
from vedute.nn.likelihoods import LIKELIHOODS
from vedute.training.history import second

IMAGE = (3, 16, 16)
NORMAL = LIKELIHOODS["normal"]


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


def test_evening_brings_dimensions_to_one_spread_by_its_power():
    z = torch.randn(500, 4, generator=torch.manual_seed(0)) * torch.tensor([9.0, 4.0, 1.0, 0.0])
    learned = z.std(0, correction=0)[:3]
    for power in (0.5, 1.0):
        scale = mvp.evening(z, power)
        torch.testing.assert_close(scale[:3], learned**-power)
        assert scale[3] == pytest.approx((1e-3 * learned[0]) ** -power)  # hardly varies
    assert mvp.evening(torch.ones(1, 3), 0.5).tolist() == [1, 1, 1]  # one row, nothing varies
    same = torch.full((1999, 3), 1.7)  # whose mean is rounded
    assert mvp.evening(same, 1.0).tolist() == [1, 1, 1]


@pytest.mark.parametrize("given", [None, 0.0, 0.5])
def test_evenness_changes_the_scale_of_representations_and_nothing_else(tmp_path, given):
    views = drop_views(shapes.load(24, size=16), 0.5, seed=0)
    small = dict(steps=3, network="polymnist", latent_dim=8, map_hidden=(8,), random_state=0)
    learned, model = (MVP(evenness=e, **small).fit(views) for e in (0.0, given))
    z, std = learned.transform(views, return_std=True)
    power = 0.5 if given is None else given
    scale = z.std(0) ** -power
    np.testing.assert_allclose(model.transform(views), z * scale, rtol=2e-3)
    np.testing.assert_allclose(model.transform(views, return_std=True)[1], std * scale, rtol=2e-3)
    for a, b in zip(learned.impute(views).x, model.impute(views).x, strict=True):
        assert torch.equal(a, b)
    model.save(tmp_path / "model")
    again = vedute.load(tmp_path / "model")
    assert np.array_equal(again.transform(views), model.transform(views))


def test_tables_keep_the_scale_that_was_learned():
    assert not MVP()._settled([(4,), (5,)], 100).evenness
    assert not MVP(**presets.find("mvp", "polymnist"))._settled([IMAGE], 100).evenness


def test_sharpening_changes_decoders_alone():
    views = drop_views(shapes.load(24, size=16), 0.5, seed=0)
    model = MVP(steps=2, network="polymnist", latent_dim=8, map_hidden=(8,), random_state=0)
    net = model.fit(views).model_.train()
    net.zero_grad()
    net.sharpening_loss(views.floating())["sharpening"].backward()
    moved = {name.split(".")[0] for name, p in net.named_parameters() if p.grad is not None}
    assert moved == {"decoders"}


def cooling(settings, sizes, rows):
    """The stages of a cool-down of 21 steps: loss, steps, are hidden views looked at, and how."""
    names, kinds = ("a", "b"), [NORMAL, NORMAL]
    net = MVP(cooldown=21, **settings).build(sizes, kinds, names, 100)
    net.few = rows < 1000
    return [(s.loss.__name__, s.steps, s.watch, s.measure) for s in net._cooling(21)]


@pytest.mark.parametrize(
    ("settings", "sizes", "rows", "measured"),
    [
        (dict(sharpen=True), [(4,), (5,)], 100, False),
        (dict(sharpen=True), [IMAGE, IMAGE], 100, False),
        (dict(sharpen=None), [IMAGE, IMAGE], 1000, True),
    ],
)
def test_the_second_half_of_the_cooldown_sharpens(settings, sizes, rows, measured):
    small = dict(network="polymnist", latent_dim=4, map_hidden=(4,), hidden=(4,))
    measure = _sharpening.blur if measured else None
    assert cooling(settings | small, sizes, rows) == [
        ("cooldown_loss", 11, True, None),
        ("sharpening_loss", 10, measured, measure),
    ]


@pytest.mark.parametrize(
    ("settings", "sizes", "rows"),
    [
        (dict(sharpen=False), [IMAGE, IMAGE], 1000),
        (dict(sharpen=None), [IMAGE, IMAGE], 999),
        (dict(sharpen=None), [IMAGE, (5,)], 1000),
        (dict(sharpen=None, network="mlp"), [IMAGE, IMAGE], 1000),
        (dict(sharpen=None, early_stopping=False), [IMAGE, IMAGE], 1000),
        (dict(sharpen=None, for_images=False), [IMAGE, IMAGE], 1000),
    ],
)
def test_elsewhere_the_cooldown_is_as_ever(settings, sizes, rows):
    small = dict(network="polymnist", latent_dim=4, map_hidden=(4,), hidden=(4,))
    assert cooling(small | settings, sizes, rows) == [("cooldown_loss", 21, True, None)]


def some_hidden(truth):
    """Of six objects: of all the first view, of three the second."""
    hidden = torch.zeros_like(truth.mask)
    hidden[:, 0] = hidden[:3, 1] = True
    ones = tuple(torch.ones(x.shape[1:]) for x in truth.x)
    return HoldOut(truth.hide(hidden), truth, hidden, ones, ones)


def test_blur_of_what_is_not_wrong_at_all_is_a_number():
    held = some_hidden(shapes.load(6, size=16).floating())
    assert np.isfinite(_sharpening.blur(held, held.truth.x))


def test_blur_does_not_see_what_is_put_into_holes():
    truth = shapes.load(6, size=16).floating()
    holes = torch.zeros(truth.x[0].shape, dtype=torch.bool)
    holes[:, :, 4:9, 4:9] = True
    held = some_hidden(replace(truth, holes=(holes, *truth.holes[1:])))
    values = [(0.5 * x + 0.1).clone() for x in truth.x]
    found = _sharpening.blur(held, values)
    values[0][holes] = 0.3
    assert _sharpening.blur(held, values) == pytest.approx(found, abs=1e-6)


def test_blur_weighs_similarity_against_the_root_of_squared_errors():
    truth = shapes.load(6, size=16).floating()
    held = some_hidden(truth)
    values = [(0.5 * x + 0.1).clone() for x in truth.x]
    pairs = [(v, i) for v in range(5) for i in range(6) if held.hidden[i, v]]
    a, b = (torch.stack([(x[v][i] + 1) / 2 for v, i in pairs]) for x in (values, truth.x))
    rmse = float((a - b).square().mean().sqrt())
    found = _sharpening.blur(held, values)
    assert found == pytest.approx(np.log(rmse / float(ssim(a, b).mean())), abs=1e-5)
    values[2] += 9.0  # nothing is hidden there
    assert _sharpening.blur(held, values) == found
    units = tuple(torch.rand(x.shape[1:]) for x in truth.x)  # pixels count as they are seen
    assert _sharpening.blur(replace(held, weights=units), values) == found


@pytest.mark.parametrize(("sign", "kept"), [(-1, True), (1, False)], ids=["gain", "none"])
def test_images_are_sharpened_where_hidden_views_gain_by_it(monkeypatch, sign, kept):
    for module in (_trimmings, neural, mvp):
        monkeypatch.setattr(module, "FEW_ROWS", 2)
    looks = iter(range(99))
    monkeypatch.setattr(mvp, "blur", lambda held, values: sign * next(looks))
    views = drop_views(shapes.load(60, size=16), 0.5, seed=0)
    settings = dict(network="polymnist", latent_dim=8, map_hidden=(8,), steps=10, random_state=0)
    history = MVP(**settings, sharpen=None).fit(views).history_
    assert [*history[-1]["terms"]] == ["sharpening"]
    assert history[-1]["better"] == kept
    assert second(history) == 0  # no report says that everything was learned again


def test_sharpening_measures_values_by_absolute_errors_and_the_rest_as_ever():
    torch.manual_seed(0)
    kinds = [NORMAL, LIKELIHOODS["bernoulli"]]
    net = MVP(view_dropout=0.0, rec_weight=2.0, balance=0.0).build([(4,), (5,)], kinds, "ab", 100)
    net.eval()
    x = [torch.randn(6, 4), torch.rand(6, 5).round()]
    batch = Views.of({"a": x[0].numpy(), "b": x[1].numpy()}).floating()
    torch.manual_seed(1)
    found = net.sharpening_loss(batch)["sharpening"]
    torch.manual_seed(1)
    code = mvp._drawn(net.fuse(batch))
    a, b = (decoder(code[:, v]) for v, decoder in enumerate(net.decoders))
    expected = (batch.x[0] - a).abs().mean(1) + kinds[1].error(b, batch.x[1]).mean(1)
    assert torch.allclose(found, 2 * expected.mean())
