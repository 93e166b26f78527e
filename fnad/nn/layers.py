"""Layers as pairs of pure functions: `init` makes parameters from a key, `apply` computes with them.

    >>> import numpy as np, fnad
    >>> from fnad import nn, random
    >>> from fnad.nn import functional as F, layers
    >>> net = layers.sequential(layers.linear(2, 8), layers.function(F.relu), layers.linear(8, 1))
    >>> params = net.init(random.key(0))
    >>> net.apply(params, np.ones((5, 2))).shape
    (5, 1)

Parameters are a pytree of arrays with PyTorch's names, shapes and initial values. What a layer carries from call to call (the running
statistics of a normalisation) is no parameter but a state of its own: `layer.state` is the first one, and `apply` then returns
the next one too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fnad import random
from fnad.core.aval import shape_of
from fnad.errors import ArgumentError
from fnad.nn import functional as F
from fnad.nn import init as start
from fnad.typing import Array, ArrayLike

Sizes = int | tuple[int, ...]


class Layer(NamedTuple):
    """A layer, or a network made of layers.

    `init(key, dtype=float)` gives parameters. `apply(params, x, state=None, *, key=None, training=False)` gives the result, and
    where `state` is not None the pair of the result and the next state. `key` is for what is random in training (dropout).
    """

    init: Callable[..., Any]
    apply: Callable[..., Any]
    state: Any = None


def _without_state(init: Callable[[Any, Any], Any], run: Callable[[Any, Any, Any, bool], Any]) -> Layer:
    """A layer from `init(key, dtype)` and `run(params, x, key, training)`."""

    def make(key: ArrayLike, dtype: Any = float) -> Any:
        return init(key, np.dtype(dtype))

    def apply(params: Any, x: Any, state: Any = None, *, key: ArrayLike | None = None, training: bool = False) -> Any:
        return run(params, x, key, training)

    return Layer(make, apply)


def _weights(key: Any, shape: tuple[int, ...], fan: int, biases: int, dtype: Any) -> dict[str, Array]:
    """Weight and bias (for 0 entries none), uniform up to 1 / sqrt(fan) on both sides of 0."""
    first, second = random.split(key)
    bound = 1 / math.sqrt(fan) if fan else 0.0
    params = {"weight": start.uniform(first, shape, -bound, bound, dtype=dtype)}
    return {**params, "bias": start.uniform(second, (biases,), -bound, bound, dtype=dtype)} if biases else params


def linear(in_features: int, out_features: int, bias: bool = True) -> Layer:
    """`F.linear` with weight (out_features, in_features) and bias.

    Example:
        >>> from fnad import random
        >>> from fnad.nn import layers
        >>> params = layers.linear(3, 2).init(random.key(0))
        >>> params["weight"].shape, params["bias"].shape
        ((2, 3), (2,))

    Reference: `torch.nn.Linear`.
    """

    def make(key: Any, dtype: Any) -> Any:
        return _weights(key, (out_features, in_features), in_features, out_features * bias, dtype)

    return _without_state(make, lambda p, x, key, training: F.linear(x, p["weight"], p.get("bias")))


def bilinear(in1_features: int, in2_features: int, out_features: int, bias: bool = True) -> Layer:
    """`F.bilinear` of a pair of inputs, with weight (out_features, in1_features, in2_features) and bias.

    Reference: `torch.nn.Bilinear`.
    """

    def make(key: Any, dtype: Any) -> Any:
        return _weights(key, (out_features, in1_features, in2_features), in1_features, out_features * bias, dtype)

    return _without_state(make, lambda p, x, key, training: F.bilinear(x[0], x[1], p["weight"], p.get("bias")))


def embedding(num_embeddings: int, embedding_dim: int, padding_idx: int | None = None) -> Layer:
    """`F.embedding` in a table (num_embeddings, embedding_dim) of normal numbers, with 0 in the row `padding_idx`.

    Reference: `torch.nn.Embedding`.
    """

    def make(key: Any, dtype: Any) -> Any:
        weight = random.normal(key, (num_embeddings, embedding_dim), dtype)
        if padding_idx is not None:
            weight = np.where((np.arange(num_embeddings) == padding_idx % num_embeddings)[:, None], dtype.type(0), weight)
        return {"weight": weight}

    return _without_state(make, lambda p, x, key, training: F.embedding(x, p["weight"], padding_idx))


def _convolution(
    rank: int, function: Any, in_channels: int, out_channels: int, kernel_size: Sizes, groups: int, bias: bool, **options: Any
) -> Layer:
    kernel = kernel_size if isinstance(kernel_size, tuple) else (kernel_size,) * rank
    if in_channels % groups or out_channels % groups:
        raise ArgumentError("groups divide the channels", got={"in": in_channels, "out": out_channels, "groups": groups})
    transposed = "output_padding" in options
    shape = (in_channels, out_channels // groups, *kernel) if transposed else (out_channels, in_channels // groups, *kernel)

    def make(key: Any, dtype: Any) -> Any:
        return _weights(key, shape, shape[1] * math.prod(kernel), out_channels * bias, dtype)

    return _without_state(make, lambda p, x, key, training: function(x, p["weight"], p.get("bias"), groups=groups, **options))


def conv1d(
    in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1,
    groups: int = 1, bias: bool = True,
) -> Layer:  # fmt: skip
    """`F.conv1d` with its weight and bias.

    Reference: `torch.nn.Conv1d`.
    """
    return _convolution(
        1, F.conv1d, in_channels, out_channels, kernel_size, groups, bias, stride=stride, padding=padding, dilation=dilation
    )


def conv2d(
    in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1,
    groups: int = 1, bias: bool = True,
) -> Layer:  # fmt: skip
    """`F.conv2d` with its weight and bias.

    Reference: `torch.nn.Conv2d`.
    """
    return _convolution(
        2, F.conv2d, in_channels, out_channels, kernel_size, groups, bias, stride=stride, padding=padding, dilation=dilation
    )


def conv3d(
    in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1,
    groups: int = 1, bias: bool = True,
) -> Layer:  # fmt: skip
    """`F.conv3d` with its weight and bias.

    Reference: `torch.nn.Conv3d`.
    """
    return _convolution(
        3, F.conv3d, in_channels, out_channels, kernel_size, groups, bias, stride=stride, padding=padding, dilation=dilation
    )


def conv_transpose1d(
    in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
    groups: int = 1, bias: bool = True, dilation: Sizes = 1,
) -> Layer:  # fmt: skip
    """`F.conv_transpose1d` with its weight and bias.

    Reference: `torch.nn.ConvTranspose1d`.
    """
    options = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    return _convolution(1, F.conv_transpose1d, in_channels, out_channels, kernel_size, groups, bias, **options)


def conv_transpose2d(
    in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
    groups: int = 1, bias: bool = True, dilation: Sizes = 1,
) -> Layer:  # fmt: skip
    """`F.conv_transpose2d` with its weight and bias.

    Reference: `torch.nn.ConvTranspose2d`.
    """
    options = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    return _convolution(2, F.conv_transpose2d, in_channels, out_channels, kernel_size, groups, bias, **options)


def conv_transpose3d(
    in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
    groups: int = 1, bias: bool = True, dilation: Sizes = 1,
) -> Layer:  # fmt: skip
    """`F.conv_transpose3d` with its weight and bias.

    Reference: `torch.nn.ConvTranspose3d`.
    """
    options = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    return _convolution(3, F.conv_transpose3d, in_channels, out_channels, kernel_size, groups, bias, **options)


def _scales(shape: Sizes, weight: bool, bias: bool) -> Callable[[Any, Any], Any]:
    """Ones as weight, zeros as bias, where they are wanted."""

    def make(key: Any, dtype: Any) -> Any:
        params = {"weight": np.ones(shape, dtype)} if weight else {}
        return {**params, "bias": np.zeros(shape, dtype)} if bias else params

    return make


def layer_norm(normalized_shape: Sizes, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True) -> Layer:
    """`F.layer_norm` with its weight and bias.

    Reference: `torch.nn.LayerNorm`.
    """
    make = _scales(normalized_shape, elementwise_affine, elementwise_affine and bias)
    return _without_state(make, lambda p, x, key, training: F.layer_norm(x, normalized_shape, p.get("weight"), p.get("bias"), eps))


def rms_norm(normalized_shape: Sizes, eps: float | None = None, elementwise_affine: bool = True) -> Layer:
    """`F.rms_norm` with its weight.

    Reference: `torch.nn.RMSNorm`.
    """
    make = _scales(normalized_shape, elementwise_affine, False)
    return _without_state(make, lambda p, x, key, training: F.rms_norm(x, normalized_shape, p.get("weight"), eps))


def group_norm(num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> Layer:
    """`F.group_norm` with its weight and bias.

    Reference: `torch.nn.GroupNorm`.
    """
    make = _scales(num_channels, affine, affine)
    return _without_state(make, lambda p, x, key, training: F.group_norm(x, num_groups, p.get("weight"), p.get("bias"), eps))


def instance_norm(num_features: int, eps: float = 1e-5, affine: bool = False) -> Layer:
    """`F.instance_norm` without running statistics.

    Reference: `torch.nn.InstanceNorm2d`.
    """
    make = _scales(num_features, affine, affine)
    return _without_state(make, lambda p, x, key, training: F.instance_norm(x, None, None, p.get("weight"), p.get("bias"), eps=eps))


def batch_norm(num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True) -> Layer:
    """`F.batch_norm` with weight and bias as parameters, and running mean and variance as state.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> from fnad.nn import layers
        >>> norm = layers.batch_norm(2)
        >>> params, state = norm.init(random.key(0)), norm.state
        >>> y, state = norm.apply(params, np.array([[1.0, 5.0], [3.0, 5.0]]), state, training=True)
        >>> state["running_mean"]
        array([0.2, 0.5])

    Reference: `torch.nn.BatchNorm2d`.
    """
    make = _scales(num_features, affine, affine)

    def apply(params: Any, x: Any, state: Any = None, *, key: Any = None, training: bool = False) -> tuple[Any, Any]:
        if state is None:
            raise ArgumentError(
                "batch_norm needs its running statistics", got={"state": None}, fix="pass layer.state, then what apply returns"
            )
        running = state["running_mean"], state["running_var"]
        out = F.batch_norm(x, *running, params.get("weight"), params.get("bias"), training, momentum, eps)
        if not training:
            return out, state
        return out[0], {"running_mean": out[1], "running_var": out[2]}

    state = {"running_mean": np.zeros(num_features), "running_var": np.ones(num_features)}
    return Layer(lambda key, dtype=float: make(key, np.dtype(dtype)), apply, state)


def dropout(p: float = 0.5) -> Layer:
    """`F.dropout` in training, with the key that `apply` is given.

    Reference: `torch.nn.Dropout`.
    """
    return _without_state(lambda key, dtype: {}, lambda params, x, key, training: F.dropout(x, p, training, key=key))


def function(f: Callable[..., Any], *args: Any, **options: Any) -> Layer:
    """A layer without parameters: f(x, *args, **options).

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F, layers
        >>> layers.function(F.max_pool2d, 2).apply({}, np.ones((1, 4, 4))).shape
        (1, 2, 2)
    """
    return _without_state(lambda key, dtype: {}, lambda params, x, key, training: f(x, *args, **options))


def _recurrent(
    gates: int, run: Callable[..., Any], input_size: int, hidden_size: int, num_layers: int, bias: bool, bidirectional: bool
) -> Layer:
    directions = 2 if bidirectional else 1

    def make(key: Any, dtype: Any) -> Any:
        bound, params = 1 / math.sqrt(hidden_size), []
        for k, own in enumerate(random.split(key, num_layers * directions)):
            inputs = input_size if k < directions else hidden_size * directions
            shapes = [(gates * hidden_size, inputs), (gates * hidden_size, hidden_size), *[(gates * hidden_size,)] * (2 * bias)]
            parts = zip(random.split(own, len(shapes)), shapes, strict=True)
            params.append(tuple(start.uniform(one, shape, -bound, bound, dtype=dtype) for one, shape in parts))
        return params

    def apply(params: Any, x: Any, key: Any, training: bool) -> Any:
        inputs, hx = x if isinstance(x, tuple | list) else (x, None)
        return run(inputs, hx, params, key if training else None)

    return _without_state(make, apply)


def _zeros(x: Any, params: Any, hidden_size: int, batch_first: bool) -> Any:
    examples = x.shape[0 if batch_first else 1 : 1 if batch_first else 2] if len(x.shape) == 3 else ()
    return np.zeros((len(params), *examples, hidden_size), x.dtype)


def rnn(
    input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True, batch_first: bool = False,
    dropout: float = 0.0, bidirectional: bool = False,
) -> Layer:  # fmt: skip
    """`F.rnn` of x, or of a pair (x, states); gives outputs and states.

    Reference: `torch.nn.RNN`.
    """

    def run(x: Any, hx: Any, params: Any, key: Any) -> Any:
        hx = _zeros(x, params, hidden_size, batch_first) if hx is None else hx
        return F.rnn(x, hx, params, nonlinearity, bidirectional, batch_first, 0.0 if key is None else dropout, key=key)

    return _recurrent(1, run, input_size, hidden_size, num_layers, bias, bidirectional)


def gru(
    input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
    bidirectional: bool = False,
) -> Layer:  # fmt: skip
    """`F.gru` of x, or of a pair (x, states); gives outputs and states.

    Reference: `torch.nn.GRU`.
    """

    def run(x: Any, hx: Any, params: Any, key: Any) -> Any:
        hx = _zeros(x, params, hidden_size, batch_first) if hx is None else hx
        return F.gru(x, hx, params, bidirectional, batch_first, 0.0 if key is None else dropout, key=key)

    return _recurrent(3, run, input_size, hidden_size, num_layers, bias, bidirectional)


def lstm(
    input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
    bidirectional: bool = False,
) -> Layer:  # fmt: skip
    """`F.lstm` of x, or of a pair (x, (states, memories)); gives outputs and the pair of states and memories.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> from fnad.nn import layers
        >>> net = layers.lstm(3, 2)
        >>> out, (h, c) = net.apply(net.init(random.key(0)), np.ones((5, 1, 3)))
        >>> out.shape, h.shape
        ((5, 1, 2), (1, 1, 2))

    Reference: `torch.nn.LSTM`.
    """

    def run(x: Any, hx: Any, params: Any, key: Any) -> Any:
        zeros = _zeros(x, params, hidden_size, batch_first)
        return F.lstm(x, (zeros, zeros) if hx is None else hx, params, bidirectional, batch_first, 0.0 if key is None else dropout, key=key)

    return _recurrent(4, run, input_size, hidden_size, num_layers, bias, bidirectional)


def multi_head_attention(
    embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, is_causal: bool = False, batch_first: bool = False
) -> Layer:
    """`F.multi_head_attention_forward` of x (l, n, e) with itself, or of a tuple (query, key, value); gives the answers.

    With `batch_first` arrays are (n, l, e); without a batch they are (l, e).

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> from fnad.nn import layers
        >>> net = layers.multi_head_attention(4, 2, is_causal=True)
        >>> net.apply(net.init(random.key(0)), np.ones((5, 1, 4))).shape
        (5, 1, 4)

    Reference: `torch.nn.MultiheadAttention`.
    """

    def make(key: Any, dtype: Any) -> Any:
        first, second = random.split(key)
        params = {
            "in_proj_weight": start.xavier_uniform(first, (3 * embed_dim, embed_dim), dtype=dtype),
            "out_proj_weight": start.kaiming_uniform(second, (embed_dim, embed_dim), math.sqrt(5), dtype=dtype),
        }
        zeros = {"in_proj_bias": np.zeros(3 * embed_dim, dtype), "out_proj_bias": np.zeros(embed_dim, dtype)}
        return {**params, **zeros} if bias else params

    def run(p: Any, x: Any, key: Any, training: bool) -> Any:
        q, k, v = x if isinstance(x, tuple | list) else (x, x, x)
        swapped = batch_first and len(shape_of(q)) == 3
        if swapped:
            q, k, v = (np.swapaxes(a, 0, 1) for a in (q, k, v))
        out = F.multi_head_attention_forward(
            q, k, v, embed_dim, num_heads, p["in_proj_weight"], p.get("in_proj_bias"), None, None, False, dropout,
            p["out_proj_weight"], p.get("out_proj_bias"), training, need_weights=False, is_causal=is_causal, dropout_key=key,
        )[0]  # fmt: skip
        return np.swapaxes(out, 0, 1) if swapped else out

    return _without_state(make, run)


def sequential(*layers: Layer) -> Layer:
    """Layers one after the other. Parameters are a list, one entry per layer; so is the state where a layer has one.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> from fnad.nn import functional as F, layers
        >>> net = layers.sequential(layers.conv2d(1, 2, 3), layers.batch_norm(2), layers.function(F.relu), layers.dropout(0.1))
        >>> params, state = net.init(random.key(0)), net.state
        >>> y, state = net.apply(params, np.ones((2, 1, 4, 4)), state, key=random.key(1), training=True)
        >>> y.shape
        (2, 2, 2, 2)

    Reference: `torch.nn.Sequential`.
    """
    states = [layer.state for layer in layers] if any(layer.state is not None for layer in layers) else None

    def make(key: ArrayLike, dtype: Any = float) -> Any:
        return [layer.init(one, dtype) for layer, one in zip(layers, random.split(key, len(layers)), strict=True)]

    def apply(params: Any, x: Any, state: Any = None, *, key: ArrayLike | None = None, training: bool = False) -> Any:
        before = [None] * len(layers) if state is None else state
        keys = [None] * len(layers) if key is None else random.split(key, len(layers))
        after = []
        for layer, own, old, one in zip(layers, params, before, keys, strict=True):
            x = layer.apply(own, x, old, key=one, training=training)
            new = None
            if layer.state is not None:
                x, new = x
            after.append(new)
        return x if states is None else (x, after)

    return Layer(make, apply, states)
