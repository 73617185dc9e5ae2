# %% [markdown]
# # Sensors that drop out
#
# **The question.** A machine is watched by a microphone, a vibration sensor, a thermometer and a
# meter of its current. Each drops out for hours. Is the machine fine in an hour for which only
# some of them sent data?
#
# There is no public set of this kind with vedute, so the script makes one: 24 numbers per hour
# and sensor, of a machine with three ways of running and slow wear.

# %%
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from vedute import Blend, plot

STEPS = 300  # of training: short, so that this page is built in seconds
ROWS = 500  # hours


def machine(n):
    """Time windows of four sensors, all driven by load, speed, wear and way of running."""
    rng = np.random.default_rng(0)
    way = rng.integers(3, size=n)
    load, speed = 1 + way + 0.3 * rng.normal(size=n), rng.uniform(0.8, 1.2, n)
    wear, t = np.linspace(0, 1, n), np.linspace(0, 2 * np.pi, 24)
    wave = np.sin(np.outer(speed, 3 * t))
    sound = load[:, None] * wave + 0.3 * rng.normal(size=(n, 24))
    vibration = (1 + 2 * wear)[:, None] * wave**2 + 0.2 * rng.normal(size=(n, 24))
    heat = 40 + (8 * load + 6 * wear)[:, None] + np.outer(load, t) / 3 + rng.normal(size=(n, 24))
    current = 2 + load[:, None] * (1 + 0.1 * wave) + 0.1 * rng.normal(size=(n, 24))
    views = {"sound": sound, "vibration": vibration, "heat": heat, "current": current}
    hours = pd.date_range("2026-01-01", periods=n, freq="h").strftime("%d %b %H:%M")
    names = [f"{2.5 * m:g} min" for m in range(24)]
    return {k: pd.DataFrame(x, hours, names) for k, x in views.items()}, way


truth, way = machine(ROWS)
rng = np.random.default_rng(1)
sent = {k: x.copy() for k, x in truth.items()}
for x in sent.values():
    for start in rng.integers(ROWS, size=ROWS // 40):  # a sensor is off for ten hours at a time
        x.iloc[start : start + 10] = np.nan
off = pd.concat({k: x.isna().all(axis=1) for k, x in sent.items()}, axis=1)
for hour in off.index[off.all(axis=1)]:
    sent["heat"].loc[hour] = truth["heat"].loc[hour]  # an hour without any sensor cannot be judged
    off.loc[hour, "heat"] = False
plot.missing(sent)

# %%
model = Blend(n_clusters=3, random_state=0, expert_settings={"mvp__steps": STEPS}).fit(sent)
filled = model.impute(sent, interval=0.9)

# %% [markdown]
# Two days of one number: the temperature at the beginning of each hour, sent or inferred, beside
# what it was.

# %%
column = truth["heat"].columns[0]
gone = off["heat"].to_numpy()
start = max(int(np.flatnonzero(gone)[0]) - 12, 0)
shown = slice(start, start + 48)
x = np.arange(start, start + len(gone[shown]))
_, ax = plt.subplots(figsize=(7, 3))
ax.plot(x, truth["heat"][column].iloc[shown], color="#9aa0a6", lw=1, label="true")
sent_now = sent["heat"][column].iloc[shown]
ax.plot(x, sent_now, "o", ms=3.5, color="#3b6fb6", label="sent")
at = gone[shown]
mean, low, high = (f["heat"][column].iloc[shown][at] for f in filled)
ends = [mean - low, high - mean]
ax.errorbar(x[at], mean, ends, fmt="o", ms=3.5, color="#c44e3b", label="inferred, 90 %")
ax.set(xlabel="hour", ylabel="temperature")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))

# %% [markdown]
# Which sensor says most about which? Each cell is how much of a sensor's variance is explained by
# one other sensor alone.

# %%
plot.views(model, sent)

# %%
for name in sent:
    rows = off.index[off[name]]
    inside = truth[name].ge(filled.lower[name]) & truth[name].le(filled.upper[name])
    error = (filled.mean[name] - truth[name]).loc[rows].pow(2).mean(axis=None)
    share = 1 - error / (truth[name].loc[rows] - sent[name].mean()).pow(2).mean(axis=None)
    print(f"{name:>9}: off for {len(rows)} hours, {share:.0%} of its variance inferred,", end=" ")
    print(f"90 % intervals hold {inside.loc[rows].mean(axis=None):.0%}")
table = pd.crosstab(pd.Series(way, name="way of running"), pd.Series(model.labels_, name="cluster"))
print(table.to_string())

# %% [markdown]
# **What was learned.** What a sensor would have sent is inferred as well as the others know it;
# noise of its own is not. The lines above compare with the truth, which only a made-up machine
# has: with your own, look at `plot.hidden_errors` instead, which hides what was sent. Sensors
# were off at random hours here. A sensor that fails *when* the machine fails is another matter:
# then nothing that was sent tells how such hours look.
