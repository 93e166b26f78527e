"""The audit of primitives catches every kind of wrong rule, and says which rule it is."""

from __future__ import annotations

import numpy as np
import pytest

from fnad.core.aval import Aval, result_dtype, shape_of
from fnad.core.primitive import REGISTRY, Primitive
from fnad.errors import GradientError, MissingRuleError
from fnad.primitives._families import align, unbroadcast
from fnad.testing import check_primitive
from fnad.testing.audit import foretells

RNG = np.random.default_rng(2)
X, Y = RNG.uniform(1.0, 2.0, (2, 3)), RNG.uniform(1.0, 2.0, 3)


class Product(Primitive):
    """x * y, with every rule spelled out and right."""

    def __init__(self):
        super().__init__("product", register=False)

    def infer(self, x, y):
        shape = np.broadcast_shapes(x.shape, y.shape)
        return Aval(shape, result_dtype(x, y), x.weak and y.weak)

    def impl(self, x, y):
        return x * y

    def vjp(self, out, x, y):
        return (lambda g: unbroadcast(g * y, shape_of(x)), lambda g: unbroadcast(g * x, shape_of(y)))

    def jvp(self, out, args, tangents):
        (x, y), (tx, ty) = args, tangents
        return (0 * out if tx is None else tx * y) + (0 if ty is None else x * ty)

    def batch(self, args, batched):
        return self(*align(args, batched))


def broken(**rules):
    return type("Broken", (Product,), rules)()


def report(primitive, *args, **options):
    with pytest.raises(GradientError) as caught:
        check_primitive(primitive, args, **options)
    return caught.value


def test_right_rules_pass():
    for args in ((X, Y), (X[0], Y), (np.array(0.5), Y), (np.array(0.5), np.array(2.0)), (0.5, Y), (X[:0], Y), (X[:, :1], Y[:1])):
        check_primitive(Product(), args)


def test_wrong_shape_from_infer():
    error = report(broken(infer=lambda self, x, y: Aval(x.shape[1:], x.dtype)), X, Y)
    assert error.rule == "audit of product: infer must foretell what impl returns"
    assert (str(error.got["infer"]), str(error.got["impl"])) == ("float64[3]", "float64[2,3]")
    assert "Broken.infer" in error.fix


def test_wrong_dtype_from_infer_for_single_precision():
    error = report(broken(infer=lambda self, x, y: Aval(np.broadcast_shapes(x.shape, y.shape), np.dtype(float))), X, Y)
    assert error.rule.endswith("for float32")


def test_wrong_weakness_from_infer():
    error = report(broken(infer=lambda self, x, y: Aval((), np.dtype(float))), 2.0, 3.0)
    assert (str(error.got["infer"]), str(error.got["impl"])) == ("float64[]", "float64[]~")
    error = report(
        broken(infer=lambda self, x, y: Aval(np.broadcast_shapes(x.shape, y.shape), result_dtype(x, y))), np.array(2.0), np.array(3.0)
    )
    assert "Python scalars as arguments [0, 1]" in error.rule


def test_upcast_of_a_value():
    error = report(broken(impl=lambda self, x, y: x * y * np.ones(3)), X, Y)
    assert error.rule.endswith("for float32")
    assert str(error.got["impl"]) == "float64[2,3]"


def test_upcast_in_a_rule():
    def vjp(self, out, x, y):
        return (lambda g: unbroadcast(g * y, shape_of(x)), lambda g: unbroadcast(g * x * np.float64(1), shape_of(y)))

    error = report(broken(vjp=vjp), X, Y)
    assert error.rule == "audit of product: vjp computes in float64 for float32"
    assert error.got == {"at": "argument 1"}
    error = report(broken(jvp=lambda self, out, args, ts: np.multiply(Product.jvp(self, out, args, ts), np.float64(1))), X, Y)
    assert error.rule == "audit of product: jvp computes in float64 for float32"


def test_wrong_vjp():
    def vjp(self, out, x, y):
        return (lambda g: unbroadcast(g * y, shape_of(x)), lambda g: unbroadcast(g * x * 0.5, shape_of(y)))

    error = report(broken(vjp=vjp), X, Y)
    assert error.rule == "audit of product: reverse mode disagrees with central differences"
    assert error.got["at"].startswith("argument 1[")


def test_forgotten_broadcasting_in_a_vjp():
    error = report(broken(vjp=lambda self, out, x, y: (lambda g: g * y, lambda g: g * x)), X, Y)
    assert error.got["at"] == "argument 1"
    assert "float64[2,3]" in str(error.got["reverse mode"])


def test_wrong_jvp():
    error = report(broken(jvp=lambda self, out, args, tangents: 0 * out if tangents[0] is None else tangents[0] * args[1]), X, Y)
    assert error.rule == "audit of product: forward mode disagrees with central differences"
    assert error.got["in the direction of"].startswith("argument 1[")


def test_wrong_batch_for_one_choice_of_batched_arguments():
    """Right if both are batched; wrong if only the second is, for then the batch axis meets the first one's own axis."""
    error = report(broken(batch=lambda self, args, batched: self(*args) if batched[0] else self(args[0], args[1][::-1])), X[0], Y)
    assert error.rule == "audit of product: vmap of the value disagrees with a loop"
    assert error.got["in_axes"] == (None, 0)
    assert error.got["at"].startswith("output[")


def test_wrong_batch_for_different_ranks():
    with pytest.raises((GradientError, ValueError)):
        check_primitive(broken(batch=lambda self, args, batched: self(*args)), (X, Y))


def test_batch_rule_that_does_not_differentiate():
    def batch(self, args, batched):
        plain = [a.value if hasattr(a, "value") else a for a in args]
        return self(*align([plain[0], args[1]], batched))

    error = report(broken(batch=batch), X, Y)
    assert error.rule.startswith("audit of product under vmap")


def test_pullback_that_does_not_batch():
    def vjp(self, out, x, y):
        return (lambda g: unbroadcast(g * y, shape_of(x)), lambda g: unbroadcast(g * np.asarray(x), shape_of(y)))

    with pytest.raises(TypeError, match="cannot become"):
        check_primitive(broken(vjp=vjp), (X, Y), order=1)


def test_rule_that_writes_into_an_argument():
    def impl(self, x, y):
        x *= y
        return x

    with pytest.raises(ValueError, match="read-only"):
        check_primitive(broken(impl=impl), (X.copy(), X))


def test_pullback_that_writes_into_an_argument():
    def vjp(self, out, x, y):
        def by_x(g):
            if isinstance(y, np.ndarray):
                y[...] += 1
            return unbroadcast(g * y, shape_of(x))

        return by_x, lambda g: unbroadcast(g * x, shape_of(y))

    error = report(broken(vjp=vjp), X.copy(), Y.copy())
    assert error.rule == "audit of product: the pullback's answers differ"


def test_rule_that_depends_on_the_memory_layout():
    error = report(
        broken(impl=lambda self, x, y: np.ravel(x, order="K").reshape(x.shape) * y if isinstance(x, np.ndarray) else x * y), X, Y
    )
    assert "with argument 0 in Fortran order, the value differ" in error.rule


def test_parameters_must_be_hashable():
    class Sum(Primitive):
        def impl(self, x, *, axis):
            return np.add.reduce(x, axis=tuple(axis))

    assert "hashable" in report(Sum("sum of list", register=False), X, params={"axis": [0]}).rule


def test_recording_that_differs():
    """A rule that looks at the values of plain arrays records what it saw."""

    def vjp(self, out, x, y):
        sign = 1.0 if not isinstance(out, np.ndarray) else 2.0
        return (lambda g: unbroadcast(g * y * sign, shape_of(x)), lambda g: unbroadcast(g * x, shape_of(y)))

    with pytest.raises(GradientError):
        check_primitive(broken(vjp=vjp), (X, Y))


def test_missing_rule_is_named():
    with pytest.raises(MissingRuleError, match="no batch rule"):
        check_primitive(broken(batch=Primitive.batch), (X, Y))


def test_constant_that_is_not():
    class Double(Product):
        constant = True

    assert "central differences" in report(Double(), X, Y).rule


def test_restricted_arguments():
    """A Cholesky factor needs a symmetric positive matrix: `through` makes one of any."""
    make = lambda a: (np.matmul(a, np.swapaxes(a, -1, -2)) * 0.1 + 0.5,)
    check_primitive(REGISTRY["log"], (X,), through=make)


def test_special_points_are_compared_where_there_is_a_slope():
    check_primitive(REGISTRY["absolute"], (np.array([0.0, 1.0]),), smooth=False)
    check_primitive(REGISTRY["sqrt"], (np.array([0.0, 1.0]),), smooth=False)
    check_primitive(REGISTRY["sign"], (np.array([0.0, 1.0]),), smooth=False)
    report(
        broken(vjp=lambda self, out, x, y: (lambda g: g * 0.0, lambda g: g * x)), np.array([0.0, 1.0]), np.array([2.0, 3.0]), smooth=False
    )


def test_foretells_is_silent_about_what_numpy_refuses():
    foretells(REGISTRY["tanh"], np.ones(2, np.float32))
    foretells(REGISTRY["subtract"], np.array(True), np.array(True))
    with pytest.raises(GradientError, match="infer must foretell"):
        foretells(broken(infer=lambda self, x, y: Aval((), np.dtype(float))), np.array(1), np.array(2))
