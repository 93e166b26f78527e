"""`fnad.nn.functional.cross_entropy`: PyTorch's values and gradients, and every transform on it."""

import json
import pathlib

import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentError, BoundsError, DTypeError, ShapeError
from fnad.nn import functional as F
from fnad.primitives.softmax import softmax_cross_entropy
from fnad.testing import check_grads

CASES = json.loads((pathlib.Path(__file__).parent / "cross_entropy_torch.json").read_text())["cases"]
TOLERANCE = {"float32": 2e-6, "float64": 1e-12}
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(4, 3)), np.array([0, 2, 1, 2])
P = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.1, 0.1, 0.8], [0.0, 0.5, 0.5]])
W = np.array([0.5, 2.0, 1.0])
HOLES = np.array([0, -100, 1, -100])
VARIANTS = {
    "labels": (Y, {}),
    "ignored": (HOLES, {}),
    "weighted": (Y, {"weight": W}),
    "weighted, ignored, smoothed": (HOLES, {"weight": W, "label_smoothing": 0.1}),
    "probabilities": (P, {}),
    "weighted, smoothed probabilities": (P, {"weight": W, "label_smoothing": 0.1}),
}
each_variant = pytest.mark.parametrize(("target", "options"), VARIANTS.values(), ids=VARIANTS)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['name']}-{c['dtype']}")
def test_values_and_gradients_of_pytorch(case):
    dtype, tolerance = case["dtype"], TOLERANCE[case["dtype"]]
    x = np.array(case["input"], dtype)
    y = np.array(case["target"], dtype if case["probabilities"] else np.int64)
    options = {k: np.array(v, dtype) if isinstance(v, list) else v for k, v in case["options"].items()}

    def total(x):
        loss = F.cross_entropy(x, y, **options)
        return np.sum(loss), loss

    gradient, loss = fnad.grad(total, has_aux=True)(x)
    assert loss.dtype == gradient.dtype == dtype
    assert np.shape(loss) == np.shape(case["loss"])
    np.testing.assert_allclose(loss, np.array(case["loss"]), tolerance, tolerance)
    np.testing.assert_allclose(gradient, np.array(case["grad"]), tolerance, tolerance)
    np.testing.assert_array_equal(F.cross_entropy(x, y, **options), loss)


@each_variant
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_derivatives(target, options, reduction):
    check_grads(lambda x: F.cross_entropy(x, target, reduction=reduction, **options), (X,), order=2)


def test_third_order():
    check_grads(fnad.grad(lambda x: F.cross_entropy(x, Y)), (X,), order=2)


def test_derivative_by_probabilities_and_weight():
    check_grads(lambda p: F.cross_entropy(X, p, label_smoothing=0.1), (P,), order=2)
    check_grads(lambda x, w: F.cross_entropy(x, Y, w, label_smoothing=0.1), (X, W), order=2)


@each_variant
@pytest.mark.parametrize("mapped", ["input", "target", "both"])
def test_vmap_is_a_loop(target, options, mapped):
    xs = RNG.normal(size=(5, 4, 3)) if mapped != "target" else X
    ys = np.stack([np.roll(target, i, 0) for i in range(5)]) if mapped != "input" else target
    axes = (None if mapped == "target" else 0, None if mapped == "input" else 0)

    def loss(x, y):
        return F.cross_entropy(x, y, **options)

    for f in (loss, fnad.grad(loss), fnad.hessian(loss)):
        want = [f(xs[i] if axes[0] == 0 else xs, ys[i] if axes[1] == 0 else ys) for i in range(5)]
        np.testing.assert_allclose(fnad.vmap(f, in_axes=axes)(xs, ys), want, 1e-13, 1e-15)


def test_nested_vmap():
    xs, ys = RNG.normal(size=(2, 3, 4, 5)), RNG.integers(0, 5, (3, 4))
    got = fnad.vmap(fnad.vmap(F.cross_entropy), in_axes=(0, None))(xs, ys)
    np.testing.assert_allclose(got, [[F.cross_entropy(x, y) for x, y in zip(row, ys, strict=True)] for row in xs], 1e-14)


@each_variant
def test_recorded(target, options):
    for f in (lambda x, y: F.cross_entropy(x, y, **options), fnad.grad(lambda x, y: F.cross_entropy(x, y, **options))):
        graph = fnad.make_graph(f)(X, target)
        np.testing.assert_allclose(fnad.core.graph.evaluate(graph, [X, target])[0], f(X, target), 1e-14)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@each_variant
def test_dtypes(target, options, dtype):
    x = X.astype(dtype)
    loss, gradient = fnad.value_and_grad(lambda x: F.cross_entropy(x, target, **options))(x)
    assert loss.dtype == gradient.dtype == fnad.eval_shape(lambda x, y: F.cross_entropy(x, y, **options), x, target).dtype == dtype
    np.testing.assert_allclose(loss, F.cross_entropy(X, target, **options), 4 * np.finfo(dtype).eps)
    hessian = fnad.hessian(lambda x: F.cross_entropy(x, target, **options))(x)
    assert hessian.dtype == dtype


def test_labels_of_every_integer_type():
    for kind in (np.int8, np.uint8, np.int32, np.uint64):
        assert F.cross_entropy(X, Y.astype(kind)) == F.cross_entropy(X, Y)
    assert F.cross_entropy(X.tolist(), Y.tolist()) == F.cross_entropy(X, Y)
    assert F.cross_entropy(X[0], 1) == F.cross_entropy(X[:1], Y[:1] + 1)


# -- special points ------------------------------------------------------------------------------------------------


def test_minus_infinity_is_a_class_of_probability_0():
    x = np.array([[0.0, -np.inf, 1.0], [-np.inf, 3.0, -np.inf]])
    y = np.array([0, 1])
    loss, gradient = fnad.value_and_grad(lambda x: F.cross_entropy(x, y, reduction="sum"))(x)
    assert loss == pytest.approx(np.log1p(np.e), rel=1e-15)
    np.testing.assert_allclose(gradient, softmax(x) - np.eye(3)[y], atol=1e-15)
    assert F.cross_entropy(x, np.array([1, 1]), reduction="none")[0] == np.inf
    hessian = fnad.hessian(lambda x: F.cross_entropy(x, y, reduction="sum"))(x)
    assert np.isfinite(hessian).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_logits_and_confident_answers(dtype):
    """No overflow; a loss and a slope far below the precision of 1 keep their digits."""
    x = np.array([[60.0, 0.0], [0.0, 60.0], [3e4, 2e4], [-3e38, 3e38]], dtype)
    y = np.array([0, 0, 1, 0])
    loss = F.cross_entropy(x, y, reduction="none")
    tiny = np.exp(-60.0)
    np.testing.assert_allclose(loss, np.array([tiny, 60.0, 1e4, 6e38 if dtype is np.float64 else np.inf]), 1e-6)
    gradient = fnad.grad(lambda x: F.cross_entropy(x, y, reduction="sum"))(x)
    np.testing.assert_allclose(gradient, [[-tiny, tiny], [-1, 1], [1, -1], [-1, 1]], 1e-6)
    assert np.isfinite(fnad.hessian(lambda x: F.cross_entropy(x, y, reduction="sum"))(x)).all()


def test_nan_and_infinity_give_nan_in_their_row_only():
    x = np.array([[np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf], [0.0, 0.0]])
    y = np.zeros(4, int)
    loss = F.cross_entropy(x, y, reduction="none")
    np.testing.assert_array_equal(np.isnan(loss), [True, True, True, False])
    gradient = fnad.grad(lambda x: F.cross_entropy(x, y, reduction="sum"))(x)
    np.testing.assert_array_equal(np.isnan(gradient).all(1), [True, True, True, False])


def test_an_ignored_row_has_gradient_0_whatever_it_holds():
    x = np.array([[np.nan, 0.0], [np.inf, 0.0], [1.0, 0.0]])
    y = np.array([-100, -100, 0])
    loss, gradient = fnad.value_and_grad(lambda x: F.cross_entropy(x, y))(x)
    assert loss == F.cross_entropy(x[2:], y[2:])
    np.testing.assert_array_equal(gradient[:2], 0)
    assert np.isfinite(fnad.hessian(lambda x: F.cross_entropy(x, y))(x)).all()


def test_no_examples():
    assert F.cross_entropy(np.ones((0, 3)), np.ones(0, int), reduction="sum") == 0
    assert F.cross_entropy(np.ones((0, 3)), np.ones(0, int), reduction="none").shape == (0,)
    assert fnad.grad(lambda x: F.cross_entropy(x, np.ones(0, int), reduction="sum"))(np.ones((0, 3))).shape == (0, 3)
    assert fnad.vmap(lambda x: F.cross_entropy(x, np.ones(0, int), reduction="sum"))(np.ones((2, 0, 3))).shape == (2,)
    assert fnad.vmap(lambda x: F.cross_entropy(x, Y, reduction="none"))(np.ones((0, 4, 3))).shape == (0, 4)


def test_layouts():
    want = F.cross_entropy(X, Y)
    assert F.cross_entropy(np.asfortranarray(X), Y) == want
    assert F.cross_entropy(np.repeat(X, 2, 1)[:, ::2], np.repeat(Y, 2)[::2]) == want
    assert F.cross_entropy(X.astype(">f8"), Y.astype(">i4")) == want
    frozen = X.copy()
    frozen.flags.writeable = False
    assert F.cross_entropy(frozen, Y) == want


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [3, 7, -1, -99])
def test_a_label_out_of_range_is_named(label):
    y = np.array([0, 1, label, 2])
    for call in (
        lambda: F.cross_entropy(X, y),
        lambda: fnad.grad(F.cross_entropy)(X, y),
        lambda: fnad.vmap(lambda x: F.cross_entropy(x, y))(X[None]),
    ):
        with pytest.raises(IndexError, match=rf"label: {label}\n  got at row: 2\n  got number of classes: 3") as caught:
            call()
        assert isinstance(caught.value, BoundsError)


@pytest.mark.parametrize(
    ("args", "options", "error", "words"),
    [
        ((X, Y), {"reduction": "average"}, ArgumentError, "average"),
        ((X, Y), {"label_smoothing": 1.5}, ArgumentError, "label_smoothing"),
        ((X, P), {"ignore_index": 2}, ArgumentError, "ignore_index"),
        ((X, Y[:3]), {}, ShapeError, r"int64\[3\]"),
        ((X, np.array(1)), {}, ShapeError, r"target"),
        ((np.array(1.0), np.array(0)), {}, ShapeError, r"input"),
        ((X, Y), {"weight": np.ones(4)}, ShapeError, "weight"),
        ((X, Y.astype(float)), {}, DTypeError, "labels are integers"),
        ((X, P.astype(int)), {}, DTypeError, "probabilities are floating point"),
        ((X, Y == 1), {}, DTypeError, "labels are integers"),
        ((X.astype(int), Y), {}, DTypeError, "input"),
        ((X.astype(complex), Y), {}, DTypeError, "input"),
        ((X.astype(np.longdouble), Y), {}, DTypeError, "input"),
    ],
)
def test_arguments_that_do_not_fit(args, options, error, words):
    with pytest.raises(error, match=words):
        F.cross_entropy(*args, **options)


@pytest.mark.parametrize(
    ("logits", "labels", "error"),
    [
        (np.ones(3), np.ones(3, int), ShapeError),
        (np.ones((2, 3)), np.ones(3, int), ShapeError),
        (np.ones((2, 3), np.longdouble), np.ones(2, int), DTypeError),
        (np.ones((2, 3)), np.ones(2), DTypeError),
    ],
)
def test_the_primitive_checks_what_is_recorded(logits, labels, error):
    with pytest.raises(error):
        fnad.make_graph(softmax_cross_entropy)(logits, labels)
