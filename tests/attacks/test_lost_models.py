"""Kills and crashes: a model is there whole, the old one or the new one, or said to be damaged."""

import os
import shutil
import signal
from functools import partial

import numpy as np
import pytest
from shell import done

import vedute
from vedute import methods
from vedute.io import files
from vedute.io.files import SCRATCH, atomic_folder


def fitted(seed):
    rng = np.random.default_rng(seed)
    return methods.find("mean_fill")().fit([rng.normal(size=(20, 3)), rng.normal(size=(20, 2))])


@pytest.mark.filterwarnings("ignore:.*model-card.md")
@pytest.mark.parametrize("after", [None, 0, 20])
def test_a_save_killed_anywhere_leaves_the_old_model_or_the_new_one(after, tmp_path):
    dies_at = pytest.importorskip("crashing", reason="no fork here").dies_at
    old, new = fitted(0), fitted(1)
    told = [model.embedding_.tobytes() for model in (old, new)]
    outcomes = []
    for point in range(1, 30):
        folder = tmp_path / str(point)
        old.save(folder)
        (folder / "notes.txt").write_text("mine")
        ended = not dies_at(point, partial(new.save, folder), after)
        loaded = vedute.load(folder).embedding_.tobytes()
        assert loaded in told, f"a mixture after a kill at {point}"
        assert (folder / "notes.txt").read_text() == "mine"
        outcomes.append(told.index(loaded))
        if ended:
            assert len(list(folder.glob("*.safetensors"))) == 1
            break
    assert ended
    assert outcomes[0] == 0
    assert outcomes[-1] == 1
    assert outcomes == sorted(outcomes)
    assert len(outcomes) > 6  # crash points


def test_a_model_is_not_saved_in_place_of_a_file(tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(FileExistsError, match="notes is a file; choose another name"):
        fitted(0).save(tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "mine"


def test_arrays_of_another_model_are_noticed(tmp_path):
    fitted(0).save(tmp_path / "a")
    fitted(1).save(tmp_path / "b")
    (mine,), (other,) = ((tmp_path / k).glob("*.safetensors") for k in "ab")
    shutil.copyfile(other, mine)
    with pytest.raises(ValueError, match=r"not as it was saved\); save it again"):
        vedute.load(tmp_path / "a")


def test_a_changed_character_of_a_model_is_noticed(tmp_path):
    fitted(0).save(tmp_path)
    facts = tmp_path / "model.json"
    text = facts.read_text()
    for at in range(0, len(text), len(text) // 97):
        other = "5" if text[at] != "5" else "6"
        facts.write_text(text[:at] + other + text[at + 1 :])
        with pytest.raises(ValueError, match=r"save it again|has format"):
            vedute.load(tmp_path)


EDITS = {  # which load without a checksum, and change answers or what is said of them
    "likelihood": ('"$likelihood": "normal"', '"$likelihood": "laplace"'),
    "name of a view": ('"name": "view1"', '"name": "view2"'),
    "version": (f'"{vedute.__version__}"', '"9.9"'),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_a_model_is_noticed(edit, tmp_path):
    fitted(0).save(tmp_path)
    facts = tmp_path / "model.json"
    text = facts.read_text()
    facts.write_text(text.replace(*EDITS[edit], 1))
    assert facts.read_text() != text
    with pytest.raises(ValueError, match=r"model.json is not as it was saved\); save it again"):
        vedute.load(tmp_path)


def test_an_edit_of_the_card_is_said_and_the_model_loads(tmp_path):
    model = fitted(0)
    model.save(tmp_path)
    card = tmp_path / "model-card.md"
    card.write_text(card.read_text() + "It is always right.\n")
    with pytest.warns(UserWarning, match=r"model-card.md is not as it was saved with the model"):
        loaded = vedute.load(tmp_path)
    assert loaded.embedding_.tobytes() == model.embedding_.tobytes()


def test_what_killed_saves_left_goes_after_an_hour_and_foreign_files_stay(tmp_path):
    fitted(0).save(tmp_path)
    left = [f"model-{'0' * 64}.safetensors", f".model-{'1' * 64}.safetensors.7.part"]
    foreign = ["model-mine.safetensors", "weights.safetensors", "model.safetensors"]
    for name in left + foreign:
        (tmp_path / name).touch()
    fitted(1).save(tmp_path)
    assert all((tmp_path / name).exists() for name in left + foreign)  # somebody may be saving
    for name in left + foreign:
        os.utime(tmp_path / name, (0, 0))
    fitted(2).save(tmp_path)
    assert not any((tmp_path / name).exists() for name in left)
    assert all((tmp_path / name).exists() for name in foreign)


# Folders.


def folder_of(path):
    return {str(p.relative_to(path)): p.read_text() for p in path.rglob("*") if p.is_file()}


def write_over(out):
    with atomic_folder(out, force=True, parts=["lower"], stale=["report"]) as folder:
        for name in ("a", "b", "sub/c"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(f"new {name} " * 20)


OLD = {"a": "old", "b": "old", "lower/a": "old", "report": "old", "notes/mine": "mine"}
NEW = {k: f"new {k} " * 20 for k in ("a", "b", "sub/c")} | {"notes/mine": "mine"}


def old_folder(out):
    for name, text in OLD.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text)


@pytest.mark.parametrize("after", [None, 0, 20])
@pytest.mark.parametrize("old", [True, False])
def test_a_folder_killed_anywhere_is_the_old_one_or_the_new_one(old, after, tmp_path):
    dies_at = pytest.importorskip("crashing", reason="no fork here").dies_at
    ended, point, seen = False, 0, []
    while not ended:
        point += 1
        out = tmp_path / str(point) / "out"
        out.parent.mkdir()
        if old:
            old_folder(out)
        ended = not dies_at(point, partial(write_over, out), after)
        found = folder_of(out)
        assert found in (
            OLD if old else {},
            NEW if old else {k: NEW[k] for k in ("a", "b", "sub/c")},
        )
        seen.append(found)
        for scratch in out.parent.glob(f".*{SCRATCH}"):
            os.utime(scratch, (0, 0))
        write_over(out)
        assert [p.name for p in out.parent.iterdir()] == ["out"]
    assert point > 10
    assert seen[0] != seen[-1]


@pytest.mark.parametrize("cannot", ["swap", "link", "leave"])
def test_where_folders_cannot_be_swapped_files_are_replaced(cannot, tmp_path, monkeypatch):
    def fails(*_args, **_options):
        raise OSError("not here")

    out = tmp_path / "out"
    old_folder(out)
    if cannot == "leave":  # somebody who stands in the folder stays there
        monkeypatch.chdir(out / "notes")
    else:
        where = (files, "exchange") if cannot == "swap" else (os, "link")
        monkeypatch.setattr(*where, fails)
    number = out.stat().st_ino
    write_over(out)
    assert folder_of(out) == NEW
    assert out.stat().st_ino == number
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_what_else_is_in_a_folder_stays_as_it_is(tmp_path):
    out = tmp_path / "out"
    old_folder(out)
    (out / "link").symlink_to("nowhere")
    (out / "empty").mkdir()
    out.chmod(0o750)
    number = (out / "notes/mine").stat().st_ino
    write_over(out)
    assert (out / "notes/mine").stat().st_ino == number
    assert (out / "link").is_symlink()
    assert (out / "empty").is_dir()
    assert out.stat().st_mode & 0o777 == 0o750


# Measuring and drawing.


def write_data(path, spread):
    rng = np.random.default_rng(0)
    np.savez(path, a=np.ones((32, 3)) + spread * rng.normal(size=(32, 3)), b=np.full((32, 2), 5.0))


def test_constant_data_get_a_model_and_a_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data("d.npz", 0.0)
    told = done("fit", "d.npz", "-o", "run", "--method", "mean_fill", "--report", "page.html")
    assert "lack" not in told
    assert vedute.load("run").embedding_.shape[0] == 32
    assert (tmp_path / "page.html").is_file()


@pytest.mark.own_process
def test_a_crash_while_measuring_costs_the_measurements_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data("d.npz", 1.0)
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "if any('measure' in w or '_pages' in w for w in sys.orig_argv):\n"
        "    os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    told = done("fit", "d.npz", "-o", "run", "--method", "mean_fill", "--report", "page.html")
    assert f"ended with signal {signal.SIGSEGV.value}" in told
    assert vedute.load("run").embedding_.shape[0] == 32
    assert not (tmp_path / "run" / "report.npz").exists()
    assert (tmp_path / "page.html").is_file()


@pytest.mark.slow
@pytest.mark.own_process
def test_measurements_come_from_a_process_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data("d.npz", 1.0)
    done("fit", "d.npz", "-o", "run", "--method", "mean_fill")
    with np.load("run/report.npz") as found:
        assert found["plane"].shape == (32, 2)


def test_measurements_never_tell_of_the_model_before(tmp_path, monkeypatch):
    from vedute.commands import _pages

    monkeypatch.chdir(tmp_path)
    write_data("d.npz", 1.0)
    done("fit", "d.npz", "-o", "run", "--method", "mean_fill")
    monkeypatch.setattr(_pages, "_in_a_process", lambda *_: "no luck")
    done("fit", "d.npz", "-o", "run", "--method", "mean_fill", "--force", "--seed", "1")
    assert not (tmp_path / "run" / "report.npz").exists()
    assert len(list((tmp_path / "run").glob("*.safetensors"))) == 1
