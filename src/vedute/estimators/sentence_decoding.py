"""One sentence from the probabilities of its words.

A decoder predicts every word independently: if "a red car" and "the car is red" are equally
likely, the most likely words together are neither. So candidates are drawn word by word, and each
is encoded as the only input and decoded again, until it is a sentence. We keep the most likely
one: the likelihood of its words given the input, and given the sentence itself.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from vedute.data.views import Views
from vedute.training.model import Generative

CANDIDATES, READINGS, SEED = 32, 2, 0


def decode_sentence(model: Generative, batch: Views, logits: Tensor, v: int) -> Tensor:
    """Turn logits (n, T, V) of the words of view v into one sentence; observed ones stay."""
    others = torch.ones_like(batch.mask)
    others[:, v] = False
    chosen, best = logits, logits.new_full((len(batch),), -float("inf"))
    for noise in _noise(logits.shape[1:]).to(logits):
        sentence = logits + noise
        for _ in range(READINGS + 1):
            words = sentence.argmax(-1)
            sentence = model.decode(batch.given({v: words}).hide(others))[v][0]
        score = _likelihood(logits, words) + _likelihood(sentence, words)
        better = (score > best)[:, None, None]
        chosen = torch.where(better, F.one_hot(words, logits.shape[-1]), chosen)
        best = torch.maximum(score, best)
    return torch.where(batch.mask[:, v, None, None], logits, chosen)


def _likelihood(logits: Tensor, words: Tensor) -> Tensor:
    """Return log p of the words (n, T), (n,)."""
    return -F.cross_entropy(logits.transpose(1, 2), words, reduction="none").sum(1)


def _noise(shape: torch.Size) -> Tensor:
    """Draw Gumbel noise, which turns the most likely word into a draw: zero for the first
    candidate, and the same for every sample, so that sentences do not depend on other rows."""
    uniform = torch.rand(CANDIDATES, *shape, generator=torch.Generator().manual_seed(SEED))
    noise = -(-uniform.clamp(1e-9, 1 - 1e-7).log()).log()
    noise[0] = 0.0
    return noise
