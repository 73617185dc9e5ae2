"""Images in bytes with their channels first or last: read by one rule, given back as they came."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from shell import done, refused

import vedute
from vedute import MVP, Views
from vedute.data.checks import have_channels_last
from vedute.io import streaming
from vedute.methods.fills.mean_fill import MeanFill

RNG = np.random.default_rng(0)


def images(*shape, n=12):
    return RNG.integers(0, 256, (n, *shape)).astype(np.uint8)


def moved(a):
    return np.moveaxis(a, -1, 1)


@pytest.mark.parametrize(
    ("shape", "last"),
    [
        ((3, 24, 20), False),
        ((1, 24, 24), False),
        ((4, 24, 24), False),
        ((24, 20, 3), True),
        ((24, 24, 1), True),
        ((2, 24, 4), True),
        ((3, 24, 3), False),  # axis 1 first
        ((1, 1, 1), False),
        ((24, 24), False),
        ((2, 3, 4, 5), False),
    ],
)
def test_axis_1_holds_the_channels_else_the_last(shape, last):
    assert have_channels_last("a", (9, *shape)) == last
    if len(shape) == 3:
        expected = (shape[2], *shape[:2]) if last else shape
        assert Views.of([images(*shape)]).shapes == [expected]


@pytest.mark.parametrize("shape", [(24, 24, 2), (5, 16, 16), (2, 16, 20)])
def test_bytes_that_are_no_images_are_refused_with_what_to_do(shape):
    x = images(*shape)
    with pytest.raises(ValueError, match=r"view 'view0' holds bytes of shape .*\('float32'\)\)$"):
        MeanFill().fit([x, x])
    MeanFill().fit([x.astype("float32"), x.astype("float32")])


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_images_come_back_in_the_layout_and_type_they_came_in(kind):
    a, b = images(8, 10, 3), images(8, 10, 1)
    gone = np.ones((12, 2), bool)
    gone[3:6, 1] = False
    last, first = (
        MeanFill(random_state=0).fit(Views.of(X, mask=gone)) for X in ([a, b], [moved(a), moved(b)])
    )
    X = {"view0": kind(a), "view1": None}
    filled, other = last.impute(X), first.impute({"view0": kind(moved(a)), "view1": None})
    assert type(filled["view0"]) is type(X["view0"])
    assert np.array_equal(filled["view0"], a)
    assert filled["view1"].shape == b.shape
    assert filled["view1"].dtype == np.uint8
    assert np.array_equal(moved(filled["view1"]), other["view1"])
    for ours, theirs in zip(last.impute(X, 0.9), first.impute(X, 0.9), strict=True):
        assert np.array_equal(moved(ours["view1"]), theirs["view1"])  # as each was fitted
    (draw,) = last.sample_imputations(X, 1)
    assert draw["view1"].shape == b.shape
    rebuilt = last.reconstruct({"view0": a, "view1": b})
    assert rebuilt["view0"].shape == a.shape
    ours = first.impute({"view0": kind(a), "view1": None})  # fitted with channels first
    assert np.array_equal(ours["view0"], a)


def test_where_a_mask_hides_images_they_are_filled_in_their_own_axes():
    a, b = images(8, 10, 3), images(8, 10, 3)
    seen = np.ones((12, 2), bool)
    seen[:4, 1] = False
    hidden = np.ma.masked_array(b, np.broadcast_to(~seen[:, 1, None, None, None], b.shape))
    model = MeanFill().fit([a, hidden])
    filled = model.impute([a, hidden])[1]
    mean = np.rint(b[4:].mean(0))
    assert filled.shape == b.shape
    assert np.abs(filled[:4] - mean).max() <= 1
    assert np.array_equal(filled[4:], b[4:])


@pytest.mark.slow
def test_networks_see_the_same_images_in_both_layouts(tmp_path):
    small = dict(steps=2, latent_dim=4, map_hidden=(4,), random_state=0)
    X = [images(16, 16, 3), images(16, 16, 3)]
    last, first = MVP(**small).fit(X), MVP(**small).fit([moved(x) for x in X])
    assert np.array_equal(last.transform(X), first.transform(X))
    assert last.generate(2)["view0"].shape == (2, 16, 16, 3)
    last.save(tmp_path / "model")
    again = vedute.load(tmp_path / "model")
    assert again.impute([X[0], None])[1].shape == (12, 16, 16, 3)
    assert again.generate(2)["view0"].shape == (2, 16, 16, 3)
    with pytest.raises(ValueError, match="move the channel axis"):
        MVP(**small).fit([x / 255 for x in X])  # numbers are no bytes: nobody knows the axes


def test_the_command_line_keeps_the_layout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a, b = images(8, 10, 3), images(8, 10, 3)
    np.savez("d.npz", a=a, b=b)
    done("fit", "d.npz", "-o", "run", "--method", "mean_fill")
    np.savez("new.npz", a=a[:5])
    done("impute", "run", "new.npz", "-o", "filled.npz")
    with np.load("filled.npz") as filled:
        assert filled["b"].shape == (5, 8, 10, 3)
        assert np.array_equal(filled["a"], a[:5])
    np.savez("bad.npz", a=images(5, 8, 10), b=b)
    assert "neither axis 1 nor the last" in refused("inspect", "bad.npz")


def test_stores_have_the_channels_first(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "STREAMED_BYTES", 0)
    folder = tmp_path / "d"
    folder.mkdir()
    a, b = images(8, 10, 3), images(3, 8, 10)
    np.save(folder / "a.npy", a)
    np.save(folder / "b.npy", b)
    done("convert", folder, "-o", tmp_path / "store", "--keep-order")
    views = Views.open(tmp_path / "store")
    assert views.shapes == [(3, 8, 10), (3, 8, 10)]
    assert np.array_equal(views.x[0], moved(a))
    assert np.array_equal(views[[3, 5]].x[0], moved(a)[[3, 5]])
