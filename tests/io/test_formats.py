"""Every format in, the same format out: ids and columns in order, what was observed unchanged."""

from __future__ import annotations

import csv
import gzip
import json
import warnings
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from scipy.io import loadmat, savemat
from shell import short_mvp
from typer.testing import CliRunner

import vedute
from vedute import io
from vedute.cli import app
from vedute.io import csv as csv_files

SMALL = short_mvp(steps=20, warmup=5)
N = 60


MEAN = ["--method", "mean_fill"]


def vedute_(*words):
    result = CliRunner().invoke(app, [str(w) for w in words])
    assert result.exit_code == 0, result.output + result.stderr
    return result.stdout


def latent(widths, seed=0, n=N):
    """Views of n samples that share three causes."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 3))
    return [z @ rng.standard_normal((3, d)) for d in widths]


def some(rng, rate=0.4, n=N):
    """Which samples have which of three views: `rate` of the slots are missing, no row is empty."""
    mask = rng.random((n, 3)) >= rate
    mask[np.arange(n), rng.integers(3, size=n)] = True
    return mask


def make_unaligned(place):
    """Three CSV files of three dialects; 40 % of the slots missing, rows in any order, holes."""
    rng = np.random.default_rng(1)
    rna, protein, clinic = latent((5, 4, 3))
    mask, ids = some(rng), np.array([f"p{i:02}" for i in range(N)])
    folder = place / "data"
    folder.mkdir()
    order = rng.permutation(N)
    lines = ["sample,g1,g2,g3,g4,g5"]
    for i in order[mask[order, 0]]:
        cells = [f"{x:.2f}" for x in rna[i]]
        cells[i % 5] = ["NA", "", "nan", "-1.50", "2"][i % 5]  # holes, and numbers as people type
        lines.append(",".join([ids[i], *cells]))
    (folder / "rna.csv").write_text("\n".join(lines) + "\n")
    lines = ["\ufeffid;p1;p2;p3;p4"]
    for i in order[mask[order, 1]]:
        lines.append(";".join([ids[i], *(f"{x:.3f}".replace(".", ",") for x in protein[i])]))
    (folder / "protein.csv").write_text("\r\n".join(lines) + "\r\n", encoding="utf-8", newline="")
    lines = ["\tage\tgroup\tsmokes\tscore"]
    for i in np.flatnonzero(mask[:, 2]):
        age = "?" if i % 7 == 0 else str(round(50 + 10 * clinic[i, 0]))
        smokes = str(bool(clinic[i, 1] > 0)).upper() if i % 5 else "N/A"
        lines.append(f"{ids[i]}\t{age}\tg{i % 3}\t{smokes}\t{clinic[i, 2]:.1f}")
    (folder / "clinic.tsv").write_text("\n".join(lines) + "\n")
    return folder, ["--label", "group"]


def make_integer_ids(place):
    """Ids are whole numbers: text in a CSV file, an int64 index and a column in parquet files."""
    rng = np.random.default_rng(2)
    a, b, c = latent((4, 3, 5))
    mask, ids = some(rng), np.arange(100, 100 + N)
    folder = place / "data"
    folder.mkdir()
    frame = pd.DataFrame(a, pd.Index(ids, name="id"), [f"a{j}" for j in range(4)])
    frame[mask[:, 0]].to_csv(folder / "a.csv")
    counts = pd.DataFrame(np.rint(20 * b), pd.Index(ids, name="id"), list("xyz")).astype(np.int32)
    counts[mask[:, 1]].to_parquet(folder / "b.parquet")
    last = pd.DataFrame(c.astype(np.float32), columns=[f"c{j}" for j in range(5)])
    last.insert(0, "who", ids)
    last.loc[::9, "c1"] = np.nan
    last[mask[:, 2]].reset_index(drop=True).to_parquet(folder / "c.parquet")
    return folder, []


def make_wide(place):
    """One table, a column of text that no view wants, gaps, and a TOML file of views."""
    rng = np.random.default_rng(3)
    a, b, c = latent((4, 3, 2))
    mask = some(rng)
    table = {f"rna_{j}": a[:, j].round(4) for j in range(4)} | {
        f"prot{j}": b[:, j] for j in range(3)
    }
    frame = pd.DataFrame(
        table | {"age": np.rint(50 + 9 * c[:, 0]), "sex": rng.choice(["f", "m"], N)}
    )
    frame["age"] = frame["age"].astype("Int64")
    for v, columns in enumerate((["rna_0", "rna_1", "rna_2", "rna_3"], ["prot0", "prot1", "prot2"],
                                 ["age", "sex"])):  # fmt: skip
        frame.loc[~mask[:, v], columns] = None
    frame.insert(0, "note", [f"seen, {i}" for i in range(N)])
    frame.insert(1, "patient", [f"P{i}" for i in range(N)])
    frame["kind"] = rng.integers(3, size=N)
    frame.to_csv(place / "data.csv", index=False, na_rep=".")
    spec = 'id = "patient"\n[views]\nrna = "rna_*"\nprot = "prot"\nclinic = ["age", "sex"]\n'
    (place / "spec.toml").write_text(spec)
    options = ["--views", place / "spec.toml", "--one-hot", "--label", "kind"]
    return place / "data.csv", options


def make_mat(place):
    """A cell array of features x samples, one of them sparse, with labels and something else."""
    rng = np.random.default_rng(4)
    views = latent((6, 5, 4))
    mask = some(rng)
    for v in (0, 2):
        views[v][~mask[:, v]] = np.nan
    mask[:, 1] = True
    cell = np.empty((1, 3), dtype=object)
    cell[0, 0] = views[0].T
    cell[0, 1] = sparse.csc_matrix(np.where(views[1].T > 0, views[1].T, 0))
    cell[0, 2] = views[2].T.astype(np.float32)
    savemat(
        place / "data.mat", {"X": cell, "gt": rng.integers(1, 4, (N, 1)), "note": "from a paper"}
    )
    return place / "data.mat", []


def make_h5mu(place):
    """Three modalities of different cells; counts are sparse integers as floats."""
    pytest.importorskip("mudata", reason="mudata is not installed (extra omics)")
    rng = np.random.default_rng(5)
    mask, ids = some(rng), np.array([f"cell{i}" for i in range(N)])
    with quietly():
        from anndata import AnnData
        from mudata import MuData

        mods = {}
        for v, (name, x) in enumerate(zip(("rna", "prot", "atac"), latent((6, 5, 4)), strict=True)):
            x = np.rint(np.exp(x)).astype(np.float32) if v == 0 else x
            own = pd.DataFrame(index=ids[mask[:, v]])
            own["depth"] = rng.random(len(own))
            var = pd.DataFrame(index=[f"{name}_{j}" for j in range(x.shape[1])])
            held = x[mask[:, v]]
            mods[name] = AnnData(sparse.csr_matrix(held) if v == 0 else held, obs=own, var=var)
        mdata = MuData(mods)
        mdata.obs["type"] = rng.choice(["T", "B"], mdata.n_obs)
        mdata.write_h5mu(place / "data.h5mu")
    return place / "data.h5mu", ["--label", "type"]


@contextmanager
def quietly():
    """mudata warns of its own future."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


MESSY = [make_unaligned, make_integer_ids, make_wide, make_mat, make_h5mu]


def reading(options):
    """The options of the command line as `io.Reading`."""
    words = dict(zip(options, [*options[1:], None], strict=False))
    spec, key = io.table.read_spec(words["--views"]) if "--views" in words else (None, None)
    return io.Reading(spec, key, words.get("--label"), "--one-hot" in options)


@pytest.mark.parametrize("make", MESSY, ids=lambda f: f.__name__)
def test_five_messy_inputs(make, tmp_path):
    data, options = make(tmp_path)
    vedute_("inspect", data, *options)
    vedute_("fit", data, "-o", tmp_path / "run", "--clusters", "3", *options, *SMALL)
    filled = tmp_path / f"filled{io.ending(data)}"
    vedute_("impute", tmp_path / "run", "-o", filled)
    vedute_("cluster", tmp_path / "run", data, "-o", tmp_path / "labels.csv")
    vedute_("embed", tmp_path / "run", "-o", tmp_path / "embedding.parquet")

    before, after = (io.read(path, reading(options)) for path in (data, filled))
    assert list(before.views) == list(after.views)
    labels = pd.read_csv(tmp_path / "labels.csv")
    embedding = pd.read_parquet(tmp_path / "embedding.parquet")
    if before.ids is not None:
        assert before.ids.tolist() == after.ids.tolist() == labels.iloc[:, 0].tolist()
        assert before.ids.tolist() == embedding.iloc[:, 0].tolist()
    assert len(labels) == N
    assert labels["labels"].isin(range(3)).all()
    assert before.y is None or before.y.tolist() == after.y.tolist() or make is make_unaligned
    if make is not make_h5mu:  # there X stays as it is, and a layer is complete
        for name, old in before.views.items():
            unchanged_and_complete(old, after.views[name])


def unchanged_and_complete(old, new):
    if isinstance(old, pd.DataFrame):
        assert list(old.columns) == list(new.columns)
        assert not new.isna().any().any()
        seen = old.notna().to_numpy()
        assert (old.to_numpy(object)[seen] == new.to_numpy(object)[seen]).all()
        assert seen.sum() < seen.size
        return
    if sparse.issparse(old):
        assert sparse.issparse(new)
        old, new = old.toarray(), new.toarray()
    seen = ~np.isnan(old)
    assert old.dtype == new.dtype
    assert np.isfinite(new).all()
    np.testing.assert_array_equal(old[seen], new[seen])


def cells(path, separator, encoding="utf-8"):
    with path.open(newline="", encoding=encoding) as file:
        rows = list(csv.reader(file, delimiter=separator))
    return rows[0], {row[0]: row[1:] for row in rows[1:]}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The unaligned folder, fitted and filled, with intervals."""
    place = tmp_path_factory.mktemp("unaligned")
    data, options = make_unaligned(place)
    vedute_("fit", data, "-o", place / "run", *options, *SMALL)
    vedute_("impute", place / "run", "-o", place / "out", "--interval", "0.8")
    return place


@pytest.mark.parametrize(
    ("name", "separator", "encoding"),
    [("rna.csv", ",", "utf-8"), ("protein.csv", ";", "utf-8-sig"), ("clinic.tsv", "\t", "utf-8")],
)
def test_observed_cells_are_the_same_characters(filled, name, separator, encoding):
    heads, old = cells(filled / "data" / name, separator, encoding)
    again, new = cells(filled / "out" / name, separator, encoding)
    assert heads == again
    assert len(new) == N
    for key, row in old.items():
        for before, after, column in zip(row, new[key], heads[1:], strict=True):
            if before in ("NA", "", "nan", "?", "N/A"):
                assert after not in ("NA", "", "nan", "?", "N/A"), (key, column)
            else:
                assert before == after
    bytes_ = [(filled / f / name).read_bytes() for f in ("data", "out")]
    assert len({b.startswith(b"\xef\xbb\xbf") for b in bytes_}) == 1
    assert len({b.count(b"\r\n") == b.count(b"\n") for b in bytes_}) == 1


def test_filled_cells_look_like_their_column(filled):
    heads, rows = cells(filled / "out" / "clinic.tsv", "\t")
    table = {h: [r[j] for r in rows.values()] for j, h in enumerate(heads[1:])}
    assert all(x.lstrip("-").isdigit() for x in table["age"])
    assert set(table["smokes"]) == {"TRUE", "FALSE"}
    assert "" in table["group"]  # labels are not imputed
    _, rows = cells(filled / "out" / "protein.csv", ";", "utf-8-sig")
    assert not any("." in x for row in rows.values() for x in row)


def test_ends_of_intervals_lie_in_folders_of_their_own(filled):
    how = io.Reading(label="group")
    mean, low, high = (
        io.read(filled / "out" / f, how).views["rna"] for f in (".", "lower", "upper")
    )
    assert ((low <= mean) & (mean <= high)).all(axis=None)
    assert (low < high).any(axis=None)
    assert list(io.read(filled / "out", how).views) == ["clinic", "protein", "rna"]


def test_labels_are_for_evaluation_only(filled, tmp_path):
    data = io.read(filled / "data", io.Reading(label="group"))
    assert "group" not in data.views["clinic"]
    assert set(data.y) == {"g0", "g1", "g2", ""}
    copy = tmp_path / "data"
    copy.mkdir()
    for file in (filled / "data").iterdir():
        text = file.read_text(encoding="utf-8")
        (copy / file.name).write_text(
            text.replace("\tg0\t", "\tg2\t"), encoding="utf-8", newline=""
        )
    vedute_("fit", copy, "-o", tmp_path / "run", "--label", "group", *SMALL)
    embeddings = [np.load(f / "run" / "embedding.npz")["embedding"] for f in (filled, tmp_path)]
    np.testing.assert_array_equal(*embeddings)


def test_new_samples_are_read_as_the_fitted_ones_were(filled, tmp_path):
    new = tmp_path / "new"
    new.mkdir()
    (new / "rna.csv").write_text("id;g5;g4;g3;g2;g1\nn1;5;4;3;2;1\nn2;;;;;9\n")
    (new / "clinic.tsv").write_text("id\tage\tsmokes\tscore\nn3\t40\ttrue\t1.5\n")
    vedute_("impute", filled / "run", new, "-o", tmp_path / "out")
    out = io.read(tmp_path / "out")
    assert out.ids.tolist() == ["n3", "n1", "n2"]
    assert list(out.views) == ["clinic", "protein", "rna"]
    assert out.views["rna"].loc["n1"].tolist() == [5, 4, 3, 2, 1]
    assert list(out.views["protein"].columns) == ["p1", "p2", "p3", "p4"]


def test_a_run_knows_how_its_data_were_read(filled):
    facts = json.loads((filled / "run" / "data.json").read_text())
    assert facts["reading"] == {"label": "group"}
    assert facts["source"] == str(filled / "data")


def test_wide_table_keeps_what_is_in_no_view(tmp_path):
    data, options = make_wide(tmp_path)
    vedute_("fit", data, "-o", tmp_path / "run", *options, *MEAN)
    vedute_("impute", tmp_path / "run", "-o", tmp_path / "out.csv", "--interval", "0.5")
    old, new = (pd.read_csv(p, dtype=str, na_values=["."]) for p in (data, tmp_path / "out.csv"))
    assert list(new.columns[: len(old.columns)]) == list(old.columns)
    assert new["note"].tolist() == old["note"].tolist()
    assert new["kind"].tolist() == old["kind"].tolist()
    assert new["sex"].isin(["f", "m"]).all()
    assert new["age"].str.fullmatch(r"-?\d+").all()
    assert {"lower_rna_0", "upper_age"} < set(new.columns)


def test_mat_keeps_its_variables_and_orientation(tmp_path):
    data, _ = make_mat(tmp_path)
    vedute_("fit", data, "-o", tmp_path / "run", *MEAN)
    vedute_("impute", tmp_path / "run", "-o", tmp_path / "out.mat", "--interval", "0.5")
    old, new = loadmat(data), loadmat(tmp_path / "out.mat")
    assert [x.shape for x in old["X"].flat] == [x.shape for x in new["X"].flat]
    assert new["note"][0] == "from a paper"
    np.testing.assert_array_equal(old["gt"], new["gt"])
    assert (new["X_lower"].flat[0] <= new["X_upper"].flat[0]).all()


@pytest.mark.parametrize(
    ("variables", "how", "shapes"),
    [
        ({"view1": (9, 4), "view2": (9, 3)}, {}, [(9, 4), (9, 3)]),
        ({"view1": (4, 9), "view2": (3, 9)}, {}, [(9, 4), (9, 3)]),
        ({"x2": (9, 9), "x10": (9, 4), "Y": (9, 1)}, {}, [(9, 9), (9, 4)]),
        ({"view1": (9, 9), "view2": (9, 9)}, {"samples": "columns"}, [(9, 9), (9, 9)]),
        ({"only": (9, 4)}, {}, [(9, 4)]),
        ({"a": (4, 9), "b": (3, 9), "folds": (5, 2), "gnd": (1, 9)}, {}, [(9, 4), (9, 3)]),
        ({"a": (4, 9), "b": (3, 9), "kind": (1, 9)}, {"label": "kind"}, [(9, 4), (9, 3)]),
    ],
)
def test_orientation_of_mat_files(tmp_path, variables, how, shapes):
    rng = np.random.default_rng(0)
    savemat(tmp_path / "d.mat", {k: rng.integers(1, 9, s) for k, s in variables.items()})
    data = io.read(tmp_path / "d.mat", io.Reading(**how))
    assert [v.shape for v in data.views.values()] == shapes


def test_mudata_takes_results(tmp_path):
    data, options = make_h5mu(tmp_path)
    vedute_("fit", data, "-o", tmp_path / "run", "--clusters", "2", *options, *SMALL)
    vedute_("impute", tmp_path / "run", "-o", tmp_path / "out.h5mu", "--interval", "0.5")
    vedute_("cluster", tmp_path / "run", "-o", tmp_path / "labels.h5mu")
    with quietly():
        from mudata import read_h5mu

        old, new, labels = (read_h5mu(tmp_path / f"{k}.h5mu") for k in ("data", "out", "labels"))
    assert list(old.obs_names) == list(new.obs_names)
    assert new.obsm["X_vedute"].shape[0] == N
    assert set(labels.obs["vedute"]) <= {"0", "1"}
    assert new.obs["vedute"].tolist() == labels.obs["vedute"].tolist()
    for name, mod in old.mod.items():
        wide = new.mod[name]
        assert list(wide.var_names) == list(mod.var_names)
        layers = {k: pd.DataFrame(wide.layers[k], wide.obs_names) for k in wide.layers}
        assert set(layers) == {"filled", "filled_lower", "filled_upper"}
        assert np.isfinite(layers["filled"].to_numpy()).all()
        x = mod.X.toarray() if sparse.issparse(mod.X) else mod.X
        np.testing.assert_array_equal(layers["filled"].loc[mod.obs_names], x)
        np.testing.assert_array_equal(wide[mod.obs_names].X, x)
        assert layers["filled"].to_numpy().dtype == x.dtype


def test_anndata_by_feature_types_and_obsm(tmp_path):
    pytest.importorskip("anndata", reason="anndata is not installed (extra omics)")
    a, b, c = latent((4, 3, 5))
    a[::4] = np.nan
    with quietly():
        from anndata import AnnData, read_h5ad

        var = pd.DataFrame(
            {"feature_types": ["RNA"] * 4 + ["ADT"] * 3}, [f"g{j}" for j in range(7)]
        )
        obs = pd.DataFrame(index=[f"c{i}" for i in range(N)])
        whole = AnnData(np.hstack([a, b]), obs=obs, var=var, obsm={"atac": c, "X_pca": c})
        whole.write_h5ad(tmp_path / "d.h5ad")
    data = io.read(tmp_path / "d.h5ad")
    assert {k: v.shape for k, v in data.views.items()} == {
        "RNA": (N, 4),
        "ADT": (N, 3),
        "atac": (N, 5),
    }
    vedute_("fit", tmp_path / "d.h5ad", "-o", tmp_path / "run", *MEAN)
    vedute_("impute", tmp_path / "run", "-o", tmp_path / "out.h5ad")
    with quietly():
        new = read_h5ad(tmp_path / "out.h5ad")
    assert np.isfinite(new.layers["filled"]).all()
    np.testing.assert_array_equal(new.layers["filled"][:, 4:], b)
    np.testing.assert_array_equal(new.obsm["atac_filled"], c)
    assert "X_vedute" in new.obsm


def test_arrays_and_images_join_tables_by_id(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    (a,) = latent((4,))
    folder = tmp_path / "data"
    (folder / "front").mkdir(parents=True)
    ids = [f"p{i}" for i in range(N)]
    pd.DataFrame(a, ids, list("wxyz"))[:50].to_csv(folder / "a.csv")
    np.save(folder / "scan.npy", rng.random((40, 3, 2)).astype(np.float32))
    (folder / "scan.ids.txt").write_text("\n".join(ids[20:]))
    for i in ids[10:45]:
        image.fromarray(rng.integers(256, size=(6, 5), dtype=np.uint8)).save(
            folder / f"front/{i}.png"
        )
    data = io.read(folder)
    assert {k: v.shape for k, v in data.views.items()} == {
        "a": (N, 4), "front": (N, 1, 6, 5), "scan": (N, 3, 2),
    }  # fmt: skip
    assert data.mask.sum(0).tolist() == [50, 35, 40]
    vedute_("fit", folder, "-o", tmp_path / "run", *MEAN)
    vedute_("impute", tmp_path / "run", "-o", tmp_path / "out")
    back = io.read(tmp_path / "out")
    assert back.ids.tolist() == data.ids.tolist() == ids
    assert back.mask.all()
    assert back.views["front"].dtype == np.uint8
    for v, (name, old) in enumerate(data.views.items()):
        seen = data.mask[:, v]
        assert np.array_equal(np.asarray(old)[seen], np.asarray(back.views[name])[seen]), name
    assert len(list((tmp_path / "out" / "front").iterdir())) == N


def test_arrays_without_ids_are_aligned_by_row(tmp_path):
    for name, view in zip("ab", latent((3, 2)), strict=True):
        np.save(tmp_path / f"{name}.npy", view)
    data = io.read(tmp_path)
    assert data.ids is None
    assert [v.shape for v in data.views.values()] == [(N, 3), (N, 2)]


def frame_of(tmp_path, text, name="d.csv", how=io.Reading(), encoding="utf-8"):  # noqa: B008
    (tmp_path / name).write_bytes(text.encode(encoding))
    return io.read(tmp_path, how).views["d"]


@pytest.mark.parametrize(
    ("text", "columns", "row"),
    [
        ("id,a,b\nx,1,2.5\ny,NA,-\n", ["a", "b"], [1, 2.5]),
        ("id;a;b\r\nx;1;2,5\r\ny;3;0,1\r\n", ["a", "b"], [1, 2.5]),
        ("id\ta\tb\nx\t1\t2.5\n", ["a", "b"], [1, 2.5]),
        ("id|a|b\nx|1|2.5\n", ["a", "b"], [1, 2.5]),
        ("id a b\nx 1 2.5\n", ["a", "b"], [1, 2.5]),
        ("a,b\nx,1,2.5\ny,3,4\n", ["a", "b"], [1, 2.5]),  # as R writes it
        ('"id","a","b, c"\n"x","1","2.5"\n', ["a", "b, c"], [1, 2.5]),
        ("id;weight, kg;b\nx;1;2,5\n", ["weight, kg", "b"], [1, 2.5]),
        ("id, a , b\n x , 1 , 2.5\ny, NA , ?\n", ["a", "b"], [1, 2.5]),
        ("id,a,b,\nx,1,2.5,\n,,,\n\n", ["a", "b"], [1, 2.5]),  # from a spreadsheet
        ("id,a,b\nx,1,2.5,\ny,1,2,\n", ["a", "b"], [1, 2.5]),
        (",0,1\nx,1,2.5\n", ["0", "1"], [1, 2.5]),  # as pandas writes it
        ("id,a,b\nx,1e0,TRUE\ny,.,\n", ["a", "b"], [1, True]),
    ],
)
def test_tables_as_people_write_them(tmp_path, text, columns, row):
    for name, encoding in (("d.csv", "utf-8"), ("d.csv", "utf-8-sig"), ("d.csv", "utf-16")):
        frame = frame_of(tmp_path, text, name, encoding=encoding)
        assert list(frame.columns) == columns
        assert frame.loc["x"].tolist() == row
    (tmp_path / "d.csv").unlink()
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert io.read(tmp_path).views["d"].loc["x"].tolist() == row


def test_every_marker_is_missing_and_zero_is_not(tmp_path):
    markers = ["", "NA", "N/A", "nan", "NaN", "null", "-", "?", ".", " NA "]
    text = "id,a,b\n" + "".join(f"r{i},{m},0\n" for i, m in enumerate(markers)) + "last,1.5,0\n"
    frame = frame_of(tmp_path, text)
    assert frame["a"].isna().tolist() == [True] * len(markers) + [False]
    assert (frame["b"] == 0).all()


def test_whole_numbers_stay_whole(tmp_path):
    frame = frame_of(tmp_path, "id,a,b,c\nx,1,1.0,\ny,,,3\nz,2,2.0,4\n")
    assert [str(d) for d in frame.dtypes] == ["Int64", "float64", "Int64"]


def test_ids_are_numbers_only_if_nothing_is_lost(tmp_path):
    assert frame_of(tmp_path, "id,a\n7,1\n8,2\n").index.tolist() == [7, 8]
    assert frame_of(tmp_path, "id,a\n07,1\n8,2\n").index.tolist() == ["07", "8"]
    assert frame_of(tmp_path, "id,a\nNA,1\nNB,2\n").index.tolist() == ["NA", "NB"]


def test_decimal_commas_that_might_be_thousands_are_asked_for(tmp_path):
    text = "id;a\nx;1,234\ny;5,678\n"
    with pytest.raises(ValueError, match=r"d\.csv, column 'a' holds '1,234'.*--decimal"):
        frame_of(tmp_path, text)
    assert frame_of(tmp_path, text, how=io.Reading(decimal=",")).loc["x", "a"] == 1.234


def likelihoods(run):
    return [view.likelihood.name for view in vedute.load(run).views_]


def test_text_becomes_categories_with_a_likelihood_of_their_own(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    rng = np.random.default_rng(0)
    (a,) = latent((4,))
    ids = [f"p{i}" for i in range(N)]
    stage = pd.Series(rng.choice(["I", "II", "III"], N), ids, name="stage")
    pd.DataFrame(a, ids).to_csv(folder / "a.csv")
    pd.DataFrame(a > 0, ids).astype(int).to_csv(folder / "b.csv")
    stage[5:].to_csv(folder / "stage.csv")
    run = tmp_path / "run"
    vedute_("fit", folder, "-o", run, "--one-hot", *SMALL)
    assert likelihoods(run) == ["normal", "bernoulli", "categorical"]
    vedute_("impute", run, "-o", tmp_path / "out")
    told = pd.read_csv(tmp_path / "out" / "stage.csv", index_col=0)["stage"]
    assert told[stage.index[5:]].tolist() == stage[5:].tolist()
    assert told.isin(["I", "II", "III"]).all()
    vedute_("generate", run, "-n", "9", "-o", tmp_path / "new")
    new = io.read(tmp_path / "new", io.Reading(one_hot=True))
    assert new.views["stage"]["stage"].isin(["I", "II", "III"]).all()
    assert new.views["b"].isin([0, 1]).all(axis=None)
    likelihood = "likelihood={'b': 'normal', 'stage': 'bernoulli'}"
    vedute_("fit", folder, "-o", run, "--force", "--one-hot", *SMALL, "--set", likelihood)
    assert likelihoods(run) == ["normal", "normal", "bernoulli"]


def test_a_folder_can_be_filled_into_npz(tmp_path):
    data, options = make_integer_ids(tmp_path)
    vedute_("fit", data, "-o", tmp_path / "run", *options, *MEAN)
    vedute_("impute", tmp_path / "run", "-o", tmp_path / "out.npz")
    back = io.read(tmp_path / "out.npz")
    assert {k: v.dtype for k, v in back.views.items()} == {
        "a": np.float64, "b": np.int32, "c": np.float32,
    }  # fmt: skip
    assert sorted(back.ids.tolist()) == list(range(100, 100 + N))


HARD = np.random.default_rng(0).normal(size=300) * 10.0 ** np.arange(-150, 150)


def write_rows(path, separator=",", mark="."):
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as file:
        file.write(separator.join(("id", "x", "y")) + "\n")
        for i, x in enumerate(HARD.tolist()):
            y = "NA" if i % 9 == 1 else repr(x).replace(".", mark)
            file.write(separator.join((f"p{i}", repr(x).replace(".", mark), y)) + "\n")


@pytest.mark.parametrize(
    ("name", "separator", "mark"),
    [("a.csv", ",", "."), ("a.tsv", "\t", "."), ("a.csv.gz", ";", "."), ("a.csv", ";", ",")],
)
def test_numbers_are_the_nearest_doubles(name, separator, mark, tmp_path):
    """pandas before 3.1 rounds every third of them."""
    write_rows(tmp_path / name, separator, mark)
    frame = io.read(tmp_path).views["a"]
    assert frame["x"].tolist() == HARD.tolist()
    assert frame["y"].isna().sum() == 34
    assert frame["y"].dropna().tolist() == np.delete(HARD, np.arange(1, 300, 9)).tolist()
    if mark == ".":
        parts = [*csv_files.chunks(tmp_path / name, io.Reading(), 70)]
        assert pd.concat(parts)["x"].tolist() == HARD.tolist()


def test_numbers_in_text_are_the_nearest_doubles():
    cells = pd.DataFrame({"x": [repr(x) for x in HARD.tolist()]}, dtype=object)
    views = vedute.Views.of([cells.assign(y=1.0)], dtype=torch.float64)
    assert views.x[0][:, 0].tolist() == HARD.tolist()


def test_parquet_keeps_observed_cells_to_the_last_digit(tmp_path):
    """Decimals came back as doubles, whole numbers with gaps as well, "1.10" as 1.1."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    exact = [Decimal("1234567890123234567.89"), None, Decimal("0.10"), Decimal("-7.50")]
    columns = {
        "decimal": pa.array(exact, pa.decimal128(30, 2)),
        "whole": pa.array([2**53 + 1, None, 3, 5]),
        "text": ["1.10", None, "3", "005"],
        "comma": ["1,10", None, "3", "0,05"],
        "flag": ["TRUE", None, "FALSE", "TRUE"],
        "kind": pa.array(["x", None, "y", "x"]).dictionary_encode(),
        "there": [1.0, 2.0, 3.0, 4.0],
        "note": pa.array([2**53 + 1, None, 3, 5]),
        "none": pa.nulls(4),
    }
    source = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": pa.array([1, 2, 3, 4], pa.int16()), **columns}), source)
    views = {name: [name] for name in columns if name not in ("note", "none")}
    data = io.read(source, io.Reading(views=views, one_hot=True))
    entry = io.enter(data)
    filled = entry.filled([np.full(x.shape, 0.75) for x in entry.views.x])
    io.write_views(tmp_path / "out.parquet", data, filled)
    new = pq.read_table(tmp_path / "out.parquet")
    assert new.schema.types == pq.read_table(source).schema.types
    fills = {"decimal": Decimal("0.75"), "whole": 1, "text": "0.75", "comma": "0,75",
             "flag": "TRUE", "kind": "y", "there": None, "note": None, "none": None}  # fmt: skip
    for name, column in columns.items():
        known = column if isinstance(column, list) else column.to_pylist()
        gaps = [fills[name] if x is None else x for x in known]
        assert new[name].to_pylist() == gaps, name


def test_parquet_takes_the_samples_of_other_files_in(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "d"
    folder.mkdir()
    whole = pa.array([2**53 + 1, None, 3], pa.int64())
    ids = pa.array([1, 2, 3], pa.int16())
    pq.write_table(pa.table({"id": ids, "x": whole, "none": pa.nulls(3)}), folder / "a.parquet")
    (folder / "b.csv").write_text("id,y\n1,2\n2,3\n9,4\n")
    data = io.read(folder)
    entry = io.enter(data)
    out = tmp_path / "out"
    out.mkdir()
    io.write_views(out, data, entry.filled([np.full(x.shape, 0.75) for x in entry.views.x]))
    new = pq.read_table(out / "a.parquet")
    assert new["id"].to_pylist() == [1, 2, 3, 9]
    assert new["id"].type == pa.int16()
    assert new["x"].to_pylist() == [2**53 + 1, 1, 3, 1]
    assert new["none"].to_pylist() == [0.75] * 4


def test_categories_as_ids_in_parquet_take_new_ones(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "d").mkdir()
    ids = pd.CategoricalIndex(["p1", "p2"], name="id")
    pd.DataFrame({"x": [1.0, 2.0]}, ids).to_parquet(tmp_path / "d/a.parquet")
    (tmp_path / "d/b.csv").write_text("id,y\np1,1\np3,2\n")
    data = io.read(tmp_path / "d")
    entry = io.enter(data)
    (tmp_path / "out").mkdir()
    filled = entry.filled([np.full(x.shape, 0.5) for x in entry.views.x])
    io.write_views(tmp_path / "out", data, filled)
    assert pd.read_parquet(tmp_path / "out/a.parquet")["x"].to_dict() == {
        "p1": 1,
        "p2": 2,
        "p3": 0.5,
    }


def test_parquet_keeps_dtypes_and_where_ids_are(tmp_path):
    data, options = make_integer_ids(tmp_path)
    vedute_("fit", data, "-o", tmp_path / "run", *options, *MEAN)
    vedute_("impute", tmp_path / "run", "-o", tmp_path / "out")
    for name in ("b.parquet", "c.parquet"):
        old, new = (pd.read_parquet(f / name) for f in (data, tmp_path / "out"))
        assert old.dtypes.equals(new.dtypes)
        assert type(old.index) is type(new.index)
        assert old.index.name == new.index.name
        assert len(new) == N


def test_what_is_written_stands_alone(tmp_path):
    """Readable by others: no index column of ours, no temporary files."""
    data, options = make_unaligned(tmp_path)
    vedute_("fit", data, "-o", tmp_path / "run", *options, *MEAN)
    vedute_("impute", tmp_path / "run", "-o", tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "clinic.tsv",
        "protein.csv",
        "rna.csv",
    ]
    assert sorted(p.name for p in Path(tmp_path).iterdir()) == ["data", "out", "run"]


@pytest.mark.parametrize("kind", ["folder", "csv", "parquet"])
def test_new_data_may_lack_a_column(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    ids = pd.Index([f"p{i}" for i in range(N)], name="id")
    whole = pd.DataFrame(rng.normal(size=(N, 4)), ids, ["a1", "a2", "b1", "b2"])
    whole.iloc[::5, :2] = np.nan
    options = []

    def write(frame, name):
        if kind == "folder":
            Path(name).mkdir()
            for v in "ab":
                frame[[c for c in frame if c[0] == v]].dropna(how="all").to_csv(f"{name}/{v}.csv")
            return name
        file = f"{name}.{kind}"
        frame.reset_index().to_csv(file, index=False) if kind == "csv" else frame.to_parquet(file)
        return file

    if kind != "folder":
        Path("v.toml").write_text('[views]\na = ["a1", "a2"]\nb = "b*"\n')
        options = ["--views", Path("v.toml")]
    vedute_("fit", write(whole, "d"), "-o", "run", "--method", "mean_fill", *options)
    less = write(whole.drop(columns="a2"), "less")
    with pytest.warns(UserWarning, match="view 'a' lacks 'a2'"):
        vedute_("impute", "run", less, "-o", Path("out").with_suffix(Path(less).suffix))
    how = reading(options)._replace(lenient=True)
    old, new = (io.read(f, how).views for f in (less, "out" + Path(less).suffix))
    assert list(new["a"].columns) == ["a1"]
    assert new["a"]["a1"].notna().all()
    pd.testing.assert_frame_equal(new["b"], old["b"])


@pytest.mark.parametrize("kind", ["folder", "table"])
def test_hiding_views_of_parquet_files_keeps_the_other_cells(kind, tmp_path, monkeypatch):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    ids = [f"p{i}" for i in range(20)]
    exact = [None if i == 3 else Decimal(f"1234567890123234567.{i + 10}") for i in range(20)]
    a = {"x": pa.array(exact, pa.decimal128(30, 2)), "w": [2**53 + 1, None, *range(18)]}
    b = {"y": list(map(float, range(20)))}
    known = dict(zip(ids, zip(exact, a["w"], strict=True), strict=True))
    if kind == "folder":
        Path("d").mkdir()
        for name, view in (("a", a), ("b", b)):
            pq.write_table(pa.table({"id": ids, **view}), f"d/{name}.parquet")
        words, new = ("d", "-o", "out"), "out/a.parquet"
    else:
        pq.write_table(pa.table({"id": ids, **a, **b}), "d.parquet")
        Path("v.toml").write_text('[views]\na = ["x", "w"]\nb = "y"\n')
        words, new = ("d.parquet", "-o", "out.parquet", "--views", "v.toml"), "out.parquet"
    vedute_("ampute", *words, "--rate", ".4")
    table = pq.read_table(new)
    assert table.schema.field("x").type == pa.decimal128(30, 2)
    rows = [
        *zip(table["id"].to_pylist(), table["x"].to_pylist(), table["w"].to_pylist(), strict=True)
    ]
    kept = [row for row in rows if row[1:] != (None, None)]
    assert 0 < len(kept) < 20
    assert all(row[1:] == known[row[0]] for row in kept)
