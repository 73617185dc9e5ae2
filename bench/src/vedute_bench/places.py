"""Folders of the checkout from which this package is installed (`pip install -e bench`)."""

from __future__ import annotations

from pathlib import Path

BENCH = Path(__file__).resolve().parents[2]
ROOT = BENCH.parent
RESULTS = BENCH / "results"
DOCS = BENCH / "docs"
IMAGES = DOCS / "images"
SUPPORT = ROOT / "tests" / "support"  # helpers shared by tests of the package and of studies
