# %% [markdown]
# # Five cameras around an object
#
# **The question.** Five cameras stand around each object. Some pictures were lost. What does an
# object look like from a side that nobody photographed?
#
# The objects (tables, chairs, cars, airplanes, rifles) are drawn by the package itself. To keep
# this quick, there are few of them, of 32 × 32 pixels, and two methods that take seconds infer the
# lost pictures. MVP takes minutes, or a GPU: bench/docs/pictures.md has its pictures.

# %%
import numpy as np
from matplotlib import pyplot as plt

from vedute import KernelFill, KNNFill, MeanFill, drop_views, plot
from vedute.metrics.scores import imputation_errors_by_view
from vedute_bench.datasets import shapes

ROWS = 240  # objects
objects = shapes.load(n=ROWS, size=32)
seen = drop_views(objects, rate=0.5, seed=42)
plot.missing(seen)

# %% [markdown]
# Both methods learn from all objects, also those that lack pictures. kNN fill takes the mean of
# the objects that look most alike in the pictures that are there, kernel fill a smooth regression
# of each picture on the others.

# %%
methods = {"kNN fill": KNNFill(), "kernel fill": KernelFill(), "mean picture": MeanFill()}
filled = {k: m.set_params(random_state=0).fit(seen).impute(seen) for k, m in methods.items()}

# %% [markdown]
# Three objects that lack pictures, in four rows each: what the cameras saw (grey: lost), with
# lost pictures inferred by each of the two methods, and the truth.

# %%
rows = np.flatnonzero((~seen.mask).sum(1).numpy() >= 2)[[0, 1, 3]]
figure, axes = plt.subplots(4 * len(rows), 5, figsize=(5, 4.1 * len(rows)))
for i, row in enumerate(rows):
    lines = {
        "given": seen,
        "kNN": filled["kNN fill"],
        "kernel": filled["kernel fill"],
        "true": objects,
    }
    for j, (word, views) in enumerate(lines.items()):
        for v in range(5):
            lost = word == "given" and not seen.mask[row, v]
            image = views.x[v][row].permute(1, 2, 0).numpy()
            picture = np.full((32, 32, 3), 200, np.uint8) if lost else image
            axes[4 * i + j, v].imshow(picture)
            axes[4 * i + j, v].set(xticks=[], yticks=[])
        axes[4 * i + j, 0].set_ylabel(word, fontsize=8)
for ax, name in zip(axes[0], seen.names, strict=True):
    ax.set_title(f"{name}°", fontsize=9)
figure.tight_layout(pad=0.3)

# %%
lost = (~seen.mask).numpy()
errors = {k: imputation_errors_by_view(objects, views, lost) for k, views in filled.items()}
print(f"{'camera':>12}  " + "  ".join(f"{name + '°':>6}" for name in seen.names))
for name, each in errors.items():
    print(f"{name:>12}  " + "  ".join(f"{e:6.2f}" for e in each))

# %% [markdown]
# **What was learned.** The errors are of pictures that were lost to the methods and are known to
# us, per pixel in standard deviations: the mean picture has about 1. Inferred pictures are soft:
# they are the mean of what could be there. What no camera has seen and no other object teaches
# cannot be inferred: do not read small parts from such a picture. These are one draw of lost
# pictures and few objects: others would differ somewhat.
