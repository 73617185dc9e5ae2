"""transform(X, return_std=True): the standard deviation of what is drawn for the representation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from blobs import batch_of, blobs, built, poisoned
from every_method import METHODS, small
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vedute import BestPair
from vedute.methods import mvp
from vedute.methods.best_pair import for_views
from vedute.nn import gaussian, laplace

WITH = {"mvp", "blend", "mvae", "mmvae", "mopoe", "mmjsd", "mvtcae", "mmvaeplus", "dvimc"}
RULES = [
    ("mvp", {}),
    ("mvp", {"latent_dim": 3, "shared_dim": 2}),
    ("mvae", {}),
    ("mopoe", {}),
    ("mvtcae", {}),
    ("dvimc", {}),
    *(("mmjsd", {"subset_rule": r}) for r in ("dynamic_prior", "random_expert", "mean_of_means")),
    *(("mmvae", {"subset_rule": r}) for r in ("mean_of_means", "random_expert")),
    *(
        ("mmvae", {"objective": "moe_elbo", "subset_rule": r})
        for r in ("mean_of_means", "random_expert")
    ),
    ("mmvaeplus", {"latent_dim": 4, "shared_dim": 2}),
]


def drawn(model, batch, monkeypatch, draws=40_000):
    """The codes that `decode` draws for one sample, without the private ones: (draws, B, D)."""
    found = []
    name = {"MMVAEPlusModel": "_decode_parts", "DVIMCModel": "_decode_latent"}
    name = name.get(type(model).__name__, "decode_codes")
    if hasattr(model, name):
        monkeypatch.setattr(model, name, lambda z, *rest: found.append(z) or [])
    else:  # of MVP: consensus and latents
        nothing = torch.empty(1, 1, 0)  # to decode
        monkeypatch.setattr(mvp, "codes", lambda w, z: found.append(w) or nothing)
    model.decode(batch, draws)
    z = found[0]
    return z[:, :, 0] if z.ndim == 4 else z  # the same for all views


@pytest.mark.parametrize(("name", "settings"), RULES, ids=str)
@torch.no_grad()
def test_against_draws(name, settings, monkeypatch):
    model, batch = built(METHODS[name], **settings), batch_of()
    torch.manual_seed(0)
    std, z = model.std(batch), drawn(model, batch, monkeypatch)
    assert std.shape == model.embed(batch).shape
    torch.testing.assert_close(z.std(0), std, rtol=0.05, atol=1e-4)
    torch.testing.assert_close(z.mean(0), model.embed(batch), rtol=0.05, atol=0.05)
    torch.testing.assert_close(model.std(poisoned(batch)), std)


def test_closed_forms():
    torch.manual_seed(0)
    q = gaussian.Gaussian(torch.zeros(1), torch.tensor([2 * np.log(3.0)]))
    assert gaussian.std(q) == pytest.approx(3.0)
    assert laplace.variance(laplace.Laplace(torch.zeros(1), torch.tensor([3.0]))) == 18


@pytest.mark.parametrize("name", METHODS)
def test_methods_without_a_posterior_say_so(name):
    data = blobs(40)
    model = for_views(small(METHODS[name], n_clusters=3), 3).fit(data)
    if name not in WITH:
        with pytest.raises(TypeError, match="has no posterior of the representation"):
            model.transform(data, return_std=True)
        assert isinstance(model, BestPair) == METHODS[name].two_views
        return
    z, std = model.transform(data, return_std=True)
    np.testing.assert_array_equal(z, model.transform(data))
    assert std.shape == z.shape
    assert std.dtype == np.float32
    assert (std > 0).all()


def test_fewer_views_are_less_certain():
    data = blobs(60, share=0.0)
    model = small(METHODS["mvp"]).fit(data)
    hidden = torch.zeros_like(data.mask)
    hidden[:, 1:] = True
    some, all_ = (model.transform(d, return_std=True)[1] for d in (data.hide(hidden), data))
    assert (some > all_).all()  # a product of fewer experts


def test_set_output_and_pipelines():
    data = blobs(40)
    model = small(METHODS["mvp"], n_clusters=3).fit(data)
    plain = model.transform(data, return_std=True)
    model.set_output(transform="pandas")
    assert isinstance(model.transform(data), pd.DataFrame)
    for frame, array in zip(model.transform(data, return_std=True), plain, strict=True):
        assert list(frame) == list(model.get_feature_names_out())
        np.testing.assert_array_equal(frame, array)
    line = make_pipeline(small(METHODS["mvp"]), StandardScaler()).fit(data)
    assert line.transform(data).shape == plain[0].shape
    again = small(METHODS["mvp"]).fit_transform(data)
    assert again.shape == plain[0].shape


def test_blend_has_that_of_its_first_expert():
    data = blobs(40)
    model = small(METHODS["blend"]).fit(data)
    std = model.transform(data, return_std=True)[1]
    inner = model.parts()[0].embed_std(model.learner.scaled(data))
    np.testing.assert_array_equal(std, inner)
    fills = small(METHODS["blend"], experts=("lowrank_fill",), expert_settings=None).fit(data)
    with pytest.raises(TypeError, match="LowRankFill has no posterior"):
        fills.transform(data, return_std=True)
