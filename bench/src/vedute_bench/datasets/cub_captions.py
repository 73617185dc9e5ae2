"""CUB image-captions: photographs of birds, each with ten sentences about it.

There are 88550 pairs of 150 species for training and 29330 pairs of the other 50 for testing, as in
MMVAE+ (Palumbo et al., ICLR 2023). Photographs are resized to 64 x 64. Captions have 32 tokens: at
most 31 words and <eos>, then <pad>; words with at most three occurrences in training are <exc>.
Unlike in the released code, token 0 is <pad>, and sentences are cut into runs of letters and digits
and single punctuation marks.

`vedute_bench.metrics.colors.agreement(images, sentences)` measures whether generated birds have the
colors of their captions, with `words(tokens, vocabulary())` as sentences.

Nothing is downloaded. Put into the data folder, or into a folder cub_captions there:

    CUB_200_2011/images/<class>/<image>.jpg           https://www.vision.caltech.edu/datasets
    text_c10/<class>/<image>.txt                      ten lines each: the captions of Reed et al.
    trainvalclasses.txt, testclasses.txt              (CVPR 2016), with the lists of species
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vedute.data.views import Views
from vedute.datasets._files import folder
from vedute_bench.datasets._pictures import need_pillow, read

LISTS = {"train": "trainvalclasses.txt", "test": "testclasses.txt"}
SPECIAL = ("<pad>", "<eos>", "<exc>")  # tokens 0, 1, 2: after the end, the end, a rare word
LENGTH = 32
RARE = 3  # words with at most this many occurrences share the token <exc>
WORD = re.compile(r"[a-z0-9]+|[^\sa-z0-9]")


def load(split: str = "train", size: int = 64) -> Views:
    """Load pairs of an image (3, size, size) of bytes and a caption of 32 tokens; y is species."""
    if split not in LISTS:
        raise ValueError(f"no split {split!r}; choose from {', '.join(LISTS)}")
    need_pillow("cub_captions")
    home = _home()
    number = {word: t for t, word in enumerate(vocabulary())}
    species = sorted(name for one in LISTS for name in _species(home, one))
    images, captions, y = [], [], []
    for text in _texts(home, split):
        photograph = home / "CUB_200_2011" / "images" / text.parent.name / f"{text.stem}.jpg"
        if not photograph.is_file():
            raise FileNotFoundError(
                f"{photograph} is missing, but its captions exist ({text}); unpack the photographs"
                " again"
            )
        rows = [_tokens(line, number) for line in _lines(text)]
        images.append(np.repeat(read(photograph, size)[None], len(rows), axis=0))
        captions += rows
        y += [species.index(text.parent.name)] * len(rows)
    x = (torch.from_numpy(np.concatenate(images)), torch.tensor(captions))
    mask = torch.ones(len(y), 2, dtype=torch.bool)
    index = torch.arange(len(y))
    return Views(x, mask, index, (None, None), ("image", "caption"), y=np.array(y))


def vocabulary() -> list[str]:
    """Words of the training captions in the order of their tokens, most frequent first."""
    lines = (line for text in _texts(_home(), "train") for line in _lines(text))
    counts = Counter(word for line in lines for word in _words(line))
    frequent = [word for word in counts if counts[word] > RARE]
    return [*SPECIAL, *sorted(frequent, key=lambda word: (-counts[word], word))]


def words(tokens: NDArray[np.int64] | Tensor, vocabulary: Sequence[str]) -> str:
    """Text of a caption (T,), up to its end."""
    read = [vocabulary[int(t)] for t in tokens]
    end = next((i for i, word in enumerate(read) if word in SPECIAL[:2]), len(read))
    return " ".join(read[:end])


def _tokens(line: str, number: dict[str, int]) -> list[int]:
    """A caption as 32 tokens."""
    pad, end, rare = (number[word] for word in SPECIAL)
    tokens = [number.get(word, rare) for word in _words(line)[: LENGTH - 1]]
    return [*tokens, end, *[pad] * (LENGTH - 1 - len(tokens))]


def _words(line: str) -> list[str]:
    return WORD.findall(line.lower())


def _lines(text: Path) -> list[str]:
    """Sentences in a file, without blank lines."""
    read = text.read_text(encoding="utf-8", errors="replace")
    return [line for line in read.splitlines() if line.strip()]


def _texts(home: Path, split: str) -> list[Path]:
    """Caption files, ordered by species."""
    folders = [home / "text_c10" / name for name in _species(home, split)]
    files = [text for folder in folders for text in sorted(folder.glob("*.txt"))]
    if not files:
        raise FileNotFoundError(
            f"{home / 'text_c10'} has no captions of the species in {LISTS[split]}; unpack them "
            "again"
        )
    return files


def _species(home: Path, split: str) -> list[str]:
    return sorted((home / LISTS[split]).read_text(encoding="utf-8").split())


def _home() -> Path:
    """Folder with the photographs, captions and lists."""
    required = ("CUB_200_2011/images", "text_c10", *LISTS.values())
    for home in (folder() / "cub_captions", folder()):
        if all((home / part).exists() for part in required):
            return home
    absent = next(part for part in required if not (home / part).exists())
    raise FileNotFoundError(
        f"{absent} is not in {home}; fetch the photographs (CUB_200_2011) and the captions of Reed "
        "et al. (text_c10, with trainvalclasses.txt and testclasses.txt) and put them there, or "
        "point VEDUTE_DATA to the folder that has them"
    )
