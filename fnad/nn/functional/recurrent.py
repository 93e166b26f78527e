"""Recurrent networks: one step of each cell, and whole sequences by `fnad.scan`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.control.scan import scan
from fnad.core.aval import aval_of, shape_of
from fnad.errors import ArgumentError, ShapeError
from fnad.nn.functional._arguments import array, floating
from fnad.nn.functional.activations import relu
from fnad.nn.functional.dropout import dropout
from fnad.nn.functional.linear import linear
from fnad.primitives.elementary import logistic
from fnad.random import split
from fnad.typing import Array, ArrayLike

Weights = Sequence[ArrayLike]


def rnn_tanh_cell(
    input: ArrayLike, hx: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, b_ih: ArrayLike | None = None, b_hh: ArrayLike | None = None
) -> Array:
    """One step of Elman's network: tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh).

    (n, i), (n, h), (h, i), (h, h), (h,), (h,) -> (n, h), or without n

    Args:
        input: What comes in.
        hx: The state before.
        w_ih: Weight of the input.
        w_hh: Weight of the state.
        b_ih: Bias, or None.
        b_hh: Bias, or None.

    Returns:
        The state after.

    Raises:
        ShapeError: the arguments do not fit.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.rnn_tanh_cell(np.array([1.0, 0.0]), np.zeros(2), np.eye(2), np.eye(2)).round(4)
        array([0.7616, 0.    ])

    Reference: Elman, Finding Structure in Time, 1990; `torch.rnn_tanh_cell`.
    """
    return np.tanh(linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh))


def rnn_relu_cell(
    input: ArrayLike, hx: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, b_ih: ArrayLike | None = None, b_hh: ArrayLike | None = None
) -> Array:
    """As `rnn_tanh_cell` with max(x, 0) in place of tanh.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.rnn_relu_cell(np.array([1.0, -1.0]), np.zeros(2), np.eye(2), np.eye(2))
        array([1., 0.])

    Reference: `torch.rnn_relu_cell`.
    """
    return relu(linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh))


def gru_cell(
    input: ArrayLike, hx: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, b_ih: ArrayLike | None = None, b_hh: ArrayLike | None = None
) -> Array:
    """One step of the gated recurrent unit.

    (n, i), (n, h), (3 h, i), (3 h, h), (3 h,), (3 h,) -> (n, h), or without n; rows of the weights are those of the gates r, z, n:

        r = sigmoid(x_r + h_r)    z = sigmoid(x_z + h_z)    n = tanh(x_n + r * h_n)    h' = (1 - z) * n + z * h

    Args:
        input: What comes in.
        hx: The state before.
        w_ih: Weight of the input.
        w_hh: Weight of the state.
        b_ih: Bias, or None.
        b_hh: Bias, or None.

    Returns:
        The state after.

    Raises:
        ShapeError: the arguments do not fit.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.gru_cell(np.ones(1), np.zeros(1), np.ones((3, 1)), np.ones((3, 1))).round(4)
        array([0.2048])

    Reference: Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014; `torch.gru_cell`.
    """
    return _gru(linear(input, w_ih, b_ih), array(hx), w_hh, b_hh)


def _gru(x: Any, h: Any, w_hh: Any, b_hh: Any) -> Any:
    size = shape_of(h)[-1]
    y = linear(h, w_hh, b_hh)
    both = logistic(x[..., : 2 * size] + y[..., : 2 * size])
    r, z = both[..., :size], both[..., size:]
    n = np.tanh(x[..., 2 * size :] + r * y[..., 2 * size :])
    return n + z * (h - n)


def lstm_cell(
    input: ArrayLike,
    hx: tuple[ArrayLike, ArrayLike],
    w_ih: ArrayLike,
    w_hh: ArrayLike,
    b_ih: ArrayLike | None = None,
    b_hh: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """One step of long short-term memory.

    (n, i), ((n, h), (n, h)), (4 h, i), (4 h, h), (4 h,), (4 h,) -> ((n, h), (n, h)), or without n; rows of the weights are those of the
    gates i, f, g, o:

        c' = sigmoid(f) * c + sigmoid(i) * tanh(g)    h' = sigmoid(o) * tanh(c')

    Args:
        input: What comes in.
        hx: State h and memory c before.
        w_ih: Weight of the input.
        w_hh: Weight of the state.
        b_ih: Bias, or None.
        b_hh: Bias, or None.

    Returns:
        h and c after.

    Raises:
        ShapeError: the arguments do not fit.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> h, c = F.lstm_cell(np.ones(1), (np.zeros(1), np.zeros(1)), np.ones((4, 1)), np.ones((4, 1)))
        >>> h.round(4), c.round(4)
        (array([0.3696]), array([0.5568]))

    Reference: Hochreiter & Schmidhuber, Long Short-Term Memory, 1997; `torch.lstm_cell`.
    """
    h, c = hx
    return _lstm(linear(input, w_ih, b_ih), array(h), array(c), w_hh, b_hh)


def _lstm(x: Any, h: Any, c: Any, w_hh: Any, b_hh: Any) -> tuple[Any, Any]:
    size = shape_of(h)[-1]
    gates = x + linear(h, w_hh, b_hh)
    first, g, o = logistic(gates[..., : 2 * size]), np.tanh(gates[..., 2 * size : 3 * size]), logistic(gates[..., 3 * size :])
    c = first[..., size:] * c + first[..., :size] * g
    return o * np.tanh(c), c


def rnn(
    input: ArrayLike,
    hx: ArrayLike,
    params: Sequence[Weights],
    nonlinearity: str = "tanh",
    bidirectional: bool = False,
    batch_first: bool = False,
    dropout: float = 0.0,
    *,
    key: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Sequences through one or more layers of `rnn_tanh_cell` or `rnn_relu_cell`, each layer forwards or in both directions.

    Args:
        input: (t, n, i), or (n, t, i) if `batch_first`, or (t, i).
        hx: The states before, (layers * directions, n, h), or without n.
        params: For each layer and direction the weights (w_ih, w_hh) or (w_ih, w_hh, b_ih, b_hh) of its cell, in the order of layers;
            the backward direction of a layer follows the forward one.
        nonlinearity: "tanh" or "relu".
        bidirectional: Whether each layer also runs backwards; its outputs stand behind those of the forward direction.
        batch_first: Whether the first axis is that of the examples.
        dropout: How much of the outputs of all layers but the last is dropped.
        key: A key of `fnad.random`, needed with dropout.
        lengths: How many times of each example count, (n,); outputs behind them are 0. None for all.

    Returns:
        The outputs of the last layer for all times, (t, n, directions * h), and the states after, of the shape of `hx`.

    Raises:
        ShapeError, ArgumentError: the arguments do not fit.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> weights = np.ones((2, 3)), np.zeros((2, 2))
        >>> out, h = F.rnn(np.ones((5, 1, 3)), np.zeros((1, 1, 2)), [weights])
        >>> out.shape, h.shape
        ((5, 1, 2), (1, 1, 2))

    Reference: `torch.nn.RNN`.
    """
    if nonlinearity not in ("tanh", "relu"):
        raise ArgumentError("rnn: nonlinearity is 'tanh' or 'relu'", got={"nonlinearity": repr(nonlinearity)})
    bend: Callable[[Any], Any] = np.tanh if nonlinearity == "tanh" else relu

    def step(x: Any, state: Any, w_hh: Any, b_hh: Any) -> Any:
        return (bend(x + linear(state[0], w_hh, b_hh)),)

    out, (h,) = _run("rnn", step, input, (hx,), params, bidirectional, batch_first, dropout, key, lengths)
    return out, h


def gru(
    input: ArrayLike,
    hx: ArrayLike,
    params: Sequence[Weights],
    bidirectional: bool = False,
    batch_first: bool = False,
    dropout: float = 0.0,
    *,
    key: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Sequences through one or more layers of `gru_cell`. Arguments and results are as for `rnn`.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> weights = np.ones((6, 3)), np.zeros((6, 2))
        >>> out, h = F.gru(np.ones((5, 1, 3)), np.zeros((1, 1, 2)), [weights])
        >>> out.shape, h.shape
        ((5, 1, 2), (1, 1, 2))

    Reference: `torch.nn.GRU`.
    """

    def step(x: Any, state: Any, w_hh: Any, b_hh: Any) -> Any:
        return (_gru(x, state[0], w_hh, b_hh),)

    out, (h,) = _run("gru", step, input, (hx,), params, bidirectional, batch_first, dropout, key, lengths)
    return out, h


def lstm(
    input: ArrayLike,
    hx: tuple[ArrayLike, ArrayLike],
    params: Sequence[Weights],
    bidirectional: bool = False,
    batch_first: bool = False,
    dropout: float = 0.0,
    *,
    key: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
) -> tuple[Array, tuple[Array, Array]]:
    """Sequences through one or more layers of `lstm_cell`. Arguments and results are as for `rnn`, with states h and memories c.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> weights = np.ones((8, 3)), np.zeros((8, 2))
        >>> out, (h, c) = F.lstm(np.ones((5, 1, 3)), (np.zeros((1, 1, 2)), np.zeros((1, 1, 2))), [weights])
        >>> out.shape, h.shape, c.shape
        ((5, 1, 2), (1, 1, 2), (1, 1, 2))

    Reference: `torch.nn.LSTM`.
    """

    def step(x: Any, state: Any, w_hh: Any, b_hh: Any) -> Any:
        return _lstm(x, state[0], state[1], w_hh, b_hh)

    out, (h, c) = _run("lstm", step, input, tuple(hx), params, bidirectional, batch_first, dropout, key, lengths)
    return out, (h, c)


def _run(
    name: str,
    step: Callable[..., Any],
    input: Any,
    states: tuple[Any, ...],
    params: Sequence[Weights],
    bidirectional: bool,
    batch_first: bool,
    rate: float,
    key: Any,
    lengths: Any,
) -> tuple[Any, tuple[Any, ...]]:
    """All layers; what the weights make of the inputs is one product for all times, before the loop."""
    x, before = floating(input, name), tuple(array(s) for s in states)
    single = len(shape_of(x)) == 2
    if single:
        x, before = x[:, None], tuple(s[:, None] for s in before)
    elif batch_first:
        x = np.swapaxes(x, 0, 1)
    directions = 2 if bidirectional else 1
    layers = len(params) // directions
    wanted = (len(params), *shape_of(x)[1:2])
    if len(shape_of(x)) != 3 or not params or len(params) % directions or any(shape_of(s)[:2] != wanted for s in before):
        raise ShapeError(
            f"{name}: input (t, n, i) or (t, i), states (layers * directions, n, h) and as many sets of weights",
            got={"input": aval_of(input), "states": [aval_of(s) for s in states], "sets of weights": len(params), "directions": directions},
        )
    inside = None
    if lengths is not None:
        if shape_of(lengths) != shape_of(x)[1:2]:
            raise ShapeError(f"{name}: a length for each example", got={"input": aval_of(x), "lengths": aval_of(lengths)})
        inside = np.less(np.arange(shape_of(x)[0])[:, None], array(lengths))[..., None]
    if rate and key is None:
        raise ArgumentError(f"{name} needs a key where it drops outputs", got={"dropout": rate}, fix="pass key=fnad.random.key(seed)")
    keys = split(key, layers) if rate else None
    after: list[tuple[Any, ...]] = []
    for layer in range(layers):
        outs = []
        for direction in range(directions):
            k = layer * directions + direction
            out, end = _layer(name, step, x, tuple(s[k] for s in before), params[k], direction == 1, inside)
            outs.append(out)
            after.append(end)
        x = np.concatenate(outs, axis=-1) if bidirectional else outs[0]
        if keys is not None and layer < layers - 1:
            x = dropout(x, rate, key=keys[layer])
    ends = tuple(np.stack(parts) for parts in zip(*after, strict=True))
    if single:
        return x[:, 0], tuple(e[:, 0] for e in ends)
    return np.swapaxes(x, 0, 1) if batch_first else x, ends


def _layer(
    name: str, step: Callable[..., Any], x: Any, state: tuple[Any, ...], weights: Weights, reverse: bool, inside: Any
) -> tuple[Any, Any]:
    """One layer in one direction; where `inside` (t, n, 1) is false the state stays as it is, and the output is 0."""
    if len(weights) not in (2, 4):
        raise ArgumentError(f"{name}: weights are (w_ih, w_hh) or (w_ih, w_hh, b_ih, b_hh)", got={"how many": len(weights)})
    w_ih, w_hh, b_ih, b_hh = (*weights, None, None)[:4]

    def body(state: Any, now: Any) -> Any:
        new = step(now, state, w_hh, b_hh)
        return new, new[0]

    def masked(state: Any, now: Any) -> Any:
        inputs, counts = now
        new = tuple(np.where(counts, a, b) for a, b in zip(step(inputs, state, w_hh, b_hh), state, strict=True))
        return new, np.where(counts, new[0], new[0].dtype.type(0))

    inputs = linear(x, w_ih, b_ih)
    end, outs = scan(body, state, inputs, reverse=reverse) if inside is None else scan(masked, state, (inputs, inside), reverse=reverse)
    return outs, end
