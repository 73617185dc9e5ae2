"""Forty broken inputs: each gets one sentence that names the place, exit code 2, and no output."""

from __future__ import annotations

import gzip
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat
from typer.testing import CliRunner

from vedute.cli import app

A = "id,a1,a2\n" + "".join(f"p{i},{i}.5,{-i}\n" for i in range(8))
B = "id,b1\n" + "".join(f"p{i},{i * i}.25\n" for i in range(8))
WIDE = "id,r1,r2,s1,note\n" + "".join(f"p{i},{i}.5,{i},{i}.25,ok\n" for i in range(8))
LONG = "id,x\n" + "".join(f"p{i},{i * i % 997}.{i * 7919 % 9973}\n" for i in range(9000))
SPEC = '[views]\nr = "r*"\ns = "s1"\n'


def fit(*options):
    return ["fit", "d", "-o", "OUT", "--method", "mean_fill", *options]


def table(*options):
    return ["fit", "d.csv", "-o", "OUT", "--method", "mean_fill", *options]


def mat(*options):
    return ["fit", "d.mat", "-o", "OUT", "--method", "mean_fill", *options]


def views(a, b=B):
    return {"d/a.csv": a, "d/b.csv": b}


def damaged_zip(old=b"PK\1\2", new=b"PK\0\0"):
    file = io.BytesIO()
    np.savez(file, a=array(8, 2))
    return file.getvalue().replace(old, new)


def damaged_mat(at, value):
    """File with one changed byte that makes scipy read beyond its memory."""
    cell, file = np.empty((1, 2), object), io.BytesIO()
    cell[0, 0], cell[0, 1] = array(8, 3), array(8, 2)
    savemat(file, {"X": cell})
    content = bytearray(file.getvalue())
    content[at] = value
    return bytes(content)


def array(*shape, dtype=float):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


BROKEN = {
    # folders and what is in them
    "an empty folder": ({"d/.keep": ""}, fit(), r"^d is a folder without views"),
    "a folder of text": ({"d/README.txt": "hi"}, fit(), r"^d is a folder without views"),
    "a spreadsheet": ({"d/a.xlsx": b"PK\3\4"}, fit(), r"d/a\.xlsx is a spreadsheet; export"),
    "a spreadsheet called csv": (views(b"PK\3\4 sheet"), fit(), r"d/a\.csv .* Excel"),
    "bytes called csv": (
        views(b"id,a\n\0\1\2"),
        fit(),
        r"d/a\.csv holds zero bytes",
    ),
    "an empty file": (views(""), fit(), r"d/a\.csv is empty"),
    "only a header": (views("id,a1,a2\n"), fit(), r"d/a\.csv has no rows"),
    "one column": (views("id\np1\np2\n"), fit(), r"d/a\.csv has one column, 'id'"),
    "no header": (views("p1,0.5,1.5\np2,2.5,3.5\n"), fit(), r"d/a\.csv has no header.*'0.5'"),
    "latin-1": (views(A.replace("p1", "pé").encode("latin-1")), fit(), r"d/a\.csv is not UTF-8"),
    "not gzip": ({"d/a.csv.gz": "id,a\n", "d/b.csv": B}, fit(), r"d/a\.csv\.gz is not a gzip file"),
    "cut gzip": (
        {"d/a.csv.gz": gzip.compress(A.encode())[:60], "d/b.csv": B},
        fit(),
        r"d/a\.csv\.gz is not a gzip file",
    ),
    "gzip cut late": (
        {"d/a.csv.gz": gzip.compress(LONG.encode())[:-400], "d/b.csv": B},
        fit(),
        r"d/a\.csv\.gz is damaged",
    ),
    "one huge cell": (views("{" + "x" * 200_000 + "}\n1\n"), fit(), r"d/a\.csv is not a text"),
    "ids called twice": (views(A.replace("a2", "id")), fit(), r"d/a\.csv has duplicated .* 'id'"),
    "a view twice": ({"d/a.csv": A, "d/a.tsv": A}, fit(), r"d/a\.tsv and a\.csv are both view 'a'"),
    "a long line": (
        views(A + "p9,1,2,3\n"),
        fit(),
        r"d/a\.csv, line 10 has 4 fields, the header 3",
    ),
    "a cut line": (views(A + "p9,1"), fit(), r"d/a\.csv, line 10 has 2 fields, the header 3"),
    "an open quote": (views(A + 'p9,"1,2\np10,3,4\n'), fit(), r"d/a\.csv: a quote .* line 10"),
    "a column twice": (
        views(A.replace("a2", "a1")),
        fit(),
        r"d/a\.csv has duplicated columns 'a1'",
    ),
    "a nameless column": (views(A.replace("a1", "")), fit(), r"d/a\.csv: column 2 has no name"),
    "an id twice": (views(A + "p3,1,2\n"), fit(), r"d/a\.csv: id 'p3' occurs twice"),
    "a row without id": (
        views(A + ",1,2\n"),
        fit(),
        r"d/a\.csv: row 9 \(after 'p7'\) has no sample",
    ),
    "no ids": (
        views("x,y\n0.1,0.2\n0.3,0.4\n"),
        fit(),
        r"d/a\.csv: the first column, 'x', .* not sample ids",
    ),
    "text": (
        views(A.replace("5.5", "red").replace(".5", " blue")),
        fit(),
        r"d/a\.csv, column 'a1', row 'p0' holds '0 blue', not a number; --one-hot",
    ),
    "text among numbers": (
        views(A.replace("5.5", "low")),
        fit("--one-hot"),
        r"d/a\.csv, column 'a1', row 'p5' holds 'low' among numbers",
    ),
    "free text": (
        views("id,a\n" + "".join(f"p{i},text {i}\n" for i in range(60))),
        fit("--one-hot"),
        r"d/a\.csv, column 'a', row 'p0' .* 60 different texts",
    ),
    "two decimal marks": (
        views("id;x;y\np1;1,5;2.5\np2;3,5;4.5\n"),
        fit(),
        r"d/a\.csv has decimal commas in column 'x' .* points in column 'y'",
    ),
    "thousands": (
        views("id;x\np1;1,500\np2;3,500\n"),
        fit(),
        r"d/a\.csv, column 'x' holds '1,500'",
    ),
    "infinity": (views(A.replace("5.5", "inf")), fit(), r"view 'a': row 'p5' has infinite"),
    "a column without values": (
        views(re.sub(r",-?\d\n", ",NA\n", A)),
        fit(),
        r"view 'a', column 'a2' has no value",
    ),
    "a row without values": (views(A + "p9,NA,NA\n"), fit(), r"row 'p9' has no observed view"),
    "a view without values": (
        views(re.sub(r"-?\d+(\.\d+)?,-?\d+(\.\d+)?\n", "NA,NA\n", A)),
        fit(),
        r"view 'a' has no value in any row; leave it out",
    ),
    "ids that never meet": (
        views(A.replace("p", "q")),
        fit(),
        r"no sample has two views.*a q0, b p0",
    ),
    "no such label": (
        views(A),
        fit("--label", "kind"),
        r"d has no column 'kind' for --label; it has 'a1'",
    ),
    "labels that differ": (
        views(A.replace("a2", "y"), B.replace("b1", "y")),
        fit("--label", "y"),
        r"d: id 'p0' has the label 0 in a and 0.25 in b",
    ),
    "a damaged parquet file": (
        {"d/a.parquet": b"PAR1 not", "d/b.csv": B},
        fit(),
        r"d/a\.parquet is not a parquet file",
    ),
    "parts of a table": (
        {"d/a.parquet/part-0.parquet": b"PAR1", "d/b.csv": B},
        fit(),
        r"d/a\.parquet is a folder without images; write the view as one file",
    ),
    "a link to nowhere": (
        {"d/b.csv": B, "d/a.csv": Path("gone.csv")},
        fit(),
        r"d/a\.csv is a broken link",
    ),
    "an array without ids": ({"d/a.npy": array(8, 2), "d/b.csv": B}, fit(), r"d/a\.npy has no ids"),
    "ids in another encoding": (
        {"d/a.npy": array(2, 2), "d/a.ids.txt": "pé\npü\n".encode("latin-1")},
        fit(),
        r"d/a\.ids\.txt is not UTF-8 text .*; save it as UTF-8",
    ),
    "a damaged list of contents": (
        {"d.npz": damaged_zip()},
        ["fit", "d.npz", "-o", "OUT"],
        r"d\.npz is damaged \(Bad magic number for central directory\); write it again",
    ),
    "numbers whose squares overflow": (
        {"d/a.npy": array(8, 2) * 1e300, "d/b.npy": array(8, 2)},
        ["inspect", "d"],
        r"view 'a' holds numbers whose squares overflow",
    ),
    "a zip file that begins with something else": (
        {"d.npz": damaged_zip(b"PK\3\4", b"PK\3\5")},
        ["fit", "d.npz", "-o", "OUT"],
        r"d\.npz is not an \.npz file",
    ),
    "a kind of element that MATLAB has not": (
        {"d.mat": damaged_mat(225, 1)},
        ["inspect", "d.mat"],
        r"d\.mat is not a MATLAB file \(an element is of no known kind or size\)",
    ),
    "a matrix in place of numbers": (
        {"d.mat": damaged_mat(144, 5)},
        ["inspect", "d.mat"],
        r"d\.mat is not a MATLAB file \(an element is of no known kind or size\)",
    ),
    "a complex matrix without its second part": (
        {"d.mat": damaged_mat(193, 8)},
        ["inspect", "d.mat"],
        r"d\.mat is not a MATLAB file \(a matrix lacks its numbers\)",
    ),
    "deep TOML": (
        {"d.csv": WIDE, "s.toml": "[views]\nr = " + "[" * 10**5},
        table("--views", "s.toml"),
        r"s\.toml is not TOML",
    ),
    "too few ids": (
        {"d/a.npy": array(8, 2), "d/a.ids.txt": "p1\np2\n"},
        fit(),
        r"d/a\.ids\.txt has 2 ids, a\.npy 8 rows",
    ),
    "pickled objects": (
        {"d/a.npy": np.array([[None]]), "d/b.csv": B},
        fit(),
        r"d/a\.npy holds Python objects",
    ),
    "a broken image": (
        {"d/a/p1.png": b"no image", "d/b.csv": B},
        fit(),
        r"d/a/p1\.png cannot be read",
    ),
    # one table
    "a table without --views": ({"d.csv": WIDE}, table(), r"d\.csv is one table; pass --views"),
    "views that are no TOML": (
        {"d.csv": WIDE, "s.toml": "r = ["},
        table("--views", "s.toml"),
        r"s\.toml is not TOML",
    ),
    "no views in TOML": (
        {"d.csv": WIDE, "s.toml": 'r = "r*"'},
        table("--views", "s.toml"),
        r"s\.toml names no views",
    ),
    "a view without columns": (
        {"d.csv": WIDE, "s.toml": SPEC + 't = "t_*"'},
        table("--views", "s.toml"),
        r"d\.csv has no column 't_\*' for view 't'",
    ),
    "a column in two views": (
        {"d.csv": WIDE, "s.toml": SPEC + 't = ["r1"]'},
        table("--views", "s.toml"),
        r"d\.csv: column 'r1' is in the views 'r' and 't'",
    ),
    "no such id column": (
        {"d.csv": WIDE, "s.toml": 'id = "who"\n' + SPEC},
        table("--views", "s.toml"),
        r"d\.csv has no column 'who' of ids",
    ),
    "--views for a folder": (
        views(A) | {"s.toml": SPEC},
        fit("--views", "s.toml"),
        r"--views is not for d",
    ),
    # MATLAB
    "not a mat file": ({"d.mat": "hello " * 50}, mat(), r"d\.mat is not a MATLAB file"),
    "mat of nothing": ({"d.mat": {"note": "hi"}}, mat(), r"d\.mat has no views.*note"),
    "mat without a common size": (
        {"d.mat": {"view1": array(8, 2), "view2": array(7, 3)}},
        mat(),
        r"d\.mat: views do not fit each other: view1 8 x 2, view2 7 x 3",
    ),
    "mat of squares": (
        {"d.mat": {"view1": array(8, 8), "view2": array(8, 8)}},
        mat(),
        r"d\.mat: samples may be rows or columns .* --samples",
    ),
    "mat and labels": (
        {"d.mat": {"view1": array(8, 2), "view2": array(8, 3), "Y": array(1, 5)}},
        mat(),
        r"d\.mat: views do not fit the 5 labels",
    ),
    "--samples sideways": (
        {"d.mat": {"view1": array(8, 2)}},
        mat("--samples", "up"),
        r"--samples takes rows or columns, got 'up'",
    ),
    # other files
    "options for a dataset": (
        {},
        ["fit", "synthetic", "-o", "OUT", "--one-hot"],
        r"--one-hot is not for synthetic",
    ),
    "labels among the views": (
        views(A),
        ["cluster", "RUN", "d", "-o", "d/labels.csv"],
        r"d/labels\.csv is inside the data; write it outside the data folder d",
    ),
    "a RUN among the views": (
        views(A),
        ["fit", "d", "-o", "d/run"],
        r"d/run is inside the data; write it outside the data folder d",
    ),
    "a RUN in place of the views": (
        views(A),
        ["fit", "d", "-o", "d", "--force"],
        r"d holds the data; choose another name",
    ),
    "a comparison among the views": (
        views(A),
        ["compare", "d", "-o", "d/compared"],
        r"d/compared is inside the data; write it outside the data folder d",
    ),
    "a file in its own place": (
        views(A) | {"d.npz": "PK"},
        ["cluster", "RUN", "d.npz", "-o", "d.npz", "--force"],
        r"d\.npz holds the data; choose another name",
    ),
    "a folder with the name of a dataset": (
        {k.replace("d/", "synthetic/"): v for k, v in views(A).items()},
        ["inspect", "synthetic"],
        r"synthetic is a dataset and a folder here; write \./synthetic for the folder",
    ),
    "no number of clusters": (
        views(A),
        fit("--method", "dimvc"),
        r"dimvc learns clusters while it trains; say how many: --clusters K",
    ),
    "a setting without a name": (
        views(A),
        fit("--set", "=3"),
        r"--set takes name=value, got '=3'",
    ),
    "a setting beyond all bounds": (
        views(A),
        ["fit", "d", "-o", "OUT", "--method", "mvp", "--set", "beta=1e999"],
        r"beta must be finite, got inf",
    ),
    "a layer of no size": (
        views(A),
        ["fit", "d", "-o", "OUT", "--set", "mvp__hidden=(-3,)"],
        r"mvp__hidden: each of hidden must be at least 1, got \(-3,\)",
    ),
    "a seed beyond all bounds": (
        views(A),
        fit("--seed", "99999999999999999999999"),
        r"random_state is a whole number below 2\*\*63",
    ),
    "no such file": ({}, ["fit", "no/d.csv", "-o", "OUT"], r"no/d\.csv does not exist"),
    "an unknown ending": ({"d.doc": "x"}, ["fit", "d.doc", "-o", "OUT"], r"d\.doc ends in '\.doc'"),
    # a model meets other files
    "a lost column": (
        views(A.replace("a1", "a9")),
        ["impute", "RUN", "d", "-o", "OUT"],
        r"view 'a' lacks 'a1' and has unknown 'a9'",
    ),
    "an unknown view": (
        {"d/c.csv": A},
        ["cluster", "RUN", "d", "-o", "OUT.csv"],
        r"unknown view 'c'; fitted views are a, b",
    ),
    "a RUN as data": ({}, ["impute", "RUN", "RUN", "-o", "OUT"], r"RUN is a RUN of `vedute fit`"),
    "a folder into a file": (
        views(A),
        ["impute", "RUN", "d", "-o", "OUT.csv"],
        r"OUT must be a folder, as d is, or end in \.npz",
    ),
}


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, dict):
        savemat(path, content)
    elif isinstance(content, Path):
        path.symlink_to(content)
    elif isinstance(content, np.ndarray):
        np.save(path, content)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def run(*words):
    return CliRunner().invoke(app, [str(w) for w in words])


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A RUN on two good tables."""
    place = tmp_path_factory.mktemp("good")
    for name, content in views(A).items():
        put(place / name, content)
    result = run("fit", place / "d", "-o", place / "run", "--method", "mean_fill", "--clusters", 2)
    assert result.exit_code == 0, result.stderr
    return place / "run"


def test_there_are_forty_of_them():
    assert len(BROKEN) >= 40


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_input_gets_one_sentence(what, tmp_path, monkeypatch, fitted):
    files, words, told = BROKEN[what]
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        put(Path(name), content)
    if "RUN" in words:
        (tmp_path / "RUN").symlink_to(fitted)
    before = sorted(tmp_path.rglob("*"))
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    sentence = lines[0].removeprefix("vedute: ")
    assert re.search(told, sentence), sentence
    assert "Traceback" not in sentence
    assert sorted(tmp_path.rglob("*")) == before


def test_good_tables_pass(fitted):
    """What is broken above is broken by what was done to it."""
    assert (fitted / "model.json").is_file()
    assert list(pd.read_csv(fitted.parent / "d" / "a.csv").columns) == ["id", "a1", "a2"]
