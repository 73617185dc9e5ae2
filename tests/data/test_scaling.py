"""Scaling: fitted on what is observed, exact at large offsets, inverted on the way out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from by_scalers import scaled

from vedute.data import scaling
from vedute.data.views import Views

KINDS = ("standard", "minmax", "none")
every_kind = pytest.mark.parametrize("kind", KINDS)


def holed(n=50, width=4, seed=0):
    """x (n, width) with NaN: some rows, some entries."""
    rng = np.random.default_rng(seed)
    x = rng.normal(3.0, 2.0, size=(n, width))
    x[::5] = np.nan
    x[1, 2] = x[7, 0] = np.nan
    return x


def fit(kind, x):
    views = Views.of([x, np.ones(len(x))], dtype=torch.float64)
    return scaling.fit(kind, views.x[0], views.seen(0)), views.pick(0)


@every_kind
def test_only_observed_entries_count(kind):
    x = holed()
    scaler, views = fit(kind, x)
    shift, scale = {
        "standard": (np.nanmean(x, 0), np.nanstd(x, 0)),
        "minmax": (np.nanmin(x, 0), np.nanmax(x, 0) - np.nanmin(x, 0)),
        "none": (0.0, 1.0),
    }[kind]
    out = scaled([scaler], views)
    seen = ~np.isnan(x)
    np.testing.assert_allclose(out.x[0].numpy()[seen], ((x - shift) / scale)[seen], rtol=1e-5)
    z = np.where(seen, (x - shift) / scale, np.nan)
    np.testing.assert_allclose(scaler.mean, np.nanmean(z, 0), atol=1e-12)
    np.testing.assert_allclose(scaler.std, np.nanstd(z, 0), rtol=1e-12)


@every_kind
def test_networks_see_the_mean_at_holes_and_zero_at_missing_views(kind):
    scaler, views = fit(kind, holed())
    out = scaled([scaler], views).x[0].numpy()
    assert out.dtype == np.float32
    assert (out[::5] == 0).all()
    np.testing.assert_allclose(out[1, 2], scaler.mean[2], rtol=1e-6, atol=1e-7)


@every_kind
def test_nothing_under_a_missing_entry_matters(kind):
    x = holed()
    clean, views = fit(kind, x)
    seen = views.seen(0)
    for junk in (7e5, -np.inf, np.nan):
        dirty = scaling.fit(kind, torch.where(seen, views.x[0], junk), seen)
        for name in ("shift", "scale", "mean", "std"):
            np.testing.assert_array_equal(getattr(clean, name), getattr(dirty, name))


@every_kind
@pytest.mark.parametrize("offset", [0.0, 100.0, 1e6])
def test_restoring_undoes_it(kind, offset):
    x = holed() + offset
    scaler, views = fit(kind, x)
    seen = ~np.isnan(x)
    back = scaler.restore(scaled([scaler], views).x[0].double().numpy())
    digits = 1e-6 * 10.0 if kind != "none" else 1e-7 * (offset + 10.0)
    np.testing.assert_allclose(back[seen], x[seen], rtol=0, atol=digits)


@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_an_offset_of_a_million_changes_nothing(kind):
    one, views = fit(kind, holed())
    two, shifted = fit(kind, holed() + 1e6)
    np.testing.assert_allclose(two.shift - 1e6, one.shift, atol=1e-9)
    np.testing.assert_allclose(two.scale, one.scale, rtol=1e-9)
    a, b = (scaled([s], v).x[0] for s, v in ((one, views), (two, shifted)))
    np.testing.assert_allclose(a, b, atol=1e-6)


@every_kind
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e-9, 1e6 + 0.1, -7.0])
@pytest.mark.parametrize("n", [1, 3, 7, 60])
def test_constant_columns_are_safe(kind, constant, n):
    x = np.full((n + 2, 3), constant)
    x[:, 1] = np.arange(n + 2)
    x[1:, 2] = np.nan  # seen once
    x[-1] = np.nan
    scaler, views = fit(kind, x)
    assert scaler.std[0] == scaler.std[2] == 0
    assert scaler.scale[0] == scaler.scale[2] == 1
    assert (scaler.scale > 0).all()
    out = scaled([scaler], views).x[0]
    assert out.isfinite().all()
    np.testing.assert_allclose(scaler.restore(scaler.mean)[[0, 2]], constant, rtol=1e-12)


def test_a_column_nobody_has_is_safe():
    x = np.c_[np.arange(4.0), np.full(4, np.nan)]
    for kind in KINDS:
        scaler, views = fit(kind, x)
        assert scaler.std[1] == 0
        assert scaled([scaler], views).x[0].isfinite().all()


def test_bytes_are_scaled_inside_the_step():
    images = np.random.default_rng(0).integers(0, 256, (9, 2, 3), dtype=np.uint8)
    for kind in KINDS:
        scaler, views = fit(kind, images)
        inside = scaled([scaler], views)
        assert inside.x[0].dtype == torch.uint8
        told = inside.floating().x[0].numpy()
        np.testing.assert_allclose(scaler.restore(told), images, atol=1e-4)
        np.testing.assert_allclose(scaler.mean, told.mean(0), atol=1e-6)
        np.testing.assert_allclose(scaler.std, told.std(0), rtol=1e-5)
        floats = Views.of([images.astype(float), np.ones(9)], dtype=torch.float64).pick(0)
        np.testing.assert_allclose(scaled([scaler], floats).x[0], told, atol=1e-6)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"no scaling 'robust'; choose from standard, minmax"):
        fit("robust", holed())


def test_effective_dimensions_count_independent_features():
    rng = np.random.default_rng(0)
    free = rng.normal(size=(5000, 4))
    views = Views.of([free, np.repeat(free[:, :1], 9, axis=1), np.hstack([free, free])])
    found = scaling.effective_dimensions(views)
    torch.testing.assert_close(found, torch.tensor([4.0, 1.0, 4.0]), rtol=0.01, atol=0)
    wide = Views.of([rng.normal(size=(50, 300))])
    x = wide.x[0]
    values = torch.linalg.eigvalsh(x.T @ x)
    expected = values.sum() ** 2 / values.square().sum()
    torch.testing.assert_close(scaling.effective_dimensions(wide)[0], expected, rtol=1e-4, atol=0)


def test_a_bright_ground_does_not_hide_what_images_show():
    noise = np.random.default_rng(0).integers(0, 40, size=(2000, 1, 2, 2))
    dark, bright = (Views.of([(noise + ground).astype(np.uint8)]) for ground in (0, 200))
    found = [float(scaling.effective_dimensions(views)) for views in (dark, bright)]
    assert found == pytest.approx([4.0, 4.0], rel=0.02)


@pytest.mark.parametrize("word", [*KINDS, "log", "length", "depth"])
def test_many_rows_are_scaled_block_by_block(monkeypatch, word):
    """Scaling in blocks gives equal numbers, also at a large offset."""
    x = np.abs(holed()) + (1e6 if word in KINDS else 0.0)
    whole, views = fit(word, x)
    out = scaled([whole], views)
    monkeypatch.setattr(scaling, "PRECISE_ROWS", 7)
    scaler, _ = fit(word, x)
    for name in ("shift", "scale", "mean", "std", "top"):
        assert np.allclose(getattr(scaler, name), getattr(whole, name), rtol=1e-12, atol=1e-12)
    again = scaled([scaler], views)
    assert torch.allclose(again.x[0], out.x[0], atol=1e-6)
    assert again.x[0].dtype == torch.float32
    assert (again.sizes[0] is None) == (word in (*KINDS, "log"))
