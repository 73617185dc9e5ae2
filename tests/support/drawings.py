"""Small pictures inside tests: discs of five colors on white, from five sides or with a caption."""

from types import SimpleNamespace

import numpy as np
import torch

from vedute.data.views import Views

COLORS = {"red": (220, 40, 30), "green": (40, 170, 60), "blue": (40, 70, 210)}
COLORS |= {"yellow": (235, 205, 40), "purple": (150, 50, 170)}
WORDS = ["<pad>", "a", "disc", "is", "large", "painted", "small", "the", *COLORS]
LENGTH = 16  # tokens of a caption, padding included


def discs(n, size, turn=0.0):
    """Bytes (n, 3, size, size): each disc has a class by color, a place of its own, and a size."""
    rng = np.random.default_rng(0)
    y, radius = rng.integers(len(COLORS), size=n), rng.uniform(0.2, 0.4, n)
    angle = rng.uniform(0, 2 * np.pi, n) + turn
    grid = (np.arange(size) + 0.5) / size
    across = grid[None, None] - (0.5 + 0.2 * np.cos(angle))[:, None, None]
    down = grid[None, :, None] - (0.5 + 0.2 * np.sin(angle))[:, None, None]
    inside = np.hypot(across, down) < radius[:, None, None]
    colors = np.array([*COLORS.values()])[y]
    images = np.where(inside[:, None], colors[:, :, None, None], 255).astype(np.uint8)
    return images, y, radius


def _sides(n, size=16):
    """Views of five sides."""
    turns = {"-90": -1.6, "-45": -0.8, "0": 0.0, "45": 0.8, "90": 1.6}
    views = {name: discs(n, size, turn)[0] for name, turn in turns.items()}
    return Views.of(views, y=discs(n, size)[1])


def _captioned(n, size=16):
    """Views image, and caption in tokens."""
    images, y, radius = discs(n, size)
    captions = np.zeros((n, LENGTH), np.int64)
    for i, (k, r) in enumerate(zip(y, radius, strict=True)):
        words = ["a", "large" if r > 0.3 else "small", [*COLORS][k], "disc"]
        captions[i, :4] = [WORDS.index(word) for word in words]
    x, mask = (torch.from_numpy(images), torch.from_numpy(captions)), torch.ones(n, 2).bool()
    return Views(x, mask, torch.arange(n), (None, None), ("image", "caption"), y=y)


shapes = SimpleNamespace(load=_sides)
captions = SimpleNamespace(load=_captioned, vocabulary=lambda: WORDS, LENGTH=LENGTH)
