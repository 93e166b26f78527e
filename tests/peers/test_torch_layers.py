"""Every layer, activation and loss of the facade against PyTorch, where it is installed."""

import numpy as np
import pytest

from ..torch import layer_cases as cases
from ..torch.layer_cases import Draw

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers
from .facade import agree, modules_agree  # noqa: E402

rng = np.random.default_rng(0)
DRAW = Draw("functions")
x, i, distinct = DRAW.x, DRAW.i, DRAW.distinct


CASES = list(cases.each())
NOISY = {"Conv": 1e-10, "Transformer": 1e-10, "Hardsigmoid": 1e-7, "CELU": 1e-7}  # of the last two PyTorch's constants are float32


@pytest.mark.filterwarnings("ignore:Using padding=:UserWarning")
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")
@pytest.mark.parametrize(("call", "inputs"), CASES, ids=[call for call, _ in CASES])
def test_modules(call, inputs):
    tolerance = max([t for name, t in NOISY.items() if call.startswith(name)], default=None)
    shown = "Loss" not in call  # losses print nothing of their options, but what they hold
    modules_agree(lambda T: cases.make(T, call), *inputs, call=cases.use(call), tolerance=tolerance, shown=shown)


@pytest.mark.parametrize("call", cases.ACTIVATIONS)
def test_activations_in_float32(call):
    modules_agree(lambda T: cases.make(T, call), 2 * x(4, 6), dtype="float32", call=cases.use(call))


def test_softmax2d_and_functional_names():
    modules_agree(lambda T: T.nn.Softmax2d(), x(2, 3, 2, 2))
    for name in ("elu", "hardtanh", "leaky_relu", "selu", "celu", "relu", "threshold"):
        extra = (0.1, 3.0) if name == "threshold" else ()
        agree(lambda T, a, name=name, extra=extra: getattr(T.nn.functional, f"{name}_")(a * 1.0, *extra), x(5))
    agree(lambda T, a: T.nn.functional.leaky_relu(a * 1.0, 0.3, True), x(5))
    agree(lambda T, a: T.nn.functional.rrelu(a, 0.1, 0.3, False), x(5))
    agree(lambda T, a: T.nn.functional.normalize(a, dim=1), x(5, 3))


def check(layer, inputs, **options):
    modules_agree(lambda T: eval(f"T.nn.{layer}", {"T": T}), *inputs(Draw(layer)), **options)


def test_output_size_of_a_transposed_convolution():
    for size in ((5, 7), (2, 3, 6, 8)):
        modules_agree(
            lambda T: T.nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1),
            x(2, 4, 3, 4),
            call=lambda T, m, a, size=size: m(a, output_size=size),
        )


def test_adaptive_pooling_of_images_without_an_axis_of_examples():
    check("AdaptiveAvgPool2d((2, 1))", lambda d: [x(3, 4, 4)])
    check("MaxPool2d(2)", lambda d: [distinct(3, 4, 4)])


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"stride": 3}, {"padding": 1}])
def test_unpooling(n, options):
    def both(T, module, a):
        pool = getattr(T.nn, f"MaxPool{n}d")(3, **options, return_indices=True)
        out, where = pool(a)
        return module(out, where, output_size=a.shape[-n:])

    modules_agree(lambda T: getattr(T.nn, f"MaxUnpool{n}d")(3, **options), distinct(2, 2, *(7, 6, 8)[:n]), call=both)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", ["Zero", "Constant", "Reflection", "Replication", "Circular"])
def test_borders(n, name):
    value = ", 3.5" if name == "Constant" else ""
    for widths in ("1", str((1, 2, 0, 1, 2, 1)[: 2 * n])):
        check(f"{name}Pad{n}d({widths}{value})", lambda d: [x(2, 3, *(5, 4, 4)[:n])])


def test_batchmean():
    check("KLDivLoss(reduction='batchmean')", lambda d: [x(5, 4), d.p(5, 4)], shown=False)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("options", ["", ", num_layers=2, bidirectional=True", ", batch_first=True"])
@pytest.mark.parametrize("in_order", [True, False])
def test_sequences_of_different_lengths(kind, options, in_order):
    lengths = [5, 3, 1] if in_order else [3, 1, 5]

    def run(T, module, a):
        rnn = T.nn.utils.rnn
        packed = rnn.pack_padded_sequence(a, lengths, batch_first="batch_first" in options, enforce_sorted=in_order)
        out, state = module(packed)
        return [*rnn.pad_packed_sequence(out, "batch_first" in options, -1.0), state, packed.data, packed.batch_sizes]

    shape = (3, 5, 2) if "batch_first" in options else (5, 3, 2)
    modules_agree(lambda T: eval(f"T.nn.{kind}(2, 4{options})", {"T": T}), x(*shape), call=run)


def test_padding_of_sequences():
    parts = [x(3, 2), x(5, 2), x(1, 2)]
    agree(lambda T, *a: T.nn.utils.rnn.pad_sequence(a), *parts)
    agree(lambda T, *a: T.nn.utils.rnn.pad_sequence(a, True, -2.0, padding_side="left"), *parts)
    agree(lambda T, *a: T.nn.utils.rnn.unpack_sequence(T.nn.utils.rnn.pack_sequence(a, enforce_sorted=False)), *parts)


def test_masks_of_attention():
    causal, padding = np.triu(np.ones((4, 4), bool), 1), np.array([[False] * 4, [False, False, False, True]])
    for options in (
        {"attn_mask": causal},
        {"key_padding_mask": padding},
        {"attn_mask": causal, "key_padding_mask": padding, "average_attn_weights": False},
        {"attn_mask": np.where(causal, -np.inf, 0.0), "need_weights": False, "is_causal": True},
        {"attn_mask": rng.normal(size=(4, 4, 4))},
    ):
        modules_agree(
            lambda T: T.nn.MultiheadAttention(4, 2, batch_first=True),
            x(2, 4, 4),
            call=lambda T, m, a, o=options: m(a, a, a, **{k: T.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in o.items()}),
        )
    agree(lambda T, q, k, v: T.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), x(2, 3, 4), x(2, 3, 4), x(2, 3, 4))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_masks_of_transformers():
    padding = np.array([[False, False, True], [False, False, False]])

    def run(T, module, a, b):
        mask = T.nn.Transformer.generate_square_subsequent_mask(5).to(a.dtype)
        return module(a, b, tgt_mask=mask, src_key_padding_mask=T.from_numpy(padding), memory_key_padding_mask=T.from_numpy(padding))

    def make(T):
        return T.nn.Transformer(4, 2, 1, 1, 6, dropout=0.0, batch_first=True)

    modules_agree(make, x(2, 3, 4), x(2, 5, 4), call=run, tolerance=1e-10)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(mode, padding, corners):
    def run(T, a, g):
        return T.nn.functional.grid_sample(a, g, mode, padding, align_corners=corners)

    agree(run, x(2, 3, 4, 5), 1.3 * x(2, 3, 2, 2), tolerance=1e-10)
    if mode != "bicubic":
        agree(run, x(2, 2, 3, 4, 5), 1.3 * x(2, 3, 2, 2, 3), tolerance=1e-10)


@pytest.mark.filterwarnings("ignore:Since version 1.3.0, affine_grid:UserWarning")
@pytest.mark.parametrize("corners", [False, True])
def test_affine_grid(corners):
    agree(lambda T, t: T.nn.functional.affine_grid(t, (2, 3, 4, 5), corners), x(2, 2, 3))
    agree(lambda T, t: T.nn.functional.affine_grid(t, (2, 3, 4, 1, 5), corners), x(2, 3, 4))
