"""Compare the results of two commits on this machine: `make golden AGAINST=<commit>`.

    python tests/golden/golden.py COMMIT [--within 1e-5]

The reference is COMMIT in a worktree of its own, under build/golden, where its results are kept:
floating-point sums differ between processors and releases of torch, so both run here. The exit code
is 1 where an answer differs by more than `--within` standard deviations, or cannot be compared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Answers = Mapping[str, Array]
ROOT = Path(__file__).resolve().parents[2]
CASES = "tests/golden/cases.py"
KEPT = ROOT / "build" / "golden"


def git(*words: str) -> str:
    run = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"nothing to compare with: {run.stderr.strip()}")
    return run.stdout.strip()


def worktree(commit: str) -> Path:
    """A checkout of a commit, named by its hash."""
    sha = git("rev-parse", "--verify", f"{commit}^{{commit}}")
    tree = KEPT / sha
    if not tree.exists():
        git("worktree", "prune")
        git("worktree", "add", "--detach", str(tree), sha)
    return tree


def reference(commit: str) -> Path:
    """The results of a commit by its own cases; by ours where it has none."""
    tree = worktree(commit)
    cases = next(path for path in (tree / CASES, ROOT / CASES) if path.exists())
    digest = sha256(cases.read_bytes() + sys.version.encode()).hexdigest()[:8]
    out = KEPT / f"{tree.name}-{digest}.npz"
    return out if out.exists() else run(tree, cases, out)


def run(tree: Path, cases: Path, out: Path) -> Path:
    """The results of the package in a tree, in a process of its own."""
    KEPT.mkdir(parents=True, exist_ok=True)
    new = out.with_suffix(".new.npz")
    paths = {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, str(cases), str(new)], env={**os.environ, **paths}, check=True)
    return new.rename(out)


def difference(ours: Array, theirs: Array) -> float:
    """The largest one, in standard deviations of the reference; infinite between unlike things."""
    if ours.shape != theirs.shape or ours.dtype.kind != theirs.dtype.kind:
        return np.inf
    if ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes():
        return 0.0
    if ours.dtype.kind not in "fiu" or (np.isnan(ours) != np.isnan(theirs)).any():
        return 0.0 if np.array_equal(ours, theirs) else np.inf
    deviation = float(np.nanstd(theirs.astype(float))) or 1.0
    return float(np.nanmax(np.abs(ours.astype(float) - theirs), initial=0.0)) / deviation


def differences(ours: Answers, theirs: Answers) -> dict[str, float]:
    """Largest difference of the parts by "case|answer"; infinite if one is absent."""
    results: dict[str, float] = {}
    for key in {**ours, **theirs}:
        both = key in ours and key in theirs
        answer = "|".join(key.split("|")[:2])
        of_part = difference(ours[key], theirs[key]) if both else np.inf
        results[answer] = max(results.get(answer, 0.0), of_part)
    return results


def compared(ours: Answers, theirs: Answers) -> tuple[Answers, Answers]:
    """The answers of the cases that both trees have; the others are named."""
    mine, known = ({key.partition("|")[0] for key in answers} for answers in (ours, theirs))
    for case in sorted(mine ^ known):
        print(f"{case}: in {'this tree' if case in mine else 'the reference'} alone, not compared")
    here, there = (
        {key: value for key, value in answers.items() if key.partition("|")[0] in mine & known}
        for answers in (ours, theirs)
    )
    return here, there


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="what to compare with")
    parser.add_argument("--within", type=float, default=0.0, help="standard deviations allowed")
    options = parser.parse_args()
    known = reference(options.commit)
    with np.load(known) as theirs, np.load(run(ROOT, ROOT / CASES, KEPT / "here.npz")) as here:
        results = differences(*compared(dict(here), dict(theirs)))
    wrong = {name: size for name, size in results.items() if size > options.within}
    for name, size in wrong.items():
        print(f"{name.replace('|', ': ')}: {f'{size:.2g}' if np.isfinite(size) else 'not alike'}")
    cases = {name.partition("|")[0] for name in results}
    largest = max(results.values(), default=np.inf)
    print(f"{len(cases)} cases; largest difference: {largest:.2g} standard deviations")
    return 1 if wrong or not results else 0


if __name__ == "__main__":
    sys.exit(main())
