"""Stores: what goes in comes out, rows are read when asked, and damage is noticed."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from every_method import small
from shell import done, refused, short_mvp, vedute_

from vedute import MVP, Views, io, load
from vedute.data import fill, mapped
from vedute.data import rows as read_rows
from vedute.data import store as stored
from vedute.estimators.fitted_view import FittedView
from vedute.io import parquet, store, streaming
from vedute.scale import feed

N = 90
IDS = np.array([f"p{i}" for i in range(N)])


def arrays():
    """Three views with missing rows and a hole."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, 2))
    a, b, c = (z @ rng.normal(size=(2, d)) for d in (4, 3, 5))
    a[:12], b[30:50], c[5, 1] = np.nan, np.nan, np.nan
    return {"a": a, "b": b, "c": c}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("d.npz", **arrays(), ids=IDS, y=np.arange(N) % 3)
    done("convert", "d.npz", "-o", "store")
    return tmp_path


def same(one, other):
    """Assert equality of everything that training and results depend on."""
    assert one.names == other.names
    assert one.specs == other.specs
    assert torch.equal(one.mask, other.mask)
    for v in range(len(one.names)):
        assert one.x[v].dtype == other.x[v].dtype
        assert torch.equal(one.x[v], other.x[v])
        assert torch.equal(one.seen(v), other.seen(v))


def test_a_store_holds_the_data_in_another_order(place):
    views, order = Views.open("store"), np.load("store/order.npy")
    same(views, Views.of(arrays())[order])
    assert sorted(order) == [*range(N)] != order.tolist()
    assert views.ids.tolist() == IDS[order].tolist()
    assert views.y.tolist() == (order % 3).tolist()
    assert stored.manifest(place / "store")["seed"] == 0


def test_rows_may_keep_their_order(place):
    done("convert", "d.npz", "-o", "plain", "--keep-order")
    same(Views.open("plain"), Views.of(arrays()))
    assert not (place / "plain" / "order.npy").exists()


def test_rows_are_mapped_and_writing_changes_no_file(place):
    views = Views.open("store", rows=slice(10, 20))
    same(views, Views.open("store")[10:20])
    views.x[0][:] = 7.0
    same(Views.open("store"), Views.of(arrays())[np.load("store/order.npy")])


def test_columns_categories_and_offsets_survive(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    rng, ids = np.random.default_rng(0), pd.Index(range(40), name="patient")
    stage = rng.choice(["I", "II", "III"], 40)
    pd.DataFrame({"age": rng.integers(99, size=40), "stage": stage}, ids).to_csv("data/a.csv")
    pd.DataFrame(1e9 + rng.normal(size=(40, 2)), ids, ["t", "u"]).to_csv("data/b.csv")
    np.save("data/c.npy", rng.integers(256, size=(40, 4, 4, 3), dtype=np.uint8))
    (tmp_path / "data/c.ids.txt").write_text("\n".join(map(str, ids)))
    done("convert", "data", "-o", "store", "--one-hot", "--keep-order")
    views = Views.open("store")
    assert views.specs[0].columns == ("age", "stage")
    assert views.specs[0].levels == (None, ("I", "II", "III"))
    assert [x.dtype for x in views.x] == [torch.float32, torch.float64, torch.uint8]
    done("fit", "data", "-o", "run", "--one-hot", "--method", "mean_fill")
    done("embed", "run", "store", "-o", "e.csv")
    assert pd.read_csv("e.csv")["patient"].tolist() == [*range(40)]


@pytest.mark.parametrize("some", [2, 2**10])
def test_rows_here_and_there_are_read_some_at_a_time(place, monkeypatch, some):
    monkeypatch.setattr(mapped, "SCATTERED", some)
    views, whole = Views.open("store", rows=slice(10, 80)), Views.open("store").in_memory()[10:80]
    mixed = np.random.default_rng(0).permutation(70)[:31]
    for rows in (mixed, mixed.tolist(), torch.from_numpy(mixed), np.arange(70) % 3 == 0, [], -1):
        same(views[rows], whole[rows])
    many = torch.arange(70) % 2 == 0
    same(views[many], whole[many])


def test_python_takes_a_store(place):
    views = Views.open("store")
    model, twin = small(MVP).fit(views), small(MVP).fit(Views.of(views))
    assert np.array_equal(model.embedding_, twin.embedding_)
    assert np.array_equal(model.transform(views), twin.transform(views))
    assert bool(model.impute(views).mask.all())


@pytest.mark.parametrize("rows", [4096, 17])
def test_commands_stream_a_store_and_keep_the_order_of_the_data(place, monkeypatch, rows):
    monkeypatch.setattr(store, "BLOCK_ROWS", rows)
    done("fit", "store", "-o", "run", *short_mvp(20, 5), "--clusters", "3")
    done("embed", "run", "-o", "e.csv")
    done("cluster", "run", "store", "-o", "labels.npz")
    done("impute", "run", "store", "-o", "filled", "--interval", ".9")
    model, views = load("run"), Views.open("store")
    order = np.load("store/order.npy")
    table = pd.read_csv("e.csv", index_col=0)
    assert table.index.tolist() == np.load("labels.npz")["ids"].tolist() == IDS.tolist()
    assert np.allclose(table.to_numpy()[order], model.transform(views), atol=1e-5)
    assert (np.load("labels.npz")["labels"][order] == model.predict(views)).all()
    for folder, whole in zip(
        ("filled", "filled/lower", "filled/upper"), model.impute(views, interval=0.9), strict=True
    ):
        found = Views.open(folder)
        assert found.ids.tolist() == views.ids.tolist()
        assert bool(found.mask.all())
        assert all(torch.allclose(*pair, atol=1e-5) for pair in zip(found.x, whole.x, strict=True))
    assert np.load("filled/order.npy").tolist() == order.tolist()


def test_a_store_without_ids_and_without_a_view(place):
    np.savez("few.npz", c=arrays()["c"][:20], a=arrays()["a"][:20])
    done("fit", "store", "-o", "run", *short_mvp(20, 5))
    done("convert", "few.npz", "-o", "few")
    done("embed", "run", "few", "-o", "few.csv")
    assert pd.read_csv("few.csv")["ids"].tolist() == [*range(20)]
    done("impute", "run", "few", "-o", "filled")
    assert Views.open("filled").names == ("a", "b", "c")
    np.savez("other.npz", c=arrays()["c"], d=arrays()["a"][::-1])
    done("convert", "other.npz", "-o", "other")
    assert "unknown view 'd'" in refused("embed", "run", "other", "-o", "x.csv")


@pytest.mark.parametrize("numbers", [1, 2**22])
def test_tables_are_written_from_a_store_block_by_block(place, monkeypatch, numbers):
    monkeypatch.setattr(store, "BLOCK_ROWS", 17)
    monkeypatch.setattr(parquet, "ROW_GROUP_VALUES", numbers)
    done("fit", "store", "-o", "run", *short_mvp(20, 5))
    done("impute", "run", "-o", "filled", "--format", "store", "--interval", ".9")
    done("impute", "run", "-o", "tables", "--format", "parquet", "--interval", ".9")
    for end in (".", "lower", "upper"):
        views = Views.open(place / "filled" / end)
        for name, x, spec in zip(views.names, views.x, views.specs, strict=True):
            table = pd.read_parquet(place / "tables" / end / f"{name}.parquet")
            assert table.index.tolist() == views.ids.tolist()
            assert table.shape == tuple(x.shape)
            assert (table.to_numpy() == fill.as_fitted(x.numpy(), spec)).all()
    done("embed", "run", "tables", "-o", "e.csv")
    assert "choose another name" in refused("impute", "run", "-o", "tables", "--format", "parquet")
    done("impute", "run", "-o", "tables", "--format", "parquet", "--force")
    assert not (place / "tables" / "lower").exists()


def test_tables_have_columns_categories_and_rows_of_the_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    rng, ids = np.random.default_rng(0), pd.Index(range(40), name="patient")
    stage = pd.Series(rng.choice(["I", "II", "III"], 40), ids)
    a = pd.DataFrame({"age": rng.integers(99, size=40), "stage": stage}, ids)
    a[5:].to_csv("data/a.csv")
    pd.DataFrame(rng.normal(size=(40, 2)), ids, ["t", "u"]).to_csv("data/b.csv")
    done("convert", "data", "-o", "store", "--one-hot")
    done("fit", "store", "-o", "run", "--method", "mean_fill")
    monkeypatch.setattr(store, "BLOCK_ROWS", 7)
    done("impute", "run", "-o", "tables", "--format", "parquet")
    found = pd.read_parquet("tables/a.parquet").sort_index()
    assert found.index.name == "patient"
    assert found.index.tolist() == ids.tolist()
    pd.testing.assert_series_equal(found["age"][5:].astype(int), a["age"][5:])
    assert found["stage"].astype(str)[5:].tolist() == stage[5:].tolist()


def test_samples_without_ids_are_numbered_as_in_the_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("d.npz", **arrays())
    done("convert", "d.npz", "-o", "store")
    done("fit", "store", "-o", "run", "--method", "mean_fill")
    done("impute", "run", "-o", "tables", "--format", "parquet")
    found, a = pd.read_parquet("tables/a.parquet").sort_index(), arrays()["a"]
    there = ~np.isnan(a).any(1)
    assert found.index.tolist() == [*range(len(a))]
    np.testing.assert_allclose(found.to_numpy()[there], a[there], rtol=1e-6)


def test_tables_that_cannot_be_are_refused_before_any_work(place, monkeypatch):
    done("fit", "store", "-o", "run", "--method", "mean_fill")
    parquet_out = ("-o", "tables", "--format", "parquet")
    assert "store or parquet" in refused("impute", "run", "-o", "x", "--format", "csv")
    assert "leave it out" in refused("impute", "run", "d.npz", *parquet_out)
    assert "OUT must be a folder; got" in refused(
        "impute", "run", "-o", "x.npz", "--format", "parquet"
    )
    done("impute", "run", "-o", "filled")
    wrong = ("-o", "filled", "--format", "parquet", "--force")
    assert "is a store; choose another name" in refused("impute", "run", *wrong)
    np.savez("i.npz", a=np.zeros((40, 3)), b=np.zeros((40, 2, 2), np.uint8))
    done("convert", "i.npz", "-o", "images")
    done("fit", "images", "-o", "run2", "--method", "mean_fill")
    assert "no rows of a table" in refused("impute", "run2", *parquet_out)
    monkeypatch.setattr(parquet, "find_spec", lambda name: None)
    assert "vedute[parquet]" in refused("impute", "run", *parquet_out)
    assert not (place / "tables").exists()


def remove(folder):
    (folder / "view0.npy").unlink()


def cut(folder):
    path = folder / "view1.npy"
    path.write_bytes(path.read_bytes()[:-8])


def flip(folder):
    content = bytearray((folder / "mask.npy").read_bytes())
    content[-1] ^= 1
    (folder / "mask.npy").write_bytes(content)


def pickled(folder):
    np.save(folder / "view2.npy", np.array([{}], object), allow_pickle=True)


def edit(**changes):
    def change(folder):
        facts = json.loads((folder / "manifest.json").read_text()) | changes
        (folder / "manifest.json").write_text(json.dumps(facts))

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (remove, "view0.npy is damaged (it is gone)"),
        (cut, "view1.npy is damaged"),
        (flip, "mask.npy is damaged (its content has changed)"),
        (pickled, "view2.npy is damaged"),
        (edit(format=9), "has format 9"),
        (edit(samples=3), "has shape"),
        (edit(files={}), "manifest.json is damaged"),
        (edit(views=[1]), "manifest.json is damaged"),
        (lambda f: (f / "manifest.json").write_text("{"), "manifest.json is damaged"),
    ],
)
def test_damage_is_said_in_one_sentence(place, change, said):
    change(place / "store")
    told = refused("fit", "store", "-o", "run")
    assert said in told
    assert "convert the data again" in told


def test_only_its_own_files_are_opened(place):
    facts = json.loads((place / "store/manifest.json").read_text())
    facts["files"]["../../secret.npy"] = facts["files"]["view0.npy"]
    (place / "store/manifest.json").write_text(json.dumps(facts))
    assert len(Views.open("store")) == N


def test_nothing_is_replaced_without_force_and_nothing_stays_of_before(place):
    assert "exists" in refused("convert", "d.npz", "-o", "store")
    np.savez("two.npz", a=arrays()["a"], b=np.nan_to_num(arrays()["b"]))
    done("convert", "two.npz", "-o", "store", "--force", "--keep-order")
    assert sorted(p.name for p in (place / "store").iterdir()) == [
        *("manifest.json", "mask.npy", "view0.npy", "view1.npy")
    ]
    (place / "mine").mkdir()
    (place / "mine" / "notes.txt").write_text("keep me")
    assert "no store" in refused("convert", "d.npz", "-o", "mine", "--force")
    assert "is a store already" in refused("convert", "store", "-o", "again")
    assert not (place / "again").exists()
    assert "hide views in the data" in refused("ampute", "store", "--rate", ".5", "-o", "less")
    assert "OUT must be a folder" in refused("impute", "run", "store", "-o", "x.npz")


def test_a_store_that_may_only_be_read(place):
    for path in (place / "store").iterdir():
        path.chmod(0o400)
    (place / "store").chmod(0o500)
    done("fit", "store", "-o", "run", "--method", "mean_fill")
    (place / "store").chmod(0o700)


def test_what_is_no_store():
    with pytest.raises(FileNotFoundError, match="no store"):
        Views.open("nowhere")


def test_what_comes_of_a_store_stays_on_the_disk(place, monkeypatch):
    monkeypatch.setattr(read_rows, "READ_ROWS", 13)
    model, views = small(MVP, n_clusters=3).fit(Views.open("store")), Views.open("store")
    assert isinstance(model.embedding_, np.memmap)
    assert np.allclose(model.embedding_, model.transform(views.in_memory()), atol=1e-5)
    assert (model.labels_ == model.predict(views.in_memory())).all()
    whole, filled = model.impute(views.in_memory()), model.impute(views)
    assert filled.on_disk
    assert not whole.on_disk
    assert bool(filled.mask.all())
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(filled.x, whole.x, strict=True))
    model.save("model")
    found = load("model")
    assert isinstance(found.embedding_, np.memmap)
    assert np.array_equal(found.embedding_, model.embedding_)
    found.fit(views.in_memory()).save("model")
    assert not [*(place / "model").glob("array-*.npy")]


def test_an_array_of_a_model_that_was_changed_is_refused(place):
    small(MVP).fit(Views.open("store")).save("model")
    (path,) = (place / "model").glob("array-*.npy")
    path.write_bytes(path.read_bytes()[:-4] + b"oops")
    with pytest.raises(ValueError, match="is not as it was saved"):
        load("model")
    path.unlink()
    with pytest.raises(ValueError, match="is gone"):
        load("model")


def test_kinds_and_scaling_are_those_of_data_in_memory(tmp_path, monkeypatch):
    """Whatever the kind, found in passes; the largest value, or the only broken one, comes late."""
    monkeypatch.setattr(read_rows, "READ_ROWS", 16)
    rng, n = np.random.default_rng(0), 200
    counts = rng.poisson(rng.gamma(1.0, 5.0, size=(n, 1)), size=(n, 12)).astype(float)
    late = rng.integers(3, size=(n, 4)).astype(float)
    late[-1, 0] = 0.5
    text = rng.poisson(0.1, size=(n, 40)) * 1.0
    text[np.arange(n), rng.integers(40, size=n)] += 1
    flags = rng.integers(2, size=(n, 3)).astype(float)
    sure = np.exp(rng.normal(size=(n, 5)))
    offset = 1e6 + rng.normal(size=(n, 3))
    offset[3:9, 1] = np.nan
    X = {"counts": counts, "late": late, "text": text, "flags": flags, "sure": sure, "o": offset}
    whole = Views.of(X)
    store_of(whole, tmp_path / "s")
    views = Views.open(tmp_path / "s")
    for v, name in enumerate(views.names):
        one, other = FittedView.of(views, v), FittedView.of(whole, v)
        assert (one.kind, one.why, one.bounds) == (other.kind, other.why, other.bounds), name
        for part in ("shift", "scale", "mean", "std"):
            a, b = getattr(one.scaler, part), getattr(other.scaler, part)
            assert np.allclose(a, b, rtol=1e-12, atol=1e-12), (name, part)


def store_of(views, folder):
    folder.mkdir()
    store.write(folder, views, None)


def test_training_reads_every_row_once_in_an_order_by_the_seed(monkeypatch):
    monkeypatch.setattr(feed, "BLOCK", 4)
    monkeypatch.setattr(feed, "BLOCKS", 8)
    torch.manual_seed(0)
    first = feed.shuffled(torch.arange(1000))
    torch.manual_seed(0)
    assert torch.equal(feed.shuffled(torch.arange(1000)), first)
    assert torch.equal(first.sort().values, torch.arange(1000))
    fetches = first[:992].view(31, 32)  # rows that are shuffled together are of few blocks
    assert all(len((fetch // 4).unique()) <= 9 for fetch in fetches)


def test_batches_of_a_store_are_its_rows(place, monkeypatch):
    monkeypatch.setattr(feed, "BLOCK", 2)
    monkeypatch.setattr(feed, "BLOCKS", 16)
    views = Views.open("store")
    fed = feed.Feed(views, 10)
    batches = torch.randperm(N).split(10)
    for rows, batch in zip(fed(batches), batches, strict=True):
        found, wanted = fed.window[rows], views[batch]
        assert torch.equal(found.index, batch)
        assert torch.equal(found.mask, wanted.mask)
        assert all(torch.equal(a, b) for a, b in zip(found.x, wanted.x, strict=True))
        assert torch.equal(found.holes[2], wanted.holes[2])


def tables(folder):
    """Numbers of all kinds in files of all kinds: other ids in each, cells and rows missing."""
    folder.mkdir()
    rng, n = np.random.default_rng(0), 60
    a = pd.DataFrame(rng.normal(size=(n, 3)), [f"p{i}" for i in range(n)], ["x", "y", "z"])
    a["whole"], a["some"], a["stamp"] = np.arange(n), np.arange(n) * 1.0, 1e9 + np.arange(n)
    a.loc["p50", "some"], a.iloc[7, 0], a.iloc[9] = np.nan, np.nan, np.nan
    a["some"] = a["some"].astype("Int64")
    a.to_csv(folder / "a.csv", index_label="who")
    b = pd.DataFrame(rng.normal(size=(n, 2)), [f"p{i}" for i in range(n)[::-1]], ["u", "v"])
    b["flag"] = rng.random(n) < 0.5
    b.iloc[5:40].to_parquet(folder / "b.parquet")
    np.save(folder / "c.npy", rng.normal(size=(n, 4)).astype(np.float32))
    (folder / "c.ids.txt").write_text("\n".join(f"p{i}" for i in range(n)))
    np.save(folder / "d.npy", rng.integers(256, size=(n, 4, 4), dtype=np.uint8))
    (folder / "d.ids.txt").write_text("\n".join(f"p{i}" for i in range(n)))


def test_large_files_are_converted_piece_by_piece_to_the_same_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables(tmp_path / "data")
    done("convert", "data", "-o", "whole")
    monkeypatch.setattr(streaming, "STREAMED_BYTES", 0)
    monkeypatch.setattr(streaming, "TABLE_CHUNK_ROWS", 16)
    monkeypatch.setattr(read_rows, "READ_ROWS", 7)
    monkeypatch.setattr(store, "BUCKET_ROWS", 11)
    monkeypatch.setattr(io, "enter", None)  # which reads all at once
    done("convert", "data", "-o", "pieces")
    for file in (tmp_path / "whole").iterdir():
        assert file.read_bytes() == (tmp_path / "pieces" / file.name).read_bytes(), file.name


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_one_large_table_is_converted_piece_by_piece(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 5)), columns=["a1", "b1", "a2", "b2", "c"])
    frame.iloc[3, [0, 2]], frame.iloc[30, 1] = np.nan, np.nan
    frame.insert(0, "id", np.arange(50) + 7)
    frame.to_csv("t.csv", index=False) if kind == "csv" else frame.to_parquet("t.parquet")
    (tmp_path / "spec.toml").write_text('[views]\na = "a*"\nb = "b*"\n')
    words = "convert", f"t.{kind}", "--views", "spec.toml", "-o"
    done(*words, "whole")
    monkeypatch.setattr(streaming, "STREAMED_BYTES", 0)
    monkeypatch.setattr(streaming, "TABLE_CHUNK_ROWS", 16)
    done(*words, "pieces")
    for file in (tmp_path / "whole").iterdir():
        assert file.read_bytes() == (tmp_path / "pieces" / file.name).read_bytes(), file.name


def test_what_is_not_plain_is_read_as_a_whole_and_said_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(streaming, "STREAMED_BYTES", 0)
    (tmp_path / "data").mkdir()
    pd.DataFrame({"x": range(9), "sex": list("fmffmmfmf")}).to_csv("data/a.csv", index_label="id")
    result = vedute_("convert", "data", "-o", "store", "--one-hot")
    assert result.exit_code == 0, result.stderr
    assert "as a whole: column 'sex' holds other things than numbers" in result.stderr
    assert Views.open("store").specs[0].levels == (None, ("f", "m"))
    np.save("data/b.npy", np.ones((9, 2)))
    assert "has no ids" in refused("convert", "data", "-o", "more", "--one-hot")


# A store that is replaced while it is read.


def other(values):
    """Data that differ only in their values."""
    return {k: v if k in ("ids", "y") else v + 100 for k, v in values.items()}


def rewritten(path):
    """Other values of the same shape in the same file."""
    a = np.load(path)
    np.save(path, a + 1)


def replaced(path):
    """Replace the file with another one that has the time of the old one."""
    a, time = np.load(path), path.stat().st_mtime_ns
    np.save("new.npy", a + 1)
    os.utime("new.npy", ns=(time, time))
    os.replace("new.npy", path)  # noqa: PTH105


def cut(path):
    os.truncate(path, path.stat().st_size - 8)


@pytest.mark.parametrize("change", [rewritten, cut])
def test_an_open_store_is_not_mixed_with_what_is_written_into_it(place, change):
    views = Views.open("store")
    whole = views.in_memory()
    change(place / "store" / "view0.npy")
    with pytest.raises(ValueError, match=r"view0.npy has changed since it was opened; open it ag"):
        views[[3, 1]]
    assert torch.equal(views.x[1], whole.x[1])
    assert views.ids.tolist() == whole.ids.tolist()


@pytest.mark.parametrize("change", [replaced, lambda path: path.unlink()])
def test_an_open_store_stays_what_it_was_where_its_files_are_replaced(place, change):
    views = Views.open("store")
    whole = views.in_memory()
    change(place / "store" / "view0.npy")
    same(views, whole)
    assert torch.equal(views[[3, 1]].x[0], whole.x[0][[3, 1]])


@pytest.mark.slow
def test_a_fit_goes_on_with_the_store_that_it_opened(place):
    def swap(record):
        if record["epoch"] == 3:
            Path("store").rename("old")
            np.savez("d.npz", **other(arrays()))
            done("convert", "d.npz", "-o", "store")

    expected = small(MVP, steps=90).fit(Views.open("store")).embedding_
    model = small(MVP, callbacks=[swap], steps=90).fit(Views.open("store"))
    assert Path("old").exists()
    assert np.array_equal(model.embedding_, expected)


def test_a_store_that_is_open_is_not_replaced(place):
    views = Views.open("store")
    np.savez("d.npz", **other(arrays()))
    assert "store is open, and its rows are still read" in refused(
        "convert", "d.npz", "-o", "store", "--force"
    )
    same(views, Views.open("store"))
    part = views[:5].pick(0)  # rows in memory hold nothing
    del views
    done("convert", "d.npz", "-o", "store", "--force")
    assert not torch.equal(part.x[0], Views.open("store")[:5].x[0])


@pytest.mark.slow
def test_a_store_that_another_process_has_open_is_not_replaced(place):
    waits = "import sys, vedute; v = vedute.Views.open('store'); print(1, flush=True); input()"
    words = [sys.executable, "-c", waits]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        reader.stdout.read(1)
        assert "store is open" in refused("convert", "d.npz", "-o", "store", "--force")
        reader.kill()
    done("convert", "d.npz", "-o", "store", "--force")


def test_a_pickled_store_holds_it_too(place):
    views = pickle.loads(pickle.dumps(Views.open("store")))
    same(views, Views.open("store"))
    assert "store is open" in refused("convert", "d.npz", "-o", "store", "--force")


def test_a_store_is_not_opened_while_it_is_replaced(place):
    with (
        store.new_store(place / "store", force=True),
        pytest.raises(ValueError, match="store is being replaced by another process"),
    ):
        Views.open("store")


def test_a_store_that_was_replaced_while_it_was_opened_is_refused(place, monkeypatch):
    real, digests = stored.digest, []

    def digest(path):
        digests.append(real(path))
        if len(digests) == 4:
            Path("store").rename("old")
            np.savez("d.npz", **other(arrays()))
            done("convert", "d.npz", "-o", "store", "--keep-order")
        return digests[-1]

    monkeypatch.setattr(stored, "digest", digest)
    with pytest.raises(ValueError, match=r"its content has changed|is being replaced"):
        Views.open("store")


def test_an_array_that_changes_while_it_is_converted_is_noticed(place, monkeypatch):
    monkeypatch.setattr(streaming, "STREAMED_BYTES", 0)
    Path("data").mkdir()
    for name, a in arrays().items():
        np.save(f"data/{name}.npy", np.nan_to_num(a))
    views, _ = streaming.opened(Path("data"), io.Reading())
    rewritten(place / "data" / "b.npy")
    with pytest.raises(ValueError, match=r"b.npy has changed since it was opened"):
        views.in_memory()
