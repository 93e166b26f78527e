"""check_grads and check_vmap: they pass right derivatives, and name the place of a wrong one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fnad
from fnad.core.primitive import Primitive
from fnad.errors import ArgumentError, DTypeError, GradientError
from fnad.primitives._families import Elementwise
from fnad.testing import check_grads, check_vmap

RNG = np.random.default_rng(1)


def report(check, *args, **options):
    with pytest.raises(GradientError) as caught:
        check(*args, **options)
    return caught.value


def wrong(**rules):
    """An unregistered `x * y` with some of its rules replaced."""

    class Product(Elementwise):
        def __init__(self):
            Primitive.__init__(self, "product", register=False)
            self.function, self._compute = np.multiply, np.multiply
            self.slopes, self._reads = (lambda y: y, lambda x: x), [(1,), (0,)]

    for name, rule in rules.items():
        setattr(Product, name, rule)
    return Product()


def vjp_with(change_x=lambda g: g, change_y=lambda g: g):
    return lambda self, out, x, y: (lambda g: change_x(g * y), lambda g: change_y(g * x))


def jvp_with(change):
    return lambda self, out, args, tangents: change(
        (0 if tangents[0] is None else tangents[0] * args[1]) + (0 if tangents[1] is None else args[0] * tangents[1])
    )


def spoil(factors):
    return lambda g: g * factors


# -- right derivatives pass -------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Layer:
    w: np.ndarray
    b: np.ndarray


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.complex64])
def test_right_derivatives_pass(dtype):
    x, w = (RNG.standard_normal((2, 3)).astype(dtype), RNG.standard_normal((3, 2)).astype(dtype))
    check_grads(lambda x, w: np.tanh(x @ w) * 0.5, (x, w))


def test_pytrees_in_and_out():
    layer = Layer(RNG.standard_normal((3, 2)), RNG.standard_normal(2))
    check_grads(lambda p, x: {"y": np.tanh(x @ p["l"].w + p["l"].b), "s": (np.sum(x), None)}, ({"l": layer}, RNG.standard_normal((4, 3))))


def test_python_and_numpy_scalars():
    check_grads(lambda x, y: np.sin(x) * y, (0.3, np.float64(2.0)))
    check_grads(lambda x, y: np.sin(x) * y, (np.float32(0.3), 2.0))


def test_outputs_that_are_not_floating_point_are_passed_over():
    check_grads(lambda x: (x * x, np.arange(3), 7), (np.ones(3),))
    check_grads(lambda x: np.arange(3), (np.ones(3),))


def test_empty_arrays_and_constants():
    check_grads(lambda x: x * 2.0, (np.zeros((0, 3)),))
    check_grads(lambda x: np.ones(3), (np.ones(2),))


def test_many_entries_are_checked_in_directions():
    check_grads(lambda x: np.tanh(x) * np.sum(x), (RNG.standard_normal((20, 10)),), order=1)


def test_large_and_small_magnitudes():
    check_grads(lambda x: np.sqrt(x), (np.array([1e6, 1.0, 1e3]),))
    check_grads(lambda x: x * x, (np.array([1e8, 3.0]),))


def test_third_order_and_single_modes():
    check_grads(np.tanh, (np.array([0.3, 0.5]),), order=3)
    for modes in (("fwd",), ("rev",), "fwd", ["rev"]):
        check_grads(np.tanh, (np.array([0.3, 0.5]),), 2, modes)


def test_argument_order_is_that_of_jax():
    check_grads(np.tanh, (np.array([0.3]),), 2, ("fwd", "rev"), 1e-6, 1e-6, 1e-6)


# -- wrong derivatives are caught and located -------------------------------------------------------------------------

X, Y = RNG.uniform(1.0, 2.0, (2, 3)), RNG.uniform(1.0, 2.0, (2, 3))
ONE_WRONG = np.where(np.arange(6).reshape(2, 3) == 4, 1.01, 1.0)


def test_wrong_factor_in_a_vjp():
    f = wrong(vjp=vjp_with(change_y=spoil(2.0)))
    error = report(check_grads, lambda p, x: f(x, p["w"]), ({"w": Y}, X))
    assert error.rule == "check_grads: reverse mode disagrees with central differences"
    assert error.got["order"] == "1 (reverse mode)"
    assert error.got["at"].startswith("argument 0['w'][")
    assert float(error.got["reverse mode"]) == pytest.approx(2 * float(error.got["central differences"]))
    assert error.got["relative error"] == "1 (rtol 1e-06)"
    assert "atol" in error.got["absolute error"]
    assert error.got["entries outside the tolerances"] == "6 of 6"


def test_one_wrong_entry_of_a_vjp_is_named():
    f = wrong(vjp=vjp_with(change_x=spoil(ONE_WRONG)))
    error = report(check_grads, f, (X, Y))
    assert error.got["at"] == "argument 0[1, 1]"
    assert error.got["entries outside the tolerances"] == "1 of 6"


def test_one_wrong_entry_among_many_is_found_by_bisection():
    big = RNG.uniform(1.0, 2.0, (40, 30))
    factors = np.ones((40, 30))
    factors[17, 23] = 1.5
    f = wrong(vjp=vjp_with(change_y=spoil(factors)))
    assert report(check_grads, lambda x, p: f(x, p["w"]), (big, {"w": big + 1})).got["at"] == "argument 1['w'][17, 23]"


def test_wrong_factor_in_a_jvp():
    f = wrong(jvp=jvp_with(lambda t: -t))
    error = report(check_grads, lambda x, y: {"out": [f(x, y)]}, (X, Y))
    assert error.rule == "check_grads: forward mode disagrees with central differences"
    assert error.got["order"] == "1 (forward mode)"
    assert error.got["at"].startswith("output['out'][0][")
    assert error.got["in the direction of"].startswith("argument ")


def test_one_wrong_entry_of_a_jvp_is_named_with_the_argument():
    def jvp(self, out, args, tangents):
        total = 0 if tangents[0] is None else tangents[0] * args[1]
        return total if tangents[1] is None else total + args[0] * tangents[1] * ONE_WRONG

    error = report(check_grads, wrong(jvp=jvp), (X, Y))
    assert error.got["at"] == "output[1, 1]"
    assert error.got["in the direction of"] == "argument 1[1, 1]"


def test_wrong_second_derivative():
    """The first derivative is right, but is computed from a value that hides its dependence on y."""
    f = wrong(vjp=lambda self, out, x, y: (lambda g: g * fnad_constant(y), lambda g: g * x))
    error = report(check_grads, f, (X, Y), modes=("rev",))
    assert error.got["order"] == "2 (reverse mode of reverse mode)"
    assert error.got["at"].startswith("argument 1[")


def fnad_constant(y):
    while hasattr(y, "value"):
        y = y.value
    return y


def test_modes_that_disagree_within_the_numeric_tolerance():
    f = wrong(jvp=jvp_with(lambda t: t * (1 + 1e-8)))
    error = report(check_grads, f, (X, Y))
    assert error.rule == "check_grads: forward mode disagrees with reverse mode"
    assert "rtol 1e-10" in error.got["relative error"]


def test_upcast_of_a_gradient_cannot_reach_the_user():
    """The tape casts to the dtype of the argument, so that a pullback that upcasts is right, if wasteful."""
    f = wrong(vjp=vjp_with(change_x=lambda g: g * np.ones(3)))
    check_grads(f, (X.astype(np.float32), Y.astype(np.float32)), order=1)


def test_wrong_shape_of_a_gradient():
    f = wrong(vjp=lambda self, out, x, y: (lambda g: np.sum(g * y), lambda g: g * x))
    error = report(check_grads, f, (X, Y), order=1, modes=("rev",))
    assert "shape" in error.rule
    assert error.got["at"] == "argument 0"


def test_nan_in_a_derivative():
    f = wrong(vjp=vjp_with(change_x=spoil(np.where(ONE_WRONG > 1, np.nan, 1.0))))
    error = report(check_grads, f, (X, Y))
    assert error.got["at"] == "argument 0[1, 1]"
    assert error.got["reverse mode"] == "nan"


def test_kink_is_reported_with_a_hint():
    error = report(check_grads, lambda x: np.sqrt(x * x), (np.array([1.0, 1e-9]),))
    assert "kink" in error.fix


def test_edge_of_the_domain_is_reported_as_such():
    error = report(check_grads, np.log, (np.array([1.0, 1e-9]),))
    assert "edge of the domain" in error.fix


def test_single_precision_errors_are_caught_too():
    f = wrong(vjp=vjp_with(change_y=spoil(np.float32(1.05))))
    error = report(check_grads, f, (X.astype(np.float32), Y.astype(np.float32)))
    assert error.got["at"].startswith("argument 1[")
    assert "0.001" in error.got["relative error"]


def test_wrong_complex_conjugate():
    f = wrong(vjp=lambda self, out, x, y: (lambda g: np.conj(g) * y, lambda g: g * x))
    error = report(check_grads, f, (X + 1j * Y, Y - 1j * X), order=1)
    assert error.got["at"].startswith("argument 0[")


def test_tolerances_and_eps_can_be_given():
    f = wrong(vjp=vjp_with(change_y=spoil(1.001)))
    check_grads(f, (X, Y), order=1, atol=1e-2, rtol=1e-2)
    assert "atol 1e-09" in report(check_grads, f, (X, Y), atol=1e-9, eps=1e-4).got["absolute error"]


def test_mistakes_in_the_call():
    with pytest.raises(DTypeError, match=r"argument 0\['i'\]"):
        check_grads(lambda p: p["x"] * 1.0, ({"x": X, "i": np.arange(3)},))
    with pytest.raises(ArgumentError, match="modes"):
        check_grads(np.tanh, (X,), modes=("reverse",))
    with pytest.raises(ArgumentError, match="tuple"):
        check_grads(np.tanh, X)
    with pytest.raises(ArgumentError, match="tuple"):
        check_vmap(np.tanh, X)


# -- vmap -------------------------------------------------------------------------------------------------------------


def test_right_vmap_passes():
    x, w = RNG.standard_normal((4, 3)), RNG.standard_normal((3, 2))
    check_vmap(lambda x, w: np.tanh(x @ w), (x[:, None], w), in_axes=(0, None))
    check_vmap(lambda p, y: {"a": p["x"] * y, "b": (y + 1.0,)}, ({"x": x}, x.T), in_axes=(0, 1), out_axes={"a": 1, "b": 0})
    check_vmap(lambda x: np.ones(2), (x,))
    check_vmap(lambda x: x * 2, (np.zeros((0, 3)),))


def test_wrong_vmap_rule_is_located():
    f = wrong(batch=lambda self, args, batched: np.flip(args[0] * args[1], 1))
    error = report(check_vmap, lambda x, y: {"out": f(x, y)}, (X, Y))
    assert error.rule == "check_vmap: vmap disagrees with a loop"
    assert error.got["at"].startswith("output['out'][")
    assert error.got["example"] in "01"
    assert {"vmap", "loop", "absolute error", "relative error"} <= set(error.got)


def test_wrong_vmap_shape_and_dtype():
    f = wrong(batch=lambda self, args, batched: (args[0] * args[1]).astype(np.float32))
    assert report(check_vmap, f, (X, Y)).got["vmap"] == "float32[2, 3]"
    f = wrong(batch=lambda self, args, batched: np.sum(args[0] * args[1], axis=1))
    assert report(check_vmap, f, (X, Y)).got["vmap"] == "float64[2]"


def test_example_number_follows_out_axes():
    f = wrong(batch=lambda self, args, batched: args[0] * args[1] * np.array([1.0, 3.0])[:, None])
    error = report(check_vmap, f, (X, Y), out_axes=1)
    assert error.got["example"] == "1"
    assert error.got["at"].endswith(", 1]")


def test_a_custom_rule_with_another_value_is_caught():
    f = fnad.custom_vjp(lambda x: x**2)
    f.defvjp(lambda x: (np.sin(x), x), lambda x, g: (2 * x * g,))
    with pytest.raises(GradientError, match="values under vjp"):
        check_grads(f, (np.array([0.3, 1.2]),), order=1, modes="rev")
