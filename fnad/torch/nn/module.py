"""The module: parameters, buffers and other modules under names, and a function of tensors."""

from __future__ import annotations

import importlib
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from fnad.errors import UnknownNameError
from fnad.torch._dtypes import as_numpy, float16, float32, float64
from fnad.torch._mode import no_grad
from fnad.torch._tensor import CPU, Tensor, make
from fnad.torch.autograd import RemovableHandle
from fnad.torch.nn import hooks
from fnad.torch.nn.parameter import Buffer, Parameter

_ON_CPU = "there is the CPU alone: leave the call out"
_STATE = "override state_dict and load_state_dict"
_ABSENT = {
    "register_backward_hook": "register_full_backward_hook",
    "bfloat16": "NumPy has no such dtype: .float() or .half()",
    **dict.fromkeys(("cuda", "ipu", "xpu", "mtia", "share_memory", "to_empty"), _ON_CPU),
    **dict.fromkeys(("register_state_dict_pre_hook", "register_state_dict_post_hook", "get_extra_state", "set_extra_state"), _STATE),
    **dict.fromkeys(("register_load_state_dict_pre_hook", "register_load_state_dict_post_hook"), _STATE),
}
"""Methods of PyTorch's modules that are not here, and what to do instead."""


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict(strict=False)` found."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class Module:
    """Base of all layers and models: set parameters and modules as attributes in `__init__`, and write `forward`.

    Example:
        >>> import fnad.torch as torch
        >>> from fnad.torch import nn
        >>> class Model(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.fc = nn.Linear(3, 2)
        ...     def forward(self, x):
        ...         return torch.relu(self.fc(x))
        >>> Model()
        Model(
          (fc): Linear(in_features=3, out_features=2, bias=True)
        )

    Reference: `torch.nn.Module` of PyTorch 2.13.
    """

    training: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        fields = self.__dict__
        fields["training"] = True
        for name in ("_parameters", "_buffers", "_modules", *hooks.GROUPS):
            fields[name] = {}
        fields["_non_persistent_buffers_set"] = set()

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the forward pass of this module; arguments as those of `torch.compile`."""
        compiling = importlib.import_module("fnad.torch._compile")  # which knows modules
        self.__dict__["forward"] = compiling.compile(self.forward, *args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fields = self.__dict__
        if fields["_forward_hooks"] or fields["_forward_pre_hooks"] or fields["_backward_hooks"] or fields["_backward_pre_hooks"]:
            return hooks.call(self, args, kwargs)
        return self.forward(*args, **kwargs)

    # -- attributes ------------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__
        for group in ("_parameters", "_buffers", "_modules"):
            found = fields.get(group)
            if found is not None and name in found:
                return found[name]
        if name in _ABSENT:
            raise UnknownNameError(f"fnad.torch: Module.{name} does not exist here", fix=_ABSENT[name])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        groups = [fields.get(g) for g in ("_parameters", "_buffers", "_modules")]
        parameters, buffers, modules = groups
        if isinstance(value, Parameter | Module | Buffer):
            if parameters is None or buffers is None or modules is None:
                kind = "module" if isinstance(value, Module) else "parameter"
                raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
            self._forget(name)
            (parameters if isinstance(value, Parameter) else modules if isinstance(value, Module) else buffers)[name] = value
            if isinstance(value, Buffer) and not value.persistent:
                fields["_non_persistent_buffers_set"].add(name)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(f"cannot assign '{type(value).__name__}' as parameter '{name}' (torch.nn.Parameter or None expected)")
            parameters[name] = None
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(f"cannot assign '{type(value).__name__}' as child module '{name}' (torch.nn.Module or None expected)")
            modules[name] = None
        elif buffers is not None and name in buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"cannot assign '{type(value).__name__}' object to buffer '{name}' (torch Tensor or None required)")
            buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if not self._forget(name):
            object.__delattr__(self, name)

    def _forget(self, name: str) -> bool:
        fields = self.__dict__
        found = False
        for group in ("_parameters", "_buffers", "_modules"):
            found = fields[group].pop(name, self) is not self or found
        return fields.pop(name, self) is not self or found

    def __dir__(self) -> list[str]:
        names = [*object.__dir__(self)]
        return sorted({*names, *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter; None keeps the name for none."""
        self._check_name(name, "parameter")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{type(param).__name__}' object to parameter '{name}' (torch.nn.Parameter or None required)")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add a tensor that is part of the module but not trained."""
        self._check_name(name, "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (torch Tensor or None required)")
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a module under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._check_name(name, "module")
        self._modules[name] = module

    register_module = add_module

    def _check_name(self, name: str, kind: str) -> None:
        if "." in name or name == "":
            raise KeyError(f'{kind} name can\'t contain "." or be empty string, got: "{name}"')
        groups = {"parameter": self._parameters, "buffer": self._buffers, "module": self._modules}
        if hasattr(self, name) and name not in groups[kind]:
            raise KeyError(f"attribute '{name}' already exists")

    # -- walking ---------------------------------------------------------------------------------------------------------

    def named_modules(self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """This module and all inside it, with dotted names."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def _named(self, group: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for path, module in self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]:
            for name, x in getattr(module, group).items():
                if x is None or id(x) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(x))
                yield (f"{path}.{name}" if path else name), x

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Parameters with dotted names; one that is shared comes once."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Buffers with dotted names."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The modules directly inside, with names."""
        seen: set[Any] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """Parameters, in the order in which they were set."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        return (b for _, b in self.named_buffers(recurse=recurse))

    def children(self) -> Iterator[Any]:
        return (m for _, m in self.named_children())

    def modules(self) -> Iterator[Any]:
        return (m for _, m in self.named_modules())

    def _at(self, target: str) -> Any:
        module = self
        for name in target.split(".") if target else ():
            if name not in module._modules:
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = module._modules[name]
        return module

    def get_submodule(self, target: str) -> Any:
        """The module of a dotted name."""
        return self._at(target)

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Put a module in the place of that of a dotted name."""
        path, _, name = target.rpartition(".")
        owner = self._at(path)
        if strict and name not in owner._modules:
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        owner._modules[name] = module

    def get_parameter(self, target: str) -> Any:
        """The parameter of a dotted name."""
        path, _, name = target.rpartition(".")
        return self._at(path)._parameters[name]

    def get_buffer(self, target: str) -> Any:
        """The buffer of a dotted name."""
        path, _, name = target.rpartition(".")
        return self._at(path)._buffers[name]

    def apply(self, fn: Callable[[Any], Any]) -> Any:
        """Call `fn(module)` for all modules inside, then for this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # -- modes, dtypes, gradients ----------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Any:
        """Training mode for this module and all inside it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """Evaluation mode: dropout passes, batch normalisation uses its running statistics."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Whether all parameters are trained."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget (or zero) the gradients of all parameters."""
        for p in self.parameters():
            if p._grad is not None:
                p._grad = None if set_to_none else make(p._grad._data * 0)

    def to(self, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, **_: Any) -> Any:
        """Parameters and buffers of floating point in another dtype, in place."""
        for a in args:
            if isinstance(a, Tensor):
                dtype = a.dtype
            elif isinstance(a, str | type(CPU)):
                type(CPU)(a)
            elif a is not None and not isinstance(a, bool):
                dtype = a
        if dtype is None:
            return self
        wanted = as_numpy(dtype)
        if wanted.kind not in "fc":
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
        for x in itertools.chain(self.parameters(), self.buffers()):
            if x._data.dtype.kind in "fc":
                x._data = x._data.astype(wanted)
                if x._grad is not None:
                    x._grad = make(x._grad._data.astype(wanted))
        return self

    def float(self) -> Any:
        return self.to(float32)

    def double(self) -> Any:
        return self.to(float64)

    def half(self) -> Any:
        return self.to(float16)

    def type(self, dst_type: Any) -> Any:
        """See `to`."""
        return self.to(dst_type)

    def cpu(self) -> Any:
        return self

    # -- state -----------------------------------------------------------------------------------------------------------

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> Any:
        """Parameters and buffers by dotted names; they share memory with the module's."""
        out: OrderedDict[str, Any] = OrderedDict()
        for path, module in self.named_modules(prefix=prefix.rstrip("."), remove_duplicate=False):
            dot = f"{path}." if path else ""
            for name, x in itertools.chain(module._parameters.items(), module._buffers.items()):
                if x is not None and name not in module._non_persistent_buffers_set:
                    out[dot + name] = x if keep_vars else x.detach()
        return out

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> IncompatibleKeys:
        """Copy parameters and buffers from a `state_dict`.

        Args:
            state_dict: Tensors or arrays by dotted names.
            strict: Whether a name that is missing or unexpected is an error.
            assign: Whether tensors take the place of the old ones, instead of being copied into them.

        Returns:
            The names that were missing and those that were unexpected.

        Raises:
            RuntimeError: names (if strict) or shapes do not fit; it lists them all.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        mine = self.state_dict(keep_vars=True)
        missing = [k for k in mine if k not in state_dict]
        unexpected = [k for k in state_dict if k not in mine]
        errors = []
        if strict and unexpected:
            errors.append("Unexpected key(s) in state_dict: {}. ".format(", ".join(f'"{k}"' for k in unexpected)))
        if strict and missing:
            errors.append("Missing key(s) in state_dict: {}. ".format(", ".join(f'"{k}"' for k in missing)))
        with no_grad():
            for name, x in mine.items():
                if name in state_dict:
                    self._load(name, x, state_dict[name], assign, errors)
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        return IncompatibleKeys(missing, unexpected)

    @staticmethod
    def _load(name: str, x: Any, value: Any, assign: bool, errors: list[str]) -> None:
        data = value._data if isinstance(value, Tensor) else value
        if tuple(data.shape) != x._data.shape:
            errors.append(
                f"size mismatch for {name}: copying a param with shape torch.Size({list(data.shape)}) from checkpoint, the shape in "
                f"current model is {x.shape!r}."
            )
        elif assign:
            x._data, x._counter = data, value._counter if isinstance(value, Tensor) else [0]
        else:
            x._data[...] = data
            x._counter[0] += 1

    # -- hooks -----------------------------------------------------------------------------------------------------------

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """`hook(module, args, output)` after each call; what it returns, if not None, is the output.

        Args:
            hook: The function; `hook(module, args, kwargs, output)` if `with_kwargs`.
            prepend: Whether it comes before the other hooks.
            with_kwargs: Whether it is given keyword arguments.
            always_call: Whether it is called (with None) when `forward` raises.
        """
        return hooks.add(self, "_forward_hooks", hook, prepend, with_kwargs=with_kwargs, always_call=always_call)

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """`hook(module, args)` before each call; what it returns, if not None, are the arguments.

        Args:
            hook: The function; `hook(module, args, kwargs)`, which returns `(args, kwargs)` or None, if `with_kwargs`.
            prepend: Whether it comes before the other hooks.
            with_kwargs: Whether it is given keyword arguments.
        """
        return hooks.add(self, "_forward_pre_hooks", hook, prepend, with_kwargs=with_kwargs)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_input, grad_output)` when gradients of the inputs are known; what it returns, if not None, replaces them."""
        return hooks.add(self, "_backward_hooks", hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_output)` when the gradients of the outputs are known; what it returns, if not None, replaces them."""
        return hooks.add(self, "_backward_pre_hooks", hook, prepend)

    # -- printing --------------------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {module!r}".replace("\n", "\n  ") for name, module in self._modules.items()]
        all_lines = lines + children
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(all_lines) + "\n)"
