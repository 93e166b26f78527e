"""Dropout as modules."""

from __future__ import annotations

from typing import Any

from fnad.torch.nn import functional as F
from fnad.torch.nn.module import Module


class Dropout(Module):
    """In training, entries set to 0 with probability p. Reference: `torch.nn.Dropout`.

    Args:
        p: The probability.
        inplace: Whether the input itself is changed.
    """

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


class Dropout1d(Dropout):
    """In training, whole channels of (n, c, l) set to 0. Reference: `torch.nn.Dropout1d`."""

    _function = staticmethod(F.dropout1d)


class Dropout2d(Dropout):
    """In training, whole channels set to 0. Reference: `torch.nn.Dropout2d`."""

    _function = staticmethod(F.dropout2d)


class Dropout3d(Dropout):
    """In training, whole channels of volumes set to 0. Reference: `torch.nn.Dropout3d`."""

    _function = staticmethod(F.dropout3d)


class AlphaDropout(Dropout):
    """In training, entries set to what keeps mean and variance. Reference: `torch.nn.AlphaDropout`."""

    _function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(Dropout):
    """In training, whole channels set to what keeps mean and variance. Reference: `torch.nn.FeatureAlphaDropout`."""

    _function = staticmethod(F.feature_alpha_dropout)
