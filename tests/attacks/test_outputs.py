"""One output, two writers; a reader at any moment; data that may only be read."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shell import done, refused, vedute_

import vedute
from vedute.data.lock import try_lock
from vedute.io import files
from vedute.io.files import SCRATCH, atomic_folder

SRC = Path(__file__).parents[2] / "src"
FIT = ("fit", "d.npz", "-o", "run", "--method", "mean_fill")


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("d.npz", a=rng.normal(size=(30, 3)), b=rng.normal(size=(30, 2)))
    return tmp_path


def content(folder):
    """What is in a folder, by name."""
    files = (p for p in Path(folder).rglob("*") if p.is_file())
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def scratch(place):
    return [p for p in place.rglob(f"*{SCRATCH}") if p.is_dir()]


@pytest.mark.slow
def test_of_two_fits_into_one_output_one_wins_and_the_other_is_told(place):
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    words = [sys.executable, "-m", "vedute", *FIT, "--seed"]
    both = [
        subprocess.Popen([*words, str(seed)], env=environment, stderr=subprocess.PIPE, text=True)
        for seed in (1, 2)
    ]
    told = [process.communicate()[1] for process in both]
    ends = [process.returncode for process in both]
    assert sorted(ends) == [0, 2], told
    assert any(w in told[ends.index(2)] for w in ("another process is writing run", "run exists"))
    assert vedute.load("run").random_state == 1 + ends.index(0)
    assert f'"seed": {1 + ends.index(0)}' in Path("run/data.json").read_text()
    assert not scratch(place)


def test_a_fit_is_refused_before_it_touches_the_checkpoint_of_another(place):
    Path(".run.checkpoint").mkdir()
    Path(".run.checkpoint/state.safetensors").write_bytes(b"of the fit that runs")
    before = content(".run.checkpoint")
    with atomic_folder("run"):
        told = refused("fit", "d.npz", "-o", "run", "--force", "--set", "mvp__steps=5")
    assert "another process is writing run; wait for it, or choose another name" in told
    assert content(".run.checkpoint") == before


@pytest.mark.parametrize("out", ["d.npz/run", "x" * 300, f"{'x' * 300}/run"])
def test_a_place_that_cannot_be_written_is_named_before_any_work(out, place):
    told = refused("fit", "d.npz", "-o", out, "--set", "mvp__steps=5")
    assert told.startswith(f"vedute: {out} cannot be written (")
    assert told.endswith("; choose another place or name\n")
    assert [*content(place)] == ["d.npz"]


def test_a_folder_with_the_name_of_a_file_is_called_a_folder(place):
    done(*FIT)
    Path("o.npz").mkdir()
    told = refused("impute", "run", "d.npz", "-o", "o.npz", "--force")
    assert told == "vedute: o.npz is a folder; choose another name\n"


@pytest.mark.parametrize("word", ["-o", "--method", "--clusters", "--label", "--set"])
def test_an_empty_argument_is_never_the_working_folder_or_a_default(word, place):
    for words in ((*FIT, word, ""), (*FIT, f"{word}=")) if word != "-o" else ((*FIT[:3], ""),):
        result = vedute_(*words, "--force")
        assert result.exit_code == 2
        assert "an argument is empty" in result.stderr
    assert [*content(place)] == ["d.npz"]


def test_outputs_of_one_name_in_folders_that_are_not_there_yet_are_two_outputs(place):
    with atomic_folder("a/run") as one, atomic_folder("b/run") as two:
        (one / "x").touch()
        (two / "y").touch()
    assert [*content("a/run"), *content("b/run")] == ["x", "y"]


def test_a_lock_survives_that_its_folder_is_removed_before_it_is_held(place):
    opened, removed = Path.open, []

    def late(path, *args, **options):
        file = opened(path, *args, **options)
        if not removed:
            removed.append(shutil.rmtree(path.parent))
        return file

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", late)
        with try_lock(Path("s/in-use")) as mine:
            assert mine
            assert Path("s/in-use").exists()
            with try_lock(Path("s/in-use")) as other:
                assert other is False
    assert removed


def publish_until(point, source):
    """Replace run by the files of `source` in a process that ends, as if killed, at the given call
    that changes the disk; whether it came to its end."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    left = point

    def deadly(call):
        def called(*args, **options):
            nonlocal left
            left -= 1
            if left <= 0:
                os._exit(9)
            return call(*args, **options)

        return called

    for name in ("fsync", "replace", "rename", "unlink", "link", "mkdir", "rmdir"):
        setattr(os, name, deadly(getattr(os, name)))
    files.exchange = deadly(files.exchange)
    try:
        with atomic_folder("run", force=True, stale=("report.npz",)) as folder:
            for path in Path(source).iterdir():
                (folder / path.name).write_bytes(path.read_bytes())
    finally:
        os._exit(0 if left > 0 else 9)


@pytest.mark.skipif(sys.platform != "linux", reason="folders change places on Linux only")
def test_a_run_that_is_replaced_is_the_old_or_the_new_one_at_any_moment(place):
    done(*FIT, "--seed", "1")
    Path("run/notes").mkdir(mode=0o700)
    Path("run/notes/mine.txt").write_text("mine")
    Path("run/elsewhere").symlink_to(place)
    Path("run").rename("old")
    done(*FIT, "--seed", "2")
    Path("run").rename("new")
    old, new = content("old"), content("new")
    stays = {k: v for k, v in old.items() if k not in new} | new
    Path("new/report.npz").unlink()
    del stays["report.npz"]
    outcomes = []
    for point in range(1, 200):
        shutil.rmtree("run", ignore_errors=True)
        shutil.copytree("old", "run", symlinks=True)
        ended = publish_until(point, "new")
        outcomes.append([old, stays].index(content("run")))
        assert Path("run/elsewhere").is_symlink()
        assert Path("run/notes").stat().st_mode & 0o777 == 0o700
        if ended:
            break
    assert ended
    assert outcomes == sorted(outcomes)
    assert {0, 1} == {*outcomes}
    assert len(outcomes) > 20  # crash points
    assert not scratch(place)  # the next one removed what those before it had left


def test_a_run_is_replaced_with_its_measurements_and_foreign_files_stay(place):
    done(*FIT, "--seed", "1")
    Path("run/mine.txt").write_text("mine")
    Path("run/empty").mkdir()
    old = set(content("run"))
    done(*FIT, "--seed", "2", "--force")
    gone = {k for k in old if k.endswith(".safetensors")}
    assert set(content("run")) == (old - gone) | {p.name for p in Path("run").glob("*.safetensors")}
    assert len(list(Path("run").glob("*.safetensors"))) == 1
    assert Path("run/mine.txt").read_text() == "mine"
    assert Path("run/empty").is_dir()
    assert vedute.load("run").random_state == 2


@pytest.mark.parametrize("able", [True, False])
def test_a_folder_is_replaced_where_folders_cannot_change_places(place, able, monkeypatch):
    if not able:
        monkeypatch.setattr(files, "exchange", lambda a, b: False)
    for names in (("a", "b", "lower/a", "lower/c"), ("a", "d")):
        with atomic_folder("out", force=True, parts=("lower",), stale=("b",)) as folder:
            (folder / "lower").mkdir()
            for name in names:
                (folder / name).write_text(f"{len(names)}")
            if not any((folder / "lower").iterdir()):
                (folder / "lower").rmdir()
    assert content("out") == {"a": b"2", "d": b"2", "lower/c": b"4"}
    monkeypatch.chdir("out")
    with atomic_folder(".", force=True) as folder:
        (folder / "a").write_text("here")
    assert content(".")["a"] == b"here"  # not left in a folder that is gone


@pytest.mark.slow
def test_data_that_may_only_be_read_are_only_read(place):
    """Nothing is written beside data: no locks, no caches. An injected error stands for a store
    that is read-only, from which no mode protects root."""
    rng = np.random.default_rng(0)
    store = place / "store"
    (store / "d").mkdir(parents=True)
    for name in "ab":
        lines = [f"s{i},{rng.normal()},{rng.normal()}" for i in range(30)]
        (store / f"d/{name}.csv").write_text("\n".join(["id,x,y", *lines[: 30 - (name == "b")]]))
    shutil.copy("d.npz", store)
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    tried = []

    def watch(event, args):
        if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.link") and watch.on:
            changes = event != "open" or (isinstance(args[2], int) and args[2] & writing)
            inside = [p for p in args[:2] if str(store) in str(Path(str(p)).resolve())]
            if changes and inside:
                tried.append((event, *inside))
                raise OSError(30, "Read-only file system", str(inside[0]))

    watch.on = True
    sys.addaudithook(watch)
    try:
        for k, data in enumerate(("store/d", "store/d.npz")):
            done("fit", data, "-o", f"run{k}", "--method", "mean_fill", "--report", f"{k}.html")
            out = f"out{k}.npz" if k else f"out{k}"
            done("impute", f"run{k}", data, "-o", out)
            done("embed", f"run{k}", data, "-o", f"{k}.csv")
            done("ampute", data, "-o", f"less{k}{'.npz' if k else ''}", "--rate", "0.3")
            done("inspect", data)
        assert not tried
        result = vedute_("fit", "d.npz", "-o", "store/run", "--method", "mean_fill")
        assert result.exit_code == 3
        assert "Read-only file system); free some space, or choose another place" in result.stderr
    finally:
        watch.on = False
    assert sorted(p.name for p in store.rglob("*")) == ["a.csv", "b.csv", "d", "d.npz"]
