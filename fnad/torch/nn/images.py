"""Borders, other sizes, and channels as places, as modules."""

from __future__ import annotations

from typing import Any

from fnad.torch.nn import functional as F
from fnad.torch.nn._declare import REQUIRED, Applied, applied
from fnad.torch.nn.module import Module


class _Pad(Module):
    """Borders around the last axes.

    Args:
        padding: One width for all sides; or (before, after) of the last axis, then of the one before, and so on.
    """

    _axes, _mode = 2, "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, tuple | list) else (padding,) * (2 * self._axes)

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


def _pads(name: str, mode: str, base: Any = _Pad) -> list[Any]:
    """The classes for one, two and three axes."""
    doc = "Borders around the last {} axes, mode {!r}. Reference: `torch.nn.{}`."
    return [
        type(f"{name}{n}d", (base,), {"_axes": n, "_mode": mode, "__doc__": doc.format(n, mode, f"{name}{n}d"), "__module__": __name__})
        for n in (1, 2, 3)
    ]


ConstantPad1d, ConstantPad2d, ConstantPad3d = _pads("ConstantPad", "constant", _ConstantPad)
ZeroPad1d, ZeroPad2d, ZeroPad3d = _pads("ZeroPad", "constant")
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _pads("ReflectionPad", "reflect")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _pads("ReplicationPad", "replicate")
CircularPad1d, CircularPad2d, CircularPad3d = _pads("CircularPad", "circular")

PixelShuffle = applied("PixelShuffle", "pixel_shuffle", __name__, upscale_factor=REQUIRED)
PixelUnshuffle = applied("PixelUnshuffle", "pixel_unshuffle", __name__, downscale_factor=REQUIRED)
ChannelShuffle = applied("ChannelShuffle", "channel_shuffle", __name__, groups=REQUIRED)
_WINDOWS: dict[str, Any] = {"kernel_size": REQUIRED, "dilation": 1, "padding": 0, "stride": 1}
Unfold = applied("Unfold", "unfold", __name__, **_WINDOWS)
Fold = applied("Fold", "fold", __name__, output_size=REQUIRED, **_WINDOWS)


class Upsample(Applied):
    """Images in another size. Reference: `torch.nn.Upsample`."""

    _function = "interpolate"
    _options = {"size": None, "scale_factor": None, "mode": "nearest", "align_corners": None, "recompute_scale_factor": None}  # noqa: RUF012

    def as_kept(self, name: str, value: Any) -> Any:
        if name == "scale_factor" and value is not None:
            return tuple(map(float, value)) if isinstance(value, tuple) else float(value)
        return value

    def extra_repr(self) -> str:
        given = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{given}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """By the nearest entry. Reference: `torch.nn.UpsamplingNearest2d`."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """Linearly, with the corners in their place. Reference: `torch.nn.UpsamplingBilinear2d`."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
