"""Fill a table from CSV files that do not line up: breast tumors, measured three times.

    python examples/tables.py            about a minute on two cores
    python examples/tables.py --quick    a few seconds, and worse numbers

scikit-learn's breast-cancer data (569 tumors) are cut into three files: the mean, the error and
the worst value of ten features of the cell nuclei. Each file lacks three tenths of the patients,
other ones each time, and has its own order. They are joined by id. On the command line:

    vedute fit clinic -o run && vedute impute run -o filled --interval 0.9
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

from vedute import MVP, Views
from vedute.methods.fills.lowrank_fill import LowRankFill
from vedute.methods.fills.mean_fill import MeanFill
from vedute.metrics.scores import coverage, imputation_error

NAMES = ("mean", "error", "worst")


def main() -> None:
    quick = arguments().quick
    with TemporaryDirectory() as folder:
        truth = write(Path(folder), rows=150 if quick else None)
        tables = {k: pd.read_csv(Path(folder) / f"{k}.csv", index_col="patient") for k in NAMES}
    print({name: table.shape for name, table in tables.items()})

    joined = Views.of(tables)  # not needed to fit, but good to look at
    print(joined)
    complete = [truth[name].loc[joined.ids].to_numpy() for name in NAMES]
    hidden = (~joined.mask).numpy()

    settings = {"steps": 20, "cooldown": 5, "hidden": (32,)} if quick else {}
    mvp = MVP(random_state=0, **settings)
    for model in (mvp, LowRankFill(random_state=0), MeanFill()):
        filled = model.fit(tables).impute(tables)  # frames in, frames out: all patients, no gaps
        error = imputation_error(complete, [filled[k].to_numpy() for k in NAMES], hidden)
        print(f"{type(model).__name__:12} error {error:.3f} (1 is the mean)")

    mean, lower, upper = mvp.impute(tables, interval=0.9)
    ends = [[end[k].to_numpy() for k in NAMES] for end in (lower, upper)]
    print(f"{coverage(complete, *ends, hidden):.0%} of the gaps lie inside 90 % intervals")
    same = all(mean[k].loc[tables[k].index].equals(tables[k]) for k in NAMES)
    print(f"what was there is as it was: {same}")
    whole = pd.concat(mean, axis=1)
    print(f"one table of {whole.shape[0]} patients and {whole.shape[1]} columns, no gaps:")
    print(whole.iloc[:3, [0, 1, 10, 20]].round(3).to_string())


def write(folder: Path, rows: int | None) -> dict[str, pd.DataFrame]:
    """Three CSV files in the folder; the tables they were cut from."""
    data = load_breast_cancer(as_frame=True).data[:rows]
    data.index = pd.Index([f"p{i:03d}" for i in range(len(data))], name="patient")
    parts = {name: data.iloc[:, 10 * v : 10 * v + 10] for v, name in enumerate(NAMES)}
    rng = np.random.default_rng(42)
    for name, part in parts.items():
        some = rng.permutation(len(part))[: int(0.7 * len(part))]
        part.iloc[some].to_csv(folder / f"{name}.csv")
    return parts


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few samples, few steps")
    return parser.parse_args()


if __name__ == "__main__":
    main()
