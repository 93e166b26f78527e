"""debug_nans names the operation, the entry and the line that made the first nan or inf, wherever it runs."""

import inspect

import numpy as np
import pytest

import fnad
from fnad.errors import NonFiniteError

X = np.array([1.0, 0.0, 4.0])


@pytest.fixture(autouse=True)
def debugging():
    with np.errstate(all="ignore"), fnad.config(debug_nans=True):
        yield


def logs(x):
    y = x * 2
    z = np.log(y)  # the forward pass
    return np.sum(z * 3)


def roots(x):
    y = x * 2
    z = np.sqrt(y)  # the backward pass
    return np.sum(z * 3)


def line_of(f, comment):
    lines, first = inspect.getsourcelines(f)
    return first + next(k for k, text in enumerate(lines) if comment in text)


def blamed(call):
    with pytest.raises(NonFiniteError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    "wrap", [fnad.grad, lambda f: fnad.jit(f), lambda f: fnad.jit(fnad.value_and_grad(f)), lambda f: fnad.grad(fnad.jit(f))]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_forward_pass(wrap, dtype):
    error = blamed(lambda: wrap(logs)(X.astype(dtype)))
    assert error.rule == "log made an inf from finite numbers"
    assert error.got["first of them"] == "result[1] = -inf"
    assert error.got["arguments"] == f"{np.dtype(dtype)}[3]"
    assert error.got["arguments there"] == "0.0"
    assert f"{__file__}:{line_of(logs, 'the forward pass')} in logs" in str(error)
    assert isinstance(error, FloatingPointError)


@pytest.mark.parametrize("wrap", [fnad.grad, lambda f: fnad.jit(fnad.grad(f)), lambda f: fnad.grad(fnad.jit(f))])
def test_backward_pass_has_the_line_of_the_forward_operation(wrap):
    error = blamed(lambda: wrap(roots)(X))
    assert "backward pass of sqrt" in error.rule
    assert "result[1] = inf" in error.got["first of them"]
    assert f"{__file__}:{line_of(roots, 'the backward pass')} in roots" in str(error)


def test_forward_mode():
    error = blamed(lambda: fnad.jvp(roots, (X,), (np.ones(3),)))
    assert error.rule == "the tangent of sqrt made an inf from finite numbers"
    assert f":{line_of(roots, 'the backward pass')} in roots" in str(error)


@fnad.custom_vjp
def wrong(x):
    return x * 2.0


wrong.defvjp(lambda x: (x * 2.0, x), lambda x, g: (g / x,))


@pytest.mark.parametrize("wrap", [lambda f: f, fnad.jit])
def test_rules_of_the_user(wrap):
    assert "backward pass of" in blamed(lambda: wrap(fnad.grad(lambda x: np.sum(wrong(x))))(X)).rule


def test_forward_mode_through_a_pullback():
    """max and prod state no forward rule."""
    value, tangent = fnad.jvp(lambda x: np.max(x) * np.prod(x + 1), (X,), (np.ones(3),))
    assert (value, tangent) == (40.0, 10.0 + 4 * 17)
    assert blamed(lambda: fnad.jvp(np.prod, (np.array([1e200, 1e200]),), (np.ones(2),))).rule == "prod made an inf from finite numbers"


@pytest.mark.parametrize("wrap", [lambda f: f, fnad.jit])
def test_a_slope_that_meets_a_zero_cotangent_is_not_to_blame(wrap):
    f = lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0))
    np.testing.assert_allclose(wrap(fnad.grad(f))(X), [0.5, 0, 0.25])
    np.testing.assert_allclose(np.diag(wrap(fnad.hessian(f))(X)), [-0.25, 0, -0.03125])


def test_nan_from_infinities():
    error = blamed(lambda: fnad.vjp(lambda x: x - np.inf, np.array([np.inf])))
    assert error.rule == "subtract made a nan from infinities"


@pytest.mark.parametrize("wrap", [fnad.grad, lambda f: fnad.jit(fnad.grad(f))])
def test_what_is_not_finite_to_begin_with_passes(wrap):
    masked = np.where(np.array([True, False, True]), 0.0, -np.inf)
    grad = wrap(lambda x: np.max(np.where(masked == 0, x, masked)))(X)
    np.testing.assert_array_equal(grad, [0, 0, 1])
    assert np.isnan(wrap(np.sum)(np.array([np.nan, 1.0]))).sum() == 0
    assert np.isnan(fnad.jit(np.sum)(np.array([np.nan, 1.0])))


def shrinking(c, t):
    c = np.sqrt(c * t)  # in the body
    return c, c


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (lambda: fnad.jit(lambda x: fnad.scan(lambda c, _: (np.log(c), c), x, np.arange(5.0))[0])(3.0), "step 3 of scan"),
        (lambda: fnad.grad(lambda x: fnad.scan(lambda c, _: (np.log(c), c), x, np.arange(5.0))[0])(3.0), "step 3 of scan"),
        (lambda: fnad.jit(fnad.grad(lambda x: np.sum(fnad.scan(shrinking, x, np.arange(5.0)[::-1])[1])))(3.0), "step 4 of scan"),
        (lambda: fnad.jit(lambda x: fnad.while_loop(lambda x: x > -10, np.log, x))(2.0), "step 2 of while_loop"),
        (lambda: fnad.grad(lambda x: fnad.while_loop(lambda x: x > -10, np.log, x, max_steps=5))(2.0), "step 2 of while_loop"),
        (
            lambda: fnad.jit(lambda x: fnad.fori_loop(0, 3, lambda i, v: fnad.fori_loop(0, 3, lambda j, u: np.log(u), v), x))(3.0),
            "step 1 of scan, step 0 of scan",
        ),
    ],
)
def test_steps_of_loops(call, where):
    error = blamed(call)
    assert error.got["in"] == where
    assert __file__ in str(error.got["at"])


def test_line_in_the_body_of_a_loop():
    error = blamed(lambda: fnad.jit(fnad.grad(lambda x: np.sum(fnad.scan(shrinking, x, np.arange(5.0)[::-1])[1])))(3.0))
    assert f":{line_of(shrinking, 'in the body')} in shrinking" in str(error)
    assert "in the backward pass of sqrt" in error.rule


def test_branches_and_checkpoint_and_batches():
    assert blamed(lambda: fnad.jit(lambda x: fnad.cond(x > 0, np.exp, np.log, x))(0.0)).rule.startswith("log ")
    assert blamed(lambda: fnad.grad(fnad.checkpoint(logs))(X)).rule.startswith("log ")
    assert blamed(lambda: fnad.jit(fnad.value_and_grad(fnad.checkpoint(logs)))(X)).rule.startswith("log ")
    assert "at" in blamed(lambda: fnad.vmap(np.log)(X)).got
    assert blamed(lambda: fnad.jit(fnad.vmap(fnad.grad(np.log)))(X)).got["arguments"]


def test_matrix_product_names_shapes_and_entry():
    a = np.full((2, 3), 1e200)
    error = blamed(lambda: fnad.jit(lambda a: a @ a.T)(a))
    assert error.rule.startswith("matmul")
    assert error.got["result"] == "float64[2,2], 4 of 4 entries"
    assert error.got["first of them"] == "result[0, 0] = inf"
    assert error.got["arguments"] == "float64[2,3], float64[3,2]"


def test_donated_arguments_are_there_to_look_again():
    step = fnad.jit(lambda x: np.log(x) * 2, donate_argnums=0)
    error = blamed(lambda: step(X.copy()))
    assert error.got["arguments there"] == "0.0"


def test_off_again_it_raises_nothing_and_the_program_is_the_same():
    f = fnad.jit(logs)
    compiled = fnad.cache_info().compiled
    with fnad.config(debug_nans=False):
        assert f(X) == -np.inf
    compiled = fnad.cache_info().compiled
    blamed(lambda: f(X))
    assert fnad.cache_info().compiled == compiled
