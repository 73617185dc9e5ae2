"""One fit on several ranks: as on one, the same on all, and as if nothing had happened after one
was killed."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
import ranks_together
import torch
from scipy.sparse import csr_array
from shell import refused

from vedute import MVP
from vedute.data.mapped import Scratch
from vedute.data.rows import from_csr
from vedute.estimators.context import digest

TESTS = Path(__file__).parents[1]
ENV = {**os.environ, "PYTHONPATH": str(TESTS.parent / "src"), "OMP_NUM_THREADS": "1"}
SIZES = ("steps=30", "latent_dim=3", "hidden=(12,)", "warmup=4", "map_hidden=(8,)", "device=cpu")
FIT = ["fit", "d.npz", "-o", "run", "--method", "mvp", "--clusters", "3"]
FIT += [w for setting in (*SIZES, "checkpoint_minutes=0") for w in ("--set", setting)]
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1")


def started(rank, size, *words, more=None, **ways):
    """A rank, as torchrun starts it."""
    told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1"}
    env = {**ENV, **{k: str(v) for k, v in told.items()}, **(more or {})}
    return subprocess.Popen([sys.executable, *words], env=env, **ways)


def killed_after(seconds, *processes):
    """A timer that ends processes which a test would wait for without end."""
    timer = Timer(seconds, lambda: [process.kill() for process in processes])
    timer.start()
    return timer


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """What two ranks found."""
    out = tmp_path_factory.mktemp("both")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        ENV["MASTER_PORT"] = str(free.getsockname()[1])
    script = TESTS / "ranks_together.py"
    for process in [started(rank, 2, script, out) for rank in range(2)]:
        assert process.wait(240) == 0
    return [torch.load(out / f"{rank}.pt", weights_only=False) for rank in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ranks_together.CASES)
def test_two_ranks_train_as_one_does(both, name):
    terms, gradients, weights = ranks_together.trained(name)
    for theirs in both:
        assert len(terms) == len(theirs[name][0])
        for mine, other in zip(terms, theirs[name][0], strict=True):
            assert sum(other.values()) == pytest.approx(sum(mine.values()), rel=1e-5)
        most = max(float(g.abs().max()) for g in gradients.values())
        torch.testing.assert_close(theirs[name][1], gradients, rtol=1e-3, atol=1e-4 * most)
        torch.testing.assert_close(theirs[name][2], weights, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mvp fit", "blend fit"])
def test_all_ranks_have_the_same_model(both, name):
    one, other = (found[name] for found in both)
    np.testing.assert_equal(one[:2], other[:2])
    for a, b in zip(one[2], other[2], strict=True):
        assert torch.equal(a, b)
    assert one[3] == other[3]


@pytest.mark.slow
def test_a_fit_on_two_ranks_is_that_on_one(both):
    embedding, labels, *_ = ranks_together.fitted(ranks_together.small(MVP, 0))
    np.testing.assert_allclose(both[1]["mvp fit"][0], embedding, atol=1e-4)
    assert (both[1]["mvp fit"][1] == labels).all()


@pytest.mark.slow
def test_what_ranks_cannot_share_is_refused_by_name(both):
    for found in both:
        assert found["refused"] == (
            "DCCA compares the samples of a batch with each other, which ranks that have a part of "
            "it each cannot; fit it in one process, without torchrun"
        )
        for what in ("other settings", "other values", "other groups"):
            assert "the ranks fit MVP with other settings, or on other data" in found[what]
        assert "the ranks fit Blend with other settings, or" in found["other values of blend"]


def test_other_commands_are_refused(monkeypatch):
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    assert "torchrun runs vedute fit, not vedute inspect" in refused("inspect", "handwritten")


@pytest.mark.slow
def test_a_fit_goes_on_after_a_rank_was_killed(both, tmp_path):
    """torchrun starts both ranks again; they go on from the last checkpoint, and end as two ranks
    of which none was killed."""
    np.savez(tmp_path / "d.npz", **dict(zip("abc", ranks_together.views().arrays(), strict=True)))
    # Files, not pipes: ranks would keep these open after torchrun was killed by the timeout.
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        run = subprocess.run(
            [sys.executable, *TORCHRUN, TESTS / "ranks_killed.py", *FIT],
            cwd=tmp_path,
            env={k: v for k, v in ENV.items() if k != "MASTER_PORT"},
            stdout=out,
            stderr=err,
            timeout=240,
        )
    errors = (tmp_path / "err").read_text()
    assert run.returncode == 0, errors
    assert errors.count("vedute: another rank has ended") <= 1
    assert (tmp_path / "out").read_text().count("wrote run") == 1
    epochs = list(map(int, (tmp_path / "epochs").read_text().split()))
    assert epochs[:6] == [1, 2, 3, 4, 5, 5]
    assert {p.name for p in tmp_path.iterdir()} == {"d.npz", "run", "epochs", "out", "err"}
    with np.load(tmp_path / "run" / "embedding.npz") as found:
        np.testing.assert_equal(found["embedding"], both[0]["mvp fit"][0])
        np.testing.assert_equal(found["labels"], both[0]["mvp fit"][1])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no such signal here")
def test_a_rank_that_waits_for_a_stopped_one_says_so(request):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = {"MASTER_PORT": str(free.getsockname()[1])}
    ways = {"more": port, "stderr": subprocess.PIPE, "text": True}
    first, second = [started(rank, 2, TESTS / "ranks_stopped.py", **ways) for rank in range(2)]
    request.addfinalizer(killed_after(240, first, second).cancel)
    os.waitid(os.P_PID, first.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert next(line for line in second.stderr if "waited" in line) == (
        "vedute: rank 1 has waited 2 s for the other ranks; one of them was stopped, is busy, or "
        "cannot be reached\n"
    )
    first.send_signal(signal.SIGCONT)
    for process in (first, second):
        process.communicate(timeout=240)
        assert process.returncode == 0


def test_settings_and_all_values_decide_a_digest():
    """Piece by piece, also of sparse views and of files without a checksum."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random((90, 40)) < 0.1, rng.normal(size=(90, 40)), 0)
    file, other = Scratch(), Scratch()
    file.add(x)
    parts = [torch.from_numpy(x), from_csr(csr_array(x), torch.float64), file.rows()]
    first, *others = [digest({"a": 1}, [part]) for part in parts]
    assert others == [first, first]
    other.add(np.where(np.arange(90)[:, None] == 89, x + 1, x))
    assert digest({"a": 1}, [other.rows()]) != first != digest({"a": 2}, [parts[0]])


NCCL = """
import os, sys
import torch
from torch import distributed
import ranks_together as r
from vedute import MVP

alone = r.fitted(r.small(MVP, 0, device="cuda"))[0]
torch.cuda.set_device(0)
distributed.init_process_group("cpu:gloo,cuda:nccl")
together = r.fitted(r.small(MVP, 0, device="cuda"))[0]
assert abs(alone - together).max() < 1e-5, abs(alone - together).max()
distributed.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gradients_are_added_up_in_a_captured_step_by_nccl(tmp_path):
    """The group has one rank, since there is at most one GPU."""
    (tmp_path / "alone.py").write_text(NCCL)
    place = {"PYTHONPATH": f"{TESTS.parent / 'src'}{os.pathsep}{TESTS}", "MASTER_PORT": "29876"}
    told = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
    words = [sys.executable, tmp_path / "alone.py"]
    run = subprocess.run(words, env={**ENV, **place, **told}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
