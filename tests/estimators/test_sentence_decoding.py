"""One sentence from the probabilities of its words."""

import torch
from torch.nn import functional as F  # noqa: N812

from vedute.data.views import Views
from vedute.estimators import sentence_decoding
from vedute.training.model import Generative

PARTNER = torch.tensor([0, 2, 1, 4, 3])  # "1 2" and "2 1" say no, "3 4" and "4 3" say yes


class Reader(Generative):
    """A number, 0 or 1, and a sentence of two of the words 1 to 4 that says the same."""

    def loss(self, batch):
        raise NotImplementedError

    def embed(self, batch):
        raise NotImplementedError

    def decode(self, batch, draws=0):
        """Reads the first word, and mends the second."""
        first = batch.x[1][:, 0]
        words = torch.stack([first, PARTNER[first]], dim=1)
        return [batch.x[0][None], 10.0 * F.one_hot(words, 5).float()[None]]

    def prior(self, n):
        raise NotImplementedError


def numbers(*meaning: float) -> Views:
    """Samples of which the number is given and the sentence is not."""
    n = len(meaning)
    x = (torch.tensor(meaning)[:, None], torch.zeros(n, 2, dtype=torch.int64))
    mask = torch.tensor([[True, False]]).expand(n, 2).clone()
    return Views(x, mask, torch.arange(n), (None, None), ("number", "sentence"))


def unsure(*meaning: float) -> torch.Tensor:
    """What is meant is likelier, but not in which order it is said; logits (n, 2, 5)."""
    says = torch.tensor([[-20.0, 0.01, 0.0, -1.0, -1.0], [-20.0, -1.0, -1.0, 0.01, 0.0]])
    return says[list(map(int, meaning))].unsqueeze(1).expand(-1, 2, -1).clone()


def test_the_likeliest_words_are_no_sentence_but_what_is_told_is_one():
    batch, logits = numbers(0, 1, 0, 1), unsure(0, 1, 0, 1)
    assert logits.argmax(-1).tolist() == [[1, 1], [3, 3]] * 2
    told = sentence_decoding.decode_sentence(Reader(), batch, logits, v=1).argmax(-1)
    assert torch.equal(PARTNER[told[:, 0]], told[:, 1])
    assert torch.equal(told[:, 0] > 2, batch.x[0][:, 0] > 0)  # and it says what is meant


def test_no_sentence_depends_on_other_samples():
    meaning = [0.0, 1.0, 1.0, 0.0, 1.0]
    logits = unsure(*meaning) + torch.rand(5, 2, 5, generator=torch.Generator().manual_seed(0))
    together = sentence_decoding.decode_sentence(Reader(), numbers(*meaning), logits, v=1)
    for i, one in enumerate(meaning):
        alone = sentence_decoding.decode_sentence(Reader(), numbers(one), logits[i : i + 1], v=1)
        assert torch.equal(alone[0], together[i])


def test_a_sentence_that_was_given_stays():
    batch, logits = numbers(0, 1), unsure(0, 1)
    batch.mask[1, 1] = True
    told = sentence_decoding.decode_sentence(Reader(), batch, logits, v=1)
    assert torch.equal(told[1], logits[1])
    assert not torch.equal(told[0], logits[0])
