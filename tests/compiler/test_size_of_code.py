"""What LLVM is given to compile grows no faster than the program, and not at all where parts of it repeat."""

import numpy as np
import pytest

import fnad
from fnad.kernels.codegen.emit import print_program


def size(f, x):
    """Letters of what LLVM is given."""
    return sum(len(str(print_program(p.name, p))) for p in fnad.explain(f)(x)._executable.programs)


def chain(function, n):
    def f(x):
        for _ in range(n):
            x = function(x)
        return x

    return f


@pytest.mark.parametrize("function", [np.sin, np.tanh, np.exp])
def test_a_long_chain_of_functions_is_cut_into_parts_that_look_alike(function):
    small, large = (size(chain(function, n), np.ones(50)) for n in (40, 160))
    assert large < 2 * small


def test_a_long_chain_grows_in_proportion():
    small, large = (size(chain(lambda x: x * x + 1, n), np.ones(50)) for n in (40, 160))
    assert large < 4.2 * small


def test_a_chain_in_parts_has_the_same_numbers():
    x = np.linspace(-3, 3, 50)
    f = chain(np.sin, 100)
    np.testing.assert_allclose(fnad.jit(f)(x), f(x), rtol=1e-12)
    np.testing.assert_allclose(fnad.jit(fnad.grad(lambda x: np.sum(f(x))))(x), fnad.grad(lambda x: np.sum(f(x)))(x), rtol=1e-11)
