"""Incomplete views of well separated clusters, and a small batch to take apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from building import model_of

from vedute.data.views import Views
from vedute.metrics.scores import clustering_accuracy

WIDTHS = (3, 2, 4)


def blobs(n=150, K=3, share=0.5, seed=0):
    """K clusters, far apart in each of three views; a share of the rows is incomplete."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    X = [8 * rng.normal(size=(K, w))[y] + 0.3 * rng.normal(size=(n, w)) for w in WIDTHS]
    mask = np.ones((n, len(WIDTHS)), bool)
    for i in rng.permutation(n)[: round(share * n)]:
        mask[i, rng.permutation(len(WIDTHS))[: rng.integers(1, len(WIDTHS))]] = False
    return Views.of(X, mask=mask, y=y)


def batch_of(B=7, seed=0):
    """Rows 0 and 1 are complete, row 2 has one view, the others one or two."""
    g = torch.Generator().manual_seed(seed)
    mask = torch.ones(B, 3, dtype=torch.bool)
    for i in range(2, B):
        mask[i, torch.randperm(3, generator=g)[: 1 + i % 2 if i > 2 else 2]] = False
    x = tuple(torch.randn(B, w, generator=g) * mask[:, [v]] for v, w in enumerate(WIDTHS))
    return Views(x, mask, torch.arange(B), (None,) * 3, ("a", "b", "c"))


def poisoned(batch):
    """Views with finite junk in missing entries."""
    x = tuple(torch.where(batch.mask[:, [v]], a, 1e3 + 0 * a) for v, a in enumerate(batch.x))
    return replace(batch, x=x)


def built(cls, seed=0, **settings):
    """An untrained model of three views whose weights are all in play."""
    hp = cls(**{"n_clusters": 3, "latent_dim": 2, "hidden": (5,), **settings})
    torch.manual_seed(seed)
    model = model_of(hp, [(w,) for w in WIDTHS], ("normal",) * 3)
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0.0, 0.5)
    return model.eval()


def gradients(model, terms):
    """Gradients by name, zero for parameters without one."""
    named = dict(model.named_parameters())
    found = torch.autograd.grad(sum(terms.values()), named.values(), allow_unused=True)
    pairs = zip(named.items(), found, strict=True)
    return {k: torch.zeros_like(p) if g is None else g for (k, p), g in pairs}


def same(a, b, tolerance=1e-5):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def check_clusters(model, order, share):
    """Fit: complete samples and incomplete ones are where they belong, in any order of views."""
    data = blobs(share=share).pick(*order)
    labels, whole = model.fit_predict(data), data.mask.all(1).numpy()
    for rows in (whole, ~whole):
        assert not rows.any() or clustering_accuracy(data.y[rows], labels[rows]) > 0.95
    assert whole.all() == (share == 0)
    return data


def check_resuming(make, folder, monkeypatch, epoch):
    """A fit that died in `epoch` and went on is one that never died."""

    def stop(record):
        if record["epoch"] == epoch:
            raise InterruptedError

    often = {"checkpoint": str(folder), "checkpoint_minutes": 0}
    data, whole, dying = blobs(60), make(), make(**often)
    whole.fit(data)
    dying.callbacks = [stop]
    with pytest.raises(InterruptedError):
        dying.fit(data)
    again = make(**often).fit(data)
    same(again.model_.state_dict(), whole.model_.state_dict(), 0.0)
    np.testing.assert_array_equal(again.labels_, whole.labels_)
