"""Kernels of our own against the plain definitions, values and gradients. Where there is no GPU,
Triton's interpreter runs them; without Triton there are none."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from vedute.nn import gaussian, kernels
from vedute.nn.gaussian import Gaussian

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is loaded
pytest.importorskip("triton")

from vedute.nn import gaussian_kernels, layer_kernels  # noqa: E402

B, L, D = 7, 5, 6


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def outcome(f: Callable[..., Any], given: Sequence[Tensor]) -> list[Tensor]:
    """Values of f, and gradients of their weighted sum."""
    given = [t.clone().requires_grad_() for t in given]
    values = f(*given)
    values = list(values) if isinstance(values, tuple) else [values]
    sum((v * numbers(*v.shape, seed=9)).sum() for v in values).backward()
    return [*values, *(t.grad for t in given if t.grad is not None)]


def assert_same(f: Callable[..., Any], slow: Callable[..., Any], given: Sequence[Tensor]) -> None:
    for a, b in zip(outcome(f, given), outcome(slow, given), strict=True):
        torch.testing.assert_close(a.reshape(b.shape), b, rtol=1e-4, atol=1e-5)


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The definitions stay plain on a GPU, too."""
    monkeypatch.setattr(kernels, "of", lambda what, t: None)


def table(seed: int) -> tuple[Tensor, Tensor]:
    return numbers(B, L, L, D, seed=seed), numbers(B, L, L, D, seed=seed + 1)


def test_product_over_columns() -> None:
    assert_same(
        lambda m, s: gaussian_kernels.Product.apply(m.view(-1, L, D), s.view(-1, L, D), None),
        lambda m, s: tuple(gaussian.product(Gaussian(m, s), 2)),
        table(0),
    )


def test_product_over_observed_rows() -> None:
    mask = numbers(B, L, seed=5) > 0
    mask[:, 0] = True
    assert_same(
        lambda m, s: gaussian_kernels.Product.apply(m.flatten(2), s.flatten(2), mask),
        lambda m, s: tuple(gaussian.product(Gaussian(m, s), 1, mask[:, :, None, None])),
        table(0),
    )


def test_no_precision_overflows() -> None:
    mean, logvar = numbers(2, 3, 4), 200 * numbers(2, 3, 4, seed=1)
    found = gaussian_kernels.Product.apply(mean, logvar, None)
    for a, b in zip(found, gaussian.product(Gaussian(mean, logvar), 1), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("both", [False, True])
def test_divergence(both: bool) -> None:
    slow = gaussian.symmetric_kl if both else gaussian.kl
    assert_same(
        lambda *parts: gaussian_kernels.Divergence.apply(*parts, both),
        lambda a, b, c, d: slow(Gaussian(a, b), Gaussian(c, d)),
        [*table(0), *table(2)],
    )


def test_sample() -> None:
    eps = numbers(B, L, L, D, seed=7)
    assert_same(
        lambda m, s: gaussian_kernels.Sample.apply(m, s, eps),
        lambda m, s: m + (0.5 * s).exp() * eps,
        table(0),
    )


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_linear_layer(slope: float) -> None:
    assert_same(
        lambda *given: layer_kernels.Linear.apply(*given, slope),
        lambda x, w, b: leaky_relu(x @ w.t() + b, slope),
        [numbers(150, 9), numbers(37, 9, seed=1), numbers(37, seed=2)],
    )


@pytest.mark.parametrize("slope", [0.01, 1.0])
def test_stacked_layer(slope: float) -> None:
    assert_same(
        lambda *given: layer_kernels.Stacked.apply(*given, slope),
        lambda x, w, b: leaky_relu(torch.baddbmm(b, x, w), slope),
        [numbers(3, 150, 9), numbers(3, 9, 37, seed=1), numbers(3, 1, 37, seed=2)],
    )
