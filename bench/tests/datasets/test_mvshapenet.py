"""Rendered ShapeNet objects, one folder each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from vedute_bench.datasets import mvshapenet


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two objects per class; the gray of a picture tells class, object and azimuth."""
    image = pytest.importorskip("PIL.Image")
    monkeypatch.setenv("VEDUTE_DATA", str(tmp_path))
    home = tmp_path / "mvshapenet"
    for k, name in enumerate(mvshapenet.NAMES):
        for j in range(2):
            (home / name / f"{j}abc").mkdir(parents=True)
            for v, azimuth in enumerate(mvshapenet.AZIMUTHS):
                picture = image.new("RGB", (8, 8), (40 * k, 100 * j, 50 * v))
                picture.save(home / name / f"{j}abc" / f"{azimuth}.png")
    return home


def test_views_are_paired_by_object(home):
    views = mvshapenet.load(size=8)
    assert views.names == ("-90", "-45", "0", "45", "90")
    assert views.shapes == [(3, 8, 8)] * 5
    assert len(views) == 10
    for v, x in enumerate(views.x):
        assert x.dtype == torch.uint8
        assert (x[:, 0, 0, 0].numpy() == 40 * views.y).all()
        assert (x[:, 2] == 50 * v).all()
        named = [int(i.split("/")[1][0]) for i in views.ids]
        assert (x[:, 1, 3, 3].numpy() == 100 * np.array(named)).all()
    assert views.ids[0].startswith(mvshapenet.NAMES[views.y[0]])


def test_split_and_size(home):
    everything, train, test = (mvshapenet.load(s, size=4) for s in ("all", "train", "test"))
    assert (len(train), len(test)) == (8, 2)
    assert [*train.ids, *test.ids] == everything.ids.tolist()
    assert train.shapes == [(3, 4, 4)] * 5


def test_nothing_behind_an_object_is_white(home):
    from PIL import Image

    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(home / "car" / "0abc" / "45.png")
    views = mvshapenet.load(size=8)
    assert (views.x[3][views.ids.tolist().index("car/0abc")] == 255).all()


def test_what_is_missing_is_told(home, tmp_path, monkeypatch):
    (home / "car" / "1abc" / "0.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"0.png is missing; render the object again"):
        mvshapenet.load()
    with pytest.raises(ValueError, match="no split 'half'"):
        mvshapenet.load("half")
    monkeypatch.setenv("VEDUTE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"has no folder table; render .* or load shapes"):
        mvshapenet.load()
    for name in mvshapenet.NAMES:
        (tmp_path / "nowhere" / "mvshapenet" / name).mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="hold no object"):
        mvshapenet.load()
