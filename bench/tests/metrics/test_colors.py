"""Pictures show the colors that sentences name: pixel by pixel, in shares, against chance."""

from __future__ import annotations

import colorsys
import math

import pytest
import torch

from vedute_bench.datasets import captions
from vedute_bench.metrics import colors
from vedute_bench.shapes.solids import PALETTE, WOOD

RGB = {
    "red": (200, 20, 30),
    "orange": (250, 140, 20),
    "yellow": (250, 230, 40),
    "green": (40, 150, 60),
    "blue": (40, 80, 210),
    "purple": (120, 40, 170),
    "pink": (250, 150, 200),
    "brown": (110, 70, 40),
    "black": (20, 20, 25),
    "gray": (128, 130, 125),
    "white": (250, 250, 250),
}


def painted(*halves: str) -> torch.Tensor:
    """An image (3, 8, 8) of equal stripes."""
    columns = torch.tensor([RGB[halves[i * len(halves) // 8]] for i in range(8)])
    return columns.t()[:, None].expand(3, 8, 8).to(torch.uint8)


def test_hsv_is_that_of_the_standard_library():
    torch.manual_seed(0)
    x = torch.rand(2, 3, 7, 7, dtype=torch.float64)
    x[0, :, 0] = torch.tensor([0.0, 0.4, 1.0, 0.3, 0.3, 0.9, 0.9])  # grays
    x[0, :2, 1] = 0.8  # two largest channels
    hue, saturation, value = colors.hsv(x)
    for b, i, j in torch.cartesian_prod(torch.arange(2), torch.arange(7), torch.arange(7)):
        found = (hue[b, i, j] / 360, saturation[b, i, j], value[b, i, j])
        true = colorsys.rgb_to_hsv(*x[b, :, i, j].tolist())
        assert [float(f) for f in found] == pytest.approx(true, abs=1e-12)


@pytest.mark.parametrize("name", colors.NAMES)
def test_every_color_is_called_by_its_name(name):
    image = painted(name)[None]
    assert colors.shares(image)[0, colors.NAMES.index(name)] == 1
    torch.testing.assert_close(colors.pixels(image / 255.0), colors.pixels(image))


def test_each_pixel_has_one_color_and_the_circle_closes():
    torch.manual_seed(0)
    of = colors.shares(torch.randint(256, (5, 3, 16, 16), dtype=torch.uint8))
    torch.testing.assert_close(of.sum(1), torch.ones(5, dtype=torch.float64))
    around = torch.tensor([colorsys.hsv_to_rgb(h / 360, 0.9, 0.9) for h in (350, 0, 10)])
    assert (colors.pixels(around[:, :, None, None]) == colors.RED).all()


def test_the_paint_of_the_shapes_is_called_by_its_name():
    paint = torch.tensor([*PALETTE.values(), tuple(WOOD)])[:, :, None, None]
    found = [colors.NAMES[int(c)] for c in colors.pixels(paint).flatten()]
    assert found == [*PALETTE, "brown"]


def test_shares_leave_the_ground_out():
    image = painted("white", "white", "white", "blue")[None]
    blue, white = colors.NAMES.index("blue"), colors.NAMES.index("white")
    assert colors.shares(image)[0, [blue, white]].tolist() == [0.25, 0.75]
    assert colors.shares(image, "white")[0, [blue, white]].tolist() == [1, 0]
    assert colors.shares(painted("white")[None], "white").sum() == 0  # nothing but ground


def test_colors_are_read_as_whole_words():
    names = colors.named(
        ["This bird is Grey, with a red-tipped tan bill.", "a bored bird", "violet and purple"]
    )
    found = [{colors.NAMES[c] for c in row.nonzero()[:, 0]} for row in names]
    assert found == [{"gray", "red", "brown"}, set(), {"purple"}]


def test_agreement_counts_named_colors_and_chance_all_pairs():
    images = torch.stack([painted("red"), painted("blue"), painted("red", "black")])
    said = ["a red bird", "a red bird with blue wings", "it is black and yellow"]
    # red: yes; red: no, blue: yes; black: yes, yellow: no
    scored = colors.agreement(images, said)
    assert scored["agreement"] == pytest.approx(3 / 5)
    # red is in 2 of 3 images, blue in 1, black in 1, yellow in none
    assert scored["chance"] == pytest.approx((2 * 2 / 3 + 1 / 3 + 1 / 3 + 0) / 5)


def test_a_color_must_cover_enough():
    image = painted(*["green"] * 7, "red")[None]
    assert colors.agreement(image, ["red"], least=0.12)["agreement"] == 1
    assert colors.agreement(image, ["red"], least=0.13)["agreement"] == 0


def test_without_a_color_there_is_no_agreement():
    assert all(math.isnan(v) for v in colors.agreement(painted("red")[None], ["a bird"]).values())


def test_pictures_agree_with_their_captions_and_not_with_those_of_others():
    pairs = captions.load(n=80, size=32)
    said = [captions.words(t) for t in pairs.x[1]]
    scored = colors.agreement(pairs.x[0], said, ground="white")
    assert scored["agreement"] > 0.97
    assert scored["chance"] < 0.3
    moved = colors.agreement(pairs.x[0].roll(1, 0), said, ground="white")
    assert moved["agreement"] == pytest.approx(scored["chance"], abs=0.15)
    assert moved["chance"] == scored["chance"]


def test_what_is_no_colored_image_is_refused():
    with pytest.raises(ValueError, match=r"pass colors, \(B, 3, H, W\)"):
        colors.shares(torch.zeros(2, 1, 8, 8))
    with pytest.raises(ValueError, match=r"values in \[-1, 1\]; pass bytes, or floats in \[0, 1\]"):
        colors.shares(torch.linspace(-1, 1, 192).view(1, 3, 8, 8))
    with pytest.raises(ValueError, match="no color 'beige'; choose from red, orange"):
        colors.shares(painted("red")[None], "beige")
    with pytest.raises(ValueError, match="1 images and 2 sentences"):
        colors.agreement(painted("red")[None], ["red", "blue"])
