"""Whatever goes wrong is one sentence and an exit code; ids that are formulas are mentioned."""

import errno

import numpy as np
import pandas as pd
import pytest
from shell import done, refused, vedute_

from vedute import io
from vedute.cli import answer


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "out"), 3),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), 3),
        (OSError(errno.EROFS, "Read-only file system"), 3),
        (OSError("300 requested and 0 written"), 3),
        (MemoryError(), 3),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes"), 3),
        (RecursionError("maximum recursion depth exceeded"), 2),
        (FileNotFoundError(errno.ENOENT, "No such file", "x"), 2),
        (ValueError("two\nlines"), 2),
        (RuntimeError("odd"), 2),
        (AssertionError(), 2),
    ],
)
def test_every_error_is_one_sentence(error, code, monkeypatch):
    def fails(*_):
        raise error

    monkeypatch.setattr(io, "read", fails)
    result = vedute_("inspect", "x.npz")
    assert result.exit_code == code
    assert len(result.stderr.strip().splitlines()) == 1
    assert ("bug" in result.stderr) == (type(error) in (RuntimeError, AssertionError) and code == 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nope"], "no such option"),
        (["fitt"], "no such command 'fitt'"),
        (["fit"], "missing argument 'DATA'; see 'vedute fit -h'"),
        (["fit", "x.npz", "--metod", "mvp"], "--method"),
        (["fit", "x.npz", "-o", "out", "--seed", "one"], "'--seed'"),
        (["demo", "--seed"], "'--seed' requires an argument"),
        (["ampute", "x", "-o", "out", "--rate", "a"], "'--rate'"),
        (["inspect", "x.npz", "more"], "(more); see 'vedute inspect -h'"),
    ],
)
def test_a_command_that_is_not_understood_is_one_sentence(words, said):
    assert said in refused(*words)


def test_without_a_command_there_is_help():
    result = vedute_()
    assert result.exit_code == 2
    assert "vedute demo" in result.output


def test_a_bug_says_how_to_see_where(monkeypatch):
    assert "VEDUTE_DEBUG=1" in answer(AssertionError("x"))[0]
    monkeypatch.setenv("VEDUTE_DEBUG", "1")
    monkeypatch.setattr(io, "read", lambda *_: [][0])
    assert isinstance(vedute_("inspect", "x.npz").exception, IndexError)


# Formulas.

IDS = ["=cmd()", "+x", "@y", "-3", "+1.5", "plain", *(f"p{i}" for i in range(20))]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    rng = np.random.default_rng(0)
    for name in "ab":
        frame = pd.DataFrame(rng.normal(size=(len(IDS), 2)), IDS, columns=["u", "v"])
        frame.iloc[8:].to_csv(f"d/{name}.csv", index_label="id") if name == "b" else frame.to_csv(
            "d/a.csv", index_label="id"
        )
    done("fit", "d", "-o", "run", "--method", "mean_fill", "--clusters", "2")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["impute", "run", "d", "-o", "out"], "out/a.csv"),
        (["embed", "run", "d", "-o", "out.csv"], "out.csv"),
        (["cluster", "run", "d", "-o", "out.csv"], "out.csv"),
        (["ampute", "d", "--rate", "0", "-o", "out"], "out/a.csv"),
    ],
)
def test_formulas_are_mentioned_once_or_quoted(words, file, run):
    result = vedute_(*words)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count("--safe-csv") == 1
    plain = pd.read_csv(file, dtype=str).iloc[:, 0].tolist()
    assert plain == IDS
    result = vedute_(*words, "--safe-csv", "--force")
    assert "--safe-csv" not in result.stderr
    quoted = pd.read_csv(file, dtype=str).iloc[:, 0].tolist()
    assert quoted == [*(f"'{i}" for i in IDS[:3]), *IDS[3:]]


def test_both_forms_are_the_same_id(run):
    vedute_("impute", "run", "d", "-o", "safe", "--safe-csv")
    assert io.read("safe").ids.tolist() == io.read("d").ids.tolist() == IDS
    vedute_("impute", "run", "safe", "-o", "again")
    assert (run / "again/a.csv").read_text() == (run / "safe/a.csv").read_text()
    text = (run / "d/a.csv").read_text()
    (run / "d/a.csv").write_text(text + "'=cmd(),1,2\n")
    assert "occurs twice" in refused("inspect", "d")
