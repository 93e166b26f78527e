"""`torch.compile`: functions of tensors, models and whole training steps as native programs."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from fnad import tree
from fnad._config import CHANGED, option
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, RecordingWarning, describe_function, warn
from fnad.torch._mode import STATE
from fnad.torch._region import MISFIT, Region, refuse_effect
from fnad.torch._state import State, Wrapper
from fnad.torch._tensor import Tensor
from fnad.torch.nn.module import Module

_MOST = 32
"""How many programs a function keeps."""
_OFTEN = 16
"""How often a function is recorded for arguments of one kind before it runs as it is."""


class CompiledFunction(Wrapper):
    """A function of tensors that is compiled for each kind of arguments and state."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self._regions: list[Region] = []
        self._counts: dict[Any, int] = {}
        self._eager = self._made_some = False

    def __repr__(self) -> str:
        count = len(self._regions)
        return f"<torch.compile of {describe_function(self.function)}, {count} program{'' if count == 1 else 's'}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledFunction:
        return CompiledFunction(copy.deepcopy(self.function, memo))

    def __reduce__(self) -> Any:
        return CompiledFunction, (self.function,)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._eager or STATE.known is not None or (CHANGED.get() and option("disable_jit")):
            return self.function(*args, **kwargs)
        for region in self._regions:
            given = region.arguments(args, kwargs)
            if given is not None and region.current():
                out = region.run(given)
                if out is not MISFIT:
                    if region is not self._regions[0]:
                        self._regions = [region, *(r for r in self._regions if r is not region)]
                    return out
        return self._compile(args, kwargs)

    def _compile(self, args: Any, kwargs: Any) -> Any:
        leaves, spec = tree.flatten((args, kwargs))
        if any(isinstance(x, Tracer) or (isinstance(x, Tensor) and isinstance(x._data, Tracer)) for x in leaves):
            return self.function(*args, **kwargs)
        kind = spec, tuple([(x._data.shape, x._data.dtype) if isinstance(x, Tensor) else x.__class__ for x in leaves])
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if count > _OFTEN:
            return self._give_up(args, kwargs)
        region = self._record(args, kwargs, leaves)
        if region.effect and region.made and not self._made_some:  # something that is made when it is first needed
            self._made_some = True
            return self.function(*args, **kwargs)
        if region.effect:
            raise refuse_effect(region)
        self._made_some = False
        self._regions = [region, *self._regions][:_MOST]
        given = region.arguments(args, kwargs)
        return region.run(region.given if given is None else given)

    def _record(self, args: Any, kwargs: Any, leaves: list[Any]) -> Region:
        state = State(self.function, leaves)
        if sum(o.begin() for o in state.optimizers):
            state = State(self.function, leaves)
        return Region(self.function, args, kwargs, state)

    def _give_up(self, args: Any, kwargs: Any) -> Any:
        self._eager = True
        changed = next((what for r in self._regions if (what := r.state.changed()[0])), "")
        warn(
            RecordingWarning,
            f"torch.compile: a function was recorded {_OFTEN} times for arguments of the same kind; it now runs as it is",
            got={"function": describe_function(self.function), **({"what changes": changed} if changed else {})},
            fix="keep what changes between calls in tensors, and change these in place",
        )
        self._regions.clear()
        return self.function(*args, **kwargs)


class OptimizedModule(Module):
    """A module whose calls are compiled; it shares everything else with the original."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled"] = CompiledFunction(module.__call__)
        self.__dict__["training"] = module.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["_compiled"](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            inner = self.__dict__.get("_modules", {}).get("_orig_mod")  # not there yet while a copy is made
            if inner is None:
                raise
            return getattr(inner, name)

    def __repr__(self) -> str:
        inner = repr(self._orig_mod).replace("\n", "\n  ")
        return f"OptimizedModule(\n  (_orig_mod): {inner}\n)"


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
) -> Any:
    """A function of tensors, a module, or a whole training step as native programs; also a decorator.

    The function runs once for each kind of arguments, on tensors that are recorded, and then as one program: forward passes, backward
    passes and optimizer steps in it alike. Parameters, buffers, `.grad` and the state of optimizers are changed in place as they would be
    without. Learning rates and other numbers of optimizers are arguments, so schedulers compile nothing anew; random numbers are drawn for
    each call, from a key that `torch.manual_seed`'s generator gives. The mode of modules, and other Python values that the function
    reaches, are part of the program; when they change, it is recorded again. A new size of arguments is recorded, and finds the machine
    code of the other sizes.

    Args:
        model: A function or a module.
        fullgraph: Without effect: there are no partial graphs, what cannot be compiled always raises.
        dynamic: Without effect: sizes may change.
        backend: Without effect, as `mode` and `options`.
        mode: See `backend`.
        options: See `backend`.
        disable: Return `model` as it is.

    Returns:
        For a function, one of the same arguments; for a module, a module around it.

    Raises:
        ConcretizationError: (when called) the function looks at the value of a tensor: `.item()`, `if`, `print`.
        ArgumentError: (when called) it changes Python state, or cannot be compiled for another reason.

    Example:
        >>> import fnad.torch as torch
        >>> model = torch.nn.Linear(2, 1)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> @torch.compile
        ... def step(x, y):
        ...     optimizer.zero_grad()
        ...     loss = torch.nn.functional.mse_loss(model(x), y)
        ...     loss.backward()
        ...     optimizer.step()
        ...     return loss
        >>> losses = [step(torch.ones(4, 2), torch.zeros(4, 1)).item() for _ in range(5)]
        >>> losses[-1] < losses[0]
        True

    Reference: `torch.compile` of PyTorch 2.13.
    """
    if model is None:
        return lambda f: compile(f, disable=disable)
    if disable:
        return model
    if isinstance(model, Module):
        return OptimizedModule(model)
    if not callable(model):
        raise ArgumentError("torch.compile takes a function or a module", got={"model": type(model).__name__})
    return CompiledFunction(model)
