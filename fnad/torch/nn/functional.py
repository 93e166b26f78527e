"""`torch.nn.functional`: the functions of `fnad.nn.functional`, of tensors.

Those that draw take their keys from `torch.manual_seed`'s generator; those that change their arguments in PyTorch do so here.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable
from typing import Any

from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, UnknownNameError, UnsupportedError
from fnad.nn import functional as pure
from fnad.torch._call import changed, lift, run
from fnad.torch._creation import as_tensor, ones_like
from fnad.torch._fused import fused
from fnad.torch._indexing import where
from fnad.torch._mode import no_grad
from fnad.torch._operators import relu as _relu
from fnad.torch._operators import sigmoid as sigmoid
from fnad.torch._operators import tanh as tanh
from fnad.torch._random import draw_key
from fnad.torch._streams import CURRENT, unknown
from fnad.torch._tensor import make, method

_linear = fused(pure.linear)
cross_entropy, nll_loss, mse_loss = fused(pure.cross_entropy), fused(pure.nll_loss), fused(pure.mse_loss)
l1_loss, smooth_l1_loss, huber_loss = fused(pure.l1_loss), fused(pure.smooth_l1_loss), fused(pure.huber_loss)
binary_cross_entropy = fused(pure.binary_cross_entropy)
binary_cross_entropy_with_logits = fused(pure.binary_cross_entropy_with_logits)
_FUSED = frozenset(
    """
    layer_norm rms_norm group_norm instance_norm local_response_norm gelu softplus silu mish elu selu
    avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
    scaled_dot_product_attention kl_div cosine_similarity normalize
    """.split()  # noqa: SIM905
)
"""Functions that are compiled as a whole; the others run operation by operation, as most of them are one or two."""
_CONVOLUTIONS = frozenset(f"conv{way}{rank}d" for way in ("", "_transpose") for rank in (1, 2, 3))
_MOST_WINDOWS = 1 << 26
"""Bytes. A compiled convolution has copies of all windows at once; a larger one runs on a few images at a time."""


def _windows_fit(arrays: list[Any]) -> bool:
    x, w = arrays[:2]
    return w.shape[1:2] == (1,) or x.nbytes * math.prod(w.shape[2:]) <= _MOST_WINDOWS


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


def _key_for(input: Any, name: str) -> Any:
    if CURRENT.stream is None and unknown(input._data):
        raise ArgumentError(
            f"{name} draws numbers in training mode, which a compiled function would draw once, and examples under vmap would share",
            fix=f"apply(params, x, key=key) with apply from torch.pure, module.eval(), or fnad.nn.functional.{name} with a key",
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
    options = {"key": _key_for(input, "rrelu") if training else None}
    return changed(input, _rrelu, (lower, upper, training), options) if inplace else _rrelu(input, lower, upper, training, **options)


_rrelu = lift(pure.rrelu)


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """softmax(query @ key.T * scale) @ value. Reference: `torch.nn.functional.scaled_dot_product_attention`."""
    options = {"dropout_key": _key_for(query, "scaled_dot_product_attention") if dropout_p else None}
    return _attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, **options)


def multi_head_attention_forward(query: Any, *args: Any, **kwargs: Any) -> Any:
    """Attention in several subspaces. Arguments: see `fnad.nn.functional.multi_head_attention_forward`."""
    rate = kwargs.get("dropout_p", args[9] if len(args) > 9 else 0.0)
    training = kwargs.get("training", args[12] if len(args) > 12 else True)
    key = _key_for(query, "multi_head_attention") if rate and training else None
    return _heads(query, *args, dropout_key=key, **kwargs)


_attention, _heads = lift(pure.scaled_dot_product_attention), lift(pure.multi_head_attention_forward)


def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """The loss over all alignments; its gradient is that by the logits, as PyTorch has it. Reference: `torch.nn.functional.ctc_loss`."""
    lengths = [as_tensor(x) for x in (input_lengths, target_lengths)]
    return _ctc(log_probs, targets, *lengths, blank, reduction, zero_infinity, after_softmax=True)


_ctc = lift(pure.ctc_loss)


def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *, distance_function: Any = None, margin: float = 1.0, swap: bool = False,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """See `fnad.nn.functional`; the distance is a function of tensors, or None for the Euclidean one."""

    def distance(a: Any, b: Any) -> Any:
        with no_grad():  # what it does with traced arrays is recorded as such
            return distance_function(make(a), make(b))._data

    options = {"distance_function": None if distance_function is None else distance, "margin": margin, "swap": swap}
    return run(pure.triplet_margin_with_distance_loss, (anchor, positive, negative), {**options, "reduction": reduction})


def linear_cross_entropy(input: Any, linear_weight: Any, target: Any, *, options: Any = None, **kwargs: Any) -> Any:
    """`cross_entropy` of a linear map: see `fnad.nn.functional`. `options` choose how PyTorch divides the work, and have no effect."""
    return _linear_cross_entropy(input, linear_weight, target, **kwargs)


_linear_cross_entropy = lift(pure.linear_cross_entropy)


def _renorm(weight: Any, rows: Any, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are used to a norm of at most `max_norm`, in place."""
    with no_grad():
        used = rows.unique()
        norms = weight[used].norm(norm_type, 1, keepdim=True)
        weight[used] = weight[used] * where(norms > max_norm, max_norm / (norms + 1e-7), ones_like(norms))


def _not_sparse(sparse: bool) -> None:
    if sparse:
        raise UnsupportedError("fnad.torch: there are no sparse gradients", got={"sparse": True}, fix="leave sparse out")


def embedding(
    input: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    """Rows of a table. With `max_norm` those that are used are first scaled, in place. Reference: `torch.nn.functional.embedding`."""
    _not_sparse(sparse)
    if max_norm is not None:
        _renorm(weight, input, max_norm, norm_type)
    return run(pure.embedding, (input, weight, padding_idx), {"scale_grad_by_freq": scale_grad_by_freq})


def embedding_bag(
    input: Any, weight: Any, offsets: Any = None, max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
    mode: str = "mean", sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """Sums, means or largest entries of rows of a table. Reference: `torch.nn.functional.embedding_bag`."""
    _not_sparse(sparse)
    if max_norm is not None:
        _renorm(weight, input, max_norm, norm_type)
    options = (scale_grad_by_freq, mode, per_sample_weights, include_last_offset, padding_idx)
    return run(pure.embedding_bag, (input, weight, offsets, *options), {})


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
    return _normed(pure.batch_norm, input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Each channel of each example with mean 0 and variance 1. Reference: `torch.nn.functional.instance_norm`."""
    return _normed(pure.instance_norm, input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def _normed(
    function: Any, input: Any, mean: Any, variance: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> Any:
    running = [None if t is None else t._data for t in (mean, variance)]  # not looked at later: they may change
    if not training:
        running = [None if a is None else a.copy() for a in running]
    out = run(function, (input, *running, weight, bias, training, momentum, eps), {})
    if not isinstance(out, tuple):
        return out
    out, *new = out
    for t, value in zip((mean, variance), new, strict=True):
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


def upsample(input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> Any:
    """See `interpolate`."""
    return _interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """See `interpolate`."""
    return _interpolate(input, size, scale_factor)


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """See `interpolate`, with `align_corners`."""
    return _interpolate(input, size, scale_factor, "bilinear", True)


_interpolate = lift(pure.interpolate)
_WITH_INDICES = re.compile(r"(adaptive_)?max_pool[123]d_with_indices")
_IN_PLACE = ("celu", "elu", "hardtanh", "leaky_relu", "rrelu", "selu", "threshold")


def __getattr__(name: str) -> Any:
    """Whatever else `fnad.nn.functional` has."""
    if name.startswith("__"):
        raise AttributeError(name)
    if name[:-1] in _IN_PLACE and name[-1] == "_":
        found: Any = functools.partial(globals().get(name[:-1]) or __getattr__(name[:-1]), inplace=True)
    elif _WITH_INDICES.fullmatch(name):
        found = functools.partial(__getattr__(name.removesuffix("_with_indices")), return_indices=True)
    else:
        function = getattr(pure, name, None)
        if not callable(function):
            raise UnknownNameError(
                f"torch.nn.functional.{name} does not exist in fnad.torch",
                fix="compose it from other functions; docs/torch.md lists what there is",
            )
        found = _lifted(function)
    globals()[name] = found
    return found


def _lifted(pure_function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of tensors; after its own arguments comes PyTorch's `inplace`."""
    name = pure_function.__name__
    fits = _windows_fit if name in _CONVOLUTIONS else None
    function = fused(pure_function, fits) if fits or name in _FUSED else lift(pure_function)
    own = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in inspect.signature(pure_function).parameters.values())

    @functools.wraps(pure_function)
    def lifted(*args: Any, inplace: bool = False, **kwargs: Any) -> Any:
        if len(args) == own + 1 and isinstance(args[-1], bool):
            *args, inplace = args  # type: ignore[assignment]
        return changed(args[0], function, tuple(args[1:]), kwargs) if inplace else function(*args, **kwargs)

    return lifted
