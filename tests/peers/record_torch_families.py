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
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        parts = [tensors(v) for v in value]
        return [p for p, _ in parts], [t for _, found in parts for t in found]
    return value, []


def add(name: str, *args, fixed: tuple = (), function=None, **options) -> None:
    """`fixed` are arguments without a derivative, by position or name."""
    given, floats = [], []
    for place, value in [*enumerate(args), *options.items()]:
        t, found = tensors(value)
        if place in fixed:
            t = [x.detach() for x in t] if isinstance(t, list) else t.detach()
            found = []
        given.append(t)
        floats += found
    named = dict(zip(options, given[len(args) :], strict=True))
    out = (function or getattr(torch.nn.functional, name))(*given[: len(args)], **named)
    outs = [o for o in (out if isinstance(out, tuple) else (out,)) if o is not None]
    total = sum((o * torch.cos(torch.arange(o.numel(), dtype=torch.float64)).reshape(o.shape)).sum() for o in outs)
    grads = torch.autograd.grad(total, floats, allow_unused=True)
    CASES.append(
        {
            "name": name, "args": args, "options": options, "fixed": list(fixed),
            "out": [rounded(o) for o in outs], "grads": [rounded(torch.zeros_like(x) if g is None else g) for g, x in zip(grads, floats, strict=True)],
        }
    )  # fmt: skip


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


if __name__ == "__main__":
    for family in (convolutions, pools, norms, maps):
        family()
    lines = ",\n".join(json.dumps(case) for case in CASES)
    (TESTS / "nn" / "families_torch.json").write_text(f'{{"torch": "{torch.__version__}", "cases": [\n{lines}\n]}}\n')
