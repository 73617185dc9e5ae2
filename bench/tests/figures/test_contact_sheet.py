"""Images land where they should, and mistakes are framed."""

from __future__ import annotations

import numpy as np
import pytest

from vedute.figures.png import png
from vedute_bench.figures.contact_sheet import RED, sheet

rng = np.random.default_rng(0)


def test_every_image_is_in_its_place():
    images = rng.integers(200, size=(2, 3, 3, 4, 5), dtype=np.uint8)
    picture = sheet(images, scale=1, gap=1)
    assert picture.shape == (2 * 6 + 2, 3 * 7 + 2, 3)
    for i in range(2):
        for j in range(3):
            top, left = 2 + 6 * i, 2 + 7 * j
            here = picture[top : top + 4, left : left + 5]
            assert (here == images[i, j].transpose(1, 2, 0)).all()
    assert (picture[0] == 255).all()
    assert (picture[:, 8] == 255).all()


def test_pixels_are_enlarged_and_grey_is_a_color():
    image = np.arange(4, dtype=np.uint8).reshape(1, 1, 1, 2, 2)
    picture = sheet(image, scale=3, gap=2)
    inside = picture[4:10, 4:10]
    assert (inside[:3, 3:] == 1).all()
    assert (inside[3:, :3] == 2).all()


def test_mistakes_are_framed_in_red_and_only_they():
    images = np.zeros((2, 2, 3, 6, 6), np.uint8)
    wrong = np.array([[False, True], [False, False]])
    picture = sheet(images, wrong, scale=1, gap=3)
    red = (picture == RED).all(-1)
    assert red.any()
    assert not red[:, :15].any()
    assert not red[15:].any()
    assert red.sum() == 10 * 10 - 6 * 6
    assert not (sheet(images, scale=1) == RED).all(-1).any()


def test_what_was_given_stands_apart():
    images = np.zeros((1, 3, 3, 4, 4), np.uint8)
    plain, apart = (sheet(images, lead=lead, scale=1, gap=2) for lead in (0, 1))
    assert apart.shape[1] == plain.shape[1] + 6
    assert png(apart).startswith(b"\x89PNG")


def test_what_is_no_table_of_images_is_refused():
    with pytest.raises(ValueError, match=r"images are float64 \(2, 2, 3, 4, 4\)"):
        sheet(np.zeros((2, 2, 3, 4, 4)))
    with pytest.raises(ValueError, match="pass one flag per image"):
        sheet(np.zeros((2, 2, 3, 4, 4), np.uint8), wrong=[True])
