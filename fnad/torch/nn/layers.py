"""Layers: modules with weights, and those that only hold options."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.torch import _creation as creation
from fnad.torch._shapes import flatten, unflatten
from fnad.torch._tensor import make
from fnad.torch.nn import functional as F
from fnad.torch.nn import init
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
        _reset(self.weight, self.bias)

    def forward(self, input: Any) -> Any:
        parameters = self.__dict__["_parameters"]
        return F.linear(input, parameters["weight"], parameters["bias"])

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def _reset(weight: Any, bias: Any) -> None:
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan = weight._data.size // weight._data.shape[0]
        bound = 1 / math.sqrt(fan) if fan else 0
        init.uniform_(bias, -bound, bound)


class _Conv(Module):
    """Convolution: (n, in_channels, ...) -> (n, out_channels, ...).

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Sizes of the window, or one number for all axes; so the following.
        stride: Steps of the window.
        padding: Zeros around the input, or "same" or "valid".
        dilation: Distance of the window's entries.
        groups: In how many groups channels are convolved.
        bias: Whether there is one.
        padding_mode: "zeros".
        device: The CPU.
        dtype: Of the parameters.
    """

    _axes = 2

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
        bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{'in' if in_channels % groups else 'out'}_channels must be divisible by groups")
        if padding_mode != "zeros":
            raise NotImplementedError(f"fnad.torch: padding_mode={padding_mode!r} does not exist here; pad with F.pad first")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = self._each(kernel_size), self._each(stride), self._each(dilation)
        self.padding = padding if isinstance(padding, str) else self._each(padding)
        self.weight = Parameter(creation.empty(*self._weight_shape(), dtype=dtype))
        if bias:
            self.bias = Parameter(creation.empty(out_channels, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _each(self, x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, tuple | list) else (x,) * self._axes

    def _weight_shape(self) -> tuple[int, ...]:
        return (self.out_channels, self.in_channels // self.groups, *self.kernel_size)

    def reset_parameters(self) -> None:
        """Draw weights and bias anew."""
        _reset(self.weight, self.bias)

    def forward(self, input: Any) -> Any:
        function = getattr(F, f"conv{self._axes}d")
        return function(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        s = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != self._each(0):
            s += f", padding={self.padding}"
        if self.dilation != self._each(1):
            s += f", dilation={self.dilation}"
        if self.groups != 1:
            s += f", groups={self.groups}"
        return s if self.bias is not None else s + ", bias=False"


class Conv1d(_Conv):
    """Along one axis. Reference: `torch.nn.Conv1d`."""

    _axes = 1


class Conv2d(_Conv):
    """Along two axes. Reference: `torch.nn.Conv2d`."""


class Conv3d(_Conv):
    """Along three axes. Reference: `torch.nn.Conv3d`."""

    _axes = 3


class ConvTranspose2d(_Conv):
    """The transpose of a convolution along two axes. Reference: `torch.nn.ConvTranspose2d`."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        self.output_padding = self._each(output_padding)

    def _weight_shape(self) -> tuple[int, ...]:
        return (self.in_channels, self.out_channels // self.groups, *self.kernel_size)

    def forward(self, input: Any) -> Any:
        options = (self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        return F.conv_transpose2d(input, self.weight, self.bias, *options)


class MaxPool2d(Module):
    """The largest entry of each window. Reference: `torch.nn.MaxPool2d`."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation

    def forward(self, input: Any) -> Any:
        return F.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, ceil_mode=False"


class AvgPool2d(Module):
    """The mean of each window. Reference: `torch.nn.AvgPool2d`."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding

    def forward(self, input: Any) -> Any:
        return F.avg_pool2d(input, self.kernel_size, self.stride, self.padding)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


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


class Dropout(Module):
    """In training, entries set to 0 with probability p. Reference: `torch.nn.Dropout`."""

    _function = staticmethod(F.dropout)

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Any) -> Any:
        return self._function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout2d(Dropout):
    """In training, whole channels set to 0. Reference: `torch.nn.Dropout2d`."""

    _function = staticmethod(F.dropout2d)


class LayerNorm(Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last axes. Reference: `torch.nn.LayerNorm`.

    Args:
        normalized_shape: Sizes of these axes.
        eps: Keeps from dividing by 0.
        elementwise_affine: Whether there are weight and bias.
        bias: Whether there is a bias.
        device: The CPU.
        dtype: Of the parameters.
    """

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", Parameter(creation.ones(self.normalized_shape, dtype=dtype)) if elementwise_affine else None)
        self.register_parameter(
            "bias", Parameter(creation.zeros(self.normalized_shape, dtype=dtype)) if elementwise_affine and bias else None
        )

    def forward(self, input: Any) -> Any:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"


class RMSNorm(Module):
    """x / sqrt(mean of x**2 + eps) * weight over the last axes. Reference: `torch.nn.RMSNorm`.

    Args:
        normalized_shape: Sizes of these axes.
        eps: Keeps from dividing by 0; the dtype's own if None.
        elementwise_affine: Whether there is a weight.
        device: The CPU.
        dtype: Of the weight.
    """

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", Parameter(creation.ones(self.normalized_shape, dtype=dtype)) if elementwise_affine else None)

    def forward(self, input: Any) -> Any:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Groups of channels of each example with mean 0 and variance 1. Reference: `torch.nn.GroupNorm`.

    Args:
        num_groups: In how many groups the channels are divided.
        num_channels: Channels (axis 1).
        eps: Keeps from dividing by 0.
        affine: Whether there are weight and bias.
        device: The CPU.
        dtype: Of the parameters.
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError("num_channels must be divisible by num_groups")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.register_parameter("weight", Parameter(creation.ones(num_channels, dtype=dtype)) if affine else None)
        self.register_parameter("bias", Parameter(creation.zeros(num_channels, dtype=dtype)) if affine else None)

    def forward(self, input: Any) -> Any:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class _BatchNorm(Module):
    """Each channel with mean 0 and variance 1; running statistics are kept for evaluation.

    Args:
        num_features: Channels (axis 1).
        eps: Keeps from dividing by 0.
        momentum: How much of the running statistics is replaced by each batch; None for the mean of all batches.
        affine: Whether there are weight and bias.
        track_running_stats: Whether there are running statistics.
        device: The CPU.
        dtype: Of the parameters.
    """

    _ndims: tuple[int, ...] = ()

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum, self.affine = num_features, eps, momentum, affine
        self.track_running_stats = track_running_stats
        self.register_parameter("weight", Parameter(creation.ones(num_features, dtype=dtype)) if affine else None)
        self.register_parameter("bias", Parameter(creation.zeros(num_features, dtype=dtype)) if affine else None)
        keeps = track_running_stats
        self.register_buffer("running_mean", creation.zeros(num_features, dtype=dtype) if keeps else None)
        self.register_buffer("running_var", creation.ones(num_features, dtype=dtype) if keeps else None)
        self.register_buffer("num_batches_tracked", make(np.zeros((), np.int64)) if keeps else None)

    def forward(self, input: Any) -> Any:
        if input._data.ndim not in self._ndims:
            raise ValueError(f"expected {' or '.join(f'{n}D' for n in self._ndims)} input (got {input._data.ndim}D input)")
        momentum = self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            momentum = 1 / self.num_batches_tracked.item() if momentum is None else momentum
        training = self.training or self.running_mean is None
        kept = self.track_running_stats
        mean, variance = (self.running_mean, self.running_var) if kept else (None, None)
        return F.batch_norm(input, mean, variance, self.weight, self.bias, training, momentum or 0.0, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Of (n, c) or (n, c, l). Reference: `torch.nn.BatchNorm1d`."""

    _ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Of (n, c, h, w). Reference: `torch.nn.BatchNorm2d`."""

    _ndims = (4,)


class Embedding(Module):
    """A table of vectors: (...) of integers -> (..., embedding_dim). Reference: `torch.nn.Embedding`.

    Args:
        num_embeddings: Rows of the table.
        embedding_dim: Size of each.
        padding_idx: A row that begins as zeros and is not trained.
        device: The CPU.
        dtype: Of the table.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx if padding_idx is None or padding_idx >= 0 else num_embeddings + padding_idx
        self.weight = Parameter(creation.empty(num_embeddings, embedding_dim, dtype=dtype))
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight._data[self.padding_idx] = 0

    def forward(self, input: Any) -> Any:
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        pad = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{pad}"
