"""SSIM is scikit-image's, image by image."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from vedute.metrics.ssim import ssim

CHANNEL, ROW, COLUMN = np.indices((3, 28, 28))
A = ((28 * ROW + COLUMN + 7 * CHANNEL) % 97) / 96
rng = np.random.default_rng(0)


def one(a, b):
    return float(ssim(torch.as_tensor(a)[None], torch.as_tensor(b)[None]))


def slowly(a, b):
    """The definition, window by window."""
    found = []
    for x, y in zip(a, b, strict=True):
        for i in range(x.shape[0] - 6):
            for j in range(x.shape[1] - 6):
                p, q = (t[i : i + 7, j : j + 7].ravel() for t in (x, y))
                (s_p, s_pq), (_, s_q) = np.cov(p, q)
                above = (2 * p.mean() * q.mean() + 1e-4) * (2 * s_pq + 9e-4)
                found.append(above / ((p.mean() ** 2 + q.mean() ** 2 + 1e-4) * (s_p + s_q + 9e-4)))
    return np.mean(found)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (A, 1.0),
        (0.8 * A + 0.1, 0.9757263803),
        (1 - A, -0.9858744065),
        (np.full_like(A, 0.5), 0.0103010421),
    ],
    ids=["itself", "paler", "negative", "grey"],
)
def test_known_values(other, expected):
    assert one(A, other) == pytest.approx(expected, abs=1e-9)
    assert one(other, A) == pytest.approx(expected, abs=1e-9)
    assert one(A.astype(np.float32), other.astype(np.float32)) == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("shape", [(3, 28, 28), (1, 12, 9), (3, 7, 7)])
def test_the_definition_window_by_window(shape):
    a, b = rng.random(shape), rng.random(shape)
    b = 0.5 * a + 0.5 * b
    assert one(a, b) == pytest.approx(slowly(a, b), abs=1e-12)


def test_scikit_image_says_the_same():
    metrics = pytest.importorskip("skimage.metrics")
    a = rng.random((4, 3, 20, 28))
    b = np.clip(a + 0.3 * rng.standard_normal(a.shape), 0, 1)
    ours = ssim(torch.as_tensor(a), torch.as_tensor(b)).numpy()
    theirs = [
        metrics.structural_similarity(x, y, channel_axis=0, data_range=1)
        for x, y in zip(a, b, strict=True)
    ]
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_what_is_no_pair_of_images_is_refused():
    with pytest.raises(ValueError, match=r"shapes \(2, 3, 6, 9\) .* at least 7 pixels"):
        ssim(torch.zeros(2, 3, 6, 9), torch.zeros(2, 3, 6, 9))
    with pytest.raises(ValueError, match="pass equal ones"):
        ssim(torch.zeros(2, 3, 9, 9), torch.zeros(1, 3, 9, 9))
