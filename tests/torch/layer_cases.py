"""Layers and losses, as PyTorch writes them, with inputs; compared with PyTorch live where it is installed, and with what it gave."""

from __future__ import annotations

import zlib

import numpy as np


class Draw:
    """Inputs of a case, always the same."""

    def __init__(self, case):
        self.rng = np.random.RandomState(zlib.crc32(case.encode()))

    def x(self, *shape):
        """Normal numbers."""
        return self.rng.normal(size=shape)

    def i(self, high, *shape):
        """Integers below `high`."""
        return np.asarray(self.rng.randint(0, high, shape), np.int64)

    def u(self, *shape):
        """Numbers between 0.05 and 0.95."""
        return self.rng.uniform(0.05, 0.95, shape)

    def p(self, *shape):
        """Probabilities, whose sum along the last axis is 1."""
        return self.rng.dirichlet(np.ones(shape[-1]), shape[:-1])

    def signs(self, *shape):
        """1 or -1."""
        return np.where(self.rng.uniform(size=shape) < 0.5, -1, 1)

    def distinct(self, *shape):
        """Numbers at least 0.1 apart: pooling has no ties."""
        return self.rng.permutation(int(np.prod(shape))).reshape(shape) * 0.1


ACTIVATIONS = [
    "ReLU()", "Sigmoid()", "Tanh()", "SELU()", "ReLU6()", "Hardsigmoid()", "Hardswish()", "Softsign()", "Tanhshrink()", "LogSigmoid()",
    "CELU()", "CELU(0.7)", "ELU()", "ELU(alpha=0.5)", "GELU()", "GELU('tanh')", "SiLU()", "Mish()", "Softplus()", "Softplus(2, 1.0)",
    "Softmax(1)", "Softmax(dim=-1)", "Softmin(1)", "LogSoftmax(0)", "LeakyReLU()", "LeakyReLU(0.2)", "Hardtanh()", "Hardtanh(-2, 0.5)",
    "Softshrink()", "Softshrink(0.2)", "Hardshrink()", "GLU()", "GLU(0)", "PReLU()", "PReLU(6)", "Threshold(0.1, 20)", "ELU(0.5, True)",
    "LeakyReLU(inplace=True)", "ReLU(True)", "ReLU(inplace=True)", "Hardtanh(inplace=True)", "SiLU(inplace=True)",
]  # fmt: skip

LAYERS = [
    ("Linear(3, 2)", lambda d: [d.x(4, 3)]),
    ("LinearCrossEntropyLoss(3, 4, bias=True)", lambda d: [d.x(5, 3), d.i(4, 5)]),
    ("LinearCrossEntropyLoss(3, 4, out_features=(2,), reduction='sum', label_smoothing=0.1)", lambda d: [d.x(5, 3), d.i(4, 5, 2)]),
    ("AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6], div_value=2.0, head_bias=True)", lambda d: [d.x(7, 8), d.i(10, 7)]),
    ("AdaptiveLogSoftmaxWithLoss(8, 6, [2])", lambda d: [d.x(8), d.i(6)]),
    ("Linear(3, 2, bias=False)", lambda d: [d.x(3)]),
    ("Bilinear(3, 2, 4)", lambda d: [d.x(5, 3), d.x(5, 2)]),
    ("Bilinear(3, 2, 4, bias=False)", lambda d: [d.x(2, 5, 3), d.x(2, 5, 2)]),
    ("Identity()", lambda d: [d.x(3)]),
    ("Flatten()", lambda d: [d.x(2, 3, 4)]),
    ("Flatten(0, 1)", lambda d: [d.x(2, 3, 4)]),
    ("Unflatten(1, (2, 3))", lambda d: [d.x(2, 6)]),
    ("Embedding(7, 3)", lambda d: [d.i(7, 2, 5)]),
    ("Embedding(7, 3, padding_idx=2)", lambda d: [d.i(7, 2, 5)]),
    ("Embedding(7, 3, padding_idx=-1)", lambda d: [d.i(7, 2, 5)]),
    ("Embedding(7, 3, scale_grad_by_freq=True)", lambda d: [d.i(7, 2, 5)]),
    ("Embedding(7, 3, max_norm=1.0)", lambda d: [d.i(7, 2, 5)]),
    ("Embedding(7, 3, max_norm=1.5, norm_type=1.0)", lambda d: [d.i(7, 2, 5)]),
    ("EmbeddingBag(7, 3)", lambda d: [d.i(7, 2, 5)]),
    ("EmbeddingBag(7, 3, mode='sum')", lambda d: [d.i(7, 9), np.array([0, 2, 2, 6])]),
    ("EmbeddingBag(7, 3, mode='max')", lambda d: [d.i(7, 9), np.array([0, 2, 2, 6])]),
    ("EmbeddingBag(7, 3, padding_idx=1)", lambda d: [d.i(3, 9), np.array([0, 4])]),
    ("EmbeddingBag(7, 3, mode='sum', include_last_offset=True)", lambda d: [d.i(7, 9), np.array([0, 4, 9])]),
    ("EmbeddingBag(7, 3, max_norm=1.0)", lambda d: [d.i(7, 2, 5)]),
    ("CosineSimilarity()", lambda d: [d.x(4, 3), d.x(4, 3)]),
    ("CosineSimilarity(dim=0, eps=1e-4)", lambda d: [d.x(4, 3), d.x(4, 3)]),
    ("PairwiseDistance()", lambda d: [d.x(4, 3), d.x(4, 3)]),
    ("PairwiseDistance(p=1.0, keepdim=True)", lambda d: [d.x(4, 3), d.x(4, 3)]),
    ("PixelShuffle(2)", lambda d: [d.x(1, 8, 2, 3)]),
    ("PixelUnshuffle(2)", lambda d: [d.x(1, 2, 4, 6)]),
    ("ChannelShuffle(2)", lambda d: [d.x(1, 4, 2, 3)]),
    ("Dropout(0.0)", lambda d: [d.x(3, 4)]),
    ("Dropout1d(0.0)", lambda d: [d.x(3, 4, 2)]),
    ("Dropout2d(0.0)", lambda d: [d.x(3, 4, 2, 2)]),
    ("Dropout3d(0.0)", lambda d: [d.x(3, 4, 2, 2, 2)]),
    ("AlphaDropout(0.0)", lambda d: [d.x(3, 4)]),
    ("FeatureAlphaDropout(0.0)", lambda d: [d.x(3, 4)]),
    ("Unfold(2, padding=1, stride=2)", lambda d: [d.x(2, 3, 5, 4)]),
    ("Fold((4, 5), (2, 3))", lambda d: [d.x(2, 12, 9)]),
    ("Upsample(scale_factor=2)", lambda d: [d.x(1, 2, 3, 4)]),
    ("Upsample((5, 7), mode='bilinear', align_corners=True)", lambda d: [d.x(1, 2, 3, 4)]),
    ("Upsample(scale_factor=(1.5, 2.0), mode='bicubic')", lambda d: [d.x(1, 2, 4, 4)]),
    ("UpsamplingNearest2d(scale_factor=2)", lambda d: [d.x(1, 2, 3, 4)]),
    ("UpsamplingBilinear2d(size=6)", lambda d: [d.x(1, 2, 3, 4)]),
    ("LocalResponseNorm(3)", lambda d: [d.x(2, 5, 3)]),
    ("LocalResponseNorm(2, alpha=0.1, beta=0.5, k=2.0)", lambda d: [d.x(2, 5, 3, 2)]),
]  # fmt: skip
CONVOLUTIONS = [
    (f"Conv{n}d({channels})", lambda d, n=n: [d.x(2, 4, *(7, 6, 5)[:n])])
    for n in (1, 2, 3)
    for channels in (
        "4, 6, 3", "4, 2, 2, stride=2, padding=1, bias=False", "4, 4, 3, groups=2, dilation=2, padding=2", "4, 3, 3, padding='same'",
        "4, 3, 3, padding=1, padding_mode='reflect'", "4, 3, 3, padding='same', padding_mode='circular'",
        "4, 3, 2, padding='same', padding_mode='replicate'",
    )
] + [
    (f"ConvTranspose{n}d({channels})", lambda d, n=n: [d.x(2, 4, *(3, 4, 3)[:n])])
    for n in (1, 2, 3)
    for channels in ("4, 6, 3", "4, 2, 2, stride=2, padding=1, output_padding=1, bias=False", "4, 4, 3, groups=2, dilation=2")
]  # fmt: skip
NORMALISATION = [
    ("LayerNorm(4)", lambda d: [d.x(2, 3, 4)]),
    ("LayerNorm((3, 4), eps=1e-3, bias=False)", lambda d: [d.x(2, 3, 4)]),
    ("LayerNorm(4, elementwise_affine=False)", lambda d: [d.x(2, 3, 4)]),
    ("RMSNorm(4)", lambda d: [d.x(2, 3, 4)]),
    ("RMSNorm((3, 4), eps=1e-3)", lambda d: [d.x(2, 3, 4)]),
    ("GroupNorm(2, 4)", lambda d: [d.x(3, 4, 5)]),
    ("GroupNorm(2, 4, affine=False)", lambda d: [d.x(3, 4)]),
    *(
        (f"{kind}Norm{n}d({options})", lambda d, n=n: [d.x(3, 4, *(3, 2, 2)[:n])])
        for n in (1, 2, 3)
        for kind, options in (
            ("Batch", "4"), ("Batch", "4, momentum=None"), ("Batch", "4, affine=False, momentum=0.3"),
            ("Batch", "4, track_running_stats=False"), ("Batch", "4, bias=False"),
            ("Instance", "4"), ("Instance", "4, affine=True"), ("Instance", "4, affine=True, track_running_stats=True, momentum=0.4"),
        )
    ),
    ("BatchNorm1d(4)", lambda d: [d.x(3, 4)]),
    ("InstanceNorm1d(4)", lambda d: [d.x(4, 5)]),
    ("InstanceNorm2d(4, affine=True)", lambda d: [d.x(4, 5, 3)]),
]  # fmt: skip
POOLING = [
    (f"{kind}Pool{n}d({options})", lambda d, n=n: [d.distinct(2, 3, *(7, 6, 5)[:n])])
    for n in (1, 2, 3)
    for kind, options in (
        ("Max", "2"), ("Max", "3, 2, 1, ceil_mode=True"), ("Max", "2, stride=1, dilation=2"), ("Max", "2, return_indices=True"),
        ("Max", "3, stride=2, padding=1, ceil_mode=True, return_indices=True"), ("Avg", "2"), ("Avg", "3, 2, 1, ceil_mode=True"),
        ("Avg", "3, 2, 1, count_include_pad=False"), ("LP", "2, 2"), ("LP", "3, 2, stride=1, ceil_mode=True"),
        ("AdaptiveAvg", "3"), ("AdaptiveAvg", str((2, None, 1)[:n])), ("AdaptiveMax", "3"),
        ("AdaptiveMax", f"{(3, 2, 2)[:n]}, return_indices=True"),
    )
]  # fmt: skip
LOSSES = [
    ("MSELoss({})", lambda d: [d.x(5, 4), d.x(5, 4)]),
    ("L1Loss({})", lambda d: [d.x(5, 4), d.x(5, 4)]),
    ("SmoothL1Loss({}, beta=0.5)", lambda d: [d.x(5, 4), d.x(5, 4)]),
    ("HuberLoss({}, delta=0.7)", lambda d: [d.x(5, 4), d.x(5, 4)]),
    ("CrossEntropyLoss({})", lambda d: [d.x(5, 4), d.i(4, 5)]),
    ("CrossEntropyLoss({}, label_smoothing=0.2, ignore_index=2)", lambda d: [d.x(5, 4, 3), d.i(4, 5, 3)]),
    ("CrossEntropyLoss({}, weight=T.tensor([1.0, 2.0, 0.5, 1.5]).double())", lambda d: [d.x(5, 4), d.i(4, 5)]),
    ("CrossEntropyLoss({}, label_smoothing=0.1)", lambda d: [d.x(5, 4), d.p(5, 4)]),
    ("NLLLoss({}, ignore_index=1)", lambda d: [d.x(5, 4), d.i(4, 5)]),
    ("NLLLoss({}, weight=T.tensor([1.0, 2.0, 0.5, 1.5]).double())", lambda d: [d.x(5, 4, 2, 2), d.i(4, 5, 2, 2)]),
    ("BCELoss({})", lambda d: [d.u(5, 4), d.u(5, 4)]),
    ("BCEWithLogitsLoss({})", lambda d: [d.x(5, 4), d.u(5, 4)]),
    ("BCEWithLogitsLoss({}, pos_weight=T.tensor([1.0, 2.0, 0.5, 1.5]).double())", lambda d: [d.x(5, 4), d.u(5, 4)]),
    ("KLDivLoss({})", lambda d: [d.x(5, 4), d.p(5, 4)]),
    ("KLDivLoss({}, log_target=True)", lambda d: [d.x(5, 4), d.x(5, 4)]),
    ("HingeEmbeddingLoss({}, margin=0.8)", lambda d: [d.x(5), d.signs(5)]),
    ("MarginRankingLoss({}, margin=0.3)", lambda d: [d.x(5), d.x(5), d.signs(5)]),
    ("CosineEmbeddingLoss({}, margin=0.1)", lambda d: [d.x(5, 3), d.x(5, 3), d.signs(5)]),
    ("TripletMarginLoss({}, margin=0.9, swap=True)", lambda d: [d.x(5, 3), d.x(5, 3), d.x(5, 3)]),
    ("TripletMarginLoss({}, p=1.0)", lambda d: [d.x(5, 3), d.x(5, 3), d.x(5, 3)]),
    ("TripletMarginWithDistanceLoss({}, distance_function=T.nn.PairwiseDistance(p=1.0))", lambda d: [d.x(5, 3), d.x(5, 3), d.x(5, 3)]),
    ("PoissonNLLLoss({}, full=True)", lambda d: [d.x(5), np.array([0.0, 1.0, 2.0, 5.0, 3.0])]),
    ("PoissonNLLLoss({}, log_input=False)", lambda d: [d.u(5) + 0.5, np.array([0.0, 1.0, 2.0, 5.0, 3.0])]),
    ("GaussianNLLLoss({}, full=True)", lambda d: [d.x(5, 2), d.x(5, 2), d.u(5, 2) + 0.5]),
    ("SoftMarginLoss({})", lambda d: [d.x(5), d.signs(5).astype(float)]),
    ("MultiMarginLoss({}, p=2, margin=0.6)", lambda d: [d.x(5, 4), d.i(4, 5)]),
    ("MultiMarginLoss({}, weight=T.tensor([1.0, 2.0, 0.5, 1.5]).double())", lambda d: [d.x(5, 4), d.i(4, 5)]),
    ("MultiLabelMarginLoss({})", lambda d: [d.x(2, 4), np.array([[1, 3, -1, 0], [0, -1, 1, 2]])]),
    ("MultiLabelSoftMarginLoss({})", lambda d: [d.x(5, 4), (d.u(5, 4) < 0.5).astype(float)]),
    ("CTCLoss({})", lambda d: [np.log(d.p(6, 3, 4)), d.i(3, 3, 2) + 1, np.array([6, 5, 4]), np.array([2, 1, 2])]),
    ("CTCLoss({}, blank=3)", lambda d: [d.x(6, 3, 4), np.array([0, 1, 2, 0, 1]), np.array([6, 5, 4]), np.array([2, 1, 2])]),
    ("CTCLoss({}, zero_infinity=True)", lambda d: [d.x(3, 2, 4), d.i(3, 2, 3) + 1, np.array([2, 3]), np.array([3, 2])]),
]  # fmt: skip
RECURRENT = [
    *((f"{kind}(3, 4)", lambda d: [d.x(5, 2, 3)]) for kind in ("RNN", "GRU", "LSTM")),
    *((f"{kind}(3, 4, num_layers=2, bidirectional=True, batch_first=True)", lambda d: [d.x(2, 5, 3)]) for kind in ("RNN", "GRU", "LSTM")),
    ("RNN(3, 4, 1, 'relu', False)", lambda d: [d.x(5, 3), d.x(1, 4)]),
    ("GRU(3, 4, bias=False)", lambda d: [d.x(5, 2, 3), d.x(1, 2, 4)]),
    ("LSTM(3, 4)", lambda d: [d.x(5, 2, 3), (d.x(1, 2, 4), d.x(1, 2, 4))]),
    *((f"{kind}Cell(3, 4)", lambda d: [d.x(2, 3)]) for kind in ("RNN", "GRU", "LSTM")),
    ("RNNCell(3, 4, nonlinearity='relu')", lambda d: [d.x(2, 3), d.x(2, 4)]),
    ("GRUCell(3, 4, bias=False)", lambda d: [d.x(3), d.x(4)]),
    ("LSTMCell(3, 4)", lambda d: [d.x(2, 3), (d.x(2, 4), d.x(2, 4))]),
]  # fmt: skip
ATTENTION = [
    ("MultiheadAttention(4, 2)", lambda d: [d.x(3, 2, 4), d.x(5, 2, 4), d.x(5, 2, 4)]),
    ("MultiheadAttention(4, 2, batch_first=True, bias=False)", lambda d: [d.x(2, 3, 4), d.x(2, 5, 4), d.x(2, 5, 4)]),
    ("MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True)", lambda d: [d.x(3, 2, 4), d.x(5, 2, 4), d.x(5, 2, 4)]),
    ("MultiheadAttention(4, 2, kdim=3, vdim=5)", lambda d: [d.x(3, 2, 4), d.x(5, 2, 3), d.x(5, 2, 5)]),
    ("MultiheadAttention(4, 2)", lambda d: [d.x(3, 4), d.x(5, 4), d.x(5, 4)]),
]  # fmt: skip
TRANSFORMERS = [
    ("TransformerEncoderLayer(4, 2, 6, dropout=0.0)", lambda d: [d.x(3, 2, 4)]),
    ("TransformerEncoderLayer(4, 2, 6, 0.0, 'gelu', batch_first=True, norm_first=True, bias=False)", lambda d: [d.x(2, 3, 4)]),
    ("TransformerDecoderLayer(4, 2, 6, dropout=0.0)", lambda d: [d.x(3, 2, 4), d.x(5, 2, 4)]),
    ("TransformerDecoderLayer(4, 2, 6, 0.0, norm_first=True, batch_first=True)", lambda d: [d.x(2, 3, 4), d.x(2, 5, 4)]),
    ("Transformer(4, 2, 2, 2, 6, dropout=0.0, batch_first=True)", lambda d: [d.x(2, 3, 4), d.x(2, 5, 4)]),
    (
        "TransformerEncoder(T.nn.TransformerEncoderLayer(4, 2, 6, 0.0, batch_first=True), 2, T.nn.LayerNorm(4), False)",
        lambda d: [d.x(2, 3, 4)],
    ),
]  # fmt: skip


def make(T, call):
    """The module that a case is, of the library `T`."""
    return eval(f"T.nn.{call}", {"T": T})


def use(call):
    """How the module of a case is called."""

    def run(T, module, *inputs):
        if call.split("(")[0] + "(" in {c.split("(")[0] + "(" for c in ACTIVATIONS}:
            return module(inputs[0] * 1.0)  # not a leaf, so that it may change
        if call.startswith("KLDiv") and "log_target" not in call:
            return module(inputs[0].log_softmax(1), inputs[1].detach())
        if call.startswith(("BCE", "Poisson", "GaussianNLL", "SoftMargin", "MultiLabelSoft")):
            return module(inputs[0], inputs[1].detach(), *inputs[2:])
        return module(*inputs)

    return run


def each(draw=Draw):
    """All cases: the call and its inputs; losses in each reduction."""
    for call in ACTIVATIONS:
        yield call, [2 * draw(call).x(4, 6)]
    for table in (LAYERS, CONVOLUTIONS, NORMALISATION, POOLING, RECURRENT, ATTENTION, TRANSFORMERS):
        for call, inputs in table:
            yield call, inputs(draw(call))
    for call, inputs in LOSSES:
        for reduction in ("mean", "sum", "none"):
            yield call.format(f"reduction={reduction!r}"), inputs(draw(call))


def tensors(T, x, dtype="float64", grad=True):
    """Arrays in tuples, lists and dicts as tensors; those of floats require gradients."""
    if isinstance(x, np.ndarray):
        t = T.from_numpy(x.astype(dtype) if x.dtype.kind == "f" else x.copy())
        return t.requires_grad_(True) if grad and x.dtype.kind == "f" else t
    if isinstance(x, dict):
        return {k: tensors(T, v, dtype, grad) for k, v in x.items()}
    return type(x)(tensors(T, v, dtype, grad) for v in x) if isinstance(x, tuple | list) else x


def leaves(x):
    """The tensors in tuples, lists and dicts, in order."""
    if isinstance(x, tuple | list):
        return [t for v in x for t in leaves(v)]
    if isinstance(x, dict):
        return leaves(list(x.values()))
    return [x] if hasattr(x, "detach") else []


def backward(T, outputs):
    """Weights that differ from entry to entry; nothing goes through integers."""
    total = 0
    for k, y in enumerate(leaves(outputs)):
        if y.requires_grad:
            factors = np.cos(np.arange(y.numel()) + k).reshape(tuple(y.shape))
            total = total + (y * T.from_numpy(factors).to(y.dtype)).sum()
    if not isinstance(total, int):
        total.backward()


def fill(T, module):
    """Parameters that are the same in both libraries."""
    with T.no_grad():
        for k, p in enumerate(module.parameters()):
            p.copy_(T.from_numpy(0.5 * np.sin(0.7 * np.arange(p.numel()) + k).reshape(tuple(p.shape))))


def summary(t):
    """A tensor as dtype, shape and two sums; None as it is."""
    if t is None:
        return None
    a = t.detach().numpy().astype(np.float64)
    weights = np.sin(np.arange(a.size) + 1.0)
    return [str(t.dtype), list(a.shape), float(np.dot(a.ravel(), weights)), float(np.abs(a).sum())]


def answers(T, call, inputs):
    """What a library makes of a case: text, names, values, gradients, buffers, values in evaluation."""
    module = make(T, call).to(T.float64)
    fill(T, module)
    arguments = tensors(T, inputs)
    out = use(call)(T, module, *arguments)
    backward(T, out)
    found = [*leaves(out), *(x.grad for x in leaves(arguments) if x.requires_grad), *(p.grad for p in module.parameters())]
    found += [b.clone() for b in module.buffers()]
    module.eval()
    with T.no_grad():
        found += leaves(use(call)(T, module, *tensors(T, inputs, grad=False)))
    return [repr(module), list(module.state_dict()), [summary(t) for t in found]]
