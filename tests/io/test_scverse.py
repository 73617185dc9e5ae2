"""MuData and AnnData in Python, and what is written into them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from shell import done, refused

import vedute
from vedute import Views, scverse
from vedute.methods import find

anndata = pytest.importorskip("anndata", reason="anndata is not installed (extra omics)")
N = 30
pytestmark = pytest.mark.filterwarnings("ignore")  # mudata warns of its own future


def frames():
    rng = np.random.default_rng(0)
    ids = [f"c{i}" for i in range(N)]
    z = rng.normal(size=(N, 3))
    rna = pd.DataFrame(z @ rng.normal(size=(3, 5)), ids, [f"g{j}" for j in range(5)])
    adt = pd.DataFrame(z @ rng.normal(size=(3, 2)), ids, ["p0", "p1"])
    return rna.iloc[6:], adt.iloc[::-1].iloc[4:]


def mdata():
    mudata = pytest.importorskip("mudata")
    rna, adt = frames()
    mods = {"rna": anndata.AnnData(rna), "adt": anndata.AnnData(adt)}
    mods["rna"].X = sparse.csr_matrix(mods["rna"].X)
    return mudata.MuData(mods)


def adata():
    rna, adt = frames()
    both = pd.concat([rna, adt], axis=1)
    var = pd.DataFrame({"feature_types": ["rna"] * 5 + ["adt"] * 2}, both.columns)
    return anndata.AnnData(both, var=var)


@pytest.mark.parametrize("make", [mdata, adata])
def test_views_are_modalities_in_the_order_of_obs_names(make):
    X = make()
    views = Views.of(X)
    assert views.names == ("rna", "adt")
    assert views.ids.tolist() == list(X.obs_names)
    rna = frames()[0]
    assert views.mask[:, 0].tolist() == [i in rna.index for i in X.obs_names]
    assert views.specs[0].columns == tuple(rna.columns)


@pytest.mark.parametrize("make", [mdata, adata])
def test_what_is_kept_in_zarr_is_converted(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = make()
    X.write_zarr("cells.zarr")
    done("convert", "cells.zarr", "-o", "store", "--keep-order")
    views, direct = Views.open("store"), Views.of(X)
    assert views.names == direct.names
    assert views.ids.tolist() == direct.ids.tolist()
    assert views.specs[0].columns == direct.specs[0].columns
    assert (views.mask == direct.mask).all()
    assert all(np.allclose(*pair) for pair in zip(views.x, direct.x, strict=True))
    assert "vedute convert cells.zarr -o store" in refused("fit", "cells.zarr", "-o", "run")
    for file in (tmp_path / "cells.zarr").rglob("*"):
        if file.is_file() and file.parent != tmp_path / "cells.zarr":
            file.write_bytes(b"{")
    assert "not a .zarr folder" in refused("convert", "cells.zarr", "-o", "again")


@pytest.mark.parametrize("make", [mdata, adata])
def test_results_are_written_into_the_object(make):
    X = make()
    model = find("mean_fill")(n_clusters=2, random_state=0).fit(X)
    scverse.annotate(model, X)
    np.testing.assert_array_equal(X.obsm["X_vedute"], model.embedding_)
    assert X.obs["vedute"].tolist() == [str(k) for k in model.labels_]
    assert vedute.scverse is scverse
    assert Views.of(X).names == ("rna", "adt")  # embeddings are no views


@pytest.mark.parametrize("make", [mdata, adata])
def test_layers_are_complete_and_the_object_is_not_touched(make):
    X = make()
    model = find("mean_fill")(random_state=0).fit(X)
    new = scverse.impute(model, X, interval=0.8)
    assert list(new.obs_names) == list(X.obs_names)
    filled = model.impute(X)
    for name in ("rna", "adt"):
        mod = new.mod[name] if make is mdata else new[:, new.var["feature_types"] == name]
        assert set(mod.layers) == {"filled", "filled_lower", "filled_upper"}
        np.testing.assert_allclose(mod.layers["filled"], filled[name], rtol=1e-6)
        assert (mod.layers["filled_lower"] <= mod.layers["filled_upper"]).all()
    assert not (X.mod["rna"] if make is mdata else X).layers


def test_anything_else_is_named():
    with pytest.raises(TypeError, match="X is a MuData or an AnnData, got list"):
        scverse.annotate(find("mean_fill")(), [])
