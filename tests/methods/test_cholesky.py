"""Cholesky factors where rounding matters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import cho_factor, cho_solve

from vedute.methods.fills.engine.components import dual, primal
from vedute.methods.fills.engine.softimpute import factored
from vedute.methods.fills.gaussian_fill import inverse
from vedute.methods.fills.kernel_fill import JITTER, kernel


@pytest.mark.parametrize("lower", [False, True])
def test_a_definite_matrix_has_its_own_factor(lower):
    x = np.random.default_rng(0).normal(size=(20, 5))
    S = x.T @ x
    for found, wanted in zip(factored(S, lower), cho_factor(S, lower), strict=True):
        assert_array_equal(found, wanted)


def test_of_a_singular_one_the_equations_are_solved():
    x = np.random.default_rng(0).normal(size=(20, 3))
    S = np.kron(x @ x.T, np.ones((4, 4)))  # equal rows
    y = S @ np.arange(80.0)
    assert_allclose(S @ cho_solve(factored(S), y), y, rtol=1e-4)
    assert np.isfinite(inverse(S)).all()


def test_what_is_not_rounding_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match="should be positive definite"):
        factored(np.diag([1.0, -1.0]))


def test_regressions_learn_from_many_equal_rows():
    """Whole numbers, as in satellite images."""
    rows = np.random.default_rng(0).integers(0, 3, (3200, 3)) / 3
    M, y = rows[:500], rows @ np.ones((3, 2))
    inner = kernel(M, M, 0.06) + JITTER * np.eye(len(M))
    assert_allclose(primal(kernel(rows, M, 0.06), inner, y, 1e-3)[1], y, atol=0.02)
    few = rows[:300]
    assert_allclose(dual(kernel(few, few, 0.06), y[:300], 1e-17)[1], y[:300], atol=0.02)


def test_nothing_is_learned_from_no_rows(capfd):
    for found in dual(np.zeros((0, 0)), np.zeros((0, 2)), 0.1):
        assert found.shape == (0, 2)
    assert not capfd.readouterr().err  # LAPACK writes there
