"""Names from files reach a terminal without anything that it would obey."""

import os
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shell import vedute_

import vedute
from vedute.data.escaping import escaped

EVIL = "\x1b[31m\r\x07\u202e\x9b2J"
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
NAME = f"a{EVIL}\nb"


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("vedute.commands._pages.measure", lambda *_: None)
    rng = np.random.default_rng(0)
    mask = rng.random((40, 3)) > 0.2
    mask[~mask.any(1), 0] = True
    views = {NAME: rng.normal(size=(40, 3)), "c\u202e": rng.normal(size=(40, 2))}
    np.savez("d.npz", **views, plain=rng.normal(size=(40, 2)), mask=mask)


def shown(*words):
    """What is on the terminal, by a command that may end in any way but a traceback."""
    with warnings.catch_warnings(record=True) as told:
        result = vedute_(*words)
    assert result.exit_code in (0, 1, 2), result.output
    text = result.stdout + result.stderr + "".join(warnings.formatwarning(w.message) for w in told)
    assert not OBEYED.search(text), ascii(text)
    return text


def formatted(monkeypatch):
    """Warnings as `main` shows them."""
    line = lambda message, *_, **__: f"vedute: {escaped(message)}\n"  # noqa: E731
    monkeypatch.setattr(warnings, "formatwarning", line)


def test_names_of_views(monkeypatch):
    formatted(monkeypatch)
    out = ("--method", "mean_fill", "--force", "-o", "run")
    assert r"a\x1b[31m" in shown("inspect", "d.npz")
    for words in (
        ("fit", "d.npz", *out),
        ("impute", "run", "-o", "out.npz"),
        ("impute", "run", "-o", "out"),
        ("convert", "d.npz", "-o", "store"),
        ("ampute", "d.npz", "-o", "less.npz", "--rate", ".3"),
        ("compare", "d.npz", "--methods", "mean_fill,knn_fill"),
        ("inspect", "d.npz", "--kind", f"{NAME}=counts"),
        ("fit", "d.npz", *out, "--set", f"{EVIL}=3"),
    ):
        shown(*words)
    assert r"a\x1b[31m" in repr(vedute.Views.of({NAME: np.ones((2, 2))}))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_names_of_files_columns_categories_and_samples(monkeypatch):
    formatted(monkeypatch)
    rng = np.random.default_rng(0)
    evil = EVIL.replace("\r", "")
    folder = Path(f"t{evil}")
    folder.mkdir()
    ids = pd.Index([f"s{evil}{i}" for i in range(30)], name=f"id{evil}")
    frame = pd.DataFrame(rng.normal(size=(30, 2)), ids, [f"u{evil}", "v"])
    frame["k"] = [f"red{evil}" if i % 3 else "blue" for i in range(30)]
    frame.to_csv(folder / f"a{evil}.csv")
    frame[["v"]].iloc[5:].rename(index=str.upper).to_csv(folder / "b.csv")
    run = ("--method", "mean_fill", "--force", "-o", f"run{evil}")
    for words in (
        ("inspect", folder),
        ("inspect", folder, "--one-hot"),
        ("inspect", folder, "--label", f"x{evil}"),
        ("inspect", f"nothing{evil}"),
        ("inspect", "d.npz", f"--{evil}"),
        ("fit", folder, "--one-hot", *run),
        ("impute", f"run{evil}", "-o", f"out{evil}"),
        ("embed", f"run{evil}", "-o", f"z{evil}.csv"),
        ("report", f"run{evil}", "-o", f"p{evil}.html"),
    ):
        shown(*words)


def test_text_in_other_scripts_stays_as_it_is():
    for text in ("Größe", "样本", "👩‍🔬", "שלום", "a b"):
        assert escaped(text) == text
    assert escaped("a\n\tb") == r"a\n\tb"
    assert escaped("a\n\tb\x1b", keep="\n\t") == "a\n\tb\\x1b"
    assert escaped("\udc80") == r"\udc80"
