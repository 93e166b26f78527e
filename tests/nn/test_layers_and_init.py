"""Initialisers, layers, dropout: what is random has the right distribution, and layers train."""

import numpy as np
import pytest
import scipy.stats as stats

import fnad
from fnad import random
from fnad.errors import ArgumentError, BoundsError, DTypeError, ShapeError, UnsupportedError
from fnad.nn import functional as F
from fnad.nn import init, layers
from fnad.testing import check_grads

KEY = random.key(5)
X = np.random.default_rng(0).normal(size=(2, 3, 4))


# -- initialisers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_initialisers_have_their_distributions(dtype):
    shape = (40, 30, 2)
    gain = np.sqrt(2 / (1 + 0.3**2))
    cases = [
        (init.uniform(KEY, shape, -2, 1, dtype=dtype), stats.uniform(-2, 3)),
        (init.normal(KEY, shape, 1.0, 0.5, dtype=dtype), stats.norm(1, 0.5)),
        (init.trunc_normal(KEY, shape, 0.5, 2.0, -1.0, 2.0, dtype=dtype), stats.truncnorm(-0.75, 0.75, 0.5, 2)),
        (init.xavier_uniform(KEY, shape, 2.0, dtype=dtype), stats.uniform(-2 * (6 / 140) ** 0.5, 4 * (6 / 140) ** 0.5)),
        (init.xavier_normal(KEY, shape, 2.0, dtype=dtype), stats.norm(0, 2 * (2 / 140) ** 0.5)),
        (init.kaiming_uniform(KEY, shape, 0.3, dtype=dtype), stats.uniform(-gain / 20**0.5, 2 * gain / 20**0.5)),
        (init.kaiming_normal(KEY, shape, mode="fan_out", nonlinearity="relu", dtype=dtype), stats.norm(0, 40**-0.5)),
    ]
    for weight, want in cases:
        assert weight.shape == shape
        assert weight.dtype == dtype
        assert stats.kstest(weight.ravel(), want.cdf).pvalue > 1e-3
    for shape in ((3, 2, 2), (2, 3)):
        flat = init.orthogonal(KEY, shape, 2.0, dtype=dtype).reshape(shape[0], -1)
        np.testing.assert_allclose(flat @ flat.T if len(flat) <= flat.shape[1] else flat.T @ flat, 4 * np.eye(min(flat.shape)), atol=1e-5)
    assert np.all(np.sum(init.sparse(KEY, (10, 50), 0.25, dtype=dtype) == 0, axis=0) == 3)


def test_initialisers_without_chance():
    np.testing.assert_array_equal(init.eye((2, 3)), np.eye(2, 3))
    x = np.random.default_rng(1).normal(size=(1, 4, 5))
    np.testing.assert_array_equal(F.conv1d(x, init.dirac((4, 2, 3), 2), padding=1, groups=2), x)
    assert F.conv3d(np.ones((1, 2, 1, 1, 1)), init.dirac((2, 2, 1, 1, 1))).sum() == 2
    assert init.constant((2, 2), 3.0).sum() == 12
    assert init.ones(3).sum() == 3 and init.zeros(3).sum() == 0  # noqa: PT018
    assert init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("conv2d") == 1
    assert init.calculate_gain("selu") == 0.75
    assert init.calculate_gain("leaky_relu", 1.0) == 1


# -- dropout -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dropout(dtype):
    x = np.full((100, 40), 2.0, dtype)
    out = F.dropout(x, 0.25, key=KEY)
    assert out.dtype == dtype
    np.testing.assert_array_equal(np.unique(out), np.array([0, 2 / 0.75], dtype))
    assert abs(np.mean(out == 0) - 0.25) < 0.03
    gradient = fnad.grad(lambda x: np.sum(F.dropout(x, 0.25, key=KEY)))(x)
    np.testing.assert_allclose(gradient, out / 2, 1e-6)
    np.testing.assert_array_equal(fnad.jit(lambda x: F.dropout(x, 0.25, key=KEY))(x), out)
    assert F.dropout(x, 0.25, False) is x
    assert not F.dropout(x, 1.0, key=KEY).any()
    keys = random.split(KEY, 3)
    each = fnad.vmap(lambda k: F.dropout(x, 0.5, key=k))(keys)
    np.testing.assert_array_equal(each[1], F.dropout(x, 0.5, key=keys[1]))


def test_dropout_of_channels():
    for rank, function in ((1, F.dropout1d), (2, F.dropout2d), (3, F.dropout3d)):
        x = np.ones((50, 20, *(2,) * rank))
        flat = function(x, 0.3, key=KEY).reshape(50, 20, -1)
        assert np.all(flat == flat[:, :, :1])
        assert abs(np.mean(flat == 0) - 0.3) < 0.06
        np.testing.assert_array_equal(function(x[0], 0.0), x[0])
    x = random.normal(KEY, (200, 100, 2))
    for function in (F.alpha_dropout, F.feature_alpha_dropout):
        out = function(x, 0.2, True, key=random.key(1))
        assert abs(np.mean(out)) < 0.03
        assert abs(np.std(out) - 1) < 0.03
        assert function(x, 0.2) is x
        assert not function(x, 1.0, True, key=KEY).any()


def test_random_slopes_and_gates():
    x = np.array([-1.0] * 500 + [2.0])
    out = F.rrelu(x, 0.1, 0.3, True, key=KEY)
    assert stats.kstest(-out[:-1], stats.uniform(0.1, 0.2).cdf).pvalue > 1e-3
    assert out[-1] == 2
    logits = np.log(np.array([[0.2, 0.8]] * 4000))
    hard = F.gumbel_softmax(logits, hard=True, key=KEY)
    np.testing.assert_allclose(hard.sum(1), 1)
    assert abs(np.mean(hard[:, 1]) - 0.8) < 0.03
    slope = fnad.grad(lambda x: np.sum(F.gumbel_softmax(x, 0.5, True, key=KEY)[:, 0]))(logits)
    np.testing.assert_allclose(slope, fnad.grad(lambda x: np.sum(F.gumbel_softmax(x, 0.5, key=KEY)[:, 0]))(logits))


def test_dropout_inside_attention_and_recurrent_networks():
    q = random.normal(KEY, (2, 30, 4))
    out = F.scaled_dot_product_attention(q, q, np.ones((2, 30, 1)), dropout_p=0.5, dropout_key=KEY)
    assert 0.5 < np.mean(out) < 1.5
    assert np.std(out) > 0.05
    net = layers.gru(3, 4, num_layers=2, dropout=0.5)
    params, x = net.init(KEY), np.ones((5, 2, 3))
    with pytest.raises(ArgumentError, match="key"):
        F.gru(x, np.zeros((2, 2, 4)), params, dropout=0.5)
    first, second = (net.apply(params, x, key=k, training=True)[0] for k in random.split(KEY))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(net.apply(params, x)[0], net.apply(params, x, training=True)[0])


# -- layers --------------------------------------------------------------------------------------------------------------

LAYERS = {
    "linear": (layers.linear(4, 3), (5, 4), (5, 3)),
    "linear without bias": (layers.linear(4, 3, bias=False), (4,), (3,)),
    "conv1d": (layers.conv1d(4, 6, 3, padding="same", groups=2), (2, 4, 5), (2, 6, 5)),
    "conv2d": (layers.conv2d(1, 2, (3, 2), 2, 1), (2, 1, 5, 4), (2, 2, 3, 3)),
    "conv3d": (layers.conv3d(1, 2, 2), (1, 1, 3, 3, 3), (1, 2, 2, 2, 2)),
    "conv_transpose1d": (layers.conv_transpose1d(2, 3, 2, 2), (1, 2, 3), (1, 3, 6)),
    "conv_transpose2d": (layers.conv_transpose2d(2, 4, 2, 2, groups=2), (1, 2, 3, 3), (1, 4, 6, 6)),
    "conv_transpose3d": (layers.conv_transpose3d(1, 1, 2, output_padding=0), (1, 1, 2, 2, 2), (1, 1, 3, 3, 3)),
    "layer_norm": (layers.layer_norm((3, 4)), (2, 3, 4), (2, 3, 4)),
    "rms_norm": (layers.rms_norm(4), (2, 3, 4), (2, 3, 4)),
    "group_norm": (layers.group_norm(2, 4), (2, 4, 3), (2, 4, 3)),
    "instance_norm": (layers.instance_norm(4, affine=True), (2, 4, 3), (2, 4, 3)),
    "attention": (layers.multi_head_attention(4, 2), (5, 2, 4), (5, 2, 4)),
    "attention, batch first": (layers.multi_head_attention(4, 2, batch_first=True), (2, 5, 4), (2, 5, 4)),
    "function": (layers.function(F.avg_pool2d, 2), (2, 4, 4), (2, 2, 2)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, dtype):
    layer, shape, want = LAYERS[name]
    params = layer.init(KEY, dtype)
    x = random.normal(KEY, shape, dtype)
    out = layer.apply(params, x)
    assert out.shape == want
    assert out.dtype == dtype
    assert layer.state is None
    assert all(p.dtype == dtype for p in fnad.tree.leaves(params))
    gradient = fnad.grad(lambda p: np.sum(layer.apply(p, x) ** 2))(params)
    assert all(g.shape == p.shape for g, p in zip(fnad.tree.leaves(gradient), fnad.tree.leaves(params), strict=True))
    again = layer.init(KEY, dtype)
    assert all(np.array_equal(a, b) for a, b in zip(fnad.tree.leaves(params), fnad.tree.leaves(again), strict=True))


@pytest.mark.parametrize("make", [layers.rnn, layers.gru, layers.lstm])
def test_recurrent_layers(make):
    for options, width in (({}, 4), ({"bidirectional": True, "num_layers": 2, "bias": False}, 8), ({"batch_first": True}, 4)):
        net = make(3, 4, **options)
        params = net.init(KEY)
        out, end = net.apply(params, np.ones((5, 2, 3)))
        assert out.shape == (5, 2, width)
        again, _ = net.apply(params, (np.ones((5, 2, 3)), end))
        assert again.shape == out.shape
        assert net.apply(params, np.ones((5, 3)))[0].shape == (5, width)


def test_other_layers():
    table = layers.embedding(5, 3, padding_idx=-1)
    params = table.init(KEY, np.float32)
    assert not params["weight"][4].any()
    assert table.apply(params, np.array([[1, 4]])).shape == (1, 2, 3)
    pair = layers.bilinear(2, 3, 4)
    assert pair.apply(pair.init(KEY), (np.ones((5, 2)), np.ones((5, 3)))).shape == (5, 4)
    assert layers.dropout(0.5).apply({}, X) is X
    with pytest.raises(ArgumentError, match="state"):
        layers.batch_norm(2).apply({}, X)
    with pytest.raises(ArgumentError, match="groups"):
        layers.conv1d(3, 4, 1, groups=2)


def test_a_network_with_state_trains():
    """Running statistics move towards those of the data, and the compiled step gives what the eager one gives."""
    net = layers.sequential(layers.linear(2, 16), layers.batch_norm(16), layers.function(F.relu), layers.dropout(0.1), layers.linear(16, 1))
    x = random.normal(KEY, (64, 2)) * 3 + 1
    y = (x[:, :1] * x[:, 1:] > 0) * 1.0
    params, state, opt = net.init(random.key(1)), net.state, fnad.optim.adam(0.02)
    memory = opt.init(params)

    def loss(params, state, key):
        out, state = net.apply(params, x, state, key=key, training=True)
        return F.binary_cross_entropy_with_logits(out, y), state

    step = fnad.jit(fnad.value_and_grad(loss, has_aux=True))
    for key in random.split(KEY, 60):
        (value, after), grads = step(params, state, key)
        updates, memory = opt.update(grads, memory, params)
        params, state = fnad.optim.apply_updates(params, updates), after
    (eager, _), _ = fnad.value_and_grad(loss, has_aux=True)(params, state, KEY)
    np.testing.assert_allclose(step(params, state, KEY)[0][0], eager, 1e-10)
    assert value < 0.4
    out, same = net.apply(params, x, state)
    assert np.mean((out > 0) == y) > 0.85
    np.testing.assert_array_equal(same[1]["running_var"], state[1]["running_var"])


# -- positions, derivatives, special points ------------------------------------------------------------------------------


def test_rotary_products_depend_on_distances():
    x = np.random.default_rng(2).normal(size=(2, 6))
    for shift in (0, 7):
        q = F.rotary_embedding(np.broadcast_to(x[0], (4, 6)), np.arange(4) + shift)
        k = F.rotary_embedding(np.broadcast_to(x[1], (4, 6)), np.arange(4) + shift)
        products = q @ k.T
        np.testing.assert_allclose(products[1:, 1:], products[:-1, :-1], 1e-10)
    waves = F.sinusoidal_positions(10, 6, dtype=np.float32)
    assert waves.dtype == np.float32
    np.testing.assert_allclose(np.sum(waves**2, 1), 3, 1e-6)


SECOND = {
    "conv_transpose1d": (
        lambda x, w: F.conv_transpose1d(x, w, None, 2, 1, 1),
        X,
        X.transpose(1, 0, 2),
    ),
    "conv3d": (lambda x, w: F.conv3d(x, w, padding=1), X[None, None], X[:1, :2, :2][None, None]),
    "rms_norm": (lambda x: F.rms_norm(x, (3, 4)), X),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, (2, 3)), X),
    "lp_pool1d": (lambda x: F.lp_pool1d(x, 2, 2), X),
    "mish": (F.mish, X),
    "normalize": (F.normalize, X),
    "cosine_similarity": (F.cosine_similarity, X, X[::-1] + 0.5),
    "binary_cross_entropy": (lambda x: F.binary_cross_entropy(0.5 + 0.4 * np.tanh(x), np.full(x.shape, 0.3)), X),
    "gru": (lambda x, w: F.gru(x, np.zeros((1, 3, 2)), [(w, w[:, :2])])[0], X, X.reshape(6, 4)),
    "attention": (lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True), X, X[::-1]),
    "bicubic": (lambda x: F.interpolate(x[None], (5, 7), mode="bicubic"), X),
    "ctc": (lambda x: F.ctc_loss(x, np.array([[1, 2], [3, 3], [2, 1]]), np.array([2, 2, 2]), np.array([2, 1, 1])), np.log(np.abs(X) + 0.1)),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(name):
    function, *args = SECOND[name]
    check_grads(function, tuple(args), order=2)


def test_an_impossible_alignment():
    logits = np.zeros((2, 1, 3))
    loss = lambda x, **options: F.ctc_loss(F.log_softmax(x, -1), np.array([[1, 1]]), np.array([2]), np.array([2]), **options)
    assert loss(logits) == np.inf
    value, gradient = fnad.value_and_grad(lambda x: loss(x, zero_infinity=True))(logits)
    assert value == 0
    np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize("jit", [False, True])
def test_queries_that_see_nothing(jit):
    run = fnad.jit if jit else lambda f: f
    seen = np.array([[True, False], [False, False]])
    attend = run(fnad.value_and_grad(lambda q: np.sum(F.scaled_dot_product_attention(q, q, q, seen))))
    value, gradient = attend(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert value == 3
    np.testing.assert_array_equal(gradient, [[1, 1], [0, 0]])


def test_safe_forms():
    big = np.array([1e4, -1e4])
    assert np.isfinite(F.binary_cross_entropy_with_logits(big, np.array([0.0, 1.0])))
    assert np.isfinite(F.soft_margin_loss(big, np.array([-1, 1])))
    for f in (F.elu, F.celu, F.selu, F.mish, F.logsigmoid, F.hardswish, F.softsign):
        with np.errstate(all="raise", under="ignore"):
            assert np.all(np.isfinite(f(big)))
        assert np.all(np.isfinite(fnad.grad(lambda x: np.sum(f(x)))(big)))  # noqa: B023
    zeros = np.zeros((2, 3))
    for f in (F.normalize, lambda x: F.cosine_similarity(x, x + 1), lambda x: F.pdist(x), lambda x: F.lp_pool1d(x, 2, 3)):
        assert np.all(np.isfinite(fnad.grad(lambda x: np.sum(f(x)))(zeros)))  # noqa: B023


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.dropout(X, 1.5), ArgumentError, r"\[0, 1\]"),
        (lambda: F.dropout(X), ArgumentError, "key"),
        (lambda: F.dropout1d(np.ones(3), 0.5, key=KEY), ShapeError, "dropout1d"),
        (lambda: F.rrelu(X, training=True), ArgumentError, "key"),
        (lambda: F.embedding(np.array([3]), np.ones((3, 2))), BoundsError, "number: 3"),
        (lambda: F.embedding(np.array([0.5]), np.ones((3, 2))), DTypeError, "integers"),
        (lambda: F.embedding(np.array([0]), np.ones((3, 2)), 3), ArgumentError, "padding_idx"),
        (lambda: F.one_hot(np.array([0, 3]), 3), BoundsError, "largest: 3"),
        (lambda: F.bilinear(X, X, np.ones((2, 4, 3))), ShapeError, "weight"),
        (lambda: F.batch_norm(X, None, None), ArgumentError, "running"),
        (lambda: F.batch_norm(X[:1, :, :1], None, None, training=True), ShapeError, "more than one"),
        (lambda: F.batch_norm(X, np.zeros(4), np.ones(4)), ShapeError, "channel"),
        (lambda: F.group_norm(X, 2), ShapeError, "num_groups"),
        (lambda: F.conv_transpose2d(X, np.ones((3, 2, 1, 1))), ShapeError, "weight"),
        (lambda: F.conv_transpose1d(X, np.ones((3, 1, 2)), output_padding=1), ArgumentError, "output_padding"),
        (lambda: F.conv_transpose1d(X[:, :, :1], np.ones((3, 1, 2)), padding=1), ShapeError, "left"),
        (lambda: F.fold(np.ones((3, 4)), 3, 2), ShapeError, "windows"),
        (lambda: F.adaptive_avg_pool2d(X, (1, 2, 3)), ArgumentError, "output_size"),
        (lambda: F.glu(X, 1), ShapeError, "even"),
        (lambda: F.prelu(X, np.ones(4)), ShapeError, "per channel"),
        (lambda: F.hardtanh(X, 1, 0), ArgumentError, "min_val"),
        (lambda: F.binary_cross_entropy(X, X), ArgumentError, "lies in"),
        (lambda: F.kl_div(X, X, "batch"), ArgumentError, "batchmean"),
        (lambda: F.gaussian_nll_loss(X, X, np.ones(5)), ShapeError, "var"),
        (lambda: F.gaussian_nll_loss(X, X, -np.ones(X.shape)), ArgumentError, "negative"),
        (lambda: F.multi_margin_loss(X[0], np.array([0, 4, 1])), BoundsError, "label"),
        (lambda: F.ctc_loss(X, np.array([[1.0], [1.0]]), np.ones(3, int), np.ones(3, int)), DTypeError, "integers"),
        (lambda: F.scaled_dot_product_attention(X, X, X, np.ones((3, 3)), is_causal=True), ArgumentError, "both"),
        (lambda: F.scaled_dot_product_attention(X, X[..., :3], X), ShapeError, "key"),
        (lambda: F.rnn(X, np.zeros((1, 2, 2)), [(np.ones((2, 4)), np.ones((2, 2)))]), ShapeError, "states"),
        (lambda: F.rnn(X, np.zeros((1, 3, 2)), [(np.ones((2, 4)),)]), ArgumentError, "weights"),
        (lambda: F.pad(X, (1, 2, 3)), ArgumentError, "widths"),
        (lambda: F.interpolate(X, 3, mode="bilinear"), ArgumentError, "bilinear"),
        (lambda: F.interpolate(X), ArgumentError, "scale_factor"),
        (lambda: F.interpolate(X[None], 3, mode="bilinear", antialias=True), UnsupportedError, "antialias"),
        (lambda: F.pixel_shuffle(X, 2), ShapeError, "pixel_shuffle"),
        (lambda: init.xavier_normal(KEY, (3,)), ShapeError, "two axes"),
        (lambda: init.calculate_gain("softer"), ArgumentError, "softer"),
        (lambda: init.dirac((3, 2)), ShapeError, "dirac"),
        (lambda: init.kaiming_normal(KEY, (3, 2), mode="fan"), ArgumentError, "fan_in"),
    ],
)
def test_arguments_that_do_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("number", [-1, 3])
def test_a_row_out_of_bounds_is_noticed_under_jit(number):
    look = fnad.jit(lambda rows, w: F.embedding(rows, w))
    w = np.ones((3, 2))
    assert look(np.array([0, 2]), w).shape == (2, 2)
    with pytest.raises(IndexError):
        look(np.array([0, number]), w)


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_with_the_batch_first(is_causal):
    """Examples do not see each other."""
    net = layers.multi_head_attention(4, 2, is_causal=is_causal, batch_first=True)
    other = layers.multi_head_attention(4, 2, is_causal=is_causal)
    params, x = net.init(random.key(0)), np.random.default_rng(0).normal(size=(3, 5, 4))
    want = np.stack([other.apply(params, one) for one in x])
    np.testing.assert_allclose(net.apply(params, x), want, rtol=1e-12)
    np.testing.assert_allclose(net.apply(params, (x, x, x)), np.swapaxes(other.apply(params, np.swapaxes(x, 0, 1)), 0, 1), rtol=1e-12)
    np.testing.assert_allclose(net.apply(params, x[0]), want[0], rtol=1e-12)
