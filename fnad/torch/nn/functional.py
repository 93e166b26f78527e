"""`torch.nn.functional`: the functions of `fnad.nn.functional`, of tensors; those that draw or keep statistics are written out here."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, DTypeError, UnknownNameError
from fnad.nn import functional as pure
from fnad.torch._call import lift, run
from fnad.torch._fused import fused
from fnad.torch._operators import sigmoid as sigmoid
from fnad.torch._operators import tanh as tanh
from fnad.torch._random import default_generator
from fnad.torch._tensor import make, method

_linear = fused(pure.linear)
cross_entropy, nll_loss, mse_loss = fused(pure.cross_entropy), fused(pure.nll_loss), fused(pure.mse_loss)
layer_norm, gelu, silu, softplus = fused(pure.layer_norm), fused(pure.gelu), fused(pure.silu), fused(pure.softplus)
_relu = fused(pure.relu)


def relu(input: Any, inplace: bool = False) -> Any:
    """max(x, 0) of each element."""
    return input.relu_() if inplace else _relu(input)


def relu_(input: Any) -> Any:
    """`relu`, in place."""
    return input.relu_()


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """input @ weight.T + bias.

    Raises:
        RuntimeError: sizes or dtypes do not fit.

    Reference: `torch.nn.functional.linear`.
    """
    x, w = input._data, weight._data
    if x.dtype != w.dtype:
        raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {input.dtype} and {weight.dtype}")
    if x.shape[-1:] != w.shape[-1:]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({tuple(x.shape)} and {tuple(w.shape[::-1])})")
    return _linear(input, weight, bias)


def _mask(input: Any, shape: tuple[int, ...], p: float) -> Any:
    """1 / (1 - p) with probability 1 - p, else 0."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if isinstance(input._data, Tracer):
        raise ArgumentError(
            "dropout in training mode draws numbers, which a compiled or transformed function would draw once",
            fix="call module.eval(), or write fnad.nn.functional.dropout with a key",
        )
    keep = default_generator.numpy.random(shape, np.float32) >= p
    return make((keep / (1 - p) if p < 1 else keep * 0.0).astype(input._data.dtype))


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Entries set to 0 with probability p, the others divided by 1 - p; the input itself if not training.

    Reference: `torch.nn.functional.dropout`; the stream of random numbers is fnad's.
    """
    if not training or p == 0:
        return input
    mask = _mask(input, input._data.shape, p)
    return input.mul_(mask) if inplace else input * mask


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Whole channels set to 0: see `dropout`."""
    if not training or p == 0:
        return input
    shape = input._data.shape
    mask = _mask(input, (*shape[:2], *(1,) * (len(shape) - 2)), p)
    return input.mul_(mask) if inplace else input * mask


dropout1d = dropout3d = dropout2d


def _normalized(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    channels = (-1, *(1,) * (x.ndim - 2))
    axes = (0, *range(2, x.ndim))
    mean = np.mean(x, axis=axes, keepdims=True)
    centred = x - mean
    out = centred / np.sqrt(np.mean(centred * centred, axis=axes, keepdims=True) + eps)
    out = out if weight is None else out * np.reshape(weight, channels)
    return out if bias is None else out + np.reshape(bias, channels)


def _with_statistics(x: Any, mean: Any, variance: Any, weight: Any, bias: Any, eps: float) -> Any:
    channels = (-1, *(1,) * (x.ndim - 2))
    out = (x - np.reshape(mean, channels)) / np.sqrt(np.reshape(variance, channels) + eps)
    out = out if weight is None else out * np.reshape(weight, channels)
    return out if bias is None else out + np.reshape(bias, channels)


def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False, momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Each channel (axis 1) with mean 0 and variance 1: of the batch in training, which then moves the running ones; else of these.

    Reference: `torch.nn.functional.batch_norm`.
    """
    x = input._data
    if not training:
        mean, variance = make(running_mean._data), make(running_var._data)
        return run(_with_statistics, (input, mean.clone(), variance.clone(), weight, bias, eps), {}, "batch_norm")
    count = x.size // x.shape[1]
    if count < 2:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    if running_mean is not None:
        axes = (0, *range(2, x.ndim))
        for running, new in ((running_mean, np.mean(x, axis=axes)), (running_var, np.var(x, axis=axes, ddof=1))):
            running._data = ((1 - momentum) * running._data + momentum * new).astype(running._data.dtype)
            running._counter[0] += 1
    return run(_normalized, (input, weight, bias, eps), {}, "batch_norm")


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """1 at the place that each number names, 0 elsewhere."""
    labels = tensor._data
    if labels.dtype.kind not in "iu":
        raise DTypeError("one_hot is only applicable to index tensor of type LongTensor", got={"dtype": tensor.dtype})
    n = int(labels.max()) + 1 if num_classes == -1 else num_classes
    if labels.size and (labels.min() < 0 or labels.max() >= n):
        raise RuntimeError("Class values must be non-negative and smaller than num_classes.")
    return make((labels[..., None] == np.arange(n)).astype(np.int64))


def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """The rows of a table at given numbers; the row `padding_idx` gets no gradient."""
    index = input._data
    rows = weight._data.shape[0]
    if index.size and (index.min() < 0 or index.max() >= rows):
        raise IndexError("index out of range in self")
    out = weight[input]
    if padding_idx is None:
        return out
    pad = (index == padding_idx % rows)[..., None]
    return out.detach().where(make(pad), out)


def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """Entries added at the ends of the last axes: `(left, right)` of the last, then of the one before, and so on."""
    widths = [(0, 0)] * input._data.ndim
    for k in range(len(pad) // 2):
        widths[-1 - k] = pad[2 * k], pad[2 * k + 1]
    if mode == "constant":
        return run(np.pad, (input, widths), {"constant_values": 0 if value is None else value}, "pad")
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    return run(np.pad, (input, widths), {"mode": modes[mode]}, "pad")


@method()
def softmax(input: Any, dim: Any = None, *, dtype: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along an axis."""
    return run(pure.softmax, (input if dtype is None else input.to(dtype), dim), {})


@method()
def log_softmax(input: Any, dim: Any = None, *, dtype: Any = None) -> Any:
    """The logarithm of the softmax along an axis."""
    return run(pure.log_softmax, (input if dtype is None else input.to(dtype), dim), {})


def __getattr__(name: str) -> Any:
    """Whatever else `fnad.nn.functional` has."""
    if name.startswith("__"):
        raise AttributeError(name)
    found = getattr(pure, name, None)
    if not callable(found):
        raise UnknownNameError(
            f"torch.nn.functional.{name} does not exist in fnad.torch",
            fix="compose it from other functions; docs/torch.md lists what there is",
        )
    globals()[name] = lifted = lift(found)
    return lifted
