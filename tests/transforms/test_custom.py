"""custom_vjp and custom_jvp under every transform."""

import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentError, ClosureError, InPlaceError, ShapeError, TreeError

XS = np.array([0.3, -1.2, 2.0])


def by_vjp(scale=10.0):
    @fnad.custom_vjp
    def f(x, y):
        return np.sin(x) * y

    f.defvjp(
        lambda x, y: (np.sin(x) * y, (x, y)),
        lambda r, g: (scale * g * np.cos(r[0]) * r[1], scale * g * np.sin(r[0])),
    )
    return f


def by_jvp(scale=10.0):
    @fnad.custom_jvp
    def f(x, y):
        return np.sin(x) * y

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        return np.sin(x) * y, scale * (tx * np.cos(x) * y + ty * np.sin(x))

    return f


both = pytest.mark.parametrize("f", [by_vjp(), by_jvp()], ids=["custom_vjp", "custom_jvp"])


@both
def test_plain_call_is_the_function(f):
    assert f(1.0, 2.0) == np.sin(1.0) * 2.0
    assert f(1.0, y=2.0) == np.sin(1.0) * 2.0


@both
def test_gradient_is_the_stated_one(f):
    gx, gy = fnad.grad(f, (0, 1))(1.0, 2.0)
    np.testing.assert_allclose([gx, gy], [20 * np.cos(1.0), 10 * np.sin(1.0)])
    np.testing.assert_allclose(fnad.grad(lambda y: f(1.0, y=y))(2.0), 10 * np.sin(1.0))


@both
def test_forward_mode_and_duality(f):
    _, t = fnad.jvp(f, (1.0, 2.0), (0.5, 0.25))
    np.testing.assert_allclose(t, 0.5 * 20 * np.cos(1.0) + 0.25 * 10 * np.sin(1.0))
    np.testing.assert_allclose(fnad.linearize(f, 1.0, 2.0)[1](0.5, 0.25), t)


@both
def test_vmap_in_both_orders(f):
    want = 20 * np.cos(XS)
    np.testing.assert_allclose(fnad.vmap(fnad.grad(f), (0, None))(XS, 2.0), want)
    total = lambda x, y: np.sum(fnad.vmap(f, (0, None))(x, y))
    gx, gy = fnad.grad(total, (0, 1))(XS, 2.0)
    np.testing.assert_allclose(gx, want)
    np.testing.assert_allclose(gy, 10 * np.sum(np.sin(XS)))
    np.testing.assert_allclose(fnad.jvp(lambda x: fnad.vmap(f, (0, None))(x, 2.0), (XS,), (np.ones(3),))[1], want)


@both
def test_second_order_differentiates_the_rule(f):
    # for custom_vjp the derivative of 10 g cos(x) y by x; for custom_jvp the same
    np.testing.assert_allclose(fnad.grad(fnad.grad(f))(1.0, 2.0), -20 * np.sin(1.0))
    np.testing.assert_allclose(fnad.hessian(f)(1.0, 2.0), -20 * np.sin(1.0))


@both
def test_recorded_function_keeps_its_rule(f):
    graph = fnad.make_graph(lambda x: f(x, 2.0))(1.0)
    assert "custom_" in str(graph)
    from fnad.core.graph import evaluate

    np.testing.assert_allclose(fnad.grad(lambda x: evaluate(graph, [x])[0])(1.0), 20 * np.cos(1.0))


def test_pytrees_static_arguments_and_none():
    from functools import partial

    @partial(fnad.custom_vjp, nondiff_argnums=(0, 2))
    def f(name, p, power):
        return {"out": p["a"] ** power * p["b"][0]}

    def fwd(name, p, power):
        assert name == "tag"
        return f(name, p, power), p

    def bwd(name, power, p, g):
        assert (name, power) == ("tag", 3)
        return ({"a": g["out"] * 7.0, "b": [None]},) if False else ({"a": g["out"] * 7.0, "b": [g["out"] * 0.0]},)

    f.defvjp(fwd, bwd)
    grads = fnad.grad(lambda p: f("tag", p, 3)["out"])({"a": 2.0, "b": [4.0]})
    assert grads == {"a": 7.0, "b": [0.0]}


def test_none_cotangent_is_zero():
    @fnad.custom_vjp
    def f(x, y):
        return x * y

    f.defvjp(lambda x, y: (x * y, None), lambda _, g: (g, None))
    assert fnad.grad(f, (0, 1))(2.0, 3.0) == (1.0, 0.0)


def test_integer_argument_needs_no_cotangent():
    @fnad.custom_vjp
    def f(x, n):
        return x * n

    f.defvjp(lambda x, n: (x * n, n), lambda n, g: (g * n, None))
    assert fnad.grad(f)(2.0, 3) == 3.0
    np.testing.assert_allclose(fnad.vmap(fnad.grad(f))(XS, np.arange(3)), [0.0, 1.0, 2.0])


def test_residuals_may_be_static_under_vmap():
    @fnad.custom_vjp
    def f(x):
        return np.sum(x)

    f.defvjp(lambda x: (np.sum(x), np.shape(x)), lambda shape, g: (np.broadcast_to(g, shape),))
    np.testing.assert_array_equal(fnad.vmap(fnad.grad(f))(np.ones((2, 3))), np.ones((2, 3)))


def test_method_binding():
    class Model:
        scale = 3.0

        @fnad.custom_vjp
        def f(self, x):
            return self.scale * x

        f.defvjp(lambda self, x: (self.scale * x, None), lambda _, g: (None, g * 100.0))

    assert fnad.grad(Model().f)(1.0) == 100.0


def test_mistakes_are_named():
    @fnad.custom_vjp
    def f(x):
        return x

    with pytest.raises(ArgumentError, match="defvjp"):
        fnad.grad(f)(1.0)
    f.defvjp(lambda x: (x, None), lambda _, g: g)
    with pytest.raises(ArgumentError, match="one cotangent per"):
        fnad.grad(f)(1.0)
    f.defvjp(lambda x: (x, None), lambda _, g: (np.ones(3),))
    with pytest.raises(ShapeError, match="argument 0"):
        fnad.grad(f)(1.0)
    f.defvjp(lambda x: (x, None), lambda _, g: ({"a": g},))
    with pytest.raises(TreeError, match="argument 0"):
        fnad.grad(f)(1.0)
    f.defvjp(lambda x: x, lambda _, g: (g,))
    with pytest.raises(ArgumentError, match="residuals"):
        fnad.grad(f)(1.0)

    @fnad.custom_jvp
    def h(x):
        return x

    with pytest.raises(ArgumentError, match="defjvp"):
        fnad.jvp(h, (1.0,), (1.0,))
    h.defjvp(lambda p, t: p[0])
    with pytest.raises(ArgumentError, match="tangent"):
        fnad.jvp(h, (1.0,), (1.0,))
    h.defjvp(lambda p, t: (p[0], np.ones(2)))
    with pytest.raises(ShapeError, match="tangent"):
        fnad.jvp(h, (1.0,), (1.0,))


@pytest.mark.parametrize("kind", ["grad", "jvp", "vmap"])
def test_closing_over_a_traced_value_is_an_error(kind):
    def outer(x):
        @fnad.custom_vjp
        def f(y):
            return x * y

        f.defvjp(lambda y: (x * y, None), lambda _, g: (g * x,))
        return f(x * 1.0)

    run = {
        "grad": lambda: fnad.grad(outer)(2.0),
        "jvp": lambda: fnad.jvp(outer, (2.0,), (1.0,)),
        "vmap": lambda: fnad.vmap(outer)(XS),
    }[kind]
    with pytest.raises(ClosureError, match="argument"):
        run()


def test_each_of_several_results_is_pulled_back():
    @fnad.custom_vjp
    def both(x):
        return np.sin(x), 2.0 * np.cos(x)

    both.defvjp(lambda x: (both(x), x), lambda x, g: (g[0] * np.cos(x) - 2.0 * g[1] * np.sin(x),))
    for pick, want in ((lambda a, b: a, np.cos(1.0)), (lambda a, b: b, -2.0 * np.sin(1.0)), (lambda a, b: a * b, 2.0 * np.cos(2.0))):
        np.testing.assert_allclose(fnad.grad(lambda x, pick=pick: pick(*both(x)))(1.0), want, rtol=1e-14)
        pullback = fnad.vjp(lambda x, pick=pick: pick(*both(x)), 1.0)[1]
        assert pullback(1.0) == pullback(1.0)


def test_a_rule_that_is_not_linear_is_an_error():
    @fnad.custom_jvp
    def clip(x):
        return x

    clip.defjvp(lambda p, t: (p[0], np.clip(t[0], -1, 1)))
    with pytest.raises(ArgumentError, match="linear"):
        fnad.grad(lambda x: 100 * clip(x))(1.0)
    clip.defjvp(lambda p, t: (p[0], t[0] ** 2))
    with pytest.raises(ArgumentError, match="custom_vjp"):
        fnad.grad(clip)(1.0)


@pytest.mark.parametrize("n", [3, 100_000])
def test_a_rule_that_changes_its_argument_is_an_error(n):
    @fnad.custom_vjp
    def centre(a):
        return a - np.mean(a)

    def fwd(a):
        a -= a.mean()
        return a * 1.0, None

    centre.defvjp(fwd, lambda _, g: (g - np.mean(g),))
    with pytest.raises(InPlaceError, match="new array"):
        fnad.grad(lambda x: np.sum(centre(x * 2) ** 2))(np.arange(float(n)))
