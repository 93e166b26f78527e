"""Weights of a given norm, or with a given largest singular value."""

from __future__ import annotations

from typing import Any, NoReturn

from fnad.errors import UnknownNameError
from fnad.torch._mode import no_grad
from fnad.torch.nn import functional as F
from fnad.torch.nn.module import Module
from fnad.torch.nn.utils.parametrize import register_parametrization


class _WeightNorm(Module):
    """g * v / |v|, with the norms over all axes but one."""

    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def _norm(self, v: Any) -> Any:
        if self.dim == -1:
            return v.norm()
        turned = v.movedim(self.dim, 0)
        return turned.reshape(len(turned), -1).norm(dim=1).reshape([-1 if a == self.dim else 1 for a in range(v.dim())])

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return weight_v * (weight_g / self._norm(weight_v))

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return self._norm(weight), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Make the norm of a weight, over all axes but one, a parameter apart from its direction.

    Args:
        module: The module.
        name: Of the weight.
        dim: The axis along which there are several norms; None for one norm of all.

    Returns:
        The module; what is trained is `parametrizations.weight.original0` (norms) and `original1` (directions).

    Reference: Salimans & Kingma, Weight Normalization, 2016; `torch.nn.utils.parametrizations.weight_norm` of PyTorch 2.13.
    """
    return register_parametrization(module, name, _WeightNorm(dim))


class _SpectralNorm(Module):
    """weight / u.T weight v, with singular vectors found by iteration."""

    def __init__(self, weight: Any, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        if not -weight.dim() <= dim < weight.dim():
            raise IndexError(f"Dimension out of range (expected to be in range of [{-weight.dim()}, {weight.dim() - 1}] but got {dim})")
        self.dim, self.eps, self.n_power_iterations = dim % weight.dim(), eps, n_power_iterations
        if weight.dim() > 1:
            matrix = self._matrix(weight.detach())
            for side, n in zip(("_u", "_v"), matrix.shape, strict=True):
                self.register_buffer(side, F.normalize(matrix.new_empty(n).normal_(), dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Any) -> Any:
        return weight.movedim(self.dim, 0).flatten(1)

    def _iterate(self, matrix: Any, times: int) -> None:
        with no_grad():
            for _ in range(times):
                self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.t().mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # the next call changes them
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Any:
    """Divide a weight by its largest singular value.

    Args:
        module: The module.
        name: Of the weight.
        n_power_iterations: Steps towards the singular vectors in each call in training mode.
        eps: Keeps from dividing by 0.
        dim: The axis of the outputs; 0, or 1 for transposed convolutions.

    Returns:
        The module; what is trained is `parametrizations.weight.original`.

    Reference: Miyato et al., Spectral Normalization, 2018; `torch.nn.utils.parametrizations.spectral_norm` of PyTorch 2.13.
    """
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    return register_parametrization(module, name, _SpectralNorm(getattr(module, name), n_power_iterations, dim, eps))


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise UnknownNameError(
        f"torch.nn.utils.parametrizations.{name} does not exist in fnad.torch", fix="torch.nn.utils.parametrize with a module of your own"
    )
