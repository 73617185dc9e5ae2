"""MuData (.h5mu): one view per modality. AnnData (.h5ad): its matrix, cut by --views or by
`feature_types`, and the matrices of `obsm` that are no embeddings (names without X_). Written files
have every sample in every modality, X unchanged, and all values in the layer "filled".
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vedute.data import limits, omics
from vedute.io import contents
from vedute.io.contents import Array, Data, Ends, Filled, Reading, errors_as
from vedute.io.table import chosen

OPTIONS: tuple[str, ...] = ("views", "label")
OMICS_ENDINGS = (".h5mu", ".h5ad")
ZARR = (".zgroup", "zarr.json")  # markers of a folder of zarr, which only `convert` reads


def read(path: Path, how: Reading) -> Data:
    """Read modalities as DataFrames, one row per sample of any of them."""
    with _opened(path) as whole:
        if _is_mu(path) and how.views is not None:
            raise ValueError(f"{path}: its modalities are the views; --views is for one table")
        parts = None
        if how.views is not None:
            table = omics.matrix(whole, str(path))
            cut = chosen(how.views, list(table.columns), path)
            parts = {k: table[c] for k, c in cut.items()}
        views = omics.views(whole, str(path), parts)
        ids, y = whole.obs_names.astype(str).to_numpy(np.str_), _labels(path, whole, how)
        id_name = contents.name_of([whole.obs_names])
        return Data(views, None, ids, y, tuple(views), path, how, id_name)


def write(out: Path, data: Data, views: Filled, ends: Ends) -> None:
    """Write the file with complete layers: filled, and filled_lower, filled_upper."""
    assert data.path is not None
    layers = {"filled": views, **{f"filled_{end}": group for end, group in ends.items()}}
    with _opened(data.path) as source:
        whole = completed(source, layers)
        whole.write_h5mu(out) if _is_mu(data.path) else whole.write_h5ad(out)


def completed(whole: Any, layers: Mapping[str, Filled]) -> Any:
    """Add these layers; a MuData is a new one, with every sample in every modality."""
    if omics.is_mu(whole):
        return _widened(whole, layers)
    for layer, filled in layers.items():
        cut = {k: v for k, v in filled.items() if k not in whole.obsm}
        if cut:
            table = pd.concat(list(cut.values()), axis=1)
            rest = omics.matrix(whole, "")
            rest[table.columns] = table
            whole.layers[layer] = rest.to_numpy()
        for name in set(filled) - set(cut):
            whole.obsm[f"{name}_{layer}"] = filled[name].to_numpy()
    return whole


def annotate(out: Path, source: Path, rows: Mapping[str, Array]) -> None:
    """Write the file with results per sample: its embedding (n, D), its cluster (n,)."""
    with _opened(source) as whole:
        put(whole, rows)
        whole.write_h5mu(out) if _is_mu(source) else whole.write_h5ad(out)


def put(whole: Any, rows: Mapping[str, Array]) -> None:
    """Store embedding (n, D) and clusters (n,) in the object."""
    if "embedding" in rows:
        whole.obsm["X_vedute"] = rows["embedding"]
    if "labels" in rows:
        whole.obs["vedute"] = pd.Categorical([str(k) for k in rows["labels"]])


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Yield the content of a file, within the memory limit by its headers (zarr has none); silence
    deprecation warnings of mudata in the context."""
    sizes, kind = list[int](), "zarr" if is_zarr(path) else path.suffix[1:].lower()
    packages = ("anndata", "mudata") if _is_mu(path) else ("anndata",)
    for package in packages:
        if find_spec(package) is None:
            raise ImportError(f"{path} needs {package}: pip install 'vedute[omics]'")
    from h5py import File

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(Exception), File(path) as file:  # the reader reports the error
            file.visititems(lambda _, item: sizes.append(getattr(item, "nbytes", 0)))
        limits.check(sum(sizes), path)
        with errors_as(f"{path} is not a {path.suffix} {'folder' if kind == 'zarr' else 'file'}"):
            whole = getattr(import_module(packages[-1]), f"read_{kind}")(path)
        yield whole


def is_zarr(path: Path) -> bool:
    return path.suffix.lower() == ".zarr" and any((path / name).is_file() for name in ZARR)


def _is_mu(path: Path) -> bool:
    return (path / "mod").is_dir() if is_zarr(path) else path.suffix.lower() == ".h5mu"


def _labels(path: Path, whole: Any, how: Reading) -> Array | None:
    if how.label is None:
        return None
    tables = [whole.obs, *(mod.obs for mod in (whole.mod.values() if _is_mu(path) else ()))]
    labelled = [t[how.label] for t in tables if how.label in t.columns]
    columns = [column.reindex(whole.obs_names).astype(object) for column in labelled]
    if columns:
        return contents.labels(reduce(lambda y, more: y.where(y.notna(), more), columns))
    if how.lenient:
        return None
    raise contents.no_label(how.label, path, {c: 0 for t in tables for c in t.columns})


def _widened(whole: Any, layers: Mapping[str, Filled]) -> Any:
    """Extend the modalities of a MuData to a row for every sample, in new ones."""
    from anndata import AnnData
    from mudata import MuData

    mods, ids = {}, whole.obs_names
    for name, mod in whole.mod.items():
        table = omics.matrix(mod, name)
        x, obs = table.reindex(ids).to_numpy(), mod.obs.reindex(ids)
        mods[name] = AnnData(x, obs=obs, var=mod.var, uns=mod.uns)
        for layer, filled in layers.items():
            mods[name].layers[layer] = filled[name].to_numpy(table.to_numpy().dtype)
    wide = MuData(mods)[list(ids)].copy()
    for name in whole.obs.columns:
        wide.obs[name] = whole.obs[name]
    wide.obsm.update({k: v for k, v in whole.obsm.items() if k not in whole.mod})
    wide.uns.update(whole.uns)
    return wide
