"""Attention, and encodings of positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.errors import ArgumentError, ShapeError
from fnad.nn.functional._arguments import array, floating
from fnad.nn.functional.dropout import dropout
from fnad.nn.functional.linear import linear
from fnad.primitives.special import softmax
from fnad.typing import Array, ArrayLike


def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: ArrayLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    dropout_key: ArrayLike | None = None,
) -> Array:
    """softmax(query @ key.T * scale + mask) @ value.

    (..., l, e), (..., s, e), (..., s, v) -> (..., l, v)

    Args:
        query: What asks.
        key: What is asked.
        value: What answers.
        attn_mask: Broadcasts to (..., l, s): True where a query sees a key, or numbers to add.
        dropout_p: How many of the weights are dropped.
        is_causal: Whether query i sees only the keys up to i.
        scale: None for 1 / sqrt(e).
        enable_gqa: Whether keys and values have fewer heads (the axis before l) than queries, each of which serves several.
        dropout_key: A key of `fnad.random`, needed with dropout.

    Returns:
        An array of the operands' common dtype. A query that sees no key gets 0.

    Raises:
        ShapeError: the arguments do not fit.
        ArgumentError: a mask together with `is_causal`, or dropout without a key.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> x = np.array([[0.0, 0.0], [0.0, 0.0]])
        >>> F.scaled_dot_product_attention(x, x, np.array([[1.0], [3.0]]), is_causal=True)
        array([[1.],
               [2.]])

    Reference: Vaswani et al., Attention Is All You Need, 2017; `torch.nn.functional.scaled_dot_product_attention`.
    """
    q, k, v = (floating(x, "scaled_dot_product_attention") for x in (query, key, value))
    if attn_mask is not None and is_causal:
        raise ArgumentError("scaled_dot_product_attention: a mask, or is_causal, not both")
    if enable_gqa:
        k, v = (_repeated(x, shape_of(q)[-3]) for x in (k, v))
    weights = _weights(q, k, v, attn_mask, is_causal, scale)
    if dropout_p:
        weights = dropout(weights, dropout_p, key=dropout_key)
    return np.matmul(weights, v)


def _repeated(x: Any, heads: int) -> Any:
    """(..., few, s, e) -> (..., heads, s, e), each several times."""
    *lead, few, s, e = shape_of(x)
    if heads % few:
        raise ShapeError(
            "scaled_dot_product_attention: heads of keys divide those of queries", got={"query heads": heads, "key heads": few}
        )
    return np.reshape(np.broadcast_to(x[..., :, None, :, :], (*lead, few, heads // few, s, e)), (*lead, heads, s, e))


def _weights(q: Any, k: Any, v: Any, mask: Any, is_causal: bool, scale: float | None) -> Any:
    """(..., l, s): what share each key has in the answer to a query."""
    if min(len(shape_of(x)) for x in (q, k, v)) < 2 or shape_of(q)[-1] != shape_of(k)[-1] or shape_of(k)[-2] != shape_of(v)[-2]:
        raise ShapeError(
            "scaled_dot_product_attention: query (..., l, e), key (..., s, e), value (..., s, v)",
            got={"query": aval_of(q), "key": aval_of(k), "value": aval_of(v)},
        )
    factor = q.dtype.type(1 / math.sqrt(shape_of(q)[-1]) if scale is None else scale)
    scores = np.matmul(q * factor, np.swapaxes(k, -1, -2))
    axis = (len(shape_of(scores)) - 1,)
    never = np.finfo(scores.dtype).min  # whose exponential is 0 next to any other; -inf would keep loops from being vectorised
    if is_causal:
        sees = np.tril(np.ones(shape_of(scores)[-2:], bool))
        return softmax(np.where(sees, scores, never), axis=axis)
    if mask is None:
        return softmax(scores, axis=axis)
    m = array(mask)
    if m.dtype == bool:
        scores = np.where(m, scores, never)
    else:
        scores = scores + (m if m.dtype == scores.dtype else m.astype(scores.dtype))
    # A row without any key must not become nan: its scores are replaced before, its weights after.
    some = ~np.less_equal(np.max(scores, axis=-1, keepdims=True), never)
    return np.where(some, softmax(np.where(some, scores, scores.dtype.type(0)), axis=axis), scores.dtype.type(0))


def multi_head_attention_forward(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: ArrayLike | None,
    in_proj_bias: ArrayLike | None,
    bias_k: ArrayLike | None,
    bias_v: ArrayLike | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: ArrayLike,
    out_proj_bias: ArrayLike | None,
    training: bool = True,
    key_padding_mask: ArrayLike | None = None,
    need_weights: bool = True,
    attn_mask: ArrayLike | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: ArrayLike | None = None,
    k_proj_weight: ArrayLike | None = None,
    v_proj_weight: ArrayLike | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    *,
    dropout_key: ArrayLike | None = None,
) -> tuple[Array, Array | None]:
    """Attention in several subspaces at once: projections of queries, keys and values, cut into heads, and one of the answers.

    (l, n, e), (s, n, k), (s, n, v) -> (l, n, e), (n, l, s), or all without n

    Args:
        query: What asks.
        key: What is asked.
        value: What answers.
        embed_dim_to_check: e
        num_heads: How many heads, which divides e.
        in_proj_weight: (3 e, e), the projections of queries, keys and values one under the other.
        in_proj_bias: (3 e,), or None.
        bias_k: One more key for every example, (1, 1, e), or None.
        bias_v: Its value, (1, 1, e), or None.
        add_zero_attn: Whether there is one more key of zeros, whose value is 0.
        dropout_p: How many of the weights are dropped in training.
        out_proj_weight: (e, e)
        out_proj_bias: (e,), or None.
        training: Whether weights are dropped.
        key_padding_mask: (n, s), True for keys that are not seen, or numbers to add.
        need_weights: Whether the weights are returned as well.
        attn_mask: (l, s) or (n * num_heads, l, s), True where a query does not see a key, or numbers to add.
        use_separate_proj_weight: Whether the next three stand in place of `in_proj_weight`.
        q_proj_weight: (e, e)
        k_proj_weight: (e, k)
        v_proj_weight: (e, v)
        average_attn_weights: Whether the weights are averaged over the heads; otherwise (n, num_heads, l, s).
        is_causal: Whether query i sees only the keys up to i; `attn_mask` need not say so again.
        dropout_key: A key of `fnad.random`, needed with dropout.

    Returns:
        The answers, and the weights or None.

    Raises:
        ShapeError, ArgumentError: the arguments do not fit.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> x = np.eye(4)[:, None]
        >>> out, weights = F.multi_head_attention_forward(
        ...     x, x, x, 4, 2, np.ones((12, 4)), None, None, None, False, 0.0, np.eye(4), None
        ... )
        >>> out.shape, weights.shape
        ((4, 1, 4), (1, 4, 4))

    Reference: Vaswani et al., Attention Is All You Need, 2017; `torch.nn.functional.multi_head_attention_forward`, whose masks these
    are (True hides, as opposed to `scaled_dot_product_attention`), without its `static_k` and `static_v`.
    """
    q, k, v = (floating(x, "multi_head_attention") for x in (query, key, value))
    single = len(shape_of(q)) == 2
    if single:
        q, k, v = q[:, None], k[:, None], v[:, None]
    fits = len(shape_of(q)) == len(shape_of(k)) == len(shape_of(v)) == 3 and shape_of(q)[-1] == embed_dim_to_check
    if not fits or embed_dim_to_check % num_heads:
        raise ShapeError(
            "multi_head_attention: query (l, n, e), key (s, n, k), value (s, n, v), where num_heads divides e",
            got={"query": aval_of(q), "key": aval_of(k), "value": aval_of(v), "e": embed_dim_to_check, "num_heads": num_heads},
        )
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else _thirds(in_proj_weight)
    if any(w is None for w in weights):
        raise ArgumentError("multi_head_attention: in_proj_weight, or all of q_proj_weight, k_proj_weight and v_proj_weight")
    q, k, v = (linear(x, w, b) for x, w, b in zip((q, k, v), weights, _thirds(in_proj_bias), strict=True))
    k, v = (
        x if b is None else np.concatenate([x, np.broadcast_to(array(b), (1, *shape_of(x)[1:]))]) for x, b in ((k, bias_k), (v, bias_v))
    )
    if add_zero_attn:
        k, v = (np.concatenate([x, np.zeros((1, *shape_of(x)[1:]), x.dtype)]) for x in (k, v))
    q, k, v = (_heads(x, num_heads) for x in (q, k, v))
    mask = _mask(attn_mask, key_padding_mask, is_causal, shape_of(q)[:3], shape_of(k)[2], q.dtype)
    shares = _weights(q, k, v, mask, False, None)
    if training and dropout_p:
        shares = dropout(shares, dropout_p, key=dropout_key)
    out = np.transpose(np.matmul(shares, v), (2, 0, 1, 3))
    out = linear(np.reshape(out, (*shape_of(out)[:2], embed_dim_to_check)), out_proj_weight, out_proj_bias)
    found = (np.mean(shares, axis=1) if average_attn_weights else shares) if need_weights else None
    if single:
        return out[:, 0], None if found is None else found[0]
    return out, found


def _thirds(x: Any) -> Any:
    return (None,) * 3 if x is None else np.split(array(x), 3)


def _heads(x: Any, count: int) -> Any:
    """(l, n, e) -> (n, heads, l, e / heads)"""
    length, n, size = shape_of(x)
    return np.transpose(np.reshape(x, (length, n, count, size // count)), (1, 2, 0, 3))


def _mask(attn_mask: Any, padding: Any, is_causal: bool, shape: tuple[int, ...], many: int, dtype: np.dtype[Any]) -> Any:
    """The masks as one, (n, heads, l, keys): True where a key is seen, or numbers to add; None for no mask. Keys behind are seen."""
    n, _, length = shape
    parts = []
    if attn_mask is not None:
        m = array(attn_mask)
        parts.append(np.reshape(m, (*shape, shape_of(m)[-1])) if len(shape_of(m)) == 3 else m)
    elif is_causal:
        parts.append(np.triu(np.ones((length, many), bool), 1))
    if padding is not None:
        m = array(padding)
        parts.append(np.reshape(m, (n, 1, 1, shape_of(m)[-1])))
    parts = [np.pad(m, [(0, 0)] * (len(shape_of(m)) - 1) + [(0, many - shape_of(m)[-1])]) for m in parts]
    if not parts:
        return None
    if all(m.dtype == bool for m in parts):
        return ~parts[0] & ~parts[-1]
    return sum(np.where(m, dtype.type(-np.inf), dtype.type(0)) if m.dtype == bool else m.astype(dtype) for m in parts)


def sinusoidal_positions(length: int, size: int, base: float = 10000.0, dtype: Any = float) -> Array:
    """Encodings of positions by waves: (length, size).

    Args:
        length: How many positions.
        size: How many numbers for each; an even number.
        base: The ratio of the longest wave's length to the shortest's.
        dtype: The dtype of the result.

    Returns:
        An array whose entries [p, 2 k] and [p, 2 k + 1] are sine and cosine of p / base**(2 k / size).

    Raises:
        ArgumentError: an odd size.

    Example:
        >>> from fnad.nn import functional as F
        >>> F.sinusoidal_positions(2, 4).round(4)
        array([[0.    , 1.    , 0.    , 1.    ],
               [0.8415, 0.5403, 0.01  , 1.    ]])

    Reference: Vaswani et al., Attention Is All You Need, 2017.
    """
    angles = _angles(np.arange(length), size, base)
    return np.reshape(np.stack([np.sin(angles), np.cos(angles)], axis=-1), (length, size)).astype(dtype)


def rotary_embedding(input: ArrayLike, positions: ArrayLike | None = None, base: float = 10000.0) -> Array:
    """Pairs of numbers rotated by angles that grow with the position, so that products depend on distances of positions only.

    (..., l, e) -> (..., l, e): the pair [p, k] and [p, k + e / 2] is rotated by p / base**(2 k / e).

    Args:
        input: Queries or keys, with an even e.
        positions: (l,), or None for 0, 1, 2, ...
        base: The ratio of the slowest rotation's period to the fastest's.

    Returns:
        An array of the input's shape (float64 for integers).

    Raises:
        ArgumentError: an odd e.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.rotary_embedding(np.ones((2, 2))).round(4)
        array([[ 1.    ,  1.    ],
               [-0.3012,  1.3818]])

    Reference: Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, 2021.
    """
    x = floating(input, "rotary_embedding")
    length, size = shape_of(x)[-2:]
    angles = _angles(np.arange(length) if positions is None else array(positions), size, base)
    sine, cosine = np.sin(angles).astype(x.dtype), np.cos(angles).astype(x.dtype)
    first, second = x[..., : size // 2], x[..., size // 2 :]
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


def _angles(positions: Any, size: int, base: float) -> Any:
    if size % 2:
        raise ArgumentError("positions are encoded by pairs of numbers: the size is even", got={"size": size})
    return positions[:, None] / base ** (np.arange(0, size, 2) / size)
