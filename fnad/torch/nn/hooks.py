"""Hooks of modules: what is called before and after `forward`, and when gradients have come through a module."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from fnad.torch._creation import zeros
from fnad.torch._mode import STATE
from fnad.torch._tensor import Tensor
from fnad.torch.autograd import Function, RemovableHandle

GROUPS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
_keys = itertools.count()


def add(module: Any, group: str, hook: Callable[..., Any], prepend: bool = False, **options: bool) -> RemovableHandle:
    """Register a hook with its options."""
    hooks, key = module.__dict__[group], next(_keys)
    hooks[key] = hook, options
    if prepend:
        for other in [k for k in hooks if k != key]:
            hooks[other] = hooks.pop(other)
    return RemovableHandle(hooks, key)


def call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`module.forward` with everything around it."""
    for hook, options in list(module._forward_pre_hooks.values()):
        args, kwargs = _before(module, hook, options["with_kwargs"], args, kwargs)
    gradients = _Gradients(module) if module._backward_hooks or module._backward_pre_hooks else None
    if gradients is not None:
        args = gradients.enter(args)
    called: set[int] = set()
    try:
        out = module.forward(*args, **kwargs)
        for key, (hook, options) in list(module._forward_hooks.items()):
            called.add(key)
            changed = hook(module, args, kwargs, out) if options["with_kwargs"] else hook(module, args, out)
            out = out if changed is None else changed
    except Exception:
        for key, (hook, options) in list(module._forward_hooks.items()):
            if options["always_call"] and key not in called:
                hook(module, args, kwargs, None) if options["with_kwargs"] else hook(module, args, None)
        raise
    return out if gradients is None else gradients.leave(out)


def _before(module: Any, hook: Any, with_kwargs: bool, args: Any, kwargs: Any) -> tuple[Any, Any]:
    changed = hook(module, args, kwargs) if with_kwargs else hook(module, args)
    if changed is None:
        return args, kwargs
    if not with_kwargs:
        return (changed if isinstance(changed, tuple) else (changed,)), kwargs
    if not isinstance(changed, tuple) or len(changed) != 2:
        raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
    return changed


class _Gradients:
    """One call of a module with backward hooks: its inputs and its outputs go through nodes that do nothing but tell.

    Args:
        module: The module.
    """

    def __init__(self, module: Any) -> None:
        self.module, self.entered = module, False
        self.inputs: list[int] = []
        self.count = 0
        self.outputs: list[int] = []
        self.size = 0
        self.found: tuple[Any, ...] | None = None

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.count, self.inputs = len(args), [k for k, a in enumerate(args) if isinstance(a, Tensor)]
        self.entered = STATE.recording and any(args[k]._req for k in self.inputs)
        return self.through(_Inputs, args, self.inputs) if self.entered else args

    def leave(self, out: Any) -> Any:
        outs = out if isinstance(out, tuple) else (out,)
        self.size, self.outputs = len(outs), [k for k, o in enumerate(outs) if isinstance(o, Tensor)]
        outs = self.through(_Outputs, outs, self.outputs)
        return outs if isinstance(out, tuple) else outs[0]

    def through(self, function: Any, items: tuple[Any, ...], places: list[int]) -> tuple[Any, ...]:
        passed = dict(zip(places, function.apply(self, *[items[k] for k in places]), strict=True)) if places else {}
        return tuple(passed.get(k, x) for k, x in enumerate(items))

    def at_outputs(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        full = _spread(grads, self.outputs, self.size)
        for hook, _ in list(self.module._backward_pre_hooks.values()):
            full = _replaced(full, hook(self.module, full), "grad_output")
        self.found = full
        if not self.entered:
            for hook, _ in list(self.module._backward_hooks.values()):
                if hook(self.module, (None,) * max(self.count, 1), full) is not None:
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None for all gradients."
                    )
        return tuple(full[k] for k in self.outputs)

    def at_inputs(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.found is None:  # not through the outputs, as in derivatives of derivatives
            return grads
        full = _spread(grads, self.inputs, self.count)
        for hook, _ in list(self.module._backward_hooks.values()):
            full = _replaced(full, hook(self.module, full, self.found), "grad_input")
        self.found = None
        return tuple(full[k] for k in self.inputs)


def _spread(items: tuple[Any, ...], places: list[int], size: int) -> tuple[Any, ...]:
    by_place = dict(zip(places, items, strict=True))
    return tuple(by_place.get(k) for k in range(size))


def _replaced(old: tuple[Any, ...], new: Any, name: str) -> tuple[Any, ...]:
    """What a hook returns in place of gradients, if it returns something."""
    if new is None:
        return old
    new = new if isinstance(new, tuple) else (new,)
    if len(new) != len(old):
        raise RuntimeError(f"Backward hook returned an invalid number of {name}, got {len(new)}, but expected {len(old)}")
    return new


class _Inputs(Function):
    @staticmethod
    def forward(ctx: Any, gradients: _Gradients, *tensors: Any) -> Any:
        ctx.gradients = gradients
        ctx.mark_non_differentiable(*[t for t in tensors if not t._req])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, *ctx.gradients.at_inputs(grads)


class _Outputs(_Inputs):
    @staticmethod
    def forward(ctx: Any, gradients: _Gradients, *tensors: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.outputs = [(t._data.shape, t.dtype) for t in tensors]
        return _Inputs.forward(ctx, gradients, *tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        passed = zip(ctx.gradients.at_outputs(grads), ctx.outputs, strict=True)
        return None, *[zeros(shape, dtype=dtype) if g is None else g for g, (shape, dtype) in passed]
