"""Record what PyTorch computes, for the parity tests: `python tests/peers/record_torch.py` in an environment with torch.

Each file holds inputs, options and results, so that the tests need no torch.
"""

import itertools
import json
import pathlib

import torch

TESTS = pathlib.Path(__file__).resolve().parent.parent
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def cross_entropy() -> dict:
    """Loss and gradient of torch.nn.functional.cross_entropy."""
    torch.manual_seed(1)
    cases = []

    def add(name: str, x: torch.Tensor, y: torch.Tensor, **options) -> None:
        for dtype_name, dtype in DTYPES.items():
            xs = x.to(dtype).clone().requires_grad_()
            ys = y.to(dtype) if y.is_floating_point() else y
            given = {k: v.to(dtype) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
            loss = torch.nn.functional.cross_entropy(xs, ys, **given)
            loss.sum().backward()
            cases.append(
                {
                    "name": name, "dtype": dtype_name, "input": x.tolist(), "target": y.tolist(),
                    "probabilities": y.is_floating_point(), "loss": loss.tolist(), "grad": xs.grad.tolist(),
                    "options": {k: v.tolist() if isinstance(v, torch.Tensor) else v for k, v in options.items()},
                }
            )  # fmt: skip

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.float64).round(decimals=3)

    x, y = random(4, 5), torch.tensor([0, 4, 2, 3])
    p = torch.softmax(random(4, 5), 1).round(decimals=3)
    w = torch.tensor([0.5, 1.0, 2.0, 0.0, 1.5], dtype=torch.float64)
    holes = torch.tensor([0, -100, 2, -100])
    for reduction, smoothing, weight in itertools.product(("mean", "sum", "none"), (0.0, 0.2), (None, w)):
        options = {"reduction": reduction, "label_smoothing": smoothing, "weight": weight}
        add("labels", x, y, **options)
        add("ignored", x, holes, **options)
        add("probabilities", x, p, **options)
    add("ignore_index", x, y, ignore_index=2)
    add("one example", x[0], y[0])
    add("one example, none", x[0], y[0], reduction="none", label_smoothing=0.1)
    add("one example, probabilities", x[0], p[0])
    add("images", random(2, 3, 2, 2), torch.tensor([[[0, 1], [2, -100]], [[1, 1], [0, 2]]]), weight=w[:3])
    add("images, none", random(2, 3, 4), torch.tensor([[0, 1, 2, 0], [2, -100, 1, 1]]), reduction="none", label_smoothing=0.3)
    add("images, probabilities", random(2, 3, 2), torch.softmax(random(2, 3, 2), 1).round(decimals=3), label_smoothing=0.1)
    add("large", 1e4 * x, y, reduction="none")
    add("one class", random(3, 1), torch.tensor([0, 0, 0]))
    add("minus infinity", torch.where(x < -0.5, -torch.inf, x), x.argmax(1), reduction="none")
    return {"torch": torch.__version__, "cases": cases}


def functional() -> dict:
    """Values and gradients of functions of torch.nn.functional: for each argument that is an array, of sum(value * cos(0, 1, 2, ...))."""
    torch.manual_seed(3)
    cases = []

    def add(name: str, *args, **options) -> None:
        for dtype_name, dtype in DTYPES.items():
            given = [a.to(dtype).clone() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]
            for a in given[:1] if name == "nll_loss" else given:  # which has no derivative by its weight
                if isinstance(a, torch.Tensor):
                    a.requires_grad_()
            function = torch.logsumexp if name == "logsumexp" else getattr(torch.nn.functional, name)
            out = function(*given, **options)
            weights = torch.cos(torch.arange(out.numel(), dtype=dtype)).reshape(out.shape)
            (out * weights).sum().backward()
            cases.append(
                {
                    "name": name, "dtype": dtype_name, "options": options,
                    "args": [{"array": a.tolist()} if isinstance(a, torch.Tensor) else a for a in args],
                    "out": out.tolist(), "grads": [a.grad.tolist() for a in given if isinstance(a, torch.Tensor) and a.requires_grad],
                }
            )  # fmt: skip

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.float64).round(decimals=3)

    x = torch.cat([3 * random(7), torch.tensor([0.0, 1.0, -1.0, 8.0, -8.0, 25.0, -25.0], dtype=torch.float64)])
    for name in ("relu", "sigmoid", "tanh", "gelu", "silu", "softplus"):
        add(name, x)
    add("gelu", x, approximate="tanh")
    add("softplus", x, 2.0, 5.0)
    y = random(2, 3, 4)
    for name, dim in itertools.product(("softmax", "log_softmax", "logsumexp"), (0, 1, -1)):
        add(name, y, dim)
    add("logsumexp", y, (0, 2), True)
    add("logsumexp", 100 * y, 1)
    add("softmax", 100 * y, -1)
    add("layer_norm", y, (4,))
    add("layer_norm", y, (3, 4), random(3, 4), random(3, 4))
    add("layer_norm", y, (4,), random(4), eps=0.1)
    add("layer_norm", torch.full((2, 3), 1.5, dtype=torch.float64), (3,), random(3), random(3))
    add("linear", y, random(5, 4), random(5))
    add("linear", y[0, 0], random(2, 4))
    add("linear", y, random(4))
    images(add, random)
    labels = torch.tensor([0, 4, -100, 3])
    logp, w = random(4, 5), torch.tensor([0.5, 1.0, 2.0, 0.0, 1.5], dtype=torch.float64)
    for reduction in ("mean", "sum", "none"):
        add("mse_loss", y, y + random(2, 3, 4), reduction=reduction)
        add("nll_loss", logp, labels, reduction=reduction)
        add("nll_loss", logp, labels, w, reduction=reduction)
    add("nll_loss", random(2, 3, 2), torch.tensor([[0, 1], [2, 2]]), ignore_index=2)
    return {"torch": torch.__version__, "cases": cases}


def images(add, random) -> None:
    """Convolution and pooling. Where no options are given, images are small, so that the records are."""
    x = random(1, 2, 5, 6)
    add("conv2d", random(2, 2, 3, 4), random(3, 2, 2, 3), random(3))
    add("conv2d", x, random(4, 1, 3, 3), random(4), stride=2, padding=1, groups=2)
    add("conv2d", x, random(2, 2, 2, 2), None, (2, 1), (0, 2), (1, 2))
    add("conv2d", x, random(2, 2, 3, 2), padding="same")
    add("conv2d", x[0], random(2, 2, 1, 1), random(2), padding="valid")
    ties = x.round()
    for z in (x, ties, x[0]):
        add("max_pool2d", z, 2)
        add("avg_pool2d", z, 2)
    add("max_pool2d", ties, (3, 2), (1, 2), 1, (1, 2))
    add("max_pool2d", ties, 3, 2, 1, ceil_mode=True)
    add("max_pool2d", x, 2, 2, ceil_mode=True)
    add("max_pool2d", torch.full((1, 3, 3), -torch.inf, dtype=torch.float64), 3, 1, 1)
    for include in (True, False):
        add("avg_pool2d", x, 3, 2, 1, count_include_pad=include)
        add("avg_pool2d", x, 3, 2, 1, ceil_mode=True, count_include_pad=include)
        add("avg_pool2d", x, (2, 4), (1, 3), ceil_mode=True, count_include_pad=include)
    add("avg_pool2d", x, (2, 3), (1, 2), (1, 0), divisor_override=5)


def write(path: pathlib.Path, data: dict) -> None:
    """One row per line, so that a difference can be read."""
    lines = []
    for key, value in data.items():
        rows = "[\n" + ",\n".join(map(json.dumps, value)) + "\n]" if isinstance(value, list) else json.dumps(value)
        lines.append(f"{json.dumps(key)}: {rows}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write(TESTS / "nn" / "cross_entropy_torch.json", cross_entropy())
    write(TESTS / "nn" / "functional_torch.json", functional())
