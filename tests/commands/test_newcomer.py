"""A newcomer with a file of any kind: inspect it, fit, read the page, take the filled file.

Ten inputs, the command line alone, nothing said but what `--help` says.
"""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import loadmat, savemat
from shell import done
from sklearn.feature_extraction.text import TfidfVectorizer

from vedute import io

SHORT = ("steps=20", "warmup=5", "cooldown=5", "hidden=(16,)")
FIT = [word for s in SHORT for word in ("--set", f"mvp__{s}")]
BLOOD, SCAN = ["iron", "zinc", "sugar", "age"], ["volume", "width", "depth"]
SPEC = 'id = "patient"\n[views]\nblood = "blood_*"\nscan = "scan_*"\n'
WORDS = ["ship", "harbour", "freight", "wheat", "corn", "maize", "price", "oil", "barrel", "crude"]


def tables(n=60, seed=0):
    """Blood and scan of patients in no order; each lacks some, blood has two empty cells."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2))
    ids = pd.Index([f"p{i:02d}" for i in rng.permutation(n)], name="patient")
    blood = (z @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(n, 4)) + 20).round(2)
    scan = (z @ rng.normal(size=(2, 3)) + 0.3 * rng.normal(size=(n, 3))).round(2)
    blood, scan = pd.DataFrame(blood, ids, BLOOD), pd.DataFrame(scan, ids, SCAN)
    blood.iloc[[20, 25], [0, 3]] = np.nan
    return {"blood": blood[8:], "scan": scan[:-9]}


def wide():
    """One table of both, empty cells for what a patient lacks; columns blood_iron, ..."""
    parts = {k: t.add_prefix(f"{k}_") for k, t in tables().items()}
    whole = pd.concat(parts.values(), axis=1)
    Path("views.toml").write_text(SPEC)
    return whole.sample(frac=1, random_state=1).rename_axis("patient")


def gone(table):
    """Array with all rows of the wide table, NaN where missing."""
    return table.reindex(wide().index).to_numpy()


# Each writes an input and gives its path and options.


def two_files_of_other_patients():
    Path("cohort").mkdir()
    for name, table in tables().items():
        table.to_csv(f"cohort/{name}.csv")
    return "cohort"


def one_table():
    wide().to_csv("wide.csv")
    return "wide.csv", "--views", "views.toml"


def decimal_commas():
    wide().to_csv("export.csv", sep=";", decimal=",", encoding="utf-8-sig")
    return "export.csv", "--views", "views.toml"


def a_workbook():
    with pd.ExcelWriter("book.xlsx") as book:
        for name, table in tables().items():
            table.to_excel(book, sheet_name=name)
    return "book.xlsx"


def parquet():
    wide().reset_index().to_parquet("wide.parquet")
    return "wide.parquet", "--views", "views.toml"


def npz():
    np.savez(
        "data.npz", **{k: gone(t) for k, t in tables().items()}, ids=wide().index.to_numpy(np.str_)
    )
    return "data.npz"


def a_folder_of_arrays():
    Path("arrays").mkdir()
    for name, table in tables().items():
        np.save(f"arrays/{name}.npy", table.to_numpy())
        Path(f"arrays/{name}.ids.txt").write_text("\n".join(table.index))
    return "arrays"


def columns_of_two_levels():
    table = pd.concat(tables(), axis=1).rename_axis("patient")
    table.columns = table.columns.map("_".join)
    wide()  # the TOML file
    table.to_csv("levels.tsv.gz", sep="\t")
    return "levels.tsv.gz", "--views", "views.toml"


def texts():
    """tf-idf of documents in two languages, sparse; a row of NaN where there is no translation."""
    rng = np.random.default_rng(0)
    topics = [WORDS[:3], WORDS[3:7], WORDS[6:]]
    english = [" ".join(rng.choice(topics[i % 3], 6)) for i in range(60)]
    french = [" ".join(w[::-1] for w in text.split()) for text in english]
    views = np.empty((1, 2), object)
    for v, docs in enumerate((english, french)):
        matrix = TfidfVectorizer().fit_transform(docs).toarray()
        matrix[10 * v : 10 * v + 7] = np.nan
        views[0, v] = sparse.csc_matrix(matrix)
    savemat("texts.mat", {"X": views})
    return "texts.mat", "--samples", "rows"


def single_cells():
    """MuData, or where it is not installed a folder of a parquet and a tab-separated file."""
    if importlib.util.find_spec("mudata"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of its own future
            from anndata import AnnData
            from mudata import MuData

            MuData({k: AnnData(t) for k, t in tables().items()}).write_h5mu("cells.h5mu")
        return "cells.h5mu"
    Path("mixed").mkdir()
    tables()["blood"].to_parquet("mixed/blood.parquet")
    tables()["scan"].to_csv("mixed/scan.tsv", sep="\t")
    return "mixed"


# Each reads such a file or folder: tables and arrays by name.


def content(path):
    path = Path(path)
    if path.is_dir():
        found = [p for p in sorted(path.iterdir()) if p.suffix != ".txt"]
        return {p.name: content(p) for p in found}
    match path.suffix:
        case ".npz":
            with np.load(path) as file:
                return {k: file[k] for k in file.files if k not in ("mask", "view_names")}
        case ".npy":
            ids = path.with_suffix(".ids.txt").read_text().split()
            return pd.DataFrame(np.load(path), ids)
        case ".mat":
            found = loadmat(path)["X"][0]
            return {v: x.toarray() if sparse.issparse(x) else x for v, x in enumerate(found)}
        case ".xlsx":
            return pd.read_excel(path, sheet_name=None)
        case ".h5mu":
            return mudata(path)
        case ".parquet":
            return pd.read_parquet(path)
    mark = {".csv": ",", ".tsv": "\t", ".gz": "\t"}[path.suffix]
    text = path.read_bytes()
    mark, point = (";", ",") if path.suffix == ".csv" and b";" in text else (mark, ".")
    return pd.read_csv(path, sep=mark, decimal=point, encoding="utf-8-sig")


def mudata(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mudata import read_h5mu

        mods = read_h5mu(path).mod
    return {k: m.to_df("filled" if "filled" in m.layers else None) for k, m in mods.items()}


def is_filled(before, after):
    """Check that tables keep their heads, order and observed cells, and have no gaps."""
    if isinstance(before, dict):
        assert list(before) == list(after)
        return all(is_filled(before[k], after[k]) for k in before)
    if not isinstance(before, pd.DataFrame):
        before, after = pd.DataFrame(before), pd.DataFrame(after)
    assert list(after.columns) == list(before.columns)
    same, there = after.iloc[: len(before)].reset_index(drop=True), before.reset_index(drop=True)
    pd.testing.assert_frame_equal(same.where(there.notna()), there, check_dtype=False)
    return not after.isna().any(axis=None)


SLOW = (decimal_commas, a_workbook, texts, single_cells)
OTHERS = (one_table, parquet, npz, a_folder_of_arrays, columns_of_two_levels)
KINDS = [two_files_of_other_patients]
KINDS += [pytest.param(kind, marks=pytest.mark.slow) for kind in SLOW]
KINDS += [pytest.param(kind, marks=pytest.mark.all) for kind in OTHERS]


@pytest.mark.parametrize("kind", KINDS, ids=lambda f: f.__name__)
def test_from_file_to_page_to_filled_file(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if kind is a_workbook:
        pytest.importorskip("openpyxl", reason="extra excel")
    made = kind()
    data, *options = (made,) if isinstance(made, str) else made
    assert "60 samples" in done("inspect", data, *options)
    done("fit", data, "-o", "run", "--clusters", "3", *options, *FIT)
    done("report", "run", "-o", "page.html")
    done("cluster", "run", "-o", "labels.csv")
    ending = io.ending(data)
    done("impute", "run", "-o", f"filled{ending}")

    assert "<html" in Path("page.html").read_text(encoding="utf-8")[:200]
    before, after = content(data), content(f"filled{ending}")
    if ending == ".h5mu":  # all modalities have the order of the whole
        after = {
            k: x.loc[[*before[k].index, *x.index.drop(before[k].index)]] for k, x in after.items()
        }
    assert is_filled(before, after)
    labels = pd.read_csv("labels.csv")
    assert len(labels) == 60
    named = kind not in (npz, a_folder_of_arrays, texts)
    assert labels.columns[0] == ("patient" if named else "ids")
