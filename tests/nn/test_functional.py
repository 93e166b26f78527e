"""`fnad.nn.functional`: PyTorch's values and gradients, its special points, and every transform on them."""

import json
import pathlib

import numpy as np
import pytest

import fnad
from fnad.compiler.pipeline import Executable
from fnad.compiler.program import Host
from fnad.compiler.simplify import simplify
from fnad.errors import ArgumentError, BoundsError, DTypeError, ShapeError
from fnad.nn import functional as F
from fnad.testing import assert_trees_close, check_grads, check_vmap

CASES = json.loads((pathlib.Path(__file__).parent / "functional_torch.json").read_text())["cases"]
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 4))
IMAGES = RNG.normal(size=(2, 4, 6, 7))
FILTERS, GROUPED = RNG.normal(size=(6, 4, 3, 2)), RNG.normal(size=(6, 2, 3, 2))
FUNCTIONS = {
    "relu": (F.relu, X),
    "sigmoid": (F.sigmoid, X),
    "tanh": (F.tanh, X),
    "gelu": (F.gelu, X),
    "gelu by tanh": (lambda x: F.gelu(x, "tanh"), X),
    "silu": (F.silu, X),
    "softplus": (F.softplus, X),
    "softmax": (lambda x: F.softmax(x, 1), X),
    "log_softmax": (lambda x: F.log_softmax(x, -1), X),
    "logsumexp": (lambda x: F.logsumexp(x, (0, 2)), X),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (3, 4), w, b), X, X[0] + 1, X[1]),
    "linear": (F.linear, X, RNG.normal(size=(5, 4)), RNG.normal(size=5)),
    "conv2d": (F.conv2d, IMAGES, FILTERS, RNG.normal(size=6)),
    "conv2d with options": (lambda x, w: F.conv2d(x, w, None, (2, 1), (1, 2), (1, 3), 2), IMAGES, GROUPED),
    "conv2d of single channels": (lambda x, w: F.conv2d(x, w, None, (1, 2), (1, 0), (2, 1), 4), IMAGES, RNG.normal(size=(8, 1, 2, 3))),
    "conv2d same": (lambda x, w: F.conv2d(x, w, padding="same"), IMAGES, FILTERS),
    "conv2d of one image": (F.conv2d, IMAGES[0], FILTERS[:, :, :1, :1]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), IMAGES),
    "max_pool2d with options": (lambda x: F.max_pool2d(x, (3, 2), (1, 2), 1, (1, 2), True), IMAGES),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), IMAGES),
    "mse_loss": (F.mse_loss, X, X[::-1] + 0.5),
    "nll_loss": (lambda x: F.nll_loss(x, np.array([0, -100, 3, 1, 2, 2])), X.reshape(6, 4)),
    "cross_entropy": (lambda x: F.cross_entropy(x, np.array([0, -100, 3, 1, 2, 2])), X.reshape(6, 4)),
}
each_function = pytest.mark.parametrize(("function", "args"), [(f, a) for f, *a in FUNCTIONS.values()], ids=FUNCTIONS)


def plain(arg, dtype):
    """An argument as it was recorded."""
    if not isinstance(arg, dict):
        return tuple(arg) if isinstance(arg, list) else arg
    array = np.array(arg["array"])
    return array if array.dtype.kind == "i" else array.astype(dtype)


def weighted(function, *args):
    """A function as a sum of its entries times the cosine of their numbers."""

    def total(*floats):
        rest = iter(floats)
        out = function(*[next(rest) if np.asarray(a).dtype.kind == "f" and isinstance(a, np.ndarray) else a for a in args])
        return np.sum(out * np.reshape(np.cos(np.arange(np.size(out), dtype=out.dtype)), np.shape(out))), out

    return total


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['name']}-{c['dtype']}")
def test_values_and_gradients_of_pytorch(case):
    dtype, tolerance = case["dtype"], TOLERANCE[case["dtype"]]
    args = [plain(a, dtype) for a in case["args"]]
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in case["options"].items()}
    floats = [a for a in args if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
    total = weighted(lambda *a: getattr(F, case["name"])(*a, **options), *args)
    with np.errstate(invalid="ignore"):  # of the sum
        gradients, out = fnad.grad(total, argnums=tuple(range(len(case["grads"]))), has_aux=True)(*floats)
    assert out.dtype == dtype
    assert np.shape(out) == np.shape(case["out"])
    np.testing.assert_allclose(out, np.array(case["out"]), tolerance, tolerance)
    for got, want in zip(gradients, case["grads"], strict=True):
        assert got.dtype == dtype
        np.testing.assert_allclose(got, np.array(want), tolerance, tolerance)
    plain_out = getattr(F, case["name"])(*args, **options)
    np.testing.assert_array_equal(plain_out, out)
    assert plain_out.dtype == dtype


@each_function
def test_derivatives(function, args):
    check_grads(function, tuple(args), order=2)


@each_function
def test_vmap_is_a_loop(function, args):
    stacks = tuple(np.stack([a, 0.5 * a, -a]) for a in args)
    check_vmap(function, stacks)
    check_vmap(fnad.grad(lambda *a: np.sum(np.sin(function(*a)))), stacks)
    check_vmap(function, (stacks[0], *args[1:]), (0, *(None,) * (len(args) - 1)))


@each_function
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled(function, args, dtype):
    """jit gives the same values and gradients, all of it native."""
    args = [a.astype(dtype) for a in args]
    gradient = fnad.value_and_grad(lambda *a: np.sum(np.sin(function(*a))), argnums=tuple(range(len(args))))
    for f in (function, gradient):
        want = f(*args)
        assert_trees_close(fnad.jit(f)(*args), want)
        steps = Executable(simplify(fnad.make_graph(f)(*args))).steps
        assert not [s.equation.primitive.name for s in steps if isinstance(s, Host)]


@each_function
def test_half_precision(function, args):
    """float16 stays, and is about right."""
    out = function(*[a.astype(np.float16) for a in args])
    assert out.dtype == np.float16
    np.testing.assert_allclose(out, function(*args), 0.02, 0.1)
    gradient = fnad.grad(lambda *a: np.sum(function(*a)))(*[a.astype(np.float16) for a in args])
    assert gradient.dtype == np.float16


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "gelu", "silu", "softplus"])
def test_integers_become_float64(name):
    got = getattr(F, name)([-1, 0, 2])
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, getattr(F, name)(np.array([-1.0, 0.0, 2.0])))
    assert F.softmax([1, 2], 0).dtype == np.float64
    assert F.relu(np.array([-1, 3])).dtype == np.int64


# -- special points ------------------------------------------------------------------------------------------------


def test_relu_at_0_and_where_it_is_closed():
    x = np.array([-1.0, -0.0, 0.0, 1.0, np.nan])
    np.testing.assert_array_equal(F.relu(x), [0, 0, 0, 1, np.nan])
    slope = np.array([0, 0, 0, 1, 1])
    np.testing.assert_array_equal(fnad.vjp(F.relu, x)[1](np.ones(5))[0], slope)
    np.testing.assert_array_equal(fnad.jvp(F.relu, (x,), (np.ones(5),))[1], slope)
    np.testing.assert_array_equal(fnad.jit(fnad.grad(lambda x: np.sum(F.relu(x))))(x), slope)
    np.testing.assert_array_equal(fnad.vjp(F.relu, x)[1](np.array([np.inf, np.nan, -np.inf, 2.0, 0.0]))[0], [0, 0, 0, 2, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tails_keep_their_digits(dtype):
    x = np.array([-60.0, -30.0, 30.0, 60.0], dtype)
    small = np.exp(-np.abs(x))
    for run in (lambda f: f, fnad.jit):
        np.testing.assert_allclose(run(fnad.grad(lambda x: np.sum(F.sigmoid(x))))(x), small / (1 + small) ** 2, 4 * np.finfo(dtype).eps)
        np.testing.assert_allclose(run(F.softplus)(x)[:2], np.log1p(small[:2]), 4 * np.finfo(dtype).eps)
        np.testing.assert_array_equal(run(F.softplus)(x)[2:], x[2:])
        lower = run(F.gelu)(np.array([-10.0], dtype))
        np.testing.assert_allclose(lower, -10 * 7.61985302416047e-24, 1e-5 if dtype is np.float32 else 1e-13)


@pytest.mark.parametrize("jit", [False, True])
def test_softmax_and_logsumexp_of_infinities(jit):
    run = fnad.jit if jit else lambda f: f
    x = np.array([[0.0, -np.inf, 0.0], [1e4, -1e4, 0.0], [-np.inf, -np.inf, -np.inf]])
    out = run(lambda x: F.softmax(x, -1))(x)
    np.testing.assert_array_equal(out[:2], [[0.5, 0, 0.5], [1, 0, 0]])
    assert np.isnan(out[2]).all()
    np.testing.assert_array_equal(run(lambda x: F.logsumexp(x, 1))(x), [np.log(2), 1e4, -np.inf])
    gradient = run(fnad.grad(lambda x: np.sum(F.logsumexp(x, 1))))(x)
    np.testing.assert_array_equal(gradient, [[0.5, 0, 0.5], [1, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(run(lambda x: F.log_softmax(x[:2], 1))(x)[1], [0, -2e4, -1e4])
    np.testing.assert_array_equal(run(lambda x: F.logsumexp(x, 0))(np.zeros((0, 2))), [-np.inf, -np.inf])
    assert run(lambda x: F.softmax(x, 0))(np.float64(3.0)) == 1
    assert np.isnan(run(lambda x: F.logsumexp(x, -1))(np.array([np.nan, 1.0])))


@pytest.mark.parametrize("jit", [False, True])
def test_max_pool_has_one_winner(jit):
    run = fnad.jit if jit else lambda f: f
    x = np.array([[1.0, 1.0, -np.inf, -np.inf], [1.0, 0.0, -np.inf, -np.inf]])
    np.testing.assert_array_equal(run(fnad.grad(lambda x: np.sum(F.max_pool2d(x, 2)[:, :1])))(x), [[1, 0, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(run(fnad.grad(lambda x: F.max_pool2d(x, 2)[0, 1]))(x), [[0, 0, 1, 0], [0, 0, 0, 0]])
    padded = run(fnad.grad(lambda x: np.sum(F.max_pool2d(x, 2, padding=1))))(np.full((2, 2), -np.inf))
    np.testing.assert_array_equal(padded, np.ones((2, 2)))  # the border never wins
    holes = np.array([[1.0, np.nan], [3.0, 2.0]])
    assert np.isnan(run(lambda x: F.max_pool2d(x, 2))(holes))
    np.testing.assert_array_equal(run(fnad.grad(lambda x: np.sum(F.max_pool2d(x, 2))))(holes), [[0, 1], [0, 0]])


def test_layer_norm_without_a_shape():
    w, b = X[0, 0], X[0, 1]
    want = F.layer_norm(X, 4, w, b)
    np.testing.assert_array_equal(F.layer_norm(X, w, b), want)
    np.testing.assert_array_equal(F.layer_norm(X, w), F.layer_norm(X, (4,), w))
    short = fnad.grad(lambda w: np.sum(F.layer_norm(X, w, b) ** 2))(w)
    np.testing.assert_array_equal(short, fnad.grad(lambda w: np.sum(F.layer_norm(X, 4, w, b) ** 2))(w))
    with pytest.raises(ArgumentError, match="alone"):
        F.layer_norm(X, w, w, b)


def test_layer_norm_of_numbers_far_from_0():
    """The variance does not come from a difference of squares."""
    x = 1e6 + np.array([[1.0, 2.0, 3.0]], np.float32)
    for f in (F.layer_norm, fnad.jit(F.layer_norm, static_argnums=1)):
        np.testing.assert_allclose(f(x, 3), [[-1.2247, 0, 1.2247]], 1e-3, 1e-3)


def test_a_convolution_keeps_no_windows():
    """Between forward and backward pass only the images and filters are kept."""
    x, w = np.ones((4, 8, 32, 32)), np.ones((8, 8, 5, 5))
    _, pull = fnad.vjp(lambda x, w: F.conv2d(x, w, padding=2), x, w)
    dx, dw = pull(np.ones((4, 8, 32, 32)))
    assert dx[0, 0, 16, 16] == 8 * 25
    assert dw[0, 0, 2, 2] == 4 * 32 * 32


def test_empty_batches():
    assert F.conv2d(IMAGES[:0], FILTERS).shape == (0, 6, 4, 6)
    gradient = fnad.grad(lambda w: np.sum(F.conv2d(IMAGES[:0], w)))(FILTERS)
    np.testing.assert_array_equal(gradient, np.zeros(FILTERS.shape))
    assert F.max_pool2d(IMAGES[:0], 2).shape == (0, 4, 3, 3)
    assert F.avg_pool2d(IMAGES[:, :0], 2).shape == (2, 0, 3, 3)
    assert F.layer_norm(X[:0], 4).shape == (0, 3, 4)
    assert F.nll_loss(np.ones((0, 3)), np.ones(0, int), reduction="sum") == 0


def test_layouts():
    for f, x in ((lambda x: F.conv2d(x, FILTERS), IMAGES), (lambda x: F.max_pool2d(x, 2), IMAGES), (lambda x: F.avg_pool2d(x, 2), IMAGES)):
        want = f(x)
        for other in (np.asfortranarray(x), np.repeat(x, 2, 3)[..., ::2], x.astype(">f8")):
            np.testing.assert_allclose(f(other), want, 1e-13, 1e-13)
        frozen = x.copy()
        frozen.flags.writeable = False
        np.testing.assert_array_equal(f(frozen), want)


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.gelu(X, "erf"), ArgumentError, "erf"),
        (lambda: F.softmax(X, None), ArgumentError, "axis"),
        (lambda: F.softmax(X, 3), IndexError, "axis 3"),
        (lambda: F.logsumexp(X, (0, 0)), ValueError, "duplicate"),
        (lambda: F.sigmoid(X + 0j), DTypeError, "real numbers"),
        (lambda: F.linear(X, np.ones((5, 3))), ShapeError, r"float64\[5,3\]"),
        (lambda: F.linear(X, np.ones((5, 4, 1))), ShapeError, "weight"),
        (lambda: F.layer_norm(X, 3), ShapeError, "normalized_shape"),
        (lambda: F.layer_norm(X, (4,), np.ones(3)), ShapeError, "weight"),
        (lambda: F.layer_norm(X, ()), ShapeError, "normalized_shape"),
        (lambda: F.conv2d(IMAGES, GROUPED), ShapeError, "groups"),
        (lambda: F.conv2d(IMAGES, FILTERS[:5, :2], groups=2), ShapeError, "groups"),
        (lambda: F.conv2d(IMAGES, FILTERS[0]), ShapeError, "weight"),
        (lambda: F.conv2d(IMAGES, np.ones((1, 4, 7, 1))), ShapeError, "window"),
        (lambda: F.conv2d(IMAGES, FILTERS, np.ones(5)), ShapeError, "bias"),
        (lambda: F.conv2d(IMAGES, FILTERS, stride=0), ArgumentError, "stride"),
        (lambda: F.conv2d(IMAGES, FILTERS, padding=-1), ArgumentError, "padding"),
        (lambda: F.conv2d(IMAGES, FILTERS, padding="full"), ArgumentError, "full"),
        (lambda: F.conv2d(IMAGES, FILTERS, stride=2, padding="same"), ArgumentError, "stride 1"),
        (lambda: F.conv2d(IMAGES, FILTERS, dilation=(1, 2, 3)), ArgumentError, "dilation"),
        (lambda: F.conv2d(IMAGES, FILTERS, groups=0), ArgumentError, "groups"),
        (lambda: F.max_pool2d(IMAGES, 8), ShapeError, "window"),
        (lambda: F.max_pool2d(IMAGES, 2, padding=2), ArgumentError, "half"),
        (lambda: F.max_pool2d(IMAGES, 2.0), ArgumentError, "kernel_size"),
        (lambda: F.max_pool2d(IMAGES + 0j, 2), DTypeError, "real"),
        (lambda: F.max_pool2d(np.ones(3), 2), ShapeError, "two axes"),
        (lambda: F.avg_pool2d(np.ones((4, 4), int), 2), DTypeError, "floating"),
        (lambda: F.avg_pool2d(IMAGES, 2, divisor_override=0), ArgumentError, "divisor"),
        (lambda: F.mse_loss(X, X, "max"), ArgumentError, "max"),
        (lambda: F.nll_loss(X[0], X[0]), ShapeError, "target"),
        (lambda: F.nll_loss(X[0], np.array([0, 4, 1])), BoundsError, "label: 4"),
        (lambda: F.nll_loss(X[0], np.array([0, -1, 1])), BoundsError, "label: -1"),
    ],
)
def test_arguments_that_do_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("loss", [F.nll_loss, F.cross_entropy])
@pytest.mark.parametrize("label", [-1, 3, 7])
def test_a_bad_label_is_noticed_under_jit(loss, label):
    step = fnad.jit(fnad.value_and_grad(loss))
    x = np.zeros((2, 3))
    step(x, np.array([0, 2]))
    with pytest.raises(IndexError):
        step(x, np.array([0, label]))
    np.testing.assert_array_equal(step(x, np.array([0, -100]))[1][1], 0)


def test_mse_loss_warns_of_shapes_that_differ():
    with pytest.warns(UserWarning, match="broadcast"):
        assert F.mse_loss(np.ones((3, 1)), np.zeros(3)) == 1
