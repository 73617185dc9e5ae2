"""The figures of plots.md: python docs/plots.py runs its code and saves what it draws."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from PIL import Image

HERE = Path(__file__).parent
BLOCK = re.compile(r"^```python\n(.*?)^```(?:\n\n!\[[^\]]*\]\(([^)]*)\))?", re.M | re.S)


def main() -> None:
    mpl.use("Agg")
    names: dict[str, object] = {}
    for code, image in BLOCK.findall((HERE / "plots.md").read_text(encoding="utf-8")):
        if "savefig" in code:  # shows how, for the reader
            continue
        exec(code, names)
        if image:
            drawn = BytesIO()
            plt.gcf().savefig(drawn, dpi=110)
            plt.close("all")
            Image.open(drawn).convert("RGB").quantize(128).save(HERE / image, optimize=True)


if __name__ == "__main__":
    main()
