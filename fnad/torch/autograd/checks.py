"""Gradients compared with differences."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.torch._tensor import Tensor
from fnad.torch.autograd.gradients import grad


class GradcheckError(RuntimeError):
    """Gradients and differences are not equal."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **_: Any,
) -> bool:
    """Compare gradients of a function of tensors with central differences.

    Args:
        func: It returns a tensor, or a tuple of tensors.
        inputs: Its arguments; those that require gradients, in float64, are looked at.
        eps: Half the step.
        atol: How far they may be apart.
        rtol: How far, relative to the gradient.
        raise_exception: Whether a difference is an error; otherwise False is returned.

    Raises:
        GradcheckError: (a RuntimeError) they are not equal.
        ValueError: no input requires gradients.

    Example:
        >>> import fnad.torch as torch
        >>> torch.autograd.gradcheck(torch.sin, torch.ones(3, dtype=torch.float64, requires_grad=True))
        True

    Reference: `torch.autograd.gradcheck` of PyTorch 2.13, without its other modes.
    """
    args = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    asked = [x for x in args if isinstance(x, Tensor) and x._req]
    if not asked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True.")

    def value(i: int) -> Any:
        return outputs()[i]._data.copy()

    def outputs() -> tuple[Any, ...]:
        out = func(*args)
        return tuple(o for o in (out if isinstance(out, tuple | list) else (out,)) if isinstance(o, Tensor) and o.is_floating_point())

    for i, o in enumerate(outputs()):
        flat = o.reshape(-1)
        rows = [grad(flat[k], asked, retain_graph=True, allow_unused=True) for k in range(len(flat))] if o._req else []
        for j, x in enumerate(asked):
            mine = np.stack([np.zeros(x._data.size) if r[j] is None else r[j]._data.ravel() for r in rows]) if rows else np.zeros((0, 1))
            theirs = _differences(functools.partial(value, i), x, eps) if rows else mine
            if not np.allclose(mine, theirs, rtol, atol):
                if not raise_exception:
                    return False
                raise GradcheckError(
                    f"Jacobian mismatch for output {i} with respect to input {j},\nnumerical:{theirs}\nanalytical:{mine}\n"
                )
    return True


def _differences(value: Callable[[], Any], x: Any, eps: float) -> Any:
    """The Jacobian by central differences, (outputs, entries of x)."""
    columns = []
    flat = x._data.reshape(-1) if x._data.flags.c_contiguous else x._data.flat
    for k in range(x._data.size):
        before = flat[k]
        ends = []
        for step in (eps, -eps):
            flat[k] = before + step
            ends.append(value().ravel())
        flat[k] = before
        columns.append((ends[0] - ends[1]) / (2 * eps))
    return np.stack(columns, 1)


def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, **options: Any) -> bool:
    """Compare gradients of gradients with central differences: see `gradcheck`."""
    args = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)

    def first(*at: Any) -> Any:
        out = func(*at)
        outs = tuple(o for o in (out if isinstance(out, tuple | list) else (out,)) if o._req)
        weights = grad_outputs if grad_outputs is not None else [(o * 0 + 1).detach() for o in outs]
        wanted = [x for x in at if isinstance(x, Tensor) and x._req]
        return grad(outs, wanted, weights, create_graph=True, allow_unused=True, materialize_grads=True)

    return gradcheck(first, args, **options)
