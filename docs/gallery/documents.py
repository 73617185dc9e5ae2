# %% [markdown]
# # Documents in five languages
#
# **The question.** A news agency has 1200 stories in up to five languages; many were never
# translated. Which stories are about the same topic, whatever language they are in?
#
# The data are `reuters1200` (five languages, ten numbers per text), read from `VEDUTE_DATA`.
# Where they are not there, a synthetic twin of the same sizes takes their place, and the script
# says so. Topics are known for these stories, and used at the end only.

# %%
import numpy as np
import pandas as pd

from vedute import MVP, MeanFill, Views, datasets, drop_views, plot
from vedute.metrics.scores import clustering_accuracy

STEPS = 500  # of training: short, so that this page is built in seconds
ROWS = 1200


def stories():
    try:
        return "real data", datasets.load("reuters1200")
    except (OSError, ValueError):
        rng = np.random.default_rng(0)
        topic = np.arange(1200) % 6
        z = rng.normal(size=(1200, 8)) + 1.5 * np.eye(8)[topic]
        names = ("english", "french", "german", "italian", "spanish")
        views = {k: z @ rng.normal(size=(8, 10)) + rng.normal(size=(1200, 10)) for k in names}
        return "a synthetic twin", Views.of(views, y=topic)


origin, texts = stories()
texts = texts[np.random.default_rng(0).permutation(len(texts))[:ROWS]]
print("This page was made with", origin)

# %% [markdown]
# All five texts of these stories exist, so we hide some: of seven in ten stories, some
# translations are taken away.

# %%
some = drop_views(texts, rate=0.7, seed=42)
plot.missing(some)

# %%
model = MVP(n_clusters=6, random_state=0, steps=STEPS).fit(some)
plot.training(model)

# %% [markdown]
# Every story gets one representation, from whatever languages it has. In the plane, stories that
# are alike are close together; colors are the topics, which the model does not know.

# %%
plot.map(model, pd.Series(some.y, name="topic"))

# %% [markdown]
# Is a story with one language placed as well as one with five? We count which share of the
# stories is in the cluster of their topic, by the number of languages (in each line, clusters get
# the topics that fit them best), beside clusters of texts whose gaps are filled by the mean.

# %%
simple = MeanFill(n_clusters=6, random_state=0).fit(some)
languages = some.mask.sum(1).numpy()
rows = []
for low, high in ((1, 2), (3, 4), (5, 5)):
    here = (languages >= low) & (languages <= high)
    right = [clustering_accuracy(some.y[here], m.labels_[here]) for m in (model, simple)]
    rows.append([f"{low} to {high}" if low < high else low, here.sum(), *np.round(right, 2)])
table = pd.DataFrame(rows, columns=["languages", "stories", "MVP", "mean fill"])
print(table.to_string(index=False))

# %%
parts = ", ".join(f"{name} {share:.0%}" for name, share in model.r2_.items())
print("Variance of hidden translations that was explained:", parts)

# %% [markdown]
# **What was learned.** The table says whether a story needs all its translations to find its
# topic. It is of one draw of missing translations and one seed;
# [the table of the study](../../bench/docs/mvp-clustering.md) has more of both, with a spread of a
# few per cent. Clusters were made without topics: with your own texts, read some of each cluster
# before you name it.
