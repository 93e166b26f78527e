"""Pooling as modules."""

from __future__ import annotations

from typing import Any

from fnad.torch.nn import functional as F
from fnad.torch.nn._declare import REQUIRED, Applied, applied
from fnad.torch.nn.module import Module


class _Pool(Applied):
    """Windows whose step, if none is given, is their size."""

    kernel_size: Any
    stride: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stride = self.kernel_size if self.stride is None else self.stride


class _MaxPool(_Pool):
    _options = {"kernel_size": REQUIRED, "stride": None, "padding": 0, "dilation": 1, "return_indices": False, "ceil_mode": False}  # noqa: RUF012
    _shown = "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, ceil_mode={ceil_mode}"


class MaxPool1d(_MaxPool):
    """The largest entry of each window of one axis. Reference: `torch.nn.MaxPool1d`."""

    _function = "max_pool1d"


class MaxPool2d(_MaxPool):
    """The largest entry of each window of two axes. Reference: `torch.nn.MaxPool2d`."""

    _function = "max_pool2d"


class MaxPool3d(_MaxPool):
    """The largest entry of each window of three axes. Reference: `torch.nn.MaxPool3d`."""

    _function = "max_pool3d"


class AvgPool1d(_Pool):
    """The mean of each window of one axis. Reference: `torch.nn.AvgPool1d`."""

    _function = "avg_pool1d"
    _options = {"kernel_size": REQUIRED, "stride": None, "padding": 0, "ceil_mode": False, "count_include_pad": True}  # noqa: RUF012
    _shown = "kernel_size={kernel_size}, stride={stride}, padding={padding}"

    def as_kept(self, name: str, value: Any) -> Any:
        return (value,) if name in ("kernel_size", "stride", "padding") and isinstance(value, int) else value


class AvgPool2d(_Pool):
    """The mean of each window of two axes. Reference: `torch.nn.AvgPool2d`."""

    _function = "avg_pool2d"
    _options = {**AvgPool1d._options, "divisor_override": None}  # noqa: RUF012
    _shown = AvgPool1d._shown


class AvgPool3d(AvgPool2d):
    """The mean of each window of three axes. Reference: `torch.nn.AvgPool3d`."""

    _function = "avg_pool3d"


class _MaxUnpool(Module):
    """Entries put where max pooling found them.

    Args:
        kernel_size: Sizes of the windows; so the following.
        stride: Their steps; their sizes if None.
        padding: The border.
    """

    _axes = 2

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        each = (kernel_size, kernel_size if stride is None else stride, padding)
        self.kernel_size, self.stride, self.padding = (tuple(x) if isinstance(x, tuple | list) else (x,) * self._axes for x in each)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return getattr(F, f"max_unpool{self._axes}d")(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """For `MaxPool1d`. Reference: `torch.nn.MaxUnpool1d`."""

    _axes = 1


class MaxUnpool2d(_MaxUnpool):
    """For `MaxPool2d`. Reference: `torch.nn.MaxUnpool2d`."""


class MaxUnpool3d(_MaxUnpool):
    """For `MaxPool3d`. Reference: `torch.nn.MaxUnpool3d`."""

    _axes = 3


_LP: dict[str, Any] = {"norm_type": REQUIRED, "kernel_size": REQUIRED, "stride": None, "ceil_mode": False}
LPPool1d, LPPool2d, LPPool3d = (applied(f"LPPool{n}d", f"lp_pool{n}d", __name__, **_LP) for n in (1, 2, 3))
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = (
    applied(f"AdaptiveAvgPool{n}d", f"adaptive_avg_pool{n}d", __name__, output_size=REQUIRED) for n in (1, 2, 3)
)
AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = (
    applied(
        f"AdaptiveMaxPool{n}d", f"adaptive_max_pool{n}d", __name__, "output_size={output_size}", output_size=REQUIRED, return_indices=False
    )
    for n in (1, 2, 3)
)
