"""Signals and kills during a fit: nothing is published half, and --resume ends as if nothing
had happened."""

import os
import shutil
import signal

import numpy as np
import pytest
from shell import done, refused, vedute_

from vedute.commands import _pages
from vedute.estimators.learner import Learner
from vedute.estimators.neural import NeuralEstimator
from vedute.estimators.neural_training import Training
from vedute.io.files import SCRATCH, atomic_folder
from vedute.training import stopping

FEW = [
    "--method",
    "mvp",
    "--set",
    "steps=30",
    "--set",
    "latent_dim=2",
    "--set",
    "hidden=(4,)",
    "--set",
    "warmup=4",
]
FEW += ["--set", "cooldown=0", "--set", "map_hidden=(4,)", "--set", "device=cpu"]
FEW += ["--set", "checkpoint_minutes=0", "--clusters", "2"]
FIT = ["fit", "d.npz", "-o", "run", *FEW]


class Killed(BaseException):
    """Simulated death of the process: no handler runs for it."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Data, and the run that nothing ended."""
    folder = tmp_path_factory.mktemp("whole")
    rng = np.random.default_rng(0)
    z = rng.normal(size=(120, 2))
    views = {k: z @ rng.normal(size=(2, w)) + 0.1 for k, w in (("a", 5), ("b", 4), ("c", 3))}
    views["b"][:30] = np.nan
    np.savez(folder / "d.npz", **views)
    done("fit", folder / "d.npz", "-o", folder / "whole", *FEW)
    return folder


@pytest.fixture
def place(whole, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(whole / "d.npz", "d.npz")
    shutil.copytree(whole / "whole", "whole")
    monkeypatch.setattr(_pages, "measure", lambda *_: None)  # not what this is about
    return tmp_path


def killed(*words):
    """The command line, until something kills it."""
    with pytest.raises(Killed):
        vedute_(*words)


def results(run):
    with np.load(f"{run}/embedding.npz") as found:
        return found["embedding"].tobytes(), found["labels"].tobytes()


def names(folder):
    return {p.name for p in folder.iterdir()}


def epochs_of(monkeypatch):
    """A list that grows with every epoch that is trained."""
    trained, real = [], Training.report

    def report(self, record):
        trained.append(record["epoch"])
        real(self, record)

    monkeypatch.setattr(Training, "report", report)
    return trained


@pytest.mark.slow
@pytest.mark.parametrize("number", stopping.SIGNALS)
def test_a_signal_writes_a_checkpoint_and_publishes_nothing(place, monkeypatch, number):
    with monkeypatch.context() as patch:
        real, handler = Training.report, signal.getsignal(number)

        def report(self, record):
            if record["epoch"] == 5:
                os.kill(os.getpid(), number)
            real(self, record)

        patch.setattr(Training, "report", report)
        ended = vedute_(*FIT)
        assert ended.exit_code == 128 + number
        said = (
            f"vedute: ended by {signal.Signals(number).name}; the same command with --resume goes"
        )
        assert said in ended.stderr
    assert signal.getsignal(number) == handler
    assert names(place) == {"d.npz", "whole", ".run.checkpoint"}
    assert "--resume goes on from it, --force begins anew" in refused(*FIT)
    trained = epochs_of(monkeypatch)
    done(*FIT, "--resume")
    assert trained[0] == 6
    assert results("run") == results("whole")
    assert names(place) == {"d.npz", "whole", "run"}


@pytest.mark.parametrize("where", ["calibrate", "cluster", "embed"])
def test_a_kill_after_training_costs_no_training(place, monkeypatch, where):
    def dying(self, *_args):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(NeuralEstimator if where == "embed" else Learner, where, dying)
        killed(*FIT)
    trained = epochs_of(monkeypatch)
    done(*FIT, "--resume")
    again = [e for e in trained if e == 1]  # the second learning, where it had not begun
    assert len(again) == (where == "calibrate")
    assert results("run") == results("whole")


def test_a_kill_in_the_second_learning_keeps_the_first(place, monkeypatch):
    real, seen = Training.report, []

    def report(self, record):
        seen.append(record["epoch"])
        if seen.count(2) == 2:
            raise Killed
        real(self, record)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "report", report)
        killed(*FIT)
    trained = epochs_of(monkeypatch)
    done(*FIT, "--resume")
    assert trained[0] == 2  # of the second
    assert results("run") == results("whole")


def test_force_begins_anew_and_other_data_are_refused(place, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Learner, "cluster", lambda *_: (_ for _ in ()).throw(Killed))
        killed(*FIT)
    other = [w.replace("latent_dim=2", "latent_dim=3") for w in FIT]
    assert "is of other data or settings" in refused(*other, "--resume")
    trained = epochs_of(monkeypatch)
    done(*FIT, "--force")
    assert trained[0] == 1
    assert results("run") == results("whole")


def test_scratch_of_a_process_that_is_gone_is_collected(tmp_path):
    dead, foreign = tmp_path / f".out.abc{SCRATCH}", tmp_path / ".out.mine"
    for folder in (dead, foreign):
        (folder / "out").mkdir(parents=True)
        (folder / "in-use").touch()
    with atomic_folder(tmp_path / "out") as first:
        assert not dead.exists()
        with pytest.raises(FileExistsError, match="another process is writing"):
            atomic_folder(tmp_path / "out", force=True).__enter__()
        assert first.exists()  # of a process that is alive: this one
    assert names(tmp_path) == {"out", ".out.mine"}
