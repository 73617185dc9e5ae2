"""Captions tell what the pictures show; tokens are read and written in one way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.random import default_rng

from vedute import datasets
from vedute_bench.datasets import captions, cub_captions
from vedute_bench.shapes import objects

N = 80


@pytest.fixture(scope="module")
def pairs():
    return captions.load(n=N, size=32)


def test_views(pairs):
    assert "captions" in datasets.available()
    assert pairs.names == ("image", "caption")
    assert pairs.shapes == [(3, 32, 32), (captions.LENGTH,)]
    assert [x.dtype for x in pairs.x] == [torch.uint8, torch.int64]
    assert pairs.mask.all()
    assert len(captions.load(n=N, size=32, split="test")) == N // 5
    assert pairs[5:8].x[1].shape == (3, captions.LENGTH)


def test_the_same_bytes_again_and_the_rows_of_a_split(pairs):
    again, test = captions.load(n=N, size=32), captions.load(n=N, size=32, split="test")
    for a, b, c in zip(pairs.x, again.x, test.x, strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a[N * 4 // 5 :], c)
    assert (pairs.y[N * 4 // 5 :] == test.y).all()


def test_class_and_color_are_those_of_the_object(pairs):
    kind, color = captions.meaning(pairs.x[1])
    assert (kind == pairs.y).all()
    for i in range(N):
        made, _ = objects.design(int(pairs.y[i]), i, 0)
        assert captions.COLORS[color[i]] == made.color
        assert made.color in captions.words(pairs.x[1][i]).split()
    silent = np.array([captions.tokens("two thin legs")])
    assert [int(part[0]) for part in captions.meaning(silent)] == [-1, -1]


def test_the_picture_shows_the_color(pairs):
    """The hue of most pixels is the one that is told; gray is told where few have any."""
    _, color = captions.meaning(pairs.x[1])
    gray = captions.COLORS.index("gray")
    named = np.array([captions.PALETTE[c] for c in captions.COLORS[:gray]])
    named /= np.linalg.norm(named, axis=1, keepdims=True)
    found = []
    for image in pairs.x[0].numpy():
        pixels = image.reshape(3, -1).T / 255.0
        pixels = pixels[pixels.min(1) < 0.98]
        vivid = np.ptp(pixels, axis=1) > 0.25 * pixels.max(1)
        near = (pixels / np.linalg.norm(pixels, axis=1, keepdims=True) @ named.T).argmax(1)
        share = np.bincount(near[vivid], minlength=gray) / len(pixels)
        found.append(share.argmax() if share.max() > 0.15 else gray)
    assert (np.array(found) == color).mean() > 0.9


def test_every_word_has_a_token_and_every_token_is_used():
    used, longest = set(), 0
    for label, name in enumerate(captions.NAMES):
        for i in range(150):
            made, rng = objects.design(label, i, 1)
            used |= {word for trait in made.traits for word in trait.split()}
            said = captions.sentence(made, name, rng)
            longest = max(longest, len(said.split()))
            used |= set(said.split())
            assert captions.words(captions.tokens(said)) == said
    assert used == set(captions.vocabulary()[1:])
    assert captions.vocabulary()[0] == "<pad>"
    assert longest <= captions.LENGTH


def test_the_wording_varies_and_the_articles_are_right():
    made, _ = objects.design(1, 0, 0)
    said = {captions.sentence(made, "chair", default_rng(i)) for i in range(200)}
    assert len(said) > 20
    orange = made._replace(color="orange")
    for i in range(50):
        text = captions.sentence(orange, "airplane", default_rng(i))
        assert " a orange" not in f" {text}"
        assert " a airplane" not in f" {text}"


def test_wrong_wishes_are_refused():
    with pytest.raises(ValueError, match="no split 'half'; choose from all, train, test"):
        captions.load(split="half")
    with pytest.raises(ValueError, match="at least 1"):
        captions.load(n=0)


# CUB image-captions, in its layout.

SPECIES = {"train": ("001.Gull", "003.Wren"), "test": ("002.Owl",)}
LINE = "this bird is {} with a small bill, and wings."


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    image = pytest.importorskip("PIL.Image")
    monkeypatch.setenv("VEDUTE_DATA", str(tmp_path))
    home = tmp_path / "cub_captions"
    for split, names in SPECIES.items():
        (home / cub_captions.LISTS[split]).parent.mkdir(exist_ok=True)
        (home / cub_captions.LISTS[split]).write_text("\n".join(names) + "\n")
        for name in names:
            for k, color in enumerate(("red", "blue")):
                photographs = home / "CUB_200_2011" / "images" / name
                texts = home / "text_c10" / name
                photographs.mkdir(parents=True, exist_ok=True)
                texts.mkdir(parents=True, exist_ok=True)
                image.new("RGB", (90, 50), color).save(photographs / f"bird_{k}.jpg")
                lines = [LINE.format(color), "a very rare thing" if split == "test" else "An owl"]
                (texts / f"bird_{k}.txt").write_text("\n".join(lines) + "\n\n")
    return home


def test_cub_pairs(home):
    train, test = (cub_captions.load(split, size=16) for split in SPECIES)
    assert (len(train), len(test)) == (8, 4)  # two species, two birds, two lines; one species
    assert train.shapes == [(3, 16, 16), (32,)]
    assert [x.dtype for x in train.x] == [torch.uint8, torch.int64]
    assert train.y.tolist() == [0] * 4 + [2] * 4
    assert test.y.tolist() == [1] * 4
    red, _, blue = (train.x[0][i].float().mean((1, 2)) for i in (0, 1, 2))
    assert red.argmax() == 0
    assert blue.argmax() == 2


def test_cub_tokens(home):
    vocabulary = cub_captions.vocabulary()
    assert vocabulary[:3] == ["<pad>", "<eos>", "<exc>"]
    common = "this bird is with a small bill and wings an owl , ."  # four times or more
    assert sorted(vocabulary[3:]) == sorted(common.split())
    train, test = (cub_captions.load(split, size=16) for split in SPECIES)
    said = cub_captions.words(train.x[1][0], vocabulary)
    assert said == "this bird is <exc> with a small bill , and wings ."
    assert cub_captions.words(test.x[1][1], vocabulary) == "a <exc> <exc> <exc>"
    assert cub_captions.words(train.x[1][1], vocabulary) == "an owl"
    assert train.x[1][1].tolist()[2:] == [1] + [0] * 29


def test_long_captions_are_cut(home):
    text = home / "text_c10" / "001.Gull" / "bird_0.txt"
    text.write_text("bird " * 50)
    told = cub_captions.load("train", size=8).x[1][0].tolist()
    bird = cub_captions.vocabulary().index("bird")
    assert told == [bird] * 31 + [1]


def test_what_is_missing_of_cub_is_told(home, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="no split 'all'; choose from train, test"):
        cub_captions.load("all")
    photograph = home / "CUB_200_2011" / "images" / "002.Owl" / "bird_1.jpg"
    photograph.write_bytes(b"no picture")
    with pytest.raises(ValueError, match="cannot be read as an image"):
        cub_captions.load("test")
    photograph.unlink()
    with pytest.raises(FileNotFoundError, match=r"bird_1.jpg is missing, but its captions exist"):
        cub_captions.load("test")
    (home / "testclasses.txt").write_text("009.Nothing")
    with pytest.raises(FileNotFoundError, match=r"no captions of the species in testclasses.txt"):
        cub_captions.load("test")
    monkeypatch.setenv("VEDUTE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"images is not in .*nowhere; fetch .*VEDUTE_DATA"):
        cub_captions.load()
