"""Recurrent layers, and attention."""

from __future__ import annotations

import math
from typing import Any

from fnad.nn import functional as pure
from fnad.torch import _creation as creation
from fnad.torch._call import run
from fnad.torch.nn import functional as F
from fnad.torch.nn import init
from fnad.torch.nn.layers import Linear
from fnad.torch.nn.module import Module
from fnad.torch.nn.parameter import Parameter


class _Recurrent(Module):
    """Sequences through one or more layers of cells, in one or both directions.

    Args:
        input_size: Numbers per time that come in.
        hidden_size: Size of the state.
        num_layers: Layers, each on the outputs of the one before.
        bias: Whether there are biases.
        batch_first: Whether the first axis is that of the examples.
        dropout: How much of the outputs of all layers but the last is dropped in training.
        bidirectional: Whether each layer also runs backwards.
        device: The CPU.
        dtype: Of the parameters.
    """

    _gates, _function = 1, "rnn"

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
        bidirectional: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        self._sets: list[list[str]] = []
        directions = 2 if bidirectional else 1
        rows = self._gates * hidden_size
        for layer in range(num_layers):
            for end in ("", "_reverse")[:directions]:
                columns = input_size if layer == 0 else hidden_size * directions
                shapes = {"weight_ih": (rows, columns), "weight_hh": (rows, hidden_size), "bias_ih": (rows,), "bias_hh": (rows,)}
                names = [f"{name}_l{layer}{end}" for name in list(shapes)[: 4 if bias else 2]]
                for name, shape in zip(names, shapes.values(), strict=False):
                    setattr(self, name, Parameter(creation.empty(shape, dtype=dtype)))
                self._sets.append(names)
        bound = 1 / math.sqrt(hidden_size) if hidden_size else 0
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def _start(self, input: Any) -> Any:
        shape = input._data.shape
        examples = () if len(shape) == 2 else (shape[0 if self.batch_first else 1],)
        return creation.zeros(len(self._sets), *examples, self.hidden_size, dtype=input.dtype)

    def _options(self) -> dict[str, Any]:
        rate = self.dropout if self.training and self.num_layers > 1 else 0.0
        key = F.draw_key() if rate else None
        return {"bidirectional": self.bidirectional, "batch_first": self.batch_first, "dropout": rate, "key": key}

    def forward(self, input: Any, hx: Any = None) -> Any:
        sets = [[getattr(self, name) for name in names] for names in self._sets]
        return run(getattr(pure, self._function), (input, self._start(input) if hx is None else hx, sets), self._options())

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0), ("bidirectional", False)):
            s += f", {name}={getattr(self, name)}" if getattr(self, name) != default else ""
        return s


class RNN(_Recurrent):
    """Elman's network. Reference: `torch.nn.RNN`."""

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **kwargs: Any) -> None:
        self.__dict__["nonlinearity"] = nonlinearity
        super().__init__(*args, **kwargs)

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "nonlinearity": self.nonlinearity}


class GRU(_Recurrent):
    """The gated recurrent unit. Reference: `torch.nn.GRU`."""

    _gates, _function = 3, "gru"


class LSTM(_Recurrent):
    """Long short-term memory; its state is a pair. Reference: `torch.nn.LSTM`."""

    _gates, _function = 4, "lstm"

    def _start(self, input: Any) -> Any:
        zeros = super()._start(input)
        return (zeros, zeros)


class MultiheadAttention(Module):
    """Attention with several heads, of equal sizes of queries, keys and values. Reference: `torch.nn.MultiheadAttention`.

    Args:
        embed_dim: Size of queries, keys and values.
        num_heads: In how many heads they are divided.
        dropout: How much of the weights is dropped in training.
        bias: Whether there are biases.
        batch_first: Whether the first axis is that of the examples.
        device: The CPU.
        dtype: Of the parameters.
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, batch_first: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.in_proj_weight = Parameter(creation.empty(3 * embed_dim, embed_dim, dtype=dtype))
        self.register_parameter("in_proj_bias", Parameter(creation.zeros(3 * embed_dim, dtype=dtype)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        init.xavier_uniform_(self.in_proj_weight)
        if bias:
            init.zeros_(self.out_proj.bias)

    def forward(
        self, query: Any, key: Any, value: Any, key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
        average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Any, Any]:  # fmt: skip
        turn = self.batch_first and query._data.ndim == 3
        q, k, v = (x.transpose(0, 1) if turn else x for x in (query, key, value))
        rate = self.dropout if self.training else 0.0
        out, weights = run(
            pure.multi_head_attention_forward,
            (q, k, v, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, None, None, False, rate),
            {
                "out_proj_weight": self.out_proj.weight,
                "out_proj_bias": self.out_proj.bias,
                "training": self.training,
                "key_padding_mask": key_padding_mask,
                "need_weights": need_weights,
                "attn_mask": attn_mask,
                "average_attn_weights": average_attn_weights,
                "is_causal": is_causal,
                "dropout_key": F.draw_key() if rate else None,
            },
        )
        return (out.transpose(0, 1) if turn else out), weights
