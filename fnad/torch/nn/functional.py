"""`torch.nn.functional`: the functions of `fnad.nn.functional`, of tensors.

Those that draw take their keys from `torch.manual_seed`'s generator; those that change their arguments in PyTorch do so here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, UnknownNameError
from fnad.nn import functional as pure
from fnad.torch._call import changed, lift, run
from fnad.torch._fused import fused
from fnad.torch._operators import relu as _relu
from fnad.torch._operators import sigmoid as sigmoid
from fnad.torch._operators import tanh as tanh
from fnad.torch._random import default_generator
from fnad.torch._tensor import make, method

_linear = fused(pure.linear)
cross_entropy, nll_loss, mse_loss = fused(pure.cross_entropy), fused(pure.nll_loss), fused(pure.mse_loss)
l1_loss, smooth_l1_loss, huber_loss = fused(pure.l1_loss), fused(pure.smooth_l1_loss), fused(pure.huber_loss)
binary_cross_entropy = fused(pure.binary_cross_entropy)
binary_cross_entropy_with_logits = fused(pure.binary_cross_entropy_with_logits)
layer_norm, gelu, softplus = fused(pure.layer_norm), fused(pure.gelu), fused(pure.softplus)


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


def draw_key(generator: Any = None) -> np.ndarray[Any, Any]:
    """A key of `fnad.random` from the stream that `torch.manual_seed` begins."""
    g = default_generator if generator is None else generator
    return g.numpy.integers(0, 2**64, 2, np.uint64)


def _key_for(input: Any, name: str) -> Any:
    if isinstance(input._data, Tracer):
        raise ArgumentError(
            f"{name} draws numbers in training mode, which a compiled function would draw once",
            fix=f"call module.eval(), or write fnad.nn.functional.{name} with a key",
        )
    return make(draw_key())


def _drops(name: str, trains: bool = True) -> Callable[..., Any]:
    function = fused(getattr(pure, name))

    def drop(input: Any, p: float = 0.5, training: bool = trains, inplace: bool = False) -> Any:
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        if not training or p == 0:
            return input
        key = _key_for(input, name)
        if inplace:
            return changed(input, lambda x: function(x, float(p), True, key=key), (), {})
        return function(input, float(p), True, key=key)

    drop.__name__ = name
    drop.__doc__ = f"`fnad.nn.functional.{name}`; the input itself if not training. Reference: `torch.nn.functional.{name}`."
    return drop


dropout, dropout1d, dropout2d, dropout3d = _drops("dropout"), _drops("dropout1d"), _drops("dropout2d"), _drops("dropout3d")
alpha_dropout, feature_alpha_dropout = _drops("alpha_dropout", False), _drops("feature_alpha_dropout", False)


def gumbel_softmax(logits: Any, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Any:
    """Softmax of logits with noise. Reference: `torch.nn.functional.gumbel_softmax`."""
    return run(pure.gumbel_softmax, (logits, tau, hard, dim), {"key": _key_for(logits, "gumbel_softmax")})


def rrelu(input: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Any:
    """Leaky relu with random slopes in training. Reference: `torch.nn.functional.rrelu`."""
    key = _key_for(input, "rrelu") if training else None
    return run(pure.rrelu, (input, lower, upper, training), {"key": key})


def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False, momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Each channel (axis 1) with mean 0 and variance 1: of the batch in training, which then moves the running ones; else of these.

    Reference: `torch.nn.functional.batch_norm`.
    """
    x = input._data
    if training and x.size // max(x.shape[1], 1) < 2:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    running = [None if t is None else t._data for t in (running_mean, running_var)]  # not looked at later: they may change
    if not training:
        running = [None if a is None else a.copy() for a in running]
    out = run(pure.batch_norm, (input, *running, weight, bias, training, momentum, eps), {})
    if not isinstance(out, tuple):
        return out
    out, *new = out
    for t, value in zip((running_mean, running_var), new, strict=True):
        t._data = value._data if isinstance(value._data, Tracer) else value._data.astype(t._data.dtype, copy=False)
        t._counter[0] += 1
    return out


@method()
def softmax(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along an axis."""
    return _softmax(input if dtype is None else input.to(dtype), dim)


@method()
def log_softmax(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """The logarithm of the softmax along an axis."""
    return _log_softmax(input if dtype is None else input.to(dtype), dim)


_softmax, _log_softmax = fused(pure.softmax), fused(pure.log_softmax)


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
    function = lift(found)

    @functools.wraps(found)
    def lifted(*args: Any, inplace: bool = False, **kwargs: Any) -> Any:
        return changed(args[0], function, args[1:], kwargs) if inplace else function(*args, **kwargs)

    globals()[name] = lifted
    return lifted
