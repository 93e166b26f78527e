"""Convolutions as modules."""

from __future__ import annotations

from typing import Any

from fnad.torch import _creation as creation
from fnad.torch.nn import functional as F
from fnad.torch.nn.layers import reset
from fnad.torch.nn.module import Module
from fnad.torch.nn.parameter import Parameter


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
        padding_mode: What is around the input: "zeros", "reflect", "replicate" or "circular".
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
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                f"padding_mode must be one of ['zeros', 'reflect', 'replicate', 'circular'], but got padding_mode={padding_mode!r}"
            )
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride, self.dilation = self._each(kernel_size), self._each(stride), self._each(dilation)
        self.padding: Any = padding if isinstance(padding, str) else self._each(padding)
        self.output_padding = self._each(0)
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
        reset(self.weight, self.bias)

    def forward(self, input: Any) -> Any:
        function = getattr(F, f"conv{self._axes}d")
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._borders(), self.padding_mode), 0
        return function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _borders(self) -> list[int]:
        """The widths of the padding as `F.pad` takes them."""
        if self.padding == "valid":
            return [0, 0] * self._axes
        if self.padding == "same":
            both = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return [n for b in reversed(both) for n in (b // 2, b - b // 2)]
        return [n for p in reversed(self.padding) for n in (p, p)]

    def extra_repr(self) -> str:
        s = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != self._each(0):
            s += f", padding={self.padding}"
        if self.dilation != self._each(1):
            s += f", dilation={self.dilation}"
        if self.output_padding != self._each(0):
            s += f", output_padding={self.output_padding}"
        if self.groups != 1:
            s += f", groups={self.groups}"
        s += "" if self.bias is not None else ", bias=False"
        return s if self.padding_mode == "zeros" else s + f", padding_mode={self.padding_mode}"


class Conv1d(_Conv):
    """Along one axis. Reference: `torch.nn.Conv1d`."""

    _axes = 1


class Conv2d(_Conv):
    """Along two axes. Reference: `torch.nn.Conv2d`."""


class Conv3d(_Conv):
    """Along three axes. Reference: `torch.nn.Conv3d`."""

    _axes = 3


class _ConvTranspose(_Conv):
    """The transpose of a convolution: (n, in_channels, ...) -> (n, out_channels, ...).

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Sizes of the window, or one number for all axes; so the following.
        stride: Steps of the window.
        padding: How much is cut off at each side.
        output_padding: How much is added behind.
        groups: In how many groups channels are convolved.
        bias: Whether there is one.
        dilation: Distance of the window's entries.
        padding_mode: "zeros".
        device: The CPU.
        dtype: Of the parameters.
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        self.output_padding = self._each(output_padding)

    def _weight_shape(self) -> tuple[int, ...]:
        return (self.in_channels, self.out_channels // self.groups, *self.kernel_size)

    def forward(self, input: Any, output_size: Any = None) -> Any:
        extra = self.output_padding if output_size is None else self._extra(input._data.shape, list(output_size))
        function = getattr(F, f"conv_transpose{self._axes}d")
        return function(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _extra(self, shape: tuple[int, ...], output_size: list[int]) -> tuple[int, ...]:
        """The output padding that gives a size."""
        old, wanted = shape[-self._axes :], output_size[-self._axes :]
        least = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(old, self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        ]
        most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
        if any(not low <= n <= high for low, n, high in zip(least, wanted, most, strict=True)):
            raise ValueError(
                f"requested an output size of {wanted}, but valid sizes range from {least} to {most} (for an input of {list(old)})"
            )
        return tuple(n - low for n, low in zip(wanted, least, strict=True))


class ConvTranspose1d(_ConvTranspose):
    """Along one axis. Reference: `torch.nn.ConvTranspose1d`."""

    _axes = 1


class ConvTranspose2d(_ConvTranspose):
    """Along two axes. Reference: `torch.nn.ConvTranspose2d`."""


class ConvTranspose3d(_ConvTranspose):
    """Along three axes. Reference: `torch.nn.ConvTranspose3d`."""

    _axes = 3
