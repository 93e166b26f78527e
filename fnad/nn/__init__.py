"""Neural networks as pure functions of arrays. `functional` has PyTorch's names and argument order, data first."""

from fnad.nn import functional as functional
