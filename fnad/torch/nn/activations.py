"""Activations as modules."""

from __future__ import annotations

from typing import Any

from fnad.torch import _creation as creation
from fnad.torch.nn import functional as F
from fnad.torch.nn._declare import REQUIRED, Applied, applied
from fnad.torch.nn.module import Module
from fnad.torch.nn.parameter import Parameter


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


class PReLU(Module):
    """max(x, 0) + weight * min(x, 0), with a weight that is trained. Reference: `torch.nn.PReLU`.

    Args:
        num_parameters: One weight, or one per channel (axis 1).
        init: What it begins with.
        device: The CPU.
        dtype: Of the weight.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(creation.full((num_parameters,), float(init), dtype=dtype))

    def forward(self, input: Any) -> Any:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Applied):
    """Leaky relu, in training with random slopes. Reference: `torch.nn.RReLU`."""

    _function, _options = "rrelu", {"lower": 1 / 8, "upper": 1 / 3, "inplace": False}

    def forward(self, input: Any) -> Any:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Softmax2d(Module):
    """The softmax over the channels (axis -3). Reference: `torch.nn.Softmax2d`."""

    def forward(self, input: Any) -> Any:
        if input._data.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input._data.ndim}D instead")
        return F.softmax(input, -3)


GELU = applied("GELU", "gelu", __name__, approximate="none")
SiLU = applied("SiLU", "silu", __name__, inplace=False)
Mish = applied("Mish", "mish", __name__, inplace=False)
Softplus = applied("Softplus", "softplus", __name__, beta=1.0, threshold=20.0)
Softmax, Softmin = applied("Softmax", "softmax", __name__, dim=None), applied("Softmin", "softmin", __name__, dim=None)
LogSoftmax = applied("LogSoftmax", "log_softmax", __name__, dim=None)
LeakyReLU = applied("LeakyReLU", "leaky_relu", __name__, negative_slope=0.01, inplace=False)
ELU, CELU = (applied(name, name.lower(), __name__, alpha=1.0, inplace=False) for name in ("ELU", "CELU"))
SELU, ReLU6 = (applied(name, name.lower(), __name__, inplace=False) for name in ("SELU", "ReLU6"))
Hardtanh = applied("Hardtanh", "hardtanh", __name__, min_val=-1.0, max_val=1.0, inplace=False)
Hardsigmoid, Hardswish = (applied(name, name.lower(), __name__, inplace=False) for name in ("Hardsigmoid", "Hardswish"))
Threshold = applied("Threshold", "threshold", __name__, threshold=REQUIRED, value=REQUIRED, inplace=False)
Softsign, Tanhshrink = applied("Softsign", "softsign", __name__), applied("Tanhshrink", "tanhshrink", __name__)
LogSigmoid = applied("LogSigmoid", "logsigmoid", __name__)
Softshrink, Hardshrink = (applied(name, name.lower(), __name__, shown="{lambd}", lambd=0.5) for name in ("Softshrink", "Hardshrink"))
GLU = applied("GLU", "glu", __name__, dim=-1)
