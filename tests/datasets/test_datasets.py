"""Every layout of file is read, whatever is wrong is refused, and nothing is ever downloaded."""

from __future__ import annotations

import bz2
import hashlib
import io
import os
import re
from pathlib import Path
from types import ModuleType
from urllib.error import URLError

import numpy as np
import pytest
import torch
from linear_gaussian import LinearGaussian
from scipy.io import savemat

from vedute import datasets
from vedute.data.missing import drop_entries, drop_views
from vedute.datasets import (
    _files,
    cub,
    handwritten,
    reuters,
    reuters1200,
    scene15,
    sensit,
)
from vedute.datasets import synthetic as made_up
from vedute.metrics.scores import imputation_error

rng = np.random.default_rng(0)
Y = np.array([1, 2, 2, 3, 3, 3])
SUMS = [
    20068.876771458206,
    137492808,
    6794.8466254016475,
    8331824.365639082,
    1452834,
    12632396.781185985,
]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(address: str, timeout: float) -> None:
        raise URLError("no network in tests")

    monkeypatch.setattr(_files, "urlopen", refuse)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VEDUTE_DATA", str(tmp_path))
    return tmp_path


def shrink(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Let the dataset have six samples in classes of 1, 2 and 3; six rows for each view."""
    facts = module.FACTS._replace(n=6, classes=3, counts=(1, 2, 3), sha256="")
    monkeypatch.setattr(module, "FACTS", facts)
    return [rng.random((6, d)) for d in facts.views.values()]


def cell(arrays: list[np.ndarray]) -> np.ndarray:
    out = np.empty((1, len(arrays)), object)
    out[0, :] = arrays
    return out


def write_original(name: str, x: list[np.ndarray], y: np.ndarray, folder: Path) -> None:
    if name == "cub":
        savemat(folder / "cub_googlenet_doc2vec_c10.mat", {"X": cell(x), "gt": y[:, None]})
    if name == "scene15":
        savemat(folder / "Scene-15.mat", {"X": cell(x), "Y": y[:, None]})
    if name == "reuters":
        parts = {"x_train": np.stack(x)[:, :4], "x_test": np.stack(x)[:, 4:]}
        savemat(folder / "Reuters_dim10.mat", parts | {"y_train": y[:4], "y_test": y[4:]})
    if name == "sensit":
        rows = [
            f"{label} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row) if value)
            for label, row in zip(y, np.hstack(x).tolist(), strict=True)
        ]
        for file, lines in (("combined_scale.bz2", rows[:4]), ("combined_scale.t.bz2", rows[4:])):
            (folder / file).write_bytes(bz2.compress("\n".join(lines).encode() + b"\n"))


ORIGINALS = [cub, scene15, reuters, sensit]


def name_of(module: ModuleType) -> str:
    return module.__name__.rsplit(".", 1)[1]


def test_the_folder_is_the_registry() -> None:
    names = datasets.available()
    assert {"handwritten", "cub", "scene15", "reuters", "reuters1200", "sensit"} <= set(names)
    assert "synthetic" in names
    assert not any(n.startswith("_") for n in names)
    with pytest.raises(KeyError, match="no dataset 'mnistt'; choose from cub"):
        datasets.load("mnistt")


def test_handwritten_is_in_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VEDUTE_DATA", str(tmp_path / "nowhere"))
    views = datasets.load("handwritten")
    assert views.shape == (2000, 6)
    assert views.mask.all()
    assert views.names == ("fou", "fac", "kar", "zer", "pix", "mor")
    assert [s[0] for s in views.shapes] == [76, 216, 64, 47, 240, 6]
    assert views.y is not None
    assert (views.y == np.repeat(np.arange(10), 200)).all()
    assert all(x.dtype == torch.float32 for x in views.x)
    file = Path(handwritten.__file__).parent / "_data" / "handwritten.npz"
    assert file.stat().st_size < 2.5e6
    sums = [float(x.double().sum()) for x in views.x]
    assert sums == pytest.approx(SUMS, rel=1e-9)


@pytest.mark.parametrize("module", ORIGINALS, ids=name_of)
def test_the_original_layout_and_the_npz_layout_agree(
    module: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, name = shrink(module, monkeypatch), name_of(module)
    write_original(name, x, Y, folder)
    original = datasets.load(name)
    named = {f"view{v}": a.astype(np.float32) for v, a in enumerate(x)}
    np.savez(folder / f"{name}.npz", y=Y - 1, view_names=list(module.FACTS.views), **named)
    for path in (*folder.glob("*.mat"), *folder.glob("*.bz2")):
        path.unlink()
    for views in (original, datasets.load(name)):
        assert views.names == tuple(module.FACTS.views)
        assert views.y is not None
        assert views.y.dtype == np.int64
        assert (views.y == [0, 1, 1, 2, 2, 2]).all()
        assert views.mask.all()
        for a, b in zip(views.x, x, strict=True):
            assert a.dtype == torch.float32
            assert torch.equal(a, torch.tensor(b).float())


@pytest.mark.parametrize("module", ORIGINALS, ids=name_of)
def test_wrong_shapes_and_classes_are_refused(
    module: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, name = shrink(module, monkeypatch), name_of(module)
    write_original(name, x, np.array([1, 1, 2, 2, 3, 3]), folder)
    with pytest.raises(ValueError, match=r"classes of \(2, 2, 2\) samples; .* delete it"):
        datasets.load(name)
    write_original(name, [a[:5] for a in x], Y[:5], folder)
    with pytest.raises(ValueError, match=f"5 labels; {name} has .*; delete it"):
        datasets.load(name)
    for file in [*folder.iterdir()]:
        file.write_bytes(b"<html>not found</html>")
    with pytest.raises(ValueError, match="delete it and load again"):
        datasets.load(name)


@pytest.mark.parametrize("module", ORIGINALS, ids=name_of)
def test_without_file_and_network_the_address_and_the_folder_are_told(
    module: ModuleType, folder: Path
) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load(name_of(module))
    text = str(caught.value)
    assert str(folder) in text
    assert "https://" in text
    assert "no network in tests" in text
    assert not list(folder.iterdir())


def test_a_download_lies_in_the_folder_afterwards(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = shrink(scene15, monkeypatch)
    write_original("scene15", x, Y, folder)
    data = (folder / "Scene-15.mat").read_bytes()
    asked = []

    def answer(address: str, timeout: float) -> io.BytesIO:
        asked.append(address)
        return io.BytesIO(data)

    monkeypatch.setattr(_files, "urlopen", answer)
    monkeypatch.setenv("VEDUTE_DATA", str(folder / "new" / "deep"))
    for _ in range(2):
        assert len(scene15.load()) == 6
    assert asked == [scene15.ADDRESS]
    assert [p.name for p in (folder / "new" / "deep").iterdir()] == ["Scene-15.mat"]


@pytest.mark.parametrize("module", ORIGINALS, ids=name_of)
@pytest.mark.parametrize("kind", ["a page", "cut off", "other classes"])
def test_a_wrong_download_is_said_and_leaves_nothing(
    module: ModuleType, kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, name = shrink(module, monkeypatch), name_of(module)
    write_original(name, x, np.array([1, 1, 2, 2, 3, 3]), folder)
    content = {file.name: file.read_bytes() for file in folder.iterdir()}
    served = {
        "a page": lambda data: b"<html>moved</html>",
        "cut off": lambda data: data[: len(data) // 2],
        "other classes": lambda data: data,
    }[kind]

    def answer(address: str, timeout: float) -> io.BytesIO:
        return io.BytesIO(served(content[address.rsplit("/", 1)[1]]))

    monkeypatch.setattr(_files, "urlopen", answer)
    new = folder / "new"
    monkeypatch.setenv("VEDUTE_DATA", str(new))
    with pytest.raises(ValueError, match="damaged or another file, and was not kept: ") as caught:
        datasets.load(name)
    text = str(caught.value)
    assert "\n" not in text
    assert str(new) not in text  # what was not kept has no place
    assert "delete" not in text
    assert not list(new.iterdir())


def test_a_file_that_was_there_stays_beside_a_wrong_download(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_original("sensit", shrink(sensit, monkeypatch), Y, folder)
    (folder / "combined_scale.t.bz2").unlink()
    monkeypatch.setattr(_files, "urlopen", lambda address, timeout: io.BytesIO(b"moved"))
    with pytest.raises(ValueError, match=r"the download from \S+/combined_scale.t.bz2 is damaged"):
        sensit.load()
    assert [p.name for p in folder.iterdir()] == ["combined_scale.bz2"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_read_only_folder_gets_the_same_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.chmod(0o555)
    with pytest.raises(FileNotFoundError, match=r"could not be downloaded \(.*Permission denied"):
        cub.load()
    folder.chmod(0o755)


def test_addresses_on_github_are_commits() -> None:
    """But that of Reuters, whose commit is not known: docs/data.md."""
    commit = re.compile(r"https://github.com/[\w-]+/[\w-]+/raw/[0-9a-f]{40}/")
    assert all(commit.match(module.ADDRESS) for module in (cub, scene15))
    assert "raw/main/" in reuters.ADDRESS


def test_known_files_are_known_by_their_checksum(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = shrink(cub, monkeypatch)
    np.savez(folder / "cub.npz", view0=x[0], view1=x[1], y=Y)
    digest = hashlib.sha256((folder / "cub.npz").read_bytes()).hexdigest()
    monkeypatch.setattr(cub, "FACTS", cub.FACTS._replace(sha256=digest))
    assert len(cub.load()) == 6
    monkeypatch.setattr(cub, "FACTS", cub.FACTS._replace(sha256="0" * 64))
    with pytest.raises(ValueError, match=r"is not cub: checksum mismatch; delete it"):
        cub.load()


def test_a_file_with_pickles_or_without_views_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrink(scene15, monkeypatch)
    np.savez(folder / "scene15.npz", view0=np.array([{}], object), y=Y)
    with pytest.raises(ValueError, match="lacks view0 to view2 and y; delete it"):
        scene15.load()
    (folder / "scene15.npz").unlink()
    savemat(folder / "Scene-15.mat", {"X": np.ones((6, 119)), "Y": Y})
    with pytest.raises(ValueError, match=r"X in .* is not a cell of views"):
        scene15.load()


def test_reuters1200_reads_both_kinds_of_features(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError, match=r"reuters1200_dim10.npz is not in .* VEDUTE_DATA"):
        datasets.load("reuters1200")
    for features, facts in list(reuters1200.FACTS.items()):
        small = facts._replace(n=6, classes=3, counts=(1, 2, 3), sha256="")
        monkeypatch.setitem(reuters1200.FACTS, features, small)
        x = {f"view{v}": rng.random((6, d)) for v, d in enumerate(facts.views.values())}
        np.savez(folder / f"{facts.name}.npz", y=Y, **x)
        views = reuters1200.load(features)
        assert views.names[0] == "english"
        assert views.shapes == [(d,) for d in facts.views.values()]
    with pytest.raises(ValueError, match="no features 'words'; choose from dim10, tfidf"):
        reuters1200.load("words")
    assert "never to be reported as Reuters" in str(reuters1200.__doc__)


def test_data_lie_in_the_cache_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VEDUTE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/some/cache")
    assert _files.folder() == Path("/some/cache/vedute")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert _files.folder() == Path("/home/someone/.cache/vedute")


@pytest.mark.parametrize("kind", ["clusters", "linear"])
def test_synthetic_views_are_reproducible_and_labelled(kind: str) -> None:
    a, b = (made_up.load(n=100, dims=(5, 4), classes=4, kind=kind) for _ in range(2))
    assert a.shapes == [(5,), (4,)]
    assert a.mask.all()
    assert a.y is not None
    assert set(a.y.tolist()) == {0, 1, 2, 3}
    assert all(torch.equal(x, y) for x, y in zip(a.x, b.x, strict=True))
    other = made_up.load(n=100, dims=(5, 4), kind=kind, seed=1)
    assert not torch.equal(a.x[0], other.x[0])
    with pytest.raises(ValueError, match="no kind 'circles'; choose from clusters, linear"):
        made_up.load(kind="circles")


def test_the_expected_view_is_the_conditional_mean_of_the_joint_gaussian() -> None:
    world = LinearGaussian(30, (4, 3, 2), latent=2, noise=0.5, seed=1)
    views = drop_entries(drop_views(world.views, 0.8, 0), 0.2, 0)
    expected = np.hstack(world.expected(views))
    W, b = np.vstack(world.W), np.hstack(world.b)
    x = np.hstack([a.numpy() for a in views.x])
    seen = np.hstack(
        [
            (views.mask[:, v, None] & (True if h is None else ~h))
            .expand(len(views), len(c))
            .numpy()
            for v, (h, c) in enumerate(zip(views.holes, world.b, strict=True))
        ]
    )
    signal = W @ W.T
    for i, o in enumerate(seen):
        gain = signal[:, o] @ np.linalg.inv(signal[np.ix_(o, o)] + 0.25 * np.eye(o.sum()))
        assert expected[i] == pytest.approx(b + gain @ (x[i, o] - b[o]), abs=1e-9)


def test_no_guess_beats_the_conditional_mean() -> None:
    world = LinearGaussian(2000, (6, 5), latent=3, noise=0.3, seed=0)
    views = drop_views(world.views, 0.5, 0)
    truth = [x.numpy() for x in world.views.x]
    best = world.expected(views)
    hidden = ~views.mask.numpy()
    error = imputation_error(truth, best, hidden)
    assert 0.1 < error < 0.6
    means = [np.broadcast_to(b, x.shape) for b, x in zip(world.b, truth, strict=True)]
    for step in (-0.2, 0.2):
        worse = [(1 + step) * m - step * mean for m, mean in zip(best, means, strict=True)]
        assert error < imputation_error(truth, worse, hidden)


def test_a_set_of_ones_own_lies_in_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("VEDUTE_DATA", str(tmp_path))
    a, b, y = np.ones((3, 2)), np.zeros((3, 1)), np.arange(3)
    a[1] = np.nan
    np.savez(tmp_path / "mine.npz", view0=a, view1=b, view_names=["a", "b"], y=y)
    views = datasets.load("mine")
    assert views.names == ("a", "b")
    assert views.mask[:, 0].tolist() == [True, False, True]
    np.savez(tmp_path / "other.npz", x=a)
    with pytest.raises(ValueError, match="has to hold view0, view1"):
        datasets.load("other")
    with pytest.raises(KeyError, match="no dataset 'third'"):
        datasets.load("third")
