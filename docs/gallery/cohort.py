# %% [markdown]
# # A cohort with three omics
#
# **The question.** Of 220 breast tumours, gene expression and microRNA were measured for all,
# protein for 150 only. What would the proteins of the other 70 have been, and how far can such
# numbers be trusted?
#
# The data are those of mixOmics (TCGA): 200 genes, 184 microRNAs, 142 proteins. They are not
# shipped with vedute. Where they are not in the folder `VEDUTE_DATA`, the script makes a
# synthetic twin of the same sizes, and says so.

# %%
import os
from pathlib import Path

import numpy as np
import pandas as pd

from vedute import Blend, plot

STEPS = 400  # of training: short, so that this page is built in seconds


def cohort():
    file = Path(os.environ.get("VEDUTE_DATA", "")) / "tcga_brca.npz"
    if file.is_file():
        with np.load(file) as data:
            return "real data", {str(k): data[f"view{v}"] for v, k in enumerate(data["view_names"])}
    rng = np.random.default_rng(0)
    z = rng.normal(size=(220, 6)) + 2 * np.eye(6)[rng.integers(3, size=220)]
    sizes = {"mRNA": 200, "miRNA": 184, "protein": 142}
    views = {k: z @ rng.normal(size=(6, d)) for k, d in sizes.items()}
    views = {k: x + 3 * rng.normal(size=x.shape) for k, x in views.items()}
    views["protein"][150:] = np.nan
    return "a synthetic twin", views


origin, arrays = cohort()
ids = [f"tumour {i}" for i in range(220)]
tumours = {
    k: pd.DataFrame(a, ids, [f"{k} {j}" for j in range(a.shape[1])]) for k, a in arrays.items()
}
print("This page was made with", origin)

# %% [markdown]
# A row without any value is a view that was not measured. The plot shows how many samples have
# which views.

# %%
plot.missing(tumours)

# %% [markdown]
# To see how sure we may be, we hide the proteins of 30 tumours for which they are known, and
# never show them to the model.

# %%
known = tumours["protein"].dropna(how="all")
test = known.sample(30, random_state=0).index
given = tumours | {"protein": tumours["protein"].copy()}
given["protein"].loc[test] = np.nan
model = Blend(n_clusters=3, random_state=0, expert_settings={"mvp__steps": STEPS}).fit(given)
filled = model.impute(given, interval=0.9)

# %% [markdown]
# Besides, the model itself has hidden some views while it learned. One point is one hidden view
# of one tumour; the mean of each feature, the simplest guess, has an error of about 1.

# %%
plot.hidden_errors(model)

# %% [markdown]
# One of the 30 tumours: what the model infers of its proteins, with intervals that should hold
# nine of ten true values.

# %%
plot.sample(model, given, test[0], "protein")

# %%
truth, scale = known.loc[test], known.std()
inferred = filled.mean["protein"].loc[test]
error = (((inferred - truth) / scale) ** 2).mean(axis=None)
base = (((known.drop(test).mean() - truth) / scale) ** 2).mean(axis=None)
inside = truth.ge(filled.lower["protein"].loc[test]) & truth.le(filled.upper["protein"].loc[test])
print(f"error of the inferred proteins {error:.2f}, of their means {base:.2f}")
print(f"90 % intervals hold {inside.mean(axis=None):.0%} of the true values")

# %% [markdown]
# Which proteins can be inferred, and which cannot?

# %%
explained = 1 - ((inferred - truth) ** 2).sum() / ((known.drop(test).mean() - truth) ** 2).sum()
print(explained.sort_values().iloc[[0, 1, 2, -3, -2, -1]].round(2).to_string())

# %% [markdown]
# **What was learned.** The numbers above are of tumours whose proteins the model never saw, so
# they hold for tumours like these. They are averages over 30 tumours: another 30 would give
# somewhat other ones. Proteins differ much: trust those at the lower end of the last table, and
# treat the inferred values of those at its upper end as not known. Protein was missing for the
# last 70 tumours for a reason that the data do not tell; if these differ from the others, so may
# the errors.
