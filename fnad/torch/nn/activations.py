"""Modules that are one function of one tensor."""

from __future__ import annotations

from typing import Any

from fnad.torch.nn import functional as F
from fnad.torch.nn.module import Module


class ReLU(Module):
    """max(x, 0)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.relu(input, self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Any) -> Any:
        return F.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Any) -> Any:
        return F.tanh(input)


class _WithOptions(Module):
    """A function of `torch.nn.functional` by its name, with the options that its class declares."""

    _function = ""
    _options: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        names = list(self._options)
        kwargs.pop("inplace", None)
        unknown = set(kwargs) - set(names)
        if len(args) > len(names) or unknown:
            raise TypeError(f"{type(self).__name__} takes {', '.join(names) or 'no options'}; got {args}, {kwargs}")
        for name, value in {**self._options, **dict(zip(names, args, strict=False)), **kwargs}.items():
            setattr(self, name, value)

    def forward(self, input: Any) -> Any:
        return getattr(F, self._function)(input, **{name: getattr(self, name) for name in self._options})

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._options)


def _module(name: str, function: str, **options: Any) -> Any:
    doc = f"`torch.nn.functional.{function}` as a module."
    return type(name, (_WithOptions,), {"_function": function, "_options": options, "__doc__": doc, "__module__": __name__})


GELU = _module("GELU", "gelu", approximate="none")
SiLU = _module("SiLU", "silu")
Softplus = _module("Softplus", "softplus", beta=1.0, threshold=20.0)
Softmax = _module("Softmax", "softmax", dim=None)
LogSoftmax = _module("LogSoftmax", "log_softmax", dim=None)
LeakyReLU = _module("LeakyReLU", "leaky_relu", negative_slope=0.01)
ELU = _module("ELU", "elu", alpha=1.0)
SELU = _module("SELU", "selu")
CELU = _module("CELU", "celu", alpha=1.0)
ReLU6 = _module("ReLU6", "relu6")
Hardtanh = _module("Hardtanh", "hardtanh", min_val=-1.0, max_val=1.0)
Hardsigmoid = _module("Hardsigmoid", "hardsigmoid")
Hardswish = _module("Hardswish", "hardswish")
Mish = _module("Mish", "mish")
Softsign = _module("Softsign", "softsign")
LogSigmoid = _module("LogSigmoid", "logsigmoid")
Tanhshrink = _module("Tanhshrink", "tanhshrink")
Softshrink = _module("Softshrink", "softshrink", lambd=0.5)
Hardshrink = _module("Hardshrink", "hardshrink", lambd=0.5)
GLU = _module("GLU", "glu", dim=-1)
AdaptiveAvgPool1d = _module("AdaptiveAvgPool1d", "adaptive_avg_pool1d", output_size=1)
AdaptiveAvgPool2d = _module("AdaptiveAvgPool2d", "adaptive_avg_pool2d", output_size=1)
AdaptiveMaxPool2d = _module("AdaptiveMaxPool2d", "adaptive_max_pool2d", output_size=1)
MaxPool1d = _module("MaxPool1d", "max_pool1d", kernel_size=2, stride=None, padding=0, dilation=1)
AvgPool1d = _module("AvgPool1d", "avg_pool1d", kernel_size=2, stride=None, padding=0)
PixelShuffle = _module("PixelShuffle", "pixel_shuffle", upscale_factor=2)
