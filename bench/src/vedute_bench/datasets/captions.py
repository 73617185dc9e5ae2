"""Captions: generated pictures of objects of `shapes`, each with a sentence about it.

The sentence names the object's class and main color and up to two of its parts, "an orange chair
with four thin legs and a tall back", in one of several wordings. Classes, colors and parts are
those of the picture; the wording is random. Needs no download.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.random import Generator, default_rng
from numpy.typing import NDArray
from torch import Tensor

from vedute.data.views import Views
from vedute_bench.shapes.objects import CLASSES, design, labels, picture, split_rows
from vedute_bench.shapes.solids import PALETTE, Design, pick

Ints = NDArray[np.int64]
AZIMUTH = 45  # degrees from the front: most of an object is visible
LENGTH = 16  # tokens of a caption, padding included
NAMES = tuple(CLASSES)  # of the labels 0, 1, ...
COLORS = tuple(PALETTE)
NOUNS = {  # names of a class
    "table": ("table",),
    "chair": ("chair",),
    "car": ("car", "automobile"),
    "airplane": ("airplane", "plane"),
    "rifle": ("rifle", "gun"),
}
SENTENCES = (  # {a}: a or an
    "{a} {color} {noun}",
    "{a} {color} {noun}",
    "a picture of {a} {color} {noun}",
    "the {noun} is {color}",
    "this is {a} {color} {noun}",
    "{a} {noun} painted {color}",
)
OTHERS = """
a an and armrests back barrel bed central curved delta drawers drum engines fins foot four handle
has hollow high is it ladder large legs load long low magazine no octagonal of open oval
painted panels picture posts propeller propellers rack roof round scope short slatted sled small
solid spoiler square star stock straight swept tail tall the thick thin this three top trunk two
wheels wings with
"""


def load(n: int = 10_000, seed: int = 0, split: str = "all", size: int = 64) -> Views:
    """Generate n objects of five classes: images (3, size, size) of bytes, captions of 16 tokens.

    split: "train" is the first four fifths of the n objects, "test" the rest.
    """
    rows = split_rows(n, split)
    if n < 1 or size < 1:
        raise ValueError(f"n and size must be at least 1, got {n} and {size}")
    y = labels(n, seed)
    numbers = range(n)[rows]
    images = np.empty((len(numbers), 3, size, size), np.uint8)
    captions = np.zeros((len(numbers), LENGTH), np.int64)
    for row, i in enumerate(numbers):
        made, rng = design(int(y[i]), i, seed)
        images[row] = picture(made, rng, [AZIMUTH], size)[0]
        caption = tokens(sentence(made, NAMES[y[i]], default_rng([seed, i, 1])))
        captions[row, : len(caption)] = caption
    x = (torch.from_numpy(images), torch.from_numpy(captions))
    mask = torch.ones(len(numbers), 2, dtype=torch.bool)
    index = torch.arange(len(numbers))
    return Views(x, mask, index, (None, None), ("image", "caption"), y=y[rows])


@cache
def vocabulary() -> list[str]:
    """Words in the order of their tokens; token 0 is padding."""
    nouns = [noun for names in NOUNS.values() for noun in names]
    return ["<pad>", *sorted({*OTHERS.split(), *nouns, *COLORS})]


def tokens(text: str) -> list[int]:
    """Tokens of the words of a sentence, without padding."""
    return [vocabulary().index(word) for word in text.split()]


def words(tokens: Ints | Tensor | list[int]) -> str:
    """A caption (T,) as text."""
    return " ".join(vocabulary()[int(t)] for t in tokens if int(t))


def meaning(tokens: Ints | Tensor) -> tuple[Ints, Ints]:
    """Find the first class (n,) and color (n,) named in captions (n, T).

    They are positions in NAMES and in COLORS; -1 where a caption names none.
    """
    read = np.asarray(tokens)
    kind, color = (np.full(len(vocabulary()), -1) for _ in range(2))
    for k, nouns in enumerate(NOUNS.values()):
        kind[[vocabulary().index(noun) for noun in nouns]] = k
    color[[vocabulary().index(c) for c in COLORS]] = np.arange(len(COLORS))
    return _first_named(kind[read]), _first_named(color[read])


def _first_named(codes: Ints) -> Ints:
    """First entry of each row (n, T) that is not negative, -1 if there is none: (n,)."""
    return np.take_along_axis(codes, (codes >= 0).argmax(1)[:, None], axis=1)[:, 0]


def sentence(made: Design, kind: str, rng: Generator) -> str:
    """Draw one of the sentences that are true of the object."""
    form, noun = pick(rng, SENTENCES), pick(rng, NOUNS[kind])
    first = noun if "{a} {noun}" in form else made.color
    start = form.format(a="an" if first[0] in "aeiou" else "a", color=made.color, noun=noun)
    count = min(int(rng.integers(3)), len(made.traits))
    parts = " and ".join(made.traits[i] for i in rng.permutation(len(made.traits))[:count])
    if not parts:
        return start
    return f"{start} {'and it has' if ' is ' in start else 'with'} {parts}"
