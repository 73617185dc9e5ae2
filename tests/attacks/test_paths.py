"""Names that lead elsewhere: whatever a file calls its samples and views, nothing is written
outside the output, through a link or otherwise."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from shell import done, refused, vedute_

from vedute.estimators.saving import sealed
from vedute.io.files import atomic_folder, below

EVIL = [
    "../../x",
    "../x",
    "/tmp/x",
    "a/b",
    "..\\x",
    "a\\b",
    "..",
    ".",
    "",
    " ",
    ".hidden",
    "x\ny",
    "x\0y",
    "x\x1by",
    "x\u2028y",
    "x\u202egnp.exe",  # turns the reading direction
    "\u2024\u2024\u2215x",  # dot leaders and a division slash: looks like ../x
    "\uff0e\uff0e\uff0fx",  # full-width ../x
    "CON",
    "con.txt",
    "Nul",
    "COM1",
    "lpt9.csv",
    "x.",
    "x ",
    " x",
    "x" * 300,
    "é" * 130,  # 260 bytes
    "\ud800",  # no text at all
]
PLAIN = [
    "x",
    "x.y",
    "x-1_2+3",
    "Größe",
    "样本",
    "a b",
    "console",
    "x..y",
    "a:b" if os.name != "nt" else "a",
]


@pytest.mark.parametrize("name", EVIL)
def test_a_name_that_is_no_plain_file_name_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match=r"cannot name a file: .*; rename it"):
        below(tmp_path, name, ".png")


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_name_is_taken_as_it_is(name, tmp_path):
    path = below(tmp_path, name, ".png")
    assert path.parent == tmp_path
    assert path.name == f"{name}.png"
    path.write_bytes(b"")


def test_an_ending_counts_in_the_length(tmp_path):
    assert below(tmp_path, "x" * 251, ".csv").parent == tmp_path
    with pytest.raises(ValueError, match="255 bytes"):
        below(tmp_path, "x" * 252, ".csv")


def test_two_names_never_share_a_file(tmp_path):
    below(tmp_path, "a", ".csv").touch()
    with pytest.raises(ValueError, match=r"two files would be called 'a\.csv'"):
        below(tmp_path, "a", ".csv")


def everything(root):
    return sorted(str(p.relative_to(root)) for p in root.rglob("*"))


def fit_images(place, ids):
    """A folder with a table of these ids and images of all but the last; fitted."""
    data = place / "d"
    (data / "front").mkdir(parents=True)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(len(ids), 3)), index=pd.Index(ids, name="id"))
    frame.to_csv(data / "table.csv")
    for name in ids[:-1]:
        Image.fromarray(rng.integers(0, 256, (4, 4), dtype=np.uint8)).save(
            data / "front" / f"{name}.png"
        )
    done("fit", data, "-o", place / "run", "--method", "mean_fill")
    return data


@pytest.mark.parametrize("name", ["../../x", "/tmp/vedute-attack", "..", "x\ny", "CON", "x" * 300])
@pytest.mark.parametrize("words", [["impute", "run"], ["ampute", "--rate", ".5"]])
def test_ids_of_images_write_nothing_outside(name, words, tmp_path, monkeypatch):
    place = tmp_path / "deep" / "deeper"
    place.mkdir(parents=True)
    monkeypatch.chdir(place)
    fit_images(place, [f"s{i}" for i in range(12)] + [name])
    before = everything(tmp_path)
    told = vedute_(*words, "d", "-o", "out")
    if words[0] == "impute":
        assert told.exit_code == 2
        assert "cannot name a file" in told.stderr
        assert everything(tmp_path) == before
    else:  # hides images, writes none that are not there: nothing to refuse
        assert told.exit_code == 0, told.stderr
    assert not [
        p for p in everything(tmp_path) if p not in before and not p.startswith("deep/deeper/out")
    ]


@pytest.mark.parametrize("name", ["../../x", "/tmp/vedute-attack", "a/../../../x"])
def test_view_names_in_an_npz_write_nothing_outside(name, tmp_path, monkeypatch):
    place = tmp_path / "deep" / "deeper"
    place.mkdir(parents=True)
    monkeypatch.chdir(place)
    rng = np.random.default_rng(0)
    np.savez(
        "d.npz", a=rng.normal(size=(40, 3)), b=rng.normal(size=(40, 2)), view_names=["a", name]
    )
    few = ["--method", "mvp", "--set", "steps=2", "--set", "latent_dim=2", "--set", "hidden=(4,)"]
    done("fit", "d.npz", "-o", "run", *few)
    before = everything(tmp_path)
    assert "cannot name a file" in refused("generate", "run", "-n", "3", "-o", "out")
    assert everything(tmp_path) == before
    done("generate", "run", "-n", "3", "-o", "out.npz")


def test_a_renamed_view_in_a_model_writes_nothing_outside(tmp_path, monkeypatch):
    place = tmp_path / "deep" / "deeper"
    (place / "d").mkdir(parents=True)
    monkeypatch.chdir(place)
    rng = np.random.default_rng(0)
    for name, rows in {"a": range(30), "b": range(5, 30)}.items():
        frame = pd.DataFrame(rng.normal(size=(len(rows), 2)), index=pd.Index(rows, name="id"))
        frame.to_csv(f"d/{name}.csv")
    done("fit", "d", "-o", "run", "--method", "mean_fill")
    facts = json.loads((place / "run/model.json").read_text())
    text = json.dumps(facts).replace('"name": "b"', '"name": "../../../x"')
    assert text != json.dumps(facts)
    (place / "run/model.json").write_text(sealed(json.loads(text)))
    before = everything(tmp_path)
    (place / "d/b.csv").unlink()
    before = everything(tmp_path)
    assert "cannot name a file" in refused("impute", "run", "d", "-o", "out")
    assert everything(tmp_path) == before


def test_nothing_is_written_or_removed_through_a_link(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.csv").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / "lower").symlink_to(elsewhere)

    def write(parts, inside):
        with atomic_folder(out, force=True, parts=parts) as folder:
            (folder / inside).parent.mkdir(exist_ok=True)
            (folder / inside).write_text("new")

    for parts, inside in ((("lower",), "a.csv"), ((), "lower/a.csv")):
        with pytest.raises(FileExistsError, match="is a link to another folder"):
            write(parts, inside)
        assert (elsewhere / "a.csv").read_text() == "mine"
        assert everything(out) == ["lower"]


def test_a_file_that_is_a_link_is_replaced_not_written_through(tmp_path):
    (tmp_path / "mine").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.csv").symlink_to(tmp_path / "mine")
    with atomic_folder(out, force=True) as folder:
        (folder / "a.csv").write_text("new")
    assert (tmp_path / "mine").read_text() == "mine"
    assert (out / "a.csv").read_text() == "new"
