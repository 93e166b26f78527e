"""Recurrent layers and cells."""

from __future__ import annotations

import math
from typing import Any

from fnad.errors import UnsupportedError
from fnad.nn import functional as pure
from fnad.torch import _creation as creation
from fnad.torch._call import run
from fnad.torch._random import draw_key
from fnad.torch.nn import init
from fnad.torch.nn.module import Module
from fnad.torch.nn.parameter import Parameter
from fnad.torch.nn.utils.rnn import PackedSequence, pack_sorted, pad_sorted


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
        proj_size: Must be 0.
        device: The CPU.
        dtype: Of the parameters.
    """

    _gates, _function = 1, "rnn"

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
        bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if proj_size:
            raise UnsupportedError(
                f"fnad.torch: {type(self).__name__} has no projections", got={"proj_size": proj_size}, fix="a Linear on the outputs"
            )
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
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def flatten_parameters(self) -> None:
        """Has no effect."""

    def _zeros(self, input: Any) -> Any:
        shape = input._data.shape
        examples = () if len(shape) == 2 else (shape[0 if self.batch_first else 1],)
        return creation.zeros(len(self._sets), *examples, self.hidden_size, dtype=input.dtype)

    def _start(self, input: Any) -> Any:
        return self._zeros(input)

    def _options(self) -> dict[str, Any]:
        rate = self.dropout if self.training and self.num_layers > 1 else 0.0
        key = draw_key() if rate else None
        return {"bidirectional": self.bidirectional, "dropout": rate, "key": key}

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Outputs for all times, and the states after; of a `PackedSequence`, one of outputs."""
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        sets = [[getattr(self, name) for name in names] for names in self._sets]
        state = self._start(input) if hx is None else hx
        return run(getattr(pure, self._function), (input, state, sets), {**self._options(), "batch_first": self.batch_first})

    def _packed(self, input: Any, hx: Any) -> Any:
        """Sequences of different lengths: those in front of the padded ones are computed with, states stop at their ends."""
        padded, lengths = pad_sorted(input)
        sets = [[getattr(self, name) for name in names] for names in self._sets]
        first, back = input.sorted_indices, input.unsorted_indices
        batch_first, self.batch_first = self.batch_first, False
        try:
            state = self._start(padded) if hx is None else _reordered(hx, first)
        finally:
            self.batch_first = batch_first
        out, after = run(getattr(pure, self._function), (padded, state, sets), {**self._options(), "lengths": lengths})
        return PackedSequence(pack_sorted(out, input.batch_sizes), input.batch_sizes, first, back), _reordered(after, back)

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0), ("bidirectional", False)):
            s += f", {name}={getattr(self, name)}" if getattr(self, name) != default else ""
        return s


def _reordered(state: Any, order: Any) -> Any:
    """States with their examples in another order."""
    if order is None:
        return state
    return tuple(_reordered(s, order) for s in state) if isinstance(state, tuple) else state.index_select(1, order)


class RNN(_Recurrent):
    """Elman's network. Reference: `torch.nn.RNN`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(input_size, hidden_size, num_layers, bias, *args, **kwargs)
        self.nonlinearity = nonlinearity

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "nonlinearity": self.nonlinearity}


class GRU(_Recurrent):
    """The gated recurrent unit. Reference: `torch.nn.GRU`."""

    _gates, _function = 3, "gru"


class LSTM(_Recurrent):
    """Long short-term memory; its state is a pair. Reference: `torch.nn.LSTM`."""

    _gates, _function = 4, "lstm"

    def _start(self, input: Any) -> Any:
        return self._zeros(input), self._zeros(input)


class _Cell(Module):
    """One step of a recurrent layer: (n, input_size), (n, hidden_size) -> (n, hidden_size), or without n.

    Args:
        input_size: Numbers that come in.
        hidden_size: Size of the state.
        bias: Whether there are biases.
        device: The CPU.
        dtype: Of the parameters.
    """

    _gates, _function = 1, "rnn_tanh_cell"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = self._gates * hidden_size
        for name, shape in (
            ("weight_ih", (rows, input_size)),
            ("weight_hh", (rows, hidden_size)),
            ("bias_ih", (rows,)),
            ("bias_hh", (rows,)),
        ):
            wanted = bias or name.startswith("weight")
            self.register_parameter(name, Parameter(creation.empty(shape, dtype=dtype)) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def _zeros(self, input: Any) -> Any:
        if input._data.ndim not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected input to be 1D or 2D, got {input._data.ndim}D instead")
        return creation.zeros(*input._data.shape[:-1], self.hidden_size, dtype=input.dtype)

    def _start(self, input: Any) -> Any:
        return self._zeros(input)

    def forward(self, input: Any, hx: Any = None) -> Any:
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return run(getattr(pure, self._function), (input, self._start(input) if hx is None else hx, *weights), {})

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(_Cell):
    """A step of `RNN`. Reference: `torch.nn.RNNCell`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)
        if nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {nonlinearity}")
        self.nonlinearity, self._function = nonlinearity, f"rnn_{nonlinearity}_cell"

    def extra_repr(self) -> str:
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")


class GRUCell(_Cell):
    """A step of `GRU`. Reference: `torch.nn.GRUCell`."""

    _gates, _function = 3, "gru_cell"


class LSTMCell(_Cell):
    """A step of `LSTM`; its state is a pair. Reference: `torch.nn.LSTMCell`."""

    _gates, _function = 4, "lstm_cell"

    def _start(self, input: Any) -> Any:
        return self._zeros(input), self._zeros(input)
