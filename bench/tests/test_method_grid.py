"""Methods stand side by side: each image where it belongs, mistakes framed, nothing resampled."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise

import numpy as np
import pytest

from vedute_bench.figures.contact_sheet import RED
from vedute_bench.summaries.method_grid import DPI, GAP, HEAD, MARGIN, Shown, draw, load
from vedute_bench.summaries.summary import Summary

pytest.importorskip("matplotlib")
SIDE = 32  # drawn twice as large


def flat(color, wrong=(), classes=(0, 0, 1), L=2):
    """All inferred views of three samples in one color; given: sample i in (0, 0, 100 + i)."""
    n = len(classes)
    images = np.empty((n, 1 + L, 3, SIDE, SIDE), np.uint8)
    images[:] = np.array(color, np.uint8)[:, None, None]
    for i in range(n):
        images[i, 0] = np.array([0, 0, 100 + i], np.uint8)[:, None, None]
    bad = np.zeros((n, 1 + L), bool)
    for i, v in wrong:
        bad[i, 1 + v] = True
    truth = np.full((n, L, 3, SIDE, SIDE), 77, np.uint8)
    return Shown(images, bad, truth, np.array(classes), np.array(list("abcde"[:L])), "b")


def drawn(shown):
    from matplotlib.image import imread

    file = BytesIO()
    draw(shown).savefig(file, dpi=DPI, format="png")
    file.seek(0)
    return np.rint(255 * imread(file)[..., :3]).astype(int)


def count(picture, color):
    return int((picture == np.array(color)).all(-1).sum())


def test_every_method_has_its_images_in_full():
    colors = {"one": (10, 200, 30), "two": (20, 40, 220), "three": (90, 10, 140)}
    picture = drawn({name: flat(color) for name, color in colors.items()})
    image = (2 * SIDE) ** 2
    for color in colors.values():
        assert count(picture, color) == 3 * 2 * image  # samples, views
    assert count(picture, (77, 77, 77)) == 3 * 2 * image
    assert count(picture, (0, 0, 101)) == image  # what was given, once
    assert not count(picture, RED)
    left = np.flatnonzero((picture == (0, 0, 100)).all(-1).any(0))
    assert left[0] == MARGIN + 2 * GAP


def test_many_methods_stand_in_bands_and_what_was_given_beside_each():
    few, many = ({str(i): flat((i, 9, 9)) for i in range(n)} for n in (3, 7))
    one, two = drawn(few), drawn(many)
    assert one.shape[1] == two.shape[1]  # four blocks, with the truth
    assert two.shape[0] - 2 * MARGIN == 2 * (one.shape[0] - 2 * MARGIN)
    assert count(two, (0, 0, 102)) == 2 * (2 * SIDE) ** 2
    assert one.shape[0] > HEAD + 3 * 2 * SIDE


def test_a_long_name_stays_over_its_own_block():
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    long = "mvp (100 epochs) (dropout=0.2, weight_decay=0.05)"
    figure = draw({long: flat((1, 2, 3), L=5), "two": flat((4, 5, 6), L=5)})
    FigureCanvasAgg(figure).draw()
    names = [t for t in figure.texts if t.get_fontweight() == "bold"]
    spans = sorted((t.get_window_extent().x0, t.get_window_extent().x1) for t in names)
    assert all(a[1] < b[0] for a, b in pairwise(spans))
    assert all(t.get_text().count("\n") < 2 for t in names)


def test_mistakes_are_framed():
    right, wrong = drawn({"m": flat((5, 5, 5))}), drawn({"m": flat((5, 5, 5), [(0, 1), (2, 0)])})
    frame = (2 * SIDE + 4) ** 2 - (2 * SIDE) ** 2
    assert count(right, RED) == 0
    assert count(wrong, RED) == 2 * frame


def test_only_five_classes_are_drawn():
    picture = drawn({"m": flat((5, 5, 5), classes=range(8))})
    assert count(picture, (0, 0, 104))
    assert not count(picture, (0, 0, 105))


def test_a_strange_file_is_refused(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"words")
    with pytest.raises(ValueError, match="has no inferred images"):
        Shown.load(tmp_path / "a.npz")


def test_of_each_label_one_run_with_the_same_samples(tmp_path):
    flat((1, 1, 1)).save(tmp_path / "a1.npz")
    flat((2, 2, 2)).save(tmp_path / "a2.npz")
    flat((3, 3, 3), classes=(0, 1)).save(tmp_path / "b.npz")
    flat((4, 4, 4)).save(tmp_path / "c.npz")
    runs = {"a": ["a1.npz", "a2.npz"], "b": ["b.npz"], "c": ["gone.npz", "c.npz"], "d": [None]}
    kept = {(k, "set", 0.5): [{"shown": name} for name in names] for k, names in runs.items()}
    summary = Summary(sorted(runs), ["set"], [0.5], kept)
    found = load(summary, "set", 0.5, tmp_path)
    assert {k: int(s.images[0, 1, 0, 0, 0]) for k, s in found.items()} == {"a": 1, "c": 4}
    assert load(summary, "set", 0.1, tmp_path) == {}
