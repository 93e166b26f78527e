"""Normalisation as modules."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.torch import _creation as creation
from fnad.torch._tensor import make
from fnad.torch.nn import functional as F
from fnad.torch.nn._declare import REQUIRED, applied
from fnad.torch.nn.module import Module
from fnad.torch.nn.parameter import Parameter


def _affine(module: Module, shape: Any, weight: bool, bias: bool, dtype: Any) -> None:
    """Register weights that begin with 1 and biases that begin with 0, or None for them."""
    module.register_parameter("weight", Parameter(creation.ones(shape, dtype=dtype)) if weight else None)
    module.register_parameter("bias", Parameter(creation.zeros(shape, dtype=dtype)) if bias else None)


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
        _affine(self, self.normalized_shape, elementwise_affine, elementwise_affine and bias, dtype)

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
        bias: Whether there is a bias.
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        _affine(self, num_channels, affine, affine and bias, dtype)

    def forward(self, input: Any) -> Any:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class _Running(Module):
    """Channels with mean 0 and variance 1; running statistics, where there are some, are kept for evaluation.

    Args:
        num_features: Channels (axis 1).
        eps: Keeps from dividing by 0.
        momentum: How much of the running statistics is replaced by each batch; None for the mean of all batches.
        affine: Whether there are weight and bias.
        track_running_stats: Whether there are running statistics.
        device: The CPU.
        dtype: Of the parameters.
        bias: Whether there is a bias.
    """

    _ndims: tuple[int, ...] = ()
    _defaults = True, True

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool | None = None,
        track_running_stats: bool | None = None, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        affine, tracks = (d if x is None else x for x, d in zip((affine, track_running_stats), self._defaults, strict=True))
        self.num_features, self.eps, self.momentum, self.affine, self.track_running_stats = num_features, eps, momentum, affine, tracks
        _affine(self, num_features, affine, affine and bias, dtype)
        self.register_buffer("running_mean", creation.zeros(num_features, dtype=dtype) if tracks else None)
        self.register_buffer("running_var", creation.ones(num_features, dtype=dtype) if tracks else None)
        self.register_buffer("num_batches_tracked", make(np.zeros((), np.int64)) if tracks else None)

    def reset_running_stats(self) -> None:
        """Forget what has been seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Begin anew."""
        self.reset_running_stats()
        for p, value in ((self.weight, 1.0), (self.bias, 0.0)):
            if p is not None:
                p.detach().fill_(value)

    def _check(self, input: Any) -> None:
        if input._data.ndim not in self._ndims:
            raise ValueError(f"expected {' or '.join(f'{n}D' for n in self._ndims)} input (got {input._data.ndim}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_Running):
    def forward(self, input: Any) -> Any:
        self._check(input)
        momentum = self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            momentum = 1 / self.num_batches_tracked.item() if momentum is None else momentum
        training = self.training or self.running_mean is None
        kept = not self.training or self.track_running_stats
        mean, variance = (self.running_mean, self.running_var) if kept else (None, None)
        return F.batch_norm(input, mean, variance, self.weight, self.bias, training, momentum or 0.0, self.eps)


class BatchNorm1d(_BatchNorm):
    """Of (n, c) or (n, c, l). Reference: `torch.nn.BatchNorm1d`."""

    _ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Of (n, c, h, w). Reference: `torch.nn.BatchNorm2d`."""

    _ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """Of (n, c, d, h, w). Reference: `torch.nn.BatchNorm3d`."""

    _ndims = (5,)


class _InstanceNorm(_Running):
    _defaults = False, False

    def forward(self, input: Any) -> Any:
        self._check(input)
        single = input._data.ndim == self._ndims[0]
        channels = input._data.shape[0 if single else 1]
        if self.affine and channels != self.num_features:
            raise ValueError(
                f"expected input's size at dim={0 if single else 1} to match num_features ({self.num_features}), but got: {channels}."
            )
        x = input.unsqueeze(0) if single else input
        running = (self.running_mean, self.running_var)
        own = self.training or not self.track_running_stats
        out = F.instance_norm(x, *running, self.weight, self.bias, own, self.momentum or 0.0, self.eps)
        return out.squeeze(0) if single else out


class InstanceNorm1d(_InstanceNorm):
    """Of (n, c, l) or (c, l). Reference: `torch.nn.InstanceNorm1d`."""

    _ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Of (n, c, h, w) or (c, h, w). Reference: `torch.nn.InstanceNorm2d`."""

    _ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Of (n, c, d, h, w) or (c, d, h, w). Reference: `torch.nn.InstanceNorm3d`."""

    _ndims = (4, 5)


LocalResponseNorm = applied(
    "LocalResponseNorm", "local_response_norm", __name__, "{size}, alpha={alpha}, beta={beta}, k={k}",
    size=REQUIRED, alpha=1e-4, beta=0.75, k=1.0,
)  # fmt: skip
