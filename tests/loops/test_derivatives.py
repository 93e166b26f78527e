"""Both modes of loop functions: random programs, every scalar function, second order."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

import fnad
from fnad.errors import UnsupportedError
from fnad.loops.printer import source
from fnad.loops.support import polygamma
from fnad.loops.tangent import tangent
from tests.loops.derivatives import Derivatives, run
from tests.loops.programs import loop_programs

RELAXED = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def check_program(program, numeric):
    function = program.function()
    with np.errstate(all="ignore"):
        outs = [np.asarray(o) for o in function(*program.copies())]
        assume(all(np.all(np.isfinite(o)) and np.all(abs(o) < 50) for o in outs))
        Derivatives(function, program.args).check(program.args, numeric=numeric)


@settings(max_examples=40, **RELAXED)
@given(loop_programs(smooth=True))
def test_random_programs_against_differences(program):
    check_program(program, numeric=True)


@settings(max_examples=30, **RELAXED)
@given(loop_programs())
def test_both_modes_agree_where_branches_look_at_values(program):
    check_program(program, numeric=False)


@pytest.mark.slow
@settings(max_examples=1500, **RELAXED)
@given(loop_programs(smooth=True))
def test_many_random_programs(program):
    check_program(program, numeric=True)


@settings(max_examples=15, **RELAXED)
@given(loop_programs(smooth=True))
def test_the_tangent_program_is_differentiated_again(program):
    """Reverse over forward equals differences of the adjoint."""
    function = program.function()
    with np.errstate(all="ignore"):
        outs = [np.asarray(o) for o in function(*program.copies())]
        assume(all(np.all(np.isfinite(o)) and np.all(abs(o) < 50) for o in outs))
        d = Derivatives(function, program.args)
        again = Derivatives.__new__(Derivatives)
        again.build_from(d.tangent_fn)
        rng = np.random.default_rng(1)
        active = [a for a, w in zip(program.args, d.wanted, strict=True) if w]
        again.check([*program.args, *d.draw(rng, active)], numeric=False)


ONE = {
    "sin": (0.3, 2.0), "cos": (0.3, 2.0), "tan": (0.3, -1.0), "arcsin": (0.3, -0.8), "arccos": (0.3, -0.8), "arctan": (0.3, -4.0),
    "sinh": (0.3, -2.0), "cosh": (0.3, -2.0), "tanh": (0.3, -2.0), "arcsinh": (0.3, -2.0), "arccosh": (1.3, 4.0),
    "arctanh": (0.3, -0.9), "exp": (0.3, -2.0), "exp2": (0.3, -2.0), "expm1": (0.3, -2.0), "log": (0.3, 4.0), "log2": (0.3, 4.0),
    "log10": (0.3, 4.0), "log1p": (0.3, -0.5), "sqrt": (0.3, 4.0), "cbrt": (0.3, 4.0), "fabs": (0.3, -2.0), "degrees": (0.3, -2.0),
    "radians": (0.3, -2.0), "sinc": (0.3, 1e-6),
}  # fmt: skip
TWO = ("hypot", "arctan2", "copysign", "fmod", "maximum", "minimum", "fmax", "fmin", "logaddexp", "power")


def defined(text):
    """The function `f` of the source text, with the text where inspect finds it."""
    import linecache

    path = f"<function {text}>"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    names = {"np": np, "math": math}
    exec(compile(text, path, "exec"), names)
    return names["f"]


def both_orders(f, *args):
    """Modes against each other and differences, for the function and for its tangent."""
    d = Derivatives(f, args)
    d.check(args)
    second = tangent(d.tangent_fn, d.wanted * 2)
    run(*source(second), second.name)
    again = Derivatives.__new__(Derivatives)
    again.build_from(d.tangent_fn)
    again.check([*args, *(0.7 for _ in args)])


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number(name):
    f = defined(f"def f(x):\n    return np.{name}(x) * x\n")
    for x in ONE[name]:
        both_orders(f, x)


@pytest.mark.parametrize("name", ["erf", "erfc", "gamma", "lgamma"])
def test_special_functions(name):
    both_orders(defined(f"def f(x):\n    return math.{name}(x) * x\n"), 1.7)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_numbers(name):
    f = defined(f"def f(x, y):\n    return np.{name}(x, y) * x\n")
    for x, y in ((1.3, 0.7), (0.4, 2.1)):
        both_orders(f, x, y)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("x", [1e-3, 0.5, 3.0, 40.0, -0.7, -3.3])
def test_polygamma_is_scipys(n, x):
    scipy = pytest.importorskip("scipy.special")
    want = scipy.polygamma(n, x) if n == 0 or x > 0 else None
    if want is None:  # scipy has no values there: the recurrence to the next positive argument
        want, y = 0.0, x
        while y <= 0:
            want -= (-1) ** n * math.factorial(n) / y ** (n + 1)
            y += 1
        want += scipy.polygamma(n, y)
    np.testing.assert_allclose(polygamma.py_func(n, x), want, rtol=1e-10)


def test_complex_numbers_are_refused_by_name():
    @fnad.njit
    def energy(z):
        s = 0.0
        for i in range(z.size):
            s += (z[i] * np.conj(z[i])).real
        return s

    with pytest.raises(UnsupportedError, match="complex"):
        fnad.grad(energy)(np.array([1 + 2j, 3.0]))
