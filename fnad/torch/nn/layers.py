"""Layers: linear and bilinear maps, tables of vectors, shapes, distances."""

from __future__ import annotations

import math
from typing import Any

from fnad.errors import UnsupportedError
from fnad.torch import _creation as creation
from fnad.torch._shapes import flatten, unflatten
from fnad.torch.nn import functional as F
from fnad.torch.nn import init
from fnad.torch.nn._declare import applied
from fnad.torch.nn.module import Module
from fnad.torch.nn.parameter import Parameter


class Identity(Module):
    """Its argument; any options are ignored."""

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """x @ weight.T + bias, with weight (out_features, in_features).

    Args:
        in_features: Size of the last axis of the input.
        out_features: Size of the last axis of the output.
        bias: Whether there is one.
        device: The CPU.
        dtype: Of the parameters.

    Weights and bias begin uniform within 1 / sqrt(in_features).

    Reference: `torch.nn.Linear`.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(creation.empty(out_features, in_features, dtype=dtype))
        if bias:
            self.bias = Parameter(creation.empty(out_features, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and bias anew."""
        reset(self.weight, self.bias)

    def forward(self, input: Any) -> Any:
        parameters = self.__dict__["_parameters"]
        try:
            return F.linear(input, parameters["weight"], parameters["bias"])
        except KeyError:
            if "weight" in parameters and "bias" in parameters:
                raise
            return F.linear(input, self.weight, self.bias)  # computed: see `parametrize`

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def reset(weight: Any, bias: Any) -> None:
    """Uniform numbers within 1 / sqrt(fan in)."""
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan = weight._data.size // weight._data.shape[0]
        bound = 1 / math.sqrt(fan) if fan else 0
        init.uniform_(bias, -bound, bound)


class Bilinear(Module):
    """sum over i, j of x1[i] weight[k, i, j] x2[j] + bias[k]. Reference: `torch.nn.Bilinear`.

    Args:
        in1_features: Size of the last axis of the first input.
        in2_features: Size of the last axis of the second input.
        out_features: Size of the last axis of the output.
        bias: Whether there is one.
        device: The CPU.
        dtype: Of the parameters.
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(creation.empty(out_features, in1_features, in2_features, dtype=dtype))
        self.register_parameter("bias", Parameter(creation.empty(out_features, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and bias anew."""
        bound = 1 / math.sqrt(self.in1_features)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Flatten(Module):
    """Axes from `start_dim` to `end_dim` as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Any:
        return flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One axis as several."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Any) -> Any:
        return unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


CosineSimilarity = applied("CosineSimilarity", "cosine_similarity", __name__, "", dim=1, eps=1e-8)
PairwiseDistance = applied("PairwiseDistance", "pairwise_distance", __name__, "", p=2.0, eps=1e-6, keepdim=False)


class _Table(Module):
    """A table of vectors, and what is done with it; see its subclasses."""

    def _build(self, rows: int, size: int, padding_idx: int | None, sparse: bool, weight: Any, dtype: Any) -> None:
        if sparse:
            raise UnsupportedError("fnad.torch: there are no sparse gradients", got={"sparse": True}, fix="leave sparse out")
        if padding_idx is not None and not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        self.num_embeddings, self.embedding_dim = rows, size
        self.padding_idx = padding_idx if padding_idx is None or padding_idx >= 0 else rows + padding_idx
        if weight is not None and list(weight.shape) != [rows, size]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(creation.empty(rows, size, dtype=dtype) if weight is None else weight)
        if weight is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.detach()[self.padding_idx] = 0

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **options: Any) -> Any:
        """A table with given vectors, which is not trained if `freeze`."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        module = cls(*embeddings.shape, _weight=embeddings, **options)
        module.weight.requires_grad = not freeze
        return module

    def extra_repr(self) -> str:
        shown = (("padding_idx", None), ("max_norm", None), ("norm_type", 2.0), ("scale_grad_by_freq", False))
        options = "".join(f", {name}={getattr(self, name)}" for name, default in shown if getattr(self, name) != default)
        return f"{self.num_embeddings}, {self.embedding_dim}{options}"


class Embedding(_Table):
    """A table of vectors: (...) of integers -> (..., embedding_dim). Reference: `torch.nn.Embedding`.

    Args:
        num_embeddings: Rows of the table.
        embedding_dim: Size of each.
        padding_idx: A row that begins as zeros and is not trained.
        max_norm: Rows whose norm is larger are scaled to it, in place, when they are used.
        norm_type: Which norm.
        scale_grad_by_freq: Whether the gradient of a row is divided by how often its number occurs in a batch.
        sparse: Must be False.
        _weight: The table, if it exists.
        _freeze: Whether it is not trained.
        device: The CPU.
        dtype: Of the table.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None, _freeze: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self._build(num_embeddings, embedding_dim, padding_idx, sparse, _weight, dtype)
        self.weight.requires_grad = not _freeze

    def forward(self, input: Any) -> Any:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)


class EmbeddingBag(_Table):
    """Sums, means or largest entries of rows of a table, over bags of numbers. Reference: `torch.nn.EmbeddingBag`.

    Args:
        num_embeddings: Rows of the table.
        embedding_dim: Size of each.
        max_norm: Rows whose norm is larger are scaled to it, in place, when they are used.
        norm_type: Which norm.
        scale_grad_by_freq: Whether the gradient of a row is divided by how often its number occurs in a batch.
        mode: "sum", "mean" or "max".
        sparse: Must be False.
        _weight: The table, if it exists.
        include_last_offset: Whether the last offset is the end of the last bag.
        padding_idx: A number that counts for nothing.
        device: The CPU.
        dtype: Of the table.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Any = None, include_last_offset: bool = False,
        padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.mode, self.include_last_offset = mode, include_last_offset
        self._build(num_embeddings, embedding_dim, padding_idx, sparse, _weight, dtype)

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        norm = (self.max_norm, self.norm_type, self.scale_grad_by_freq)
        last = (per_sample_weights, self.include_last_offset, self.padding_idx)
        return F.embedding_bag(input, self.weight, offsets, *norm, self.mode, False, *last)

    def extra_repr(self) -> str:
        shown = (("max_norm", None), ("norm_type", 2.0), ("scale_grad_by_freq", False), ("mode", ""), ("padding_idx", None))
        options = "".join(f", {name}={getattr(self, name)!r}" for name, default in shown if getattr(self, name) != default)
        return f"{self.num_embeddings}, {self.embedding_dim}{options}"
