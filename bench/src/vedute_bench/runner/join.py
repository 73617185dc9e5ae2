"""Join several files of records: python -m vedute_bench.runner.join OUT FILE ..."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from vedute_bench.runner import lines, records


def main(out: Path, sources: Sequence[Path]) -> None:
    lines.write(out, [r for source in sources for r in records.read_all(source)])


if __name__ == "__main__":
    first, *others = map(Path, sys.argv[1:])
    main(first, others)
