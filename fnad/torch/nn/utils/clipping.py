"""Clipping of gradients, and parameters as one vector."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.core.tracer import Tracer
from fnad.torch._shapes import cat
from fnad.torch._tensor import Tensor, make


def _grads(parameters: Any) -> list[Any]:
    return [p._grad for p in ([parameters] if isinstance(parameters, Tensor) else parameters) if p._grad is not None]


def get_total_norm(tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """The norm of all entries of all tensors together."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not tensors:
        return make(np.zeros((), np.float32))
    norms = [np.linalg.norm(t._data.reshape(-1), float(norm_type)) for t in tensors]
    traced = any(isinstance(n, Tracer) for n in norms)
    total = np.linalg.norm(np.stack(norms) if traced else np.asarray(norms, tensors[0]._data.dtype), float(norm_type))
    if traced:
        return make(total)
    if error_if_nonfinite and not math.isfinite(total):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this "
            "error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return make(np.asarray(total))


def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None) -> Any:
    """Scale all gradients, in place, so that their norm together is at most `max_norm`.

    Returns:
        The norm before.

    Reference: `torch.nn.utils.clip_grad_norm_` of PyTorch 2.13: the factor is max_norm / (norm + 1e-6), at most 1.
    """
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Any, foreach: Any = None) -> None:
    """Scale all gradients, in place, by `max_norm / (total_norm + 1e-6)`, if that is less than 1."""
    total = total_norm if isinstance(total_norm, Tensor) else make(np.asarray(total_norm))
    norm: Any = total._data
    if isinstance(norm, Tracer):
        factor: Any = np.minimum(1.0, float(max_norm) / np.add(norm, 1e-6))
    else:
        factor = min(1.0, float(max_norm) / (total.item() + 1e-6)) if not math.isnan(total.item()) else math.nan
    for g in _grads(parameters):
        g._data *= factor.astype(g._data.dtype) if isinstance(factor, Tracer) else g._data.dtype.type(factor)
        g._counter[0] += 1


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Keep every entry of all gradients, in place, within `clip_value`."""
    for g in _grads(parameters):
        if isinstance(g._data, Tracer):
            g._data = np.clip(g._data, -clip_value, clip_value)
        else:
            np.clip(g._data, -clip_value, clip_value, out=g._data)
        g._counter[0] += 1


def parameters_to_vector(parameters: Any) -> Any:
    """All entries of all parameters, one after the other."""
    return cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Any, parameters: Any) -> None:
    """Give all parameters their entries from one vector."""
    start = 0
    for p in parameters:
        n = p._data.size
        p._data = vec._data[start : start + n].reshape(p._data.shape).copy()
        p._counter[0] += 1
        start += n
