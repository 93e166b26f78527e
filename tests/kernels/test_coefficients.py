"""The tool that computes the coefficients of polynomials, and that the coefficients in use are what it computes."""

import itertools
from pathlib import Path

import pytest

from fnad.kernels import _coefficients

TOOLS = Path(__file__).parents[1] / "tools"


@pytest.fixture
def tools(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    import coefficients
    import minimax

    return coefficients, minimax


def check(rows):
    for name, dtype, values, _ in rows:
        assert getattr(_coefficients, name)[dtype.strip()] == pytest.approx(tuple(values), rel=1e-6, abs=0), name


def test_constants_are_split_without_loss(tools):
    coefficients, minimax = tools
    for name, dtype, values, _ in coefficients.constants():
        got = getattr(_coefficients, name)[dtype]
        assert [float(coefficients.TYPES[dtype](v)) for v in got] == values, name
    with minimax.mp.workprec(300):
        assert abs(sum(map(minimax.mp.mpf, _coefficients.HALF_PI["f64"])) - minimax.mp.pi / 2) < 2**-160
        assert abs(sum(map(minimax.mp.mpf, _coefficients.TWO_OVER_PI_SHORT["f64"])) - 2 / minimax.mp.pi) < 2**-195


def test_some_fits_are_those_in_use(tools):
    coefficients, _ = tools
    check(itertools.islice(coefficients.trigonometric(), 4))


@pytest.mark.slow
def test_all_fits_are_those_in_use(tools):
    coefficients, _ = tools
    groups = (coefficients.exponentials, coefficients.logarithms, coefficients.trigonometric, coefficients.error_functions)
    check(itertools.chain.from_iterable(group() for group in groups))


def test_best_polynomials_have_the_error_they_claim(tools):
    """The best approximation of x**3 on [-1, 1] by lower powers is that of Chebyshev's polynomial: its error is 1/4."""
    _, minimax = tools
    values, error = minimax.fit(lambda x: x**3, range(3), -1, 1, lambda x: 1)
    assert values == pytest.approx([0, 0.75, 0], abs=1e-3)
    assert error == pytest.approx(0.25, rel=1e-3)
