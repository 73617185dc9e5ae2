"""Files: what is read is what was written, wrong files get a sentence, outputs are whole."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from vedute import io
from vedute.data.views import Views

A = np.arange(12, dtype=np.float32).reshape(4, 3)
B = np.arange(8, dtype=np.int16).reshape(4, 2)


def specs(views):
    return Views.of(views).specs


def saved(tmp_path, **arrays):
    np.savez(tmp_path / "d.npz", **arrays)
    return tmp_path / "d.npz"


def test_views_come_back_in_their_own_dtypes(tmp_path):
    data = io.read(saved(tmp_path, b=B, a=A, ids=["p", "q", "r", "s"], y=[0, 1, 0, 1]))
    assert list(data.views) == ["b", "a"]
    assert data.views["a"].dtype == np.float32
    assert data.views["b"].dtype == np.int16
    assert data.ids.tolist() == ["p", "q", "r", "s"]
    views = io.enter(data).views
    assert views.names == ("b", "a")
    assert views.x[1].dtype == torch.float64
    assert views.y.tolist() == [0, 1, 0, 1]


def test_numbered_views_are_ordered_by_number_and_renamed(tmp_path):
    names = [f"n{v}" for v in range(11)]
    arrays = {f"view{v}": np.full((4, 1), v) for v in (10, 2, 0, 1, 3, 4, 5, 6, 7, 8, 9)}
    data = io.read(saved(tmp_path, **arrays, view_names=names))
    assert list(data.views) == names
    assert [int(a[0, 0]) for a in data.views.values()] == list(range(11))


def test_what_is_written_is_read_again(tmp_path):
    mask = np.array([[1, 1], [0, 1], [1, 0], [1, 1]], bool)
    data = io.read(saved(tmp_path, view0=A, view1=B, view_names=["a", "b"], mask=mask, y=B[:, 0]))
    out = tmp_path / "out.npz"
    io.write_views(out, data, data.views)
    with np.load(out) as file, np.load(tmp_path / "d.npz") as before:
        assert set(file.files) == set(before.files)
        assert all(file[k].dtype == before[k].dtype for k in file.files)
        assert file["mask"].all()
    assert list(io.read(out).views) == ["a", "b"]


def test_mask_follows_names_when_views_are_in_another_order_or_left_out(tmp_path):
    mask = np.array([[1, 1], [0, 1], [1, 0], [1, 1]], bool)
    like = Views.of({"a": A, "c": A, "b": B.astype(float)})
    data = io.read(saved(tmp_path, b=B, a=A, mask=mask))
    views = io.enter(data, specs(like)).views
    assert views.names == ("a", "c", "b")
    assert views.mask.T.tolist() == [mask[:, 1].tolist(), [False] * 4, mask[:, 0].tolist()]


def test_filled_keeps_every_observed_cell_and_dtype(tmp_path):
    a = A.copy()
    a[0, 1] = np.nan
    big = np.array([[2**60 + 1], [5], [6], [7]])  # not a float64
    mask = np.array([[1, 1], [1, 0], [0, 1], [1, 1]], bool)
    data = io.read(saved(tmp_path, a=a, big=big, mask=mask))
    filled = io.enter(data).filled([np.full((4, 3), -1.5), np.full((4, 1), 2.6)])
    assert filled["a"].dtype == np.float32
    assert filled["a"][2].tolist() == [-1.5] * 3
    assert filled["a"][0].tolist() == [0.0, -1.5, 2.0]
    assert filled["big"].ravel().tolist() == [2**60 + 1, 3, 6, 7]


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"y": [1, 2]}, "has no view"),
        ({"a": A, "age": A[:, 0]}, r"'age' .* has shape \(4,\); a view is \(samples, features\)"),
        ({"a": A, "ids": [1, 2]}, r"ids .* has shape \(2,\); expected one per sample, \(4,\)"),
        ({"a": A, "ids": [1, 2, 2, 3]}, "name a sample twice"),
        ({"a": A, "y": np.ones((4, 2))}, "expected one per sample"),
        ({"a": A, "mask": np.ones((4, 2), bool)}, r"mask .* expected .* \(4, 1\)"),
        ({"a": A, "mask": np.full((4, 1), 2)}, "True .observed. and False"),
        ({"a": A, "b": B, "view_names": ["a"]}, "has 1 names .a. for 2 views"),
        ({"a": A, "b": np.array([[None]])}, "'b' .* holds Python objects"),
    ],
)
def test_wrong_contents_get_a_sentence(tmp_path, arrays, sentence):
    with pytest.raises(ValueError, match=sentence):
        io.read(saved(tmp_path, **arrays))


def test_wrong_files_get_a_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        io.read(tmp_path / "no.npz")
    with pytest.raises(FileNotFoundError, match="is a folder"):
        io.read(tmp_path)
    (tmp_path / "d.xyz").write_text("")
    with pytest.raises(ValueError, match=r"end in \.npz"):
        io.read(tmp_path / "d.xyz")
    for content in (b"", b"hello", b"PK\x03\x04 broken"):
        (tmp_path / "d.npz").write_bytes(content)
        with pytest.raises(ValueError, match=r"is not an \.npz file"):
            io.read(tmp_path / "d.npz")
    np.save(tmp_path / "d.npy", A)
    (tmp_path / "d.npy").rename(tmp_path / "d.npz")
    with pytest.raises(ValueError, match=r"is not an \.npz file"):
        io.read(tmp_path / "d.npz")


def test_a_damaged_file_is_said_to_be_damaged(tmp_path):
    path = saved(tmp_path, a=np.random.default_rng(0).random((50, 50)))
    content = bytearray(path.read_bytes())
    content[1000:1100] = bytes(100)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"'a' .* is damaged"):
        io.read(path)


def test_table_as_csv(tmp_path):
    io.csv.write_csv(tmp_path / "t.csv", {"id": np.array(["a", "b,c"]), "z": np.eye(2)})
    assert (tmp_path / "t.csv").read_text().split() == ["id,z0,z1", "a,1.0,0.0", '"b,c",0.0,1.0']


def fail_after(path, text):
    path.write_text(text)
    raise RuntimeError


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    out = tmp_path / "deep" / "out.txt"
    with pytest.raises(RuntimeError), io.atomic_file(out) as part:
        fail_after(part, "half")
    assert not list(tmp_path.iterdir())
    with io.atomic_file(out) as part:
        part.write_text("whole")
        assert not out.exists()
    assert out.read_text() == "whole"
    with pytest.raises(FileExistsError, match="--force"), io.atomic_file(out):
        pass
    with pytest.raises(FileExistsError, match="is a file"), io.atomic_folder(out, force=True):
        pass
    with io.atomic_file(out, force=True) as part:
        part.write_text("new")
    assert out.read_text() == "new"
    assert [p.name for p in out.parent.iterdir()] == ["out.txt"]


def test_a_folder_is_written_whole_or_not_at_all(tmp_path):
    out = tmp_path / "run"
    with pytest.raises(RuntimeError), io.atomic_folder(out) as part:
        fail_after(part / "a", "half")
    assert not list(tmp_path.iterdir())
    with io.atomic_folder(out) as part:
        (part / "a").write_text("1")
    (out / "mine").write_text("not yours to delete")
    with pytest.raises(FileExistsError, match="--force"), io.atomic_folder(out):
        pass
    with pytest.raises(RuntimeError), io.atomic_folder(out, force=True) as part:
        fail_after(part / "a", "2")
    assert (out / "a").read_text() == "1"
    with io.atomic_folder(out, force=True) as part:
        (part / "a").write_text("2")
    assert (out / "a").read_text() == "2"
    assert (out / "mine").exists()
    with pytest.raises(FileExistsError, match="is a folder"), io.atomic_file(out, force=True):
        pass
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_stale_files_of_a_part_are_gone_and_those_of_others_stay(tmp_path):
    out = tmp_path / "filled"
    for old in ("a", "lower/a", "lower/mine", "upper/a", "mine/a"):
        (out / old).parent.mkdir(parents=True, exist_ok=True)
        (out / old).write_text("old")
    with io.atomic_folder(out, force=True, parts=("lower", "upper")) as part:
        (part / "a").write_text("new")
    left = {str(p.relative_to(out)): p.read_text() for p in out.rglob("*") if p.is_file()}
    assert left == {"a": "new", "lower/mine": "old", "mine/a": "old"}
    assert not (out / "upper").exists()


def test_ends_of_intervals_are_no_views(tmp_path):
    a, b = np.zeros((4, 2)), np.ones((4, 3))
    ends = {"a_lower": a, "a_upper": a, "b_lower": b}  # b_lower alone is somebody's view
    np.savez(tmp_path / "d.npz", a=a, b=b, **ends, mask=np.ones((4, 3), bool))
    assert list(io.read(tmp_path / "d.npz").views) == ["a", "b", "b_lower"]
