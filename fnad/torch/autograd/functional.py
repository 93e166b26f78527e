"""`torch.autograd.functional`: products with derivatives of functions of tensors, and whole matrices of derivatives.

`torch.func` has the same as transforms; these are made of backward passes, and can be differentiated by the tape with `create_graph`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fnad.torch._creation import zeros, zeros_like
from fnad.torch._mode import enable_grad
from fnad.torch._shapes import stack
from fnad.torch._tensor import Tensor
from fnad.torch.autograd.gradients import grad


def _tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else tuple(x) if isinstance(x, list) else (x,)


def _inputs(inputs: Any, create_graph: bool) -> tuple[Any, ...]:
    """The inputs as tensors to differentiate by."""
    parts = _tuple(inputs)
    for x in parts:
        if not isinstance(x, Tensor):
            raise TypeError(f"The inputs must be tensors or a tuple of tensors, but got {type(x).__name__}")
    if create_graph:
        return tuple(x.view_as(x) if x._req else x.detach().requires_grad_() for x in parts)
    return tuple(x.detach().requires_grad_() for x in parts)


def _call(func: Callable[..., Any], inputs: tuple[Any, ...]) -> tuple[tuple[Any, ...], bool]:
    """What a function returns as a tuple, and whether it was one tensor."""
    out = func(*inputs)
    outs = _tuple(out)
    for x in outs:
        if not isinstance(x, Tensor):
            raise TypeError(f"The function must return tensors or a tuple of tensors, but returned {type(x).__name__}")
    return outs, isinstance(out, Tensor)


def _grads(outs: Any, inputs: Any, weights: Any, create_graph: bool, strict: bool) -> tuple[Any, ...]:
    """Gradients, with zeros for what does not depend on an input."""
    live = [(o, w) for o, w in zip(outs, weights, strict=True) if o._req]
    found: Sequence[Any] = [None] * len(inputs)
    if live:
        each, factors = zip(*live, strict=True)
        found = grad(each, inputs, factors, create_graph=create_graph, retain_graph=True, allow_unused=True)
    if strict and any(g is None for g in found):
        raise RuntimeError("The outputs do not depend on all of the inputs, which strict=True does not allow")
    return tuple(zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True))


def _as_given(parts: Sequence[Any], given: Any, detach: bool) -> Any:
    """One tensor for one, a tuple for a tuple."""
    parts = tuple(p.detach() if detach else p for p in parts)
    return parts[0] if isinstance(given, Tensor) else parts


def _vector(v: Any, like: tuple[Any, ...], of: str) -> tuple[Any, ...]:
    if v is None:
        if len(like) != 1 or like[0]._data.size != 1:
            raise RuntimeError(f"The vector v can only be None if {of} a single Tensor with a single element.")
        return (zeros_like(like[0]) + 1,)
    parts = _tuple(v)
    if len(parts) != len(like) or any(a._data.shape != b._data.shape for a, b in zip(parts, like, strict=True)):
        raise RuntimeError("v must be like what it is multiplied with: as many tensors, of the same shapes")
    return parts


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """What a function returns, and `v` times its Jacobian. Reference: `torch.autograd.functional.vjp` of PyTorch 2.13."""
    with enable_grad():
        at = _inputs(inputs, create_graph)
        outs, single = _call(func, at)
        weights = _vector(v, outs, "the user-provided function returns")
        found = _grads(outs, at, weights, create_graph, strict)
    return _as_given(outs, outs[0] if single else outs, not create_graph), _as_given(found, inputs, not create_graph)


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """What a function returns, and its Jacobian times `v`. Reference: `torch.autograd.functional.jvp` of PyTorch 2.13."""
    with enable_grad():
        at = _inputs(inputs, create_graph)
        outs, single = _call(func, at)
        tangents = _vector(v, at, "the input is")
        dummies = tuple(zeros_like(o).requires_grad_() for o in outs)
        pulled = _grads(outs, at, dummies, True, strict)  # linear in the dummies: its transpose is the answer
        found = _grads(pulled, dummies, tangents, create_graph, False)
    given = outs[0] if single else outs
    return _as_given(outs, given, not create_graph), _as_given(found, given, not create_graph)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The value of a function that returns one number, and its second derivatives times `v`.

    Reference: `torch.autograd.functional.hvp` of PyTorch 2.13.
    """
    with enable_grad():
        at = _inputs(inputs, create_graph)
        outs, _ = _call(func, at)
        if len(outs) != 1 or outs[0]._data.size != 1:
            raise RuntimeError("The Tensor returned by the function given to hvp should contain a single element")
        tangents = _vector(v, at, "the input is")
        first = _grads(outs, at, (zeros_like(outs[0]) + 1,), True, strict)
        found = _grads(first, at, tangents, create_graph, strict)
    return _as_given(outs, outs[0], not create_graph), _as_given(found, inputs, not create_graph)


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The value of a function that returns one number, and `v` times its second derivatives, which are symmetric: see `hvp`."""
    return hvp(func, inputs, v, create_graph, strict)


def jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The derivatives of all outputs by all inputs: (*output, *input), in tuples if there are several.

    Args:
        func: A function of tensors that returns one or several.
        inputs: A tensor, or a tuple of them.
        create_graph: Whether the result can be differentiated.
        strict: Whether an output that does not depend on an input is an error; otherwise it gives zeros.
        vectorize: Has no effect.
        strategy: Has no effect.

    Example:
        >>> import fnad.torch as torch
        >>> torch.autograd.functional.jacobian(lambda x: x**2, torch.tensor([1.0, 3.0]))
        tensor([[2., 0.],
                [0., 6.]])

    Reference: `torch.autograd.functional.jacobian` of PyTorch 2.13.
    """
    with enable_grad():
        at = _inputs(inputs, create_graph)
        outs, single = _call(func, at)
        rows = []
        for o in outs:
            flat = o.reshape(-1)
            parts = [_grads((flat[k],), at, (None,), create_graph, strict) for k in range(len(flat))]
            rows.append(
                tuple(
                    stack([p[j] for p in parts]).reshape(*o._data.shape, *x._data.shape)
                    if parts
                    else zeros(*o._data.shape, *x._data.shape, dtype=x.dtype)
                    for j, x in enumerate(at)
                )
            )
    tables = tuple(_as_given(row, inputs, not create_graph) for row in rows)
    return tables[0] if single else tables


def hessian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The second derivatives of a function that returns one number: (*input, *input), in tuples if there are several inputs.

    Reference: `torch.autograd.functional.hessian` of PyTorch 2.13.
    """

    def gradient(*at: Any) -> Any:
        outs, _ = _call(func, at)
        if len(outs) != 1 or outs[0]._data.size != 1:
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        return _grads(outs, at, (zeros_like(outs[0]) + 1,), True, strict)

    table = jacobian(gradient, inputs, create_graph, strict)
    return table[0] if isinstance(inputs, Tensor) else table
