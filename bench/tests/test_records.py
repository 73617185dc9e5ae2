"""Several `vedute bench` on one file of records: every run once, whoever dies, and nothing lost."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread

import pytest
from shell import done, vedute_
from small_study import small_study

from vedute.datasets import synthetic
from vedute_bench import studies
from vedute_bench.commands import _bench
from vedute_bench.runner import claims, plan, records
from vedute_bench.runner import run as running
from vedute_bench.runner.lock import locked
from vedute_bench.summaries.summary import Summary

STUDY = """
datasets = ["synthetic"]
rates = [0.5]
seeds = [1, 2, 3, 4, 5, 6, 7, 8]

[[runs]]
label = "mean_fill"
method = "mean_fill"
"""
OUT = Path("r.jsonl")
WORDS = ("bench", "tiny.toml", "--jobs", "1", "-o", OUT)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a study of eight runs; the synthetic data are few."""
    yield from small_study(tmp_path, monkeypatch, STUDY, lambda name: synthetic.load(60))


@pytest.fixture
def one(place):
    """A run of the study."""
    return plan.plan(studies.load("tiny.toml"), Path("masks"), {})[0]


def scored(run, acc=50.0, **more):
    record = running.failure(run, ValueError())
    del record["failed"]
    return record | {"scores": {"acc": acc}, "seconds": 1.0, "wall": 1.0, "device": "a"} | more


def seeds():
    return sorted(r["seed"] for r in records.read(OUT))


def key(run):
    return plan.key(running.asdict(run))


def claim_of(run):
    return claims._path(OUT, key(run))


# Together.


def test_two_bench_on_one_file_share_its_runs(tmp_path):
    (tmp_path / "tiny.toml").write_text(STUDY)
    words = [sys.executable, "-m", "vedute", *map(str, WORDS)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    both = [
        subprocess.Popen(words, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    texts = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], texts
    found = records.read_all(tmp_path / OUT)
    assert Counter(r["seed"] for r in found) == Counter(range(1, 9))
    counts = [int(t.split(" new records")[0].split()[-1]) for t in texts if "new records" in t]
    assert sum(counts) == 8
    assert {p.name for p in tmp_path.iterdir()} == {"tiny.toml", "r.jsonl", "masks"}


LONG = (
    STUDY.replace("mean_fill", "mvp") + "settings = { steps = 1000000, early_stopping = false }\n"
)


@pytest.mark.skipif(os.name == "nt", reason="signals of a shell")
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.all)]
)
def test_a_signal_to_bench_alone_ends_its_workers_and_their_claims(tmp_path, number):
    """`docker stop` and `kill` signal one process, unlike Ctrl-C, which signals the whole group."""
    (tmp_path / "tiny.toml").write_text(LONG)
    words = [sys.executable, "-m", "vedute", "bench", "tiny.toml", "--jobs", "2", "-o", str(OUT)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    bench = subprocess.Popen(words, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
    folder = tmp_path / "r.jsonl.claims"
    until(lambda: len(list(folder.glob("*.json"))) == 2)
    workers = [json.loads(p.read_text())["pid"] for p in folder.glob("*.json")]
    bench.send_signal(number)
    bench.communicate(timeout=60)
    assert bench.returncode == 128 + number
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    assert not folder.exists()  # no claim is left: this was no death of a run
    assert records.read_all(tmp_path / OUT) == []


def until(happens, seconds=120):
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_runs_of_another_are_waited_for_and_taken_over_when_it_dies(place, one, monkeypatch):
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    monkeypatch.setattr(os, "getpid", lambda: other.pid)
    with locked(OUT):
        claims.take(OUT, key(one))
    monkeypatch.undo()
    os.chdir(place)
    slept = []

    def sleep(seconds):
        slept.append(seeds())
        other.communicate(b"\n")

    monkeypatch.setattr(_bench, "sleep", sleep)
    text = done(*WORDS)
    assert "waiting for 1 runs of another" in text
    assert slept == [[2, 3, 4, 5, 6, 7, 8]]
    assert seeds() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert not claim_of(one).parent.exists()


def test_a_claim_ends_with_its_lease_or_its_process(place, one):
    def free():
        return claims.is_free(OUT, key(one))

    assert free()
    claims.take(OUT, key(one))
    assert not free()
    holder = json.loads(claim_of(one).read_text())
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for change, expected in (({"pid": ended.pid}, True), ({"host": "far"}, False)):
        claim_of(one).write_text(json.dumps(holder | change))
        assert free() == expected
    claim_of(one).write_text("{")  # cut off: only time tells
    assert not free()
    for age in (claims.LEASE + 1, -claims.LEASE - 1):
        os.utime(claim_of(one), (time.time() - age,) * 2)
        assert free()


def test_a_run_that_kills_its_process_is_given_up_after_three_times(place, one):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    def died():
        """The process that has the claim is killed."""
        holder = json.loads(claim_of(one).read_text())
        claim_of(one).write_text(json.dumps(holder | {"pid": ended.pid}))

    OUT.touch()
    for deaths in range(plan.MOST_DEATHS):
        assert claims.deaths(OUT, key(one)) == deaths
        claims.take(OUT, key(one))
        died()
    assert "killed 3 times" in plan._once(one, scored, OUT, 0)["failed"]
    assert not claim_of(one).exists()
    assert plan._once(one, scored, OUT, 1)["scores"] == {"acc": 50.0}  # --retry


def test_a_claim_is_renewed_while_it_is_held(place, one, monkeypatch):
    monkeypatch.setattr(claims, "RENEWAL", 0.01)
    mine = claims.take(OUT, key(one))
    with claims.held(OUT, key(one), mine):
        os.utime(claim_of(one), (0, 0))
        until = time.monotonic() + 30
        while claims.is_free(OUT, key(one)) and time.monotonic() < until:
            time.sleep(0.01)
        assert not claims.is_free(OUT, key(one))
    assert not claim_of(one).parent.exists()


@pytest.mark.parametrize("ended", [True, False])
def test_who_slept_through_its_lease_adds_no_second_record(place, one, ended):
    def measured(run):
        os.utime(claim_of(one), (0, 0))
        if ended:
            assert plan._once(run, scored, OUT, 0)["scores"] == {"acc": 50.0}
        else:
            claims.take(OUT, key(one))
        return scored(run, acc=1.0)

    assert plan._once(one, measured, OUT, 0) is None
    assert seeds() == [1] * ended
    assert claim_of(one).exists() != ended  # another's claim stays


def test_a_line_is_cut_and_added_under_the_lock_only(place, one):
    OUT.write_bytes(b'{"cut of')
    thread = Thread(target=plan._once, args=(one, scored, OUT, 0))
    with locked(OUT):
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        assert OUT.read_bytes() == b'{"cut of'
        records.append(OUT, scored(replace(one, seed=9)))
    thread.join()
    assert seeds() == [1, 9]


# Kills.


@pytest.mark.parametrize("after", [None, 0, 20])
def test_a_bench_killed_anywhere_leaves_every_run_to_be_done_once(place, one, after):
    dies_at = pytest.importorskip("crashing", reason="no fork here").dies_at
    other, ended, points = replace(one, seed=9), False, 0
    while not ended:
        points += 1
        OUT.unlink(missing_ok=True)
        records.append(OUT, scored(other))
        ended = not dies_at(points, partial(plan._once, one, scored, OUT, 0), after)
        for claim in Path(f"{OUT}.claims").glob("*"):
            if claim.stat().st_size <= 20:  # whose is not known: its lease must run out
                os.utime(claim, (0, 0))
        plan._once(one, scored, OUT, 0)
        assert seeds() == [1, 9], f"after a kill at {points}"
        if claim_of(one).exists():  # killed after its record was there
            assert claims.is_free(OUT, key(one))
            claim_of(one).unlink()
    assert points > 12


# Failures.


def test_a_score_that_is_nan_is_a_recorded_failure(place, monkeypatch):
    def measured(run, masks, jobs):
        return scored(run, acc=math.nan if run.seed == 3 else 50.0)

    monkeypatch.setattr(plan, "measure", measured)
    result = vedute_(*WORDS)
    assert result.exit_code == 1
    assert "seed 3: failed: score acc is not finite" in result.stderr
    assert "7 new records" in result.stdout
    (failed,) = (r for r in records.read_all(OUT) if "failed" in r)
    assert (failed["seed"], failed["scores"]) == (3, {})
    assert seeds() == [1, 2, 4, 5, 6, 7, 8]
    assert Summary.of(records.read(OUT)).cell("mean_fill", "synthetic", 0.5, "acc").runs == 7
    again = vedute_(*WORDS)
    assert (again.exit_code, len(records.read_all(OUT))) == (1, 8)
    assert "1 failed before; --retry repeats them" in again.stdout


def test_an_infinite_score_of_a_pair_is_a_failure_too(one):
    found = records.without_nan(scored(one, pair_score=math.inf, subsets=[math.nan]))
    assert found["failed"] == "score pair_score is not finite"
    json.dumps(found, allow_nan=False)


def test_a_failure_is_repeated_once_for_each_retry(place, one, monkeypatch):
    def fails(run):
        raise FloatingPointError("the loss\nbecame nan")

    assert plan._once(one, fails, OUT, 0)["failed"] == "the loss became nan"
    assert plan._once(one, scored, OUT, 0) is None
    before = len(records.read_all(OUT))
    assert plan._once(one, fails, OUT, before)["failed"]  # of two `bench --retry`
    assert plan._once(one, fails, OUT, before) is None
    assert plan.unfinished([one], records.read_all(OUT)) == []
    assert "0 of them done before" in done(*WORDS, "--retry", "--seeds", "1")
    assert plan._once(one, fails, OUT, len(records.read_all(OUT))) is None  # it has scores
    assert [("failed" in r) for r in records.read_all(OUT)] == [True, True, False]


# Which code.


def test_records_name_the_commit(place, one, monkeypatch):
    running.commit.cache_clear()
    try:
        head = running._git("rev-parse", "HEAD")
    except (OSError, subprocess.SubprocessError):
        pytest.skip("no checkout here")
    assert running.commit() in (head, f"{head}-dirty")
    assert scored(one)["commit"] == running.commit()
    running.commit.cache_clear()


@pytest.mark.parametrize("given", ["abc123", None])
def test_where_there_is_no_git_the_commit_is_given(given, monkeypatch):
    def absent(*words):
        raise FileNotFoundError("git")

    monkeypatch.setattr(running, "_git", absent)
    monkeypatch.delenv("VEDUTE_COMMIT", raising=False)
    if given:
        monkeypatch.setenv("VEDUTE_COMMIT", given)
    running.commit.cache_clear()
    assert running.commit() == (given or "unknown")
    running.commit.cache_clear()


def test_records_without_a_commit_are_the_same_runs(place, one):
    old = scored(one)
    del old["commit"]
    assert plan.unfinished([one], [old]) == []
    assert Summary.of([old]).labels == Summary.of([scored(one)]).labels
