"""Record what torch.nn.functional computes: `python tests/peers/record_torch_families.py` in an environment with torch.

Values in float64, and for each real array the gradient of sum(value * cos(0, 1, 2, ...)).
"""

import importlib.util
import json
import pathlib

import torch

TESTS = pathlib.Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("recorded", TESTS / "nn" / "recorded.py")
recorded = importlib.util.module_from_spec(spec)
spec.loader.exec_module(recorded)
real, positive, values = recorded.real, recorded.positive, recorded.values
POINTS = values([-7.5, -3.0, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 1.3, 3.0, 6.0, 7.5, 25.0, -25.0])
CASES = []


def tensors(value):
    """The argument, and the arrays in it that are differentiated."""
    if isinstance(value, dict):
        t = torch.tensor(recorded.array(value))
        return (t.requires_grad_(), [t]) if t.is_floating_point() else (t, [])
    if recorded.holds_arrays(value):
        parts = [tensors(v) for v in value]
        return [p for p, _ in parts], [t for _, found in parts for t in found]
    return value, []


def add(name: str, *args, fixed: tuple = (), function=None, **options) -> None:
    """`fixed` are arguments without a derivative, by position or name."""
    given, floats = [], []
    for place, value in [*enumerate(args), *options.items()]:
        t, found = tensors(value)
        if place in fixed:
            t = t.detach()
            found = []
        given.append(t)
        floats += found
    named = dict(zip(options, given[len(args) :], strict=True))
    out = (function or getattr(torch.nn.functional, name))(*given[: len(args)], **named)
    outs = recorded.flat(out)
    total = sum((o * torch.cos(torch.arange(o.numel(), dtype=torch.float64)).reshape(o.shape)).sum() for o in outs)
    grads = torch.autograd.grad(total, floats, allow_unused=True)
    found = [rounded(torch.zeros_like(x) if g is None else g) for g, x in zip(grads, floats, strict=True)]
    outs = [rounded(o) for o in outs]
    CASES.append({"name": name, "args": args, "options": options, "fixed": list(fixed), "out": outs, "grads": found})


def rounded(t: torch.Tensor):
    """With 14 digits, which is what the tests compare."""
    cut = lambda x: [cut(y) for y in x] if isinstance(x, list) else float(f"{x:.14g}") if isinstance(x, float) else x
    return cut(t.tolist())


def convolutions() -> None:
    add("conv1d", real(2, 2, 6), real(4, 2, 3, k=1), real(4, k=2))
    add("conv1d", real(1, 4, 7), real(2, 2, 3, k=1), None, 2, 1, 1, 2)
    add("conv1d", real(2, 6), real(2, 2, 2, k=1), padding="same", dilation=2)
    add("conv2d", real(1, 4, 5, 4), real(4, 1, 3, 2, k=1), None, 1, [1, 0], [1, 2], 4)
    add("conv3d", real(1, 2, 3, 4, 3), real(2, 1, 2, 3, 2, k=1), real(2, k=2), [1, 2, 1], [0, 1, 0], 1, 2)
    add("conv3d", real(2, 3, 3, 3), real(1, 2, 2, 2, 2, k=1), None, padding="same")
    add("conv_transpose1d", real(2, 2, 3), real(2, 3, 4, k=1), real(3, k=2), 2, 1, 1)
    add("conv_transpose1d", real(4, 4), real(4, 1, 3, k=1), None, 1, 0, 0, 2, 2)
    add("conv_transpose2d", real(1, 2, 3, 2), real(2, 2, 3, 2, k=1), real(2, k=2), [2, 1], [1, 0], [1, 0], 1, [1, 2])
    add("conv_transpose2d", real(1, 2, 2, 2), real(2, 1, 2, 2, k=1), None, 1, 0, 1, 1, 2)
    add("conv_transpose3d", real(1, 2, 2, 2, 2), real(2, 1, 2, 1, 3, k=1), real(2, k=2), [1, 2, 2], [0, 0, 1], [0, 1, 1], 2)
    add("unfold", real(2, 2, 4, 3), [2, 2], 1, [1, 0], [2, 1])
    add("fold", real(1, 8, 4), [3, 3], 2)
    add("fold", real(4, 6), [4, 4], 2, [2, 1], [1, 0], [2, 1])


def pools() -> None:
    ties = values([[[0.0, 1.0, 1.0, -1.0, 1.0, 0.0, 0.0]]])
    for x in (real(1, 2, 7), ties):
        add("max_pool1d", x, 3, 2, 1)
        add("max_pool1d", x, 2, None, 0, 2, ceil_mode=True)
        add("adaptive_max_pool1d", x, 3)
    cube = values([[[[0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [2.0, 0.0, 2.0]], [[1.0, 1.0, 0.0], [0.0, 1.0, 2.0], [0.0, 2.0, 1.0]]]])
    for x in (real(1, 2, 3, 3), cube):
        add("max_pool3d", x, 2, 1, [0, 1, 1])
        add("max_pool3d", x, [2, 2, 2], [1, 2, 2], ceil_mode=True)
        add("adaptive_max_pool2d", x, 2)
        add("adaptive_max_pool3d", x, [1, 2, 2])
    add("avg_pool1d", real(1, 2, 7), 3, 2, 1)
    add("avg_pool1d", real(1, 7), 3, 2, 1, True, False)
    add("avg_pool3d", real(1, 3, 3, 4), 2, 1, 1, False, False)
    add("avg_pool3d", real(1, 3, 3, 4), [2, 2, 3], [1, 2, 2], [1, 0, 1], True, True)
    add("avg_pool3d", real(1, 2, 2, 4), 2, divisor_override=3)
    add("lp_pool1d", positive(1, 2, 7), 3, 3, 2)
    add("lp_pool2d", real(1, 5, 4), 2, 2, ceil_mode=True)
    add("lp_pool3d", real(1, 1, 2, 2, 4), 2.0, [2, 1, 2])
    add("lp_pool1d", values([[[0.0, 0.0, 1.0, 2.0]]]), 2, 2)
    add("adaptive_avg_pool1d", real(1, 2, 7), 3)
    add("adaptive_avg_pool2d", real(1, 5, 4), [2, 3])
    add("adaptive_avg_pool3d", real(1, 3, 4, 2), [2, 3, 1])


def norms() -> None:
    x = real(3, 2, 2)
    add("batch_norm", x, None, None, real(2, k=1), real(2, k=2), True)
    add("batch_norm", x, real(2, k=3), positive(2, k=4), real(2, k=1), real(2, k=2), False, eps=0.1, fixed=(1, 2))
    add("batch_norm", real(4, 3), None, None, training=True)
    add("instance_norm", real(2, 2, 3), None, None, real(2, k=1), real(2, k=2))
    add("instance_norm", real(2, 2, 2, 2), eps=0.01)
    add("instance_norm", real(2, 2, 2), real(2, k=3), positive(2, k=4), use_input_stats=False, fixed=(1, 2))
    add("group_norm", real(2, 4, 3), 2, real(4, k=1), real(4, k=2))
    add("group_norm", real(2, 4), 1)
    add("rms_norm", real(2, 3, 2), [3, 2], real(3, 2, k=1))
    add("rms_norm", real(2, 3), [3], eps=0.1)
    add("local_response_norm", real(1, 5, 3), 3, 0.5, 0.6, 1.5)
    add("local_response_norm", real(1, 4, 2, 2), 2)
    for p in (1.0, 2.0, 3.0):
        add("normalize", real(3, 4), p)
    add("normalize", values([[0.0, 3.0], [0.0, 4.0]]), 2.0, 0)
    moved = lambda *a, **o: (torch.nn.functional.batch_norm(a[0], m := a[1].clone(), v := a[2].clone(), *a[3:], **o), m, v)
    add("batch_norm", x, real(2, k=3), positive(2, k=4), training=True, momentum=0.3, fixed=(1, 2), function=moved)
    moved = lambda *a, **o: (torch.nn.functional.instance_norm(a[0], m := a[1].clone(), v := a[2].clone(), *a[3:], **o), m, v)
    add("instance_norm", real(2, 2, 3), real(2, k=3), positive(2, k=4), momentum=0.3, fixed=(1, 2), function=moved)


def maps() -> None:
    add("bilinear", real(3, 2), real(3, 4, k=1), real(2, 2, 4, k=2), real(2, k=3))
    add("bilinear", real(2, 2, 3), real(2, 2, 2, k=1), real(1, 3, 2, k=2))
    rows = values([[0, 2], [3, 0]])
    add("embedding", rows, real(4, 3))
    add("embedding", rows, real(4, 3), padding_idx=0)
    add("embedding", rows, real(4, 3), padding_idx=-1)


def nonlinearities() -> None:
    for name in ("relu6", "hardtanh", "leaky_relu", "elu", "selu", "celu", "hardsigmoid", "hardswish", "hardshrink", "softshrink",
                 "tanhshrink", "softsign", "logsigmoid", "mish", "rrelu"):  # fmt: skip
        add(name, POINTS)
    add("threshold", POINTS, 0.5, 2.0)
    add("hardtanh", POINTS, -0.5, 3.0)
    add("leaky_relu", POINTS, 0.2)
    add("elu", POINTS, 1.5)
    add("celu", POINTS, 2.0)
    add("hardshrink", POINTS, 1.0)
    add("softshrink", POINTS, 1.0)
    add("rrelu", POINTS, 0.1, 0.4)
    add("prelu", real(2, 3, 2), real(3, k=1))
    add("prelu", real(2, 3), real(1, k=1))
    add("prelu", POINTS, real(1, k=1))
    add("glu", real(3, 4))
    add("glu", real(4, 3), 0)
    add("softmin", real(3, 4), 1)


def losses() -> None:
    x, y, w = real(3, 4), real(3, 4, k=1), positive(3, 4, k=2)
    edge = values([0.0, 1.0, -1.0, 0.5, 2.0]), values([0.0, 0.0, 0.0, 0.0, 0.0])
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        for reduction in ("mean", "sum", "none"):
            add(name, x, y, reduction=reduction)
        add(name, *edge, reduction="none")
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        add(name, x, y, weight=w)
    add("smooth_l1_loss", x, y, beta=0.3, reduction="none")
    add("smooth_l1_loss", x, y, beta=0.0)
    add("huber_loss", x, y, delta=0.4, reduction="none")
    chances, certain = values([0.2, 0.7, 0.01, 0.999]), values([0.0, 1.0, 0.4, 1.0])
    add("binary_cross_entropy", chances, certain)
    add("binary_cross_entropy", chances, certain, real(4, k=1), reduction="sum", fixed=(2,))
    add("binary_cross_entropy", values([0.0, 1.0, 0.0, 1.0]), values([0.0, 0.0, 1.0, 1.0]), reduction="none", fixed=(1,))
    add("binary_cross_entropy_with_logits", real(2, 4), positive(2, 4, k=1))
    add(
        "binary_cross_entropy_with_logits",
        real(2, 4),
        positive(2, 4, k=1),
        positive(4, k=2),
        reduction="sum",
        pos_weight=positive(4, k=3),
        fixed=(2, "pos_weight"),
    )
    add("binary_cross_entropy_with_logits", values([100.0, -100.0, 0.0]), values([0.0, 1.0, 0.5]), reduction="none")
    for reduction in ("mean", "sum", "none", "batchmean"):
        add("kl_div", x, w, reduction=reduction)
        add("kl_div", x, y, reduction=reduction, log_target=True)
    add("kl_div", values([-1.0, -2.0]), values([0.0, 1.0]), reduction="none", fixed=(1,))
    add("poisson_nll_loss", x, w, fixed=(1,))
    add("poisson_nll_loss", w, values([[0.0, 1.0, 2.0, 5.0]] * 3), False, True, reduction="none", fixed=(1,))
    add("gaussian_nll_loss", x, y, w)
    add("gaussian_nll_loss", x, y, positive(3, k=2), True, reduction="sum")
    add("gaussian_nll_loss", x, y, positive(3, 1, k=2), eps=0.5, reduction="none")
    signs = values([[1, -1, 1, -1]] * 3)
    add("hinge_embedding_loss", x, signs, 0.7)
    add("hinge_embedding_loss", values([1.0, 1.0]), values([-1, 1]), reduction="none")
    add("margin_ranking_loss", x, y, signs, 0.2)
    add("margin_ranking_loss", values([1.0, 2.0]), values([1.0, 1.0]), values([1, -1]), reduction="none")
    add("soft_margin_loss", x, signs)
    labels = values([2, 0, 3])
    for p in (1, 2):
        add("multi_margin_loss", x, labels, p, 0.8)
        add("multi_margin_loss", x, labels, p, weight=positive(4, k=3), reduction="none", fixed=("weight",))
    add("multi_margin_loss", real(4), values(1))
    chosen = values([[3, 0, -1, 1], [-1, 0, 1, 2], [1, 2, 3, 0]])
    add("multilabel_margin_loss", x, chosen, reduction="none")
    add("multilabel_margin_loss", real(3), values([1, -1, 0]))
    add("multilabel_soft_margin_loss", x, values([[0.0, 1.0, 1.0, 0.0]] * 3), positive(4, k=1), fixed=(1, 2))
    for x1, x2 in ((x, y), (values([[0.0, 0.0], [3.0, 4.0]]), values([[1.0, 2.0], [3.0, 4.0]]))):
        add("cosine_similarity", x1, x2)
        add("pairwise_distance", x1, x2)
        add("pairwise_distance", x1, x2, 1.0, 1e-3, True)
    add("cosine_similarity", x, y, 0, 2.0)
    add("pdist", real(4, 3))
    add("pdist", real(3, 2), 3.0)
    add("cosine_embedding_loss", x, y, values([1, -1, -1]), 0.2, reduction="none")
    add("cosine_embedding_loss", real(4), real(4, k=1), values(1))
    for options in ({}, {"margin": 0.5, "p": 1.0, "reduction": "none"}, {"swap": True, "margin": 3.0}):
        add("triplet_margin_loss", x, y, real(3, 4, k=5), **options)
    add("triplet_margin_with_distance_loss", x, y, real(3, 4, k=5), margin=2.0, swap=True)
    ctc = lambda x, *rest, **options: torch.nn.functional.ctc_loss(torch.log_softmax(x, -1), *rest, **options)
    times, lengths, words = values([5, 4]), values([3, 2]), values([[1, 2, 2], [3, 1, 0]])
    for reduction in ("mean", "sum", "none"):
        add("ctc_of_logits", real(5, 2, 4), words, times, lengths, reduction=reduction, function=ctc)
    add("ctc_of_logits", real(5, 2, 4), values([1, 2, 2, 3, 1]), times, lengths, function=ctc)
    add("ctc_of_logits", real(5, 2, 4), values([[1, 1, 1], [0, 2, 0]]), times, lengths, 3, "sum", True, function=ctc)
    add("ctc_of_logits", real(3, 3), values([1, 2]), values(3), values(2), function=ctc)
    add("ctc_of_logits", real(3, 2, 3), values([[1], [1]]), values([3, 2]), values([0, 1]), reduction="none", function=ctc)


def recurrent() -> None:
    def cell(size, inputs, k, bias=True):
        both = [real(size, inputs, k=k), real(size, size // {2: 1, 6: 3, 8: 4}[size], k=k + 1)]
        return [*both, real(size, k=k + 2), real(size, k=k + 3)] if bias else both

    def module(name, states):
        def run(x, hx, params, nonlinearity="tanh", bidirectional=False, batch_first=False):
            flat = [w for weights in params for w in weights]
            layers = len(params) // (2 if bidirectional else 1)
            function = getattr(torch, f"rnn_{nonlinearity}" if name == "rnn" else name)
            out, *after = function(x, hx, flat, len(params[0]) == 4, layers, 0.0, False, bidirectional, batch_first)
            return out, *after

        return run

    for name, gates in (("rnn", 1), ("gru", 3), ("lstm", 4)):
        run, size = module(name, 1), 2 * gates
        state = lambda *shape: [real(*shape, k=8), real(*shape, k=9)] if name == "lstm" else real(*shape, k=8)  # noqa: B023
        add(name, real(3, 2, 3), state(1, 2, 2), [cell(size, 3, 1)], function=run)
        layers = [cell(size, 3, 1, False), cell(size, 3, 2, False), cell(size, 4, 3, False), cell(size, 4, 4, False)]
        add(name, real(2, 3, 3), state(4, 2, 2), layers, bidirectional=True, batch_first=True, function=run)
    add("rnn", real(3, 3), real(1, 2, k=5), [cell(2, 3, 1)], "relu", function=module("rnn", 1))
    vf = torch
    add("rnn_relu_cell", real(2, 3), real(2, 2, k=1), *cell(2, 3, 2), function=vf.rnn_relu_cell)
    add("rnn_tanh_cell", real(2, 3), real(2, 2, k=1), *cell(2, 3, 2), function=vf.rnn_tanh_cell)
    add("gru_cell", real(2, 3), real(2, 2, k=1), *cell(6, 3, 2, False), function=vf.gru_cell)
    add("lstm_cell", real(2, 3), [real(2, 2, k=1), real(2, 2, k=7)], *cell(8, 3, 2), function=vf.lstm_cell)


def attention() -> None:
    q, k, v = real(2, 3, 2), real(2, 4, 2, k=1), real(2, 4, 3, k=2)
    name = "scaled_dot_product_attention"
    seen = values([[True, False, True, True], [False, False, False, True], [False, False, False, False]])
    add(name, q, k, v)
    add(name, q, k, v, is_causal=True, scale=0.3)
    add(name, q, k, v, seen)
    add(name, q, k, v, real(3, 4, k=5))
    add(name, q, k, v, values([[0.0, -torch.inf, 1.0, 0.5]]), fixed=(3,))
    add(name, real(1, 4, 2, 2), real(1, 2, 3, 2, k=1), real(1, 2, 3, 2, k=2), enable_gqa=True)

    name = "multi_head_attention_forward"
    x, w, b, out, shift = real(3, 2, 4), real(12, 4, k=1), real(12, k=2), real(4, 4, k=3), real(4, k=4)
    hidden = values([[False, True, False], [False, False, True]])
    late = values([[False, True, True], [False, False, True], [False, False, False]])
    add(name, x, x, x, 4, 2, w, b, None, None, False, 0.0, out, shift)
    add(name, x, x, x, 4, 2, w, None, None, None, False, 0.0, out, None, key_padding_mask=hidden, average_attn_weights=False)
    add(name, x, x, x, 4, 2, w, b, None, None, True, 0.0, out, shift, attn_mask=real(3, 3, k=6), key_padding_mask=hidden)
    add(name, x, x, x, 4, 2, w, b, real(1, 1, 4, k=5), real(1, 1, 4, k=6), False, 0.0, out, shift, attn_mask=late, key_padding_mask=hidden)
    add(name, x, x, x, 4, 2, w, b, None, None, False, 0.0, out, shift, attn_mask=late, is_causal=True, need_weights=False)
    separate = {"q_proj_weight": real(4, 4), "k_proj_weight": real(4, 3), "v_proj_weight": real(4, 2), "use_separate_proj_weight": True}
    add(name, x, real(2, 2, 3, k=7), real(2, 2, 2, k=8), 4, 4, None, b, None, None, False, 0.0, out, shift, **separate)
    single = real(3, 4)
    add(name, single, single, single, 4, 1, w, b, None, None, False, 0.0, out, shift, attn_mask=real(1, 3, 3))


def grids() -> None:
    add("pad", real(2, 3), [1, 2])
    add("pad", real(1, 3, 4), [1, -1, 2, 0], "constant", 0.5)
    for mode in ("reflect", "replicate", "circular"):
        add("pad", real(1, 2, 4), [2, 1], mode)
        add("pad", real(1, 1, 3, 4), [2, 1, 1, 2], mode)
    add("pad", real(1, 1, 4), [-1, 2], "replicate")
    add("pixel_shuffle", real(1, 8, 2, 3), 2)
    add("pixel_unshuffle", real(1, 2, 4, 6), 2)
    add("channel_shuffle", real(1, 6, 2), 3)
    line, plane, cube = real(1, 2, 5), real(1, 1, 4, 3), real(1, 1, 2, 3, 2)
    for mode in ("nearest", "nearest-exact", "area"):
        for x in (line, plane, cube):
            add("interpolate", x, 4, mode=mode)
        add("interpolate", line, scale_factor=1.7, mode=mode)
    for corners in (False, True):
        for x, mode in ((line, "linear"), (plane, "bilinear"), (cube, "trilinear"), (plane, "bicubic")):
            add("interpolate", x, 6, mode=mode, align_corners=corners)
            add("interpolate", x, 1, mode=mode, align_corners=corners)
            add("interpolate", x, scale_factor=1.7, mode=mode, align_corners=corners)
    add("interpolate", plane, scale_factor=[0.6, 1.7], mode="bilinear", recompute_scale_factor=True)


if __name__ == "__main__":
    for family in (convolutions, pools, norms, maps, nonlinearities, losses, recurrent, attention, grids):
        family()
    lines = ",\n".join(json.dumps(case) for case in CASES)
    (TESTS / "nn" / "families_torch.json").write_text(f'{{"torch": "{torch.__version__}", "cases": [\n{lines}\n]}}\n')
