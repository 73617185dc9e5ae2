"""MVP's defaults for images: where they hold, and where not."""

from __future__ import annotations

import logging
import re
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from drawings import shapes

import vedute
from vedute import Views, drop_views, methods
from vedute.data.holdout import HoldOut
from vedute.estimators import neural, neural_training
from vedute.estimators.settings import declared
from vedute.methods import mvp, presets
from vedute.methods.deep.shared import regularization
from vedute.methods.mvp import IMAGES, MVP, PAPER, PAPER_IMAGES, TABLES, VARIANTS, Variant
from vedute.metrics import ssim
from vedute.nn import coders, gaussian
from vedute.nn.likelihoods import LIKELIHOODS
from vedute.training.history import second

IMAGE = (3, 16, 16)
NORMAL = LIKELIHOODS["normal"]


SIZES = {"images": [IMAGE, IMAGE], "tables": [(4,), (5,)]}


def settings_of(variant):
    """What it has instead of None, of settings."""
    there = {k: v for k, v in variant.defaults.items() if v is not None}
    return there | {"variant": variant.name}


def test_variants_stay_as_they_are_saved():
    """Saved models name them: rather than change one, add another."""
    switches = [f.name for f in fields(Variant) if f.name != "defaults"]
    assert switches[1:] == [
        *("output", "linear_paths", "bounded", "objective", "prior"),
        *("beta_prior", "evenness", "lr_halving"),
    ]
    rows = [
        [getattr(variant, k) for k in switches] for variant in (*VARIANTS.values(), PAPER_IMAGES)
    ]
    assert rows == [
        ["tables", "linear", True, True, "eq3", "cyclic", 0.2, 0.0, None],
        ["images", "tanh", False, False, "joint", "joint", 0.2, 0.5, None],
        ["paper", "tanh", False, True, "eq3", "cyclic", 0.2, 0.0, 200],
        ["paper", "tanh", False, False, "eq3", "cyclic", 0.2, 0.0, None],
    ]


def test_images_have_defaults_of_their_own():
    hp = MVP().settled([IMAGE, IMAGE], 1000)
    assert settings_of(IMAGES).items() <= hp.get_params().items()
    assert (hp.warmup, hp.cooldown) == (200, 200)
    assert MVP().patience_for([IMAGE], 1000) == 250
    assert MVP(patience=30).patience_for([IMAGE], 1000) == 30


def test_settings_that_are_given_hold_for_images_too():
    hp = MVP(lr=0.01, latent_dim=8, warmup=7, beta=0.3).settled([IMAGE], 1000)
    assert (hp.lr, hp.latent_dim, hp.warmup, hp.beta) == (0.01, 8, 7, 0.3)
    assert hp.switches([IMAGE]) == IMAGES


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_a_variant_that_is_given_holds_for_any_views(variant, sizes):
    model = MVP(variant=variant)
    hp = model.settled(sizes, 1000)
    assert settings_of(VARIANTS[variant]).items() <= hp.get_params().items()
    assert hp.switches(sizes).objective == VARIANTS[variant].objective
    assert f"variant={variant!r}" in repr(model)


def test_the_paper_bounds_latents_of_tables_alone():
    assert MVP(variant="paper").switches(SIZES["tables"]) == PAPER
    assert MVP(variant="paper").switches(SIZES["images"]) == PAPER_IMAGES


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("name", settings_of(PAPER))
def test_a_value_that_is_given_wins_also_where_it_is_that_of_another_variant(name, sizes):
    for variant in VARIANTS.values():
        value = settings_of(variant).get(name)
        model = MVP(**{name: value})
        hp = model.settled(sizes, 1000).having({"patience": model.patience_for(sizes, 1000)})
        assert value is None or hp.get_params()[name] == value


def test_no_default_that_depends_on_the_data_looks_like_a_value():
    left = {k for k, s in declared(MVP).items() if re.search("None: .*, in the paper", s.meaning)}
    assert {"variant", *left} == settings_of(PAPER).keys()
    assert all(getattr(MVP(), k) is None for k in settings_of(PAPER))


@pytest.mark.slow
def test_images_are_trained_at_the_rate_that_is_given(monkeypatch):
    views = drop_views(shapes.load(24, size=16), 0.5, seed=0)
    rates, real = [], neural_training.Loop
    monkeypatch.setattr(
        neural_training,
        "Loop",
        lambda model, data, how, *a: rates.append(how.lr) or real(model, data, how, *a),
    )
    for lr in (6e-3, 6.1e-3, None):
        model = MVP(steps=1, again=1, latent_dim=4, map_hidden=(4,), lr=lr, random_state=0)
        model.fit(views)
        assert model.settings_["lr"] == rates[-1]
    assert rates == [6e-3, 6e-3, 6.1e-3, 6.1e-3, 5e-4, 5e-4]


@pytest.mark.parametrize(
    ("settings", "sizes"),
    [
        (dict(), [(4,), (5,)]),
        (dict(), [IMAGE, (5,)]),  # a table beside images
        (dict(variant="tables"), [IMAGE]),
        (dict(network="mlp"), [IMAGE]),
    ],
)
def test_all_else_has_the_defaults_of_tables(settings, sizes):
    model = MVP(**settings)
    hp = model.settled(sizes, 1000)
    assert settings_of(TABLES).items() <= hp.get_params().items()
    assert hp.clip is None
    assert model.amounts(sizes, 60_000) == (500, 256)
    assert model.patience_for(sizes, 1000) == 200


@pytest.mark.parametrize(
    ("rows", "steps"), [(50, 500), (2000, 781), (20_124, 7860), (60_000, 20_000)]
)
def test_images_are_passed_a_hundred_times_within_limits(rows, steps):
    assert MVP().amounts([IMAGE], rows)[0] == steps
    assert MVP(steps=9).amounts([IMAGE], rows)[0] == 9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "faster"),
    [
        (dict(steps=4), "fewer `steps`, smaller images, a GPU"),
        (
            dict(epochs=4, network="mvp"),
            "fewer `epochs`, network='polymnist', smaller images, a GPU",
        ),
        (dict(steps=4, network="mlp"), "fewer `steps`, a GPU"),
    ],
)
def test_a_long_training_says_by_its_first_steps_how_long_and_what_is_faster(
    settings, faster, monkeypatch, capfd
):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's
    monkeypatch.setattr(neural_training, "MEASURED", 0)
    views = drop_views(shapes.load(24, size=16), 0.5, seed=0)
    small = dict(latent_dim=4, map_hidden=(4,), hidden=(4,), random_state=0, device="cpu")
    MVP(**small, **settings).fit(views)
    assert not capfd.readouterr().err  # it is not long
    monkeypatch.setattr(neural_training, "LONG", 0)
    MVP(**small, **settings).fit(views)
    first = capfd.readouterr().err.splitlines()[0]
    assert re.fullmatch(
        rf"MVP: up to \d+ s for 4 steps of \S+ s; faster: {re.escape(faster)}", first
    )
    MVP(**small, **settings, verbose=False).fit(views)
    assert not capfd.readouterr().err


def test_presets_leave_nothing_to_a_variant_but_its_switches():
    """What the paper means by a dataset stays, whatever else a variant says."""
    for preset in presets.load("mvp").values():
        assert preset["variant"] == "paper"
        assert settings_of(PAPER).keys() <= preset.keys()


def test_images_with_the_defaults_are_fitted_saved_and_imputed(tmp_path):
    views = drop_views(shapes.load(24, size=16), 0.5, seed=0)
    settings = dict(steps=3, network="polymnist", latent_dim=8, map_hidden=(8,), random_state=0)
    model = MVP(**settings).fit(views)
    assert model.model_.variant == IMAGES
    assert model.settings_["variant"] == "images"
    assert model.get_params()["variant"] is None
    model.save(tmp_path / "model")
    again = vedute.load(tmp_path / "model")
    for a, b in zip(model.impute(views).x, again.impute(views).x, strict=True):
        assert torch.equal(a, b)


def test_a_fitted_model_says_what_it_used(tmp_path):
    views = drop_views(shapes.load(24, size=16), 0.5, seed=0)
    small = dict(steps=3, lr=6e-3, map_hidden=(8,), device="cpu", random_state=0)
    model = MVP(**small).fit(views)
    assert repr(MVP(**small)) == repr(model).partition("\n")[0]
    used = repr(model).partition("\n# used: ")[2]
    for words in (
        "variant='images'",
        "latent_dim=128",
        "network='polymnist'",
        "dropout=0.4",
        "batch_size=128",
    ):
        assert words in used
    assert "lr=" not in used  # it is in the call
    assert model.settings_["lr"] == 6e-3
    assert model.settings_["warmup"] == 0
    model.save(tmp_path / "model")
    assert "`latent_dim` 128" in (tmp_path / "model" / "model-card.md").read_text()
    again = vedute.load(tmp_path / "model")
    assert again.settings_ == model.settings_
    assert repr(again) == repr(model)
    blend = vedute.Blend(expert_settings={"mvp__steps": 2}, random_state=0).fit(views)
    assert blend.settings_["mvp__latent_dim"] == 128
    assert "mvp__lr=0.0005" in repr(blend)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mvp", "blend", "mvtcae"])
def test_a_model_moves_between_devices_with_its_network(tmp_path, monkeypatch, kind):
    views = drop_views(shapes.load(24, size=16), 0.5, seed=0)
    small = dict(steps=2, latent_dim=4, hidden=(4,), random_state=0)
    cls = methods.find(kind)
    if kind == "blend":
        small = dict(expert_settings={"mvp__steps": 2, "mvp__latent_dim": 4}, random_state=0)
    with monkeypatch.context() as patch:  # as on a GPU
        patch.setattr(neural.convolutions, "chosen", lambda device: "mvp")
        model = cls(**small).fit(views)
    model.save(tmp_path / "model")
    again = vedute.load(tmp_path / "model")
    assert {v for k, v in again.settings_.items() if k.endswith("network")} == {"mvp"}
    assert np.array_equal(again.transform(views), model.transform(views))
    here = cls(**small).fit(views)
    assert {v for k, v in here.settings_.items() if k.endswith("network")} == {"polymnist"}
    assert here.transform(views).shape == again.transform(views).shape


def test_other_variants_do_not_change_a_saved_model(tmp_path, monkeypatch):
    views = drop_views(shapes.load(12, size=16), 0.5, seed=0)
    model = MVP(steps=2, network="polymnist", latent_dim=8, map_hidden=(8,), random_state=0)
    model.fit(views).save(tmp_path / "model")
    tabular = vars(coders) | {"by_convolution": lambda shape, network: False}
    monkeypatch.setattr(mvp, "coders", SimpleNamespace(**tabular))  # now for tables
    again, batch = vedute.load(tmp_path / "model"), views.floating()
    assert again.model_.variant == IMAGES
    assert np.array_equal(again.transform(views), model.transform(views))
    with torch.no_grad():
        images = zip(*(m.model_.eval().decode(batch) for m in (model, again)), strict=True)
        assert all(torch.equal(a, b) for a, b in images)


def test_more_shared_numbers_than_images_have_are_refused():
    views = shapes.load(12, size=16)
    with pytest.raises(ValueError, match="got 200 and 128"):
        MVP(steps=1, shared_dim=200).fit(views)


def test_evening_brings_dimensions_to_one_spread_by_its_power():
    z = torch.randn(500, 4, generator=torch.manual_seed(0)) * torch.tensor([9.0, 4.0, 1.0, 0.0])
    learned = z.std(0, correction=0)[:3]
    for power in (0.5, 1.0):
        scale = mvp.whitening_factors(z, power)
        torch.testing.assert_close(scale[:3], learned**-power)
        assert scale[3] == pytest.approx((1e-3 * learned[0]) ** -power)  # hardly varies
    assert mvp.whitening_factors(torch.ones(1, 3), 0.5).tolist() == [
        1,
        1,
        1,
    ]  # one row, nothing varies
    same = torch.full((1999, 3), 1.7)  # whose mean is rounded
    assert mvp.whitening_factors(same, 1.0).tolist() == [1, 1, 1]


def test_the_representation_of_images_is_evened():
    views = drop_views(shapes.load(24, size=16), 0.5, seed=0)
    small = dict(steps=3, network="polymnist", latent_dim=8, map_hidden=(8,), random_state=0)
    net, batch = MVP(**small).fit(views).model_, views.floating()
    learned = net.fuse(batch)[0]
    scale = learned.mean.std(0, correction=0) ** -0.5
    torch.testing.assert_close(net.embed(batch), learned.mean * scale, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(net.std(batch), gaussian.std(learned) * scale, rtol=1e-4, atol=1e-6)


def test_tables_keep_the_scale_that_was_learned():
    assert not MVP().switches([(4,), (5,)]).evenness
    assert not MVP(**presets.find("mvp", "polymnist")).switches([IMAGE]).evenness


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
    measure = ssim.blur if measured else None
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
        (dict(sharpen=None, variant="tables"), [IMAGE, IMAGE], 1000),
        (dict(sharpen=None, variant="images"), [IMAGE, (5,)], 1000),  # no SSIM of tables
    ],
)
def test_elsewhere_the_cooldown_is_as_ever(settings, sizes, rows):
    small = dict(network="polymnist", latent_dim=4, map_hidden=(4,), hidden=(4,))
    assert cooling(small | settings, sizes, rows) == [("cooldown_loss", 21, True, None)]


def some_hidden(truth):
    """Views of six objects: all have the first view, three the second."""
    hidden = torch.zeros_like(truth.mask)
    hidden[:, 0] = hidden[:3, 1] = True
    ones = tuple(torch.ones(x.shape[1:]) for x in truth.x)
    return HoldOut(truth.hide(hidden), truth, hidden, ones, ones)


def test_blur_of_what_is_not_wrong_at_all_is_a_number():
    held = some_hidden(shapes.load(6, size=16).floating())
    assert np.isfinite(ssim.blur(held, held.truth.x))


def test_blur_does_not_see_what_is_put_into_holes():
    truth = shapes.load(6, size=16).floating()
    holes = torch.zeros(truth.x[0].shape, dtype=torch.bool)
    holes[:, :, 4:9, 4:9] = True
    held = some_hidden(replace(truth, holes=(holes, *truth.holes[1:])))
    values = [(0.5 * x + 0.1).clone() for x in truth.x]
    found = ssim.blur(held, values)
    values[0][holes] = 0.3
    assert ssim.blur(held, values) == pytest.approx(found, abs=1e-6)


def test_blur_weighs_similarity_against_the_root_of_squared_errors():
    truth = shapes.load(6, size=16).floating()
    held = some_hidden(truth)
    values = [(0.5 * x + 0.1).clone() for x in truth.x]
    pairs = [(v, i) for v in range(5) for i in range(6) if held.hidden[i, v]]
    a, b = (torch.stack([(x[v][i] + 1) / 2 for v, i in pairs]) for x in (values, truth.x))
    rmse = float((a - b).square().mean().sqrt())
    found = ssim.blur(held, values)
    assert found == pytest.approx(np.log(rmse / float(ssim.ssim(a, b).mean())), abs=1e-5)
    values[2] += 9.0  # nothing is hidden there
    assert ssim.blur(held, values) == found
    units = tuple(torch.rand(x.shape[1:]) for x in truth.x)  # pixels count as they are seen
    assert ssim.blur(replace(held, weights=units), values) == found


@pytest.mark.parametrize(("sign", "kept"), [(-1, True), (1, False)], ids=["gain", "none"])
def test_images_are_sharpened_where_hidden_views_gain_by_it(monkeypatch, sign, kept):
    for module in (regularization, neural):
        monkeypatch.setattr(module, "FEW_ROWS", 2)
    looks = iter(range(99))
    monkeypatch.setattr(ssim, "blur", lambda held, values: sign * next(looks))
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
    code = mvp.codes(*map(gaussian.sample, net.fuse(batch)))
    a, b = (decoder(code[:, v]) for v, decoder in enumerate(net.decoders))
    expected = (batch.x[0] - a).abs().mean(1) + kinds[1].error(b, batch.x[1]).mean(1)
    assert torch.allclose(found, 2 * expected.mean())
