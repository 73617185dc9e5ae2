"""vedute impute --proba: probabilities of categories in a table; ends of their intervals are
empty."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shell import done, refused

import vedute
from vedute import Views

STAGES = ["I", "II", "III"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of people with a stage, and without one."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    z, ids = rng.normal(size=(60, 2)), [f"p{i}" for i in range(60)]
    clinic = pd.DataFrame({"patient": ids, "age": 60 + 5 * z[:, 0]}).round(1)
    clinic["stage"] = np.array(STAGES)[np.digitize(z[:, 0], (-0.5, 0.5))]
    clinic["smokes"] = np.where(z[:, 1] > 0, "yes", "no")
    blood = pd.DataFrame(z @ rng.normal(size=(2, 3)), columns=list("abc"))
    blood.insert(0, "patient", ids)
    Path("data").mkdir()
    clinic.iloc[:50].to_csv("data/clinic.csv", index=False)
    blood.iloc[5:].to_csv("data/blood.csv", index=False)
    done("fit", "data", "-o", "run", "--method", "lowrank_fill", "--one-hot")


def test_probabilities_are_those_of_the_model_and_ends_are_empty(place):
    done("impute", "run", "-o", "out", "--interval", "0.9", "--proba", "p.csv")
    p = pd.read_csv("p.csv", index_col="patient")
    wanted = [f"clinic.stage={s}" for s in STAGES] + ["clinic.smokes=no", "clinic.smokes=yes"]
    assert list(p) == wanted
    np.testing.assert_allclose(p.iloc[:, :3].sum(axis=1), 1)
    given = pd.read_csv("data/clinic.csv", index_col="patient")
    chosen = p.iloc[:, :3].idxmax(axis=1).str.removeprefix("clinic.stage=")
    assert (chosen.loc[given.index] == given["stage"]).all()
    filled = pd.read_csv("out/clinic.csv", index_col="patient")
    assert (chosen.loc[filled.index] == filled["stage"]).all()
    for end in ("lower", "upper"):
        ends = pd.read_csv(f"out/{end}/clinic.csv", index_col="patient")
        assert ends["stage"].isna().sum() == 10
        assert "nan" not in Path(f"out/{end}/clinic.csv").read_text()
        assert (ends.loc[given.index, "stage"] == given["stage"]).all()
        assert ends["age"].notna().all()
    frames = {k: pd.read_csv(f"data/{k}.csv", index_col="patient") for k in ("blood", "clinic")}
    frames["clinic"] = frames["clinic"].astype({"stage": "category", "smokes": "category"})
    found = vedute.load("run").impute_proba(frames)["clinic"]
    np.testing.assert_allclose(found, p.loc[found.index], atol=1e-6)


def test_a_store_gives_the_same(place):
    done("impute", "run", "-o", "out", "--proba", "p.csv")
    done("convert", "data", "-o", "store", "--one-hot")
    done("fit", "store", "-o", "again", "--method", "lowrank_fill")
    done("impute", "again", "-o", "filled", "--interval", "0.8", "--proba", "same.parquet")
    one, other = pd.read_csv("p.csv"), pd.read_parquet("same.parquet")
    assert list(one) == list(other)
    assert len(other) == 60
    ends = Views.open("filled/lower")
    v = ends.names.index("clinic")
    assert ends.holes[v][:, 1:4].all(1).sum() == 10
    done("impute", "again", "-o", "tables", "--interval", "0.8", "--format", "parquet")
    assert pd.read_parquet("tables/lower/clinic.parquet")["stage"].isna().sum() == 10


def test_refusals(place):
    assert "OUT must end in" in refused("impute", "run", "-o", "out", "--proba", "p.txt")
    assert "or inside it" in refused("impute", "run", "-o", "out", "--proba", "out/p.csv")
    assert "is inside the data" in refused("impute", "run", "-o", "out", "--proba", "data/p.csv")
    assert not Path("out").exists()
    done("impute", "run", "-o", "out", "--proba", "p.csv")
    assert "p.csv" in refused("impute", "run", "-o", "new", "--proba", "p.csv")
    assert not Path("new").exists()
