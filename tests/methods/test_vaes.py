"""What holds for all multimodal VAEs: no mask, no junk and no order of views ever matters."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
import torch
from building import model_of
from every_method import METHODS
from oracles import vaes
from oracles.vaes import batch_of, complete

from vedute.data.views import Views
from vedute.methods import presets

BOUNDS = ("iwae_loose", "iwae_tight", "dreg")
MIXTURES = {  # codes of one expert; no draw takes all the weight
    "mmvae": dict(latent_dim=5, samples=2, scale=3.0),
    "mmvaeplus": dict(latent_dim=5, shared_dim=3, samples=2, scale=3.0),
}
MODES = {
    "mvae": [
        dict(subsample="none"),
        dict(subsample="unimodal"),
        *(dict(subsample="unimodal+k", subsets=k) for k in (0, 1, 3)),
        dict(subsample="unimodal+k", prior_expert="never"),
        *(dict(subsample=word, view_dropout=0.4) for word in ("none", "unimodal+k")),
    ],
    "mopoe": [dict(prior_expert=word) for word in ("full_only", "never", "always")],
    "mmjsd": [
        dict(subset_rule=rule, prior_in_mixture=prior)
        for rule, prior in product(
            ("dynamic_prior", "random_expert", "mean_of_means"), (False, True)
        )
    ],
    "mvtcae": [
        dict(normaliser=word, view_dropout=share)
        for word, share in product(("views", "observed"), (0.0, 0.4))
    ],
    "mmvae": [
        *(dict(objective=word) for word in (*BOUNDS, "moe_elbo")),
        dict(subset_rule="random_expert"),
    ],
    "mmvaeplus": [
        dict(objective=word, private=private)
        for word, private in product(BOUNDS, ("prior", "auxiliary"))
    ],
}


def modes(names=MODES):
    """Parametrised over these methods, each in all its ways."""
    pairs = [(name, mode) for name in names for mode in MODES[name]]
    return pytest.mark.parametrize(("name", "settings"), pairs, ids=str)


def build(name, settings):
    return vaes.build(METHODS[name], 4, **MIXTURES.get(name, {}) | settings)


@modes()
def test_masks(monkeypatch, name, settings):
    model, batch = build(name, settings), batch_of(4, B=30, holes=True)
    vaes.check_junk(model, batch)
    vaes.check_absent(model, batch)
    if name not in MIXTURES:  # these draw in another order: see their own files
        vaes.check_rows(model, batch, monkeypatch)
    vaes.check_single_views(model, batch)
    vaes.check_order(model, batch, (2, 0, 3, 1))


@modes()
def test_complete_views_need_no_mask(monkeypatch, name, settings):
    model, batch = build(name, settings), complete(4)
    assert batch.present() is None
    unmasked = vaes.everything(model, batch)
    monkeypatch.setattr(Views, "present", lambda self: [torch.arange(len(self))] * 4)
    vaes.same(vaes.everything(model, batch), unmasked)


@pytest.mark.parametrize("name", MODES)
def test_presets_can_be(name):
    tables = presets.load(name)
    assert {"polymnist", "shapes", "handwritten", "cub", "scene15", "reuters1200"} <= set(tables)
    for settings in tables.values():
        model = METHODS[name](**settings | dict(network="mlp", hidden=(4,)))
        model_of(model, [(3,), (2,)], ("normal",) * 2)


@modes([name for name in MODES if name != "mmvaeplus"])  # which draws more there: see its file
def test_a_step_that_spares_nothing_says_the_same(monkeypatch, name, settings):
    """Steps on a GPU also encode and decode missing views."""
    model, batch = build(name, settings), batch_of(4, holes=True)
    spared = vaes.everything(model, batch)
    monkeypatch.setattr(Views, "present", lambda self: None)
    vaes.same(vaes.everything(model, batch), spared)
    seen = zip(batch.x, batch.mask.T, strict=True)
    loud = replace(batch, x=tuple(a + 10 * ~m[:, None] for a, m in seen))
    vaes.same(vaes.everything(model, loud), spared)
