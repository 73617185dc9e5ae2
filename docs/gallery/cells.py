# %% [markdown]
# # Single cells: RNA and ATAC
#
# **The question.** In some cells RNA was measured, in others which parts of the DNA are open
# (ATAC), in some both. Can all of them be put on one map, and can the RNA of a cell be told from
# its ATAC?
#
# The data are sci-CAR of A549 cells, measured 0, 1 and 3 hours after dexamethasone; they are not
# shipped with vedute. Where they are not in the folder `VEDUTE_DATA`, a synthetic twin takes
# their place, and the script says so. To keep this page quick, it takes some of the cells, the
# 200 genes and 300 peaks that vary most, and a short training.

# %%
import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.neighbors import NearestNeighbors

from vedute import Blend, plot

STEPS = 300  # of training: short, so that this page is built in seconds
ROWS = 600  # cells


def cells():
    file = Path(os.environ.get("VEDUTE_DATA", "")) / "scicar_a549.npz"
    if file.is_file():
        with np.load(file) as data:
            return "real data", data["view0"], data["view1"], data["y"]
    rng = np.random.default_rng(0)
    time = np.arange(2641) % 3
    z = rng.normal(size=(2641, 4)) + np.eye(4)[time]
    rna = rng.poisson(np.exp(0.4 * z @ rng.normal(size=(4, 400)) - 1))
    atac = rng.poisson(np.exp(0.4 * z @ rng.normal(size=(4, 500)) - 2))
    return "a synthetic twin", rna, atac, time


origin, rna, atac, time = cells()
some = np.random.default_rng(0).permutation(len(rna))[:ROWS]


def varying(x, k):
    """The k columns that vary most, on a logarithmic scale."""
    x = np.log1p(x[some].astype(float))
    return x[:, np.sort(np.argsort(-x.var(0))[:k])]


names = [f"cell {i}" for i in some]
truth = {
    "RNA": pd.DataFrame(varying(rna, 200), names).add_prefix("gene "),
    "ATAC": pd.DataFrame(varying(atac, 300), names).add_prefix("peak "),
}
hours = pd.Series(np.array([0, 1, 3])[time[some]], names, name="hours")
print("This page was made with", origin)

# %% [markdown]
# These cells have both. We take the RNA of a third and the ATAC of another third away.

# %%
third = ROWS // 3
measured = {"RNA": truth["RNA"].iloc[third:], "ATAC": truth["ATAC"].drop(names[third : 2 * third])}
plot.missing(measured)

# %%
model = Blend(random_state=0, expert_settings={"mvp__steps": STEPS}).fit(measured)
filled = model.impute(measured)
embedding = pd.DataFrame(model.transform(measured), filled["RNA"].index)
plot.map(model, hours.loc[embedding.index])

# %% [markdown]
# Are cells with RNA alone, ATAC alone and both mixed on the map, or three islands? We look at the
# ten nearest neighbours of each cell: if kinds are mixed, a third of them are of its own kind.

# %%
position = {name: i for i, name in enumerate(names)}
kind = np.array([min(position[c] // third, 2) for c in embedding.index])
near = NearestNeighbors(n_neighbors=11).fit(embedding).kneighbors(embedding)[1][:, 1:]
print(f"neighbours of the own kind: {(kind[near] == kind[:, None]).mean():.0%}")

# %%
rows = truth["RNA"].index[:third]
inferred, real = filled["RNA"].loc[rows], truth["RNA"].loc[rows]
mean = measured["RNA"].mean()
share = 1 - (inferred - real).pow(2).sum() / (mean - real).pow(2).sum()
print(
    f"of cells with ATAC alone, {share.mean():.1%} of the variance of RNA is inferred, on average;"
)
print("of the genes that are inferred best:")
print(share.nlargest(5).round(2).to_string())

# %% [markdown]
# **What was learned.** Read the last numbers before the map. In single cells most of a gene's
# variance is chance of counting, which nothing can infer, so shares are small even where both
# views know of the same biology; a share near zero says that ATAC does not tell that gene here,
# and its inferred values should not be used. That kinds of cells are mixed on a map is needed,
# and no proof that neighbours are alike.
# [What else infers missing views](../../bench/docs/rivals.md) has these data with all cells, genes
# and methods.
