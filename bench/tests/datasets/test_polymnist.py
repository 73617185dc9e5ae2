"""The recipe is followed, images are paired by name, and whatever is wrong is refused."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
import torch

from vedute import datasets
from vedute.data.missing import make_mask, rates
from vedute.datasets import _files
from vedute_bench.datasets import polymnist

rng = np.random.default_rng(0)
COUNT = {"train": 60, "test": 20}
DIGITS = {k: rng.integers(256, size=(n, 28, 28), dtype=np.uint8) for k, n in COUNT.items()}
LABELS = {k: rng.integers(10, size=n).astype(np.uint8) for k, n in COUNT.items()}
BACKGROUNDS = [rng.integers(256, size=(40 + v, 50, 3), dtype=np.uint8) for v in range(5)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder with a small MNIST, and no network."""

    def refuse(address, timeout):
        raise URLError("no network in tests")

    monkeypatch.setattr(_files, "urlopen", refuse)
    monkeypatch.setenv("VEDUTE_DATA", str(tmp_path))
    named = {f"x_{k}": x for k, x in DIGITS.items()} | {f"y_{k}": y for k, y in LABELS.items()}
    np.savez(tmp_path / "mnist.npz", **named)
    return tmp_path


def load(*args, **options):
    return polymnist.load(*args, backgrounds=BACKGROUNDS, **options)


def test_views_are_bytes_and_the_order_is_that_of_mnist(folder):
    views = load("train")
    assert views.names == ("m0", "m1", "m2", "m3", "m4")
    assert views.shapes == [(3, 28, 28)] * 5
    assert all(x.dtype == torch.uint8 for x in views.x)
    assert views.mask.all()
    assert (views.y == LABELS["train"]).all()
    assert len(load("test")) == 20
    both = load("all")
    assert (both.y == np.concatenate(list(LABELS.values()))).all()
    assert torch.equal(both.x[3][60:], load("test").x[3])


def test_every_image_is_a_piece_of_its_picture_inverted_where_the_stroke_is(folder):
    """Slowly: look for the piece and the digit that make this image."""
    views = load("train", n=12)
    for v, picture in enumerate(BACKGROUNDS):
        used = []
        for image, y in zip(views.x[v].numpy(), views.y, strict=True):
            same = np.flatnonzero(LABELS["train"] == y)
            found = [row for row in same if is_made_of(image, picture, DIGITS["train"][row] > 128)]
            assert len(found) == 1
            used += found
        assert len(set(used)) == len(used)  # an order, not a draw with replacement


def is_made_of(image, picture, stroke):
    piece = np.where(stroke, 255 - image, image).transpose(1, 2, 0)
    places = [(i, j) for i in range(picture.shape[0] - 28) for j in range(picture.shape[1] - 28)]
    return any((picture[i : i + 28, j : j + 28] == piece).all() for i, j in places)


def test_views_share_the_digit_and_nothing_else(folder):
    twins = BACKGROUNDS[:1] * 5
    views = polymnist.load("train", backgrounds=twins)
    same = [torch.equal(views.x[0][i], views.x[1][i]) for i in range(60)]
    assert sum(same) < 5


def test_the_seed_decides(folder):
    a, b, other = load(seed=3), load(seed=3), load(seed=4)
    assert all(torch.equal(x, y) for x, y in zip(a.x, b.x, strict=True))
    assert not torch.equal(a.x[0], other.x[0])
    few = load(seed=3, n=7)
    assert len(few) == 7
    assert all(torch.equal(x, y[:7]) for x, y in zip(few.x, a.x, strict=True))
    assert len(load("all", n=70)) == 70


def test_what_is_not_there_is_said_in_one_sentence(folder, monkeypatch):
    (folder / "mnist.npz").unlink()
    with pytest.raises(FileNotFoundError, match=r"mnist.npz is not in .* could not be downloaded"):
        load()
    np.savez(folder / "mnist.npz", x_train=np.zeros((3, 28, 27)), y_train=np.zeros(3))
    with pytest.raises(ValueError, match=r"shape \(3, 28, 27\)"):
        load()
    with pytest.raises(ValueError, match="lacks x_test and y_test"):
        load("test")
    with pytest.raises(ValueError, match="no split 'dev'; choose from train, test, all"):
        load("dev")
    with pytest.raises(ValueError, match="no source 'web'"):
        load(source="web")
    monkeypatch.setattr(polymnist, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'vedute\[images\]'"):
        polymnist.load()


def test_a_background_must_be_a_picture(folder):
    with pytest.raises(ValueError, match=r"background 0 has shape \(28, 40, 3\)"):
        polymnist.load(backgrounds=[np.zeros((28, 40, 3), np.uint8)] * 5)


def test_the_photographs_of_scikit_image(folder):
    pytest.importorskip("skimage")
    views = datasets.load("polymnist", "test")
    assert views.shape == (20, 5)
    sizes = [p.shape for p in polymnist._photographs()]
    assert sizes == [(512, 512, 3), (300, 451, 3), (400, 600, 3), (872, 1000, 3), (512, 512, 3)]


# The published images.


def published(folder, n=4):
    """Folders in an order of their own; every view of sample <i>.<digit> is of one color."""
    image = pytest.importorskip("PIL.Image")
    home = folder / "polymnist" / "train"
    for v in range(5):
        (home / f"m{v}").mkdir(parents=True)
        for i in rng.permutation(n):
            pixels = np.full((28, 28, 3), 10 * i + v, np.uint8)
            pixels[..., 0] = 200
            image.fromarray(pixels).save(home / f"m{v}" / f"{i}.{9 - i}.png")
    return home


def test_published_images_are_paired_by_name(folder):
    home = published(folder)
    views = polymnist.load("train", source="published")
    assert views.y.tolist() == [9, 8, 7, 6]
    for v, x in enumerate(views.x):
        assert x[:, 1, 0, 0].tolist() == [10 * i + v for i in range(4)]
    assert len(polymnist.load("train", n=2, source="published")) == 2
    (home / "m3" / "2.7.png").rename(home / "m3" / "5.7.png")
    with pytest.raises(ValueError, match=r"has 2.7.png in one of m0 and m3 only"):
        polymnist.load("train", source="published")
    with pytest.raises(FileNotFoundError, match="fetch PolyMNIST from https"):
        polymnist.load("test", source="published")


def test_published_tensors_are_read_without_executing_code(folder):
    home = folder / "polymnist" / "test"
    home.mkdir(parents=True)
    x = torch.randint(256, (5, 6, 3, 28, 28), dtype=torch.uint8)
    for v in range(5):
        torch.save(x[v] / 255 if v else x[v], home / f"m{v}.pt")
    torch.save(torch.arange(6), home / "labels.pt")
    views = polymnist.load("test", source="published")
    assert views.y.tolist() == list(range(6))
    assert all(torch.equal(a, b) for a, b in zip(views.x, x, strict=True))
    torch.save(torch.arange(5), home / "labels.pt")
    with pytest.raises(ValueError, match="5 labels"):
        polymnist.load("test", source="published")
    torch.save({"a": 1}, home / "labels.pt")
    with pytest.raises(ValueError, match=r"labels.pt holds no tensor"):
        polymnist.load("test", source="published")


def test_masks_of_the_paper():
    """Half of the samples are incomplete, uniform over the 30 patterns that leave some view."""
    mask = make_mask(60000, 5, 0.5, 42, "bernoulli")
    assert rates(mask).rows == 0.5
    counts = np.bincount(mask[~mask.all(1)].sum(1), minlength=6)
    assert counts[0] == counts[5] == 0
    assert counts[1:5] / 30000 == pytest.approx([1 / 6, 1 / 3, 1 / 3, 1 / 6], abs=0.01)
    assert (mask == make_mask(60000, 5, 0.5, 42, "bernoulli")).all()


def test_mnist_is_whole_or_refused(folder):
    x, y = polymnist.digits("test")
    assert (x == DIGITS["test"]).all()
    assert (y == LABELS["test"]).all()


def test_the_download_of_mnist_has_a_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VEDUTE_DATA", str(tmp_path))
    file = io.BytesIO()
    digits = {"x_test": np.zeros((3, 28, 28), np.uint8), "y_test": np.zeros(3, np.uint8)}
    np.savez(file, **digits)
    data = file.getvalue()
    monkeypatch.setattr(_files, "urlopen", lambda address, timeout: io.BytesIO(data))
    with pytest.raises(ValueError, match=r"not kept: checksum mismatch in mnist.npz"):
        polymnist.digits("test")
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(polymnist, "SHA256", hashlib.sha256(data).hexdigest())
    assert len(polymnist.digits("test")[0]) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["mnist.npz"]
