"""Folders of the checkout that this package is installed from (`pip install -e bench`)."""

from __future__ import annotations

from pathlib import Path

BENCH = Path(__file__).resolve().parents[2]
ROOT = BENCH.parent
RESULTS = BENCH / "results"
DOCS = BENCH / "docs"
IMAGES = DOCS / "images"
SUPPORT = ROOT / "tests" / "support"  # what tests of the package and of studies share
