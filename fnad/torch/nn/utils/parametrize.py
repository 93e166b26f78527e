"""Parameters that are functions of other ones: `weight = f(original)`, computed whenever it is asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from fnad.torch._mode import no_grad
from fnad.torch._tensor import Tensor
from fnad.torch.nn.containers import ModuleDict, ModuleList
from fnad.torch.nn.parameter import Parameter


class ParametrizationList(ModuleList):
    """The functions of one parameter, one after the other, and what the first one is given.

    Args:
        modules: The functions.
        original: The parameter, or what the first function's `right_inverse` makes of it: a tensor, or several.
    """

    def __init__(self, modules: Any, original: Any) -> None:
        super().__init__(modules)
        self.several = isinstance(original, tuple | list)
        self._originals: list[str] = []
        for k, x in enumerate(original if self.several else [original]):
            name = f"original{k}" if self.several else "original"
            self._originals.append(name)
            if isinstance(x, Parameter) or (isinstance(x, Tensor) and x.is_floating_point()):
                self.register_parameter(name, x if isinstance(x, Parameter) else Parameter(x))
            else:
                self.register_buffer(name, x)

    def forward(self) -> Any:
        """The parameter as it is now."""
        first, *rest = self
        x = first(*[getattr(self, name) for name in self._originals])
        for module in rest:
            x = module(x)
        return x

    def right_inverse(self, value: Any) -> None:
        """Change the originals so that the parameter becomes `value`, which needs `right_inverse` of all functions."""
        with no_grad():
            for module in reversed(list(self)):
                value = _inverse(module, value)
            for name, x in zip(self._originals, value if self.several else [value], strict=True):
                getattr(self, name).copy_(x)


def _inverse(module: Any, value: Any) -> Any:
    if not hasattr(module, "right_inverse"):
        raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
    return module.right_inverse(value)


def _with_property(cls: type, name: str, parametrized: bool) -> type:
    """A subclass whose parameter is computed."""

    def get(self: Any) -> Any:
        return self.parametrizations[name]()

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    base, title = (cls.__mro__[1], cls.__name__) if parametrized else (cls, f"Parametrized{cls.__name__}")
    body = {**{k: v for k, v in cls.__dict__.items() if parametrized and isinstance(v, property)}, name: property(get, put)}
    return type(title, (base,), {**body, "__module__": cls.__module__})


def register_parametrization(module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False) -> Any:
    """Make a parameter of a module a function of itself, or of what the function's `right_inverse` makes of it.

    Args:
        module: The module, whose class becomes a subclass of it.
        tensor_name: The name of the parameter.
        parametrization: A module: the function. If it has `right_inverse`, that gives what is trained: a tensor, or several.
        unsafe: Whether it may change the shape.

    Returns:
        The module.

    Raises:
        ValueError: there is no such parameter, or the function changes its shape.

    Example:
        >>> import fnad.torch as torch
        >>> from fnad.torch import nn
        >>> from fnad.torch.nn.utils import parametrize
        >>> class Symmetric(nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).mT
        >>> layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
        >>> torch.equal(layer.weight, layer.weight.mT), [n for n, _ in layer.named_parameters()]
        (True, ['bias', 'parametrizations.weight.original'])

    Reference: `torch.nn.utils.parametrize.register_parametrization` of PyTorch 2.13.
    """
    if is_parametrized(module, tensor_name):
        module.parametrizations[tensor_name].append(parametrization)
        return module
    group = module._parameters if tensor_name in module._parameters else module._buffers
    x = group.get(tensor_name)
    if x is None:
        raise ValueError(f"Module '{type(module).__name__}' does not have a parameter, a buffer, or a parametrized element '{tensor_name}'")
    with no_grad():
        original = parametrization.right_inverse(x) if hasattr(parametrization, "right_inverse") else x
        functions = ParametrizationList([parametrization], x if original is x else original)
        shape = functions()._data.shape
    if not unsafe and shape != x._data.shape:
        raise ValueError(f"Registering a parametrization may not change the shape of the tensor: {tuple(x._data.shape)} -> {tuple(shape)}")
    parametrized = is_parametrized(module)
    if not parametrized:
        module.parametrizations = ModuleDict()
    del group[tensor_name]
    module.parametrizations[tensor_name] = functions
    module.__class__ = _with_property(type(module), tensor_name, parametrized)
    return module


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a module, or one of its parameters, is computed from others."""
    found = module._modules.get("parametrizations")
    return isinstance(found, ModuleDict) and (len(found) > 0 if tensor_name is None else tensor_name in found)


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a parameter one of its own again.

    Args:
        module: The module.
        tensor_name: The name of the parameter.
        leave_parametrized: Whether it keeps the value that was computed, or becomes the original.

    Raises:
        ValueError: it is not computed.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {type(module).__name__} does not have a parametrization on {tensor_name}")
    functions = module.parametrizations[tensor_name]
    if not leave_parametrized and functions.several:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of several.")
    with no_grad():
        value = functions().detach().clone() if leave_parametrized else functions.original.detach()
    left = {n: f for n, f in module.parametrizations.items() if n != tensor_name}
    cls = type(module)
    module.__class__ = cls.__mro__[1]
    del module._modules["parametrizations"]
    module.register_parameter(tensor_name, Parameter(value))
    if left:
        module.parametrizations = ModuleDict(left)
        for n in left:
            module.__class__ = _with_property(type(module), n, type(module) is not cls.__mro__[1])
    return module


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Has no effect: parameters are computed whenever they are asked for."""
    yield
