"""Functions of arrays without entries: empty batches, sequences without steps, examples without labels."""

import numpy as np
import pytest

import fnad
from fnad import random
from fnad.nn import functional as F

KEY = random.key(0)
CASES = {
    "conv1d": (lambda x: F.conv1d(x, np.ones((4, 2, 2))), (0, 2, 5)),
    "conv3d": (lambda x: F.conv3d(x, np.ones((4, 2, 2, 2, 2))), (0, 2, 3, 3, 3)),
    "depthwise": (lambda x: F.conv2d(x, np.ones((4, 1, 2, 2)), groups=2), (0, 2, 3, 3)),
    "conv_transpose2d": (lambda x: F.conv_transpose2d(x, np.ones((2, 4, 2, 2))), (0, 2, 3, 3)),
    "unfold": (lambda x: F.unfold(x, 2), (0, 2, 3, 3)),
    "max_pool1d": (lambda x: F.max_pool1d(x, 2), (0, 2, 4)),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), (0, 2, 4, 4, 4)),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), (2, 0, 4, 4, 4)),
    "lp_pool1d": (lambda x: F.lp_pool1d(x, 2, 2), (0, 4)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), (0, 2, 5, 5)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 2), (0, 2, 5, 5)),
    "batch_norm": (lambda x: F.batch_norm(x, np.zeros(2), np.ones(2)), (0, 2, 4)),
    "group_norm": (lambda x: F.group_norm(x, 2), (0, 4, 3)),
    "rms_norm": (lambda x: F.rms_norm(x, 3), (0, 3)),
    "embedding": (lambda w: F.embedding(np.zeros((0,), int), w), (3, 2)),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x), (0, 3, 2)),
    "attention without queries": (
        lambda x: F.scaled_dot_product_attention(x, np.ones((2, 3, 2)), np.ones((2, 3, 2)), is_causal=True),
        (2, 0, 2),
    ),
    "lstm without examples": (
        lambda x: F.lstm(x, (np.zeros((1, 0, 2)), np.zeros((1, 0, 2))), [(np.ones((8, 3)), np.ones((8, 2)))])[0],
        (4, 0, 3),
    ),
    "lstm without steps": (
        lambda x: F.lstm(x, (np.zeros((1, 2, 2)), np.zeros((1, 2, 2))), [(np.ones((8, 3)), np.ones((8, 2)))])[0],
        (0, 2, 3),
    ),
    "interpolate": (lambda x: F.interpolate(x, 4, mode="linear"), (0, 2, 3)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), (0, 4, 2, 2)),
    "pad": (lambda x: F.pad(x, (1, 1)), (0, 3)),
    "pad by the edge": (lambda x: F.pad(x, (1, 1), "replicate"), (0, 3)),
    "dropout": (lambda x: F.dropout(x, 0.5, key=KEY), (0, 3)),
    "glu": (lambda x: F.glu(x), (0, 4)),
    "elu": (F.elu, (0,)),
    "gumbel": (lambda x: F.gumbel_softmax(x, hard=True, key=KEY), (0, 3)),
    "l1_loss": (lambda x: F.l1_loss(x, x, "sum"), (0, 3)),
    "cosine_similarity": (lambda x: F.cosine_similarity(x, x), (0, 3)),
    "pdist": (lambda x: F.pdist(x), (1, 3)),
    "pdist of nothing": (lambda x: F.pdist(x), (0, 3)),
    "multi_margin_loss": (lambda x: F.multi_margin_loss(x, np.zeros(0, int), reduction="sum"), (0, 3)),
    "multilabel_margin_loss": (lambda x: F.multilabel_margin_loss(x, np.zeros((0, 3), int), reduction="sum"), (0, 3)),
    "ctc": (lambda x: F.ctc_loss(x, np.zeros((0, 2), int), np.zeros(0, int), np.zeros(0, int), reduction="sum"), (4, 0, 3)),
    "ctc without labels": (lambda x: F.ctc_loss(x, np.zeros((2, 0), int), np.array([4, 3]), np.zeros(2, int), reduction="sum"), (4, 2, 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_in_gives_nothing_out(name):
    function, shape = CASES[name]
    x = np.zeros(shape)
    out = function(x)
    assert np.shape(fnad.eval_shape(function, x)) == np.shape(out)
    gradient = fnad.grad(lambda x: np.sum(function(x)))(x)
    assert gradient.shape == shape
    assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize("name", ["depthwise", "max_pool3d", "batch_norm", "attention without queries", "lstm without steps"])
def test_compiled(name):
    function, shape = CASES[name]
    x = np.zeros(shape)
    np.testing.assert_array_equal(fnad.jit(function)(x), function(x))
    assert fnad.jit(fnad.grad(lambda x: np.sum(function(x))))(x).shape == shape


def test_one_hot():
    np.testing.assert_array_equal(F.one_hot(np.array([[0], [2]])), [[[1, 0, 0]], [[0, 0, 1]]])
    np.testing.assert_array_equal(fnad.jit(lambda x: F.one_hot(x, 4))(np.array([3, 1])), np.eye(4, dtype=int)[[3, 1]])
    assert F.one_hot(np.zeros((0,), int), 3).shape == (0, 3)
    with pytest.raises(fnad.errors.ArgumentError, match="num_classes"):
        F.one_hot(np.zeros((0,), int))
    with pytest.raises(fnad.errors.DTypeError, match="integers"):
        F.one_hot(np.zeros(2))
