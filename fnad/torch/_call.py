"""How functions of fnad become functions of tensors, and functions of tensors changes in place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.core.primitive import Primitive
from fnad.core.tracer import Tracer
from fnad.errors import InPlaceError, user_line
from fnad.primitives.shape import cast as _cast
from fnad.torch import _views
from fnad.torch._dtypes import LEGACY, as_numpy
from fnad.torch._mode import STATE
from fnad.torch._tape import Call, apply
from fnad.torch._tensor import Tensor, make, method
from fnad.torch._views import View


def _requires(args: Any) -> bool:
    for a in args:
        if isinstance(a, Tensor):
            if a._view is not None:
                _views.refresh(a)
            if a._req:
                return True
        elif a.__class__ in (tuple, list) and _requires(a):
            return True
    return False


def run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str = "") -> Any:
    """Call a function of arrays with tensors; its operations go on the tape."""
    call = Call(name or function.__name__, function, STATE.recording and (_requires(args) or _requires(kwargs.values())))
    try:
        out = function(*[call.enter(a) for a in args], **{k: call.enter(v) for k, v in kwargs.items()})
        return call.leave(out)
    finally:
        call.close()


def lift(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """The function of tensors that a function of arrays (and tracers) is."""

    @functools.wraps(function)
    def lifted(*args: Any, **kwargs: Any) -> Any:
        return run(function, args, kwargs, name)

    if name:
        lifted.__name__ = name
    return lifted


def prim(primitive: Primitive, *args: Any, **params: Any) -> Any:
    """Apply a primitive to tensors, arrays and numbers."""
    return apply(primitive, args, params, STATE.recording)


def view(x: Any, primitive: Primitive, params: dict[str, Any], put: Any = None) -> Any:
    """Apply a primitive whose result may lie on the memory of its operand."""

    def take(base: Any) -> Any:
        return apply(primitive, (base,), params, True)

    out = apply(primitive, (x,), params, STATE.recording)
    data = out._data
    if isinstance(data, Tracer):
        x._viewed = out._viewed = True
    elif data.base is not None and (data.base is x._data or data.base is x._data.base):
        out._counter = x._counter
        out._view = View(x, take, put, STATE.recording)
    return out


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """A tensor in another dtype, recorded; itself if it has it."""
    return x if x._data.dtype == dtype else prim(_cast, x, dtype=dtype)


def tensor_of(x: Any, like: Any = None) -> Any:
    """A tensor, an array or a number as a tensor."""
    if isinstance(x, Tensor):
        return x
    return make(np.asarray(x) if like is None else np.asarray(x, like))


def writable(x: Any) -> bool:
    """Whether a change in place is recorded; raises if it may not be made."""
    if x._view is not None:
        _views.refresh(x)
    if isinstance(x._data, np.ndarray) and not x._data.flags.writeable:
        if 0 in x._data.strides:
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() "
                "the tensor before performing the operation."
            )
        raise RuntimeError("a tensor on a read-only array cannot be changed in place: clone() it first")
    if STATE.recording and x._req and x._node is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    base = x
    while base._view is not None:
        base = base._view.base
    if STATE.recording and base is not x and base._req and base._node is None:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    return STATE.recording


def check_fits(x: Any, new: Any) -> None:
    """Raise if a result cannot take the place of a tensor's entries."""
    data, found = x._data, new._data
    if found.shape != data.shape:
        raise RuntimeError(f"output with shape {list(data.shape)} doesn't match the broadcast shape {list(found.shape)}")
    if not np.can_cast(found.dtype, data.dtype, "same_kind"):
        raise RuntimeError(f"result type {LEGACY[found.dtype]} can't be cast to the desired output type {LEGACY[data.dtype]}")


def changed(x: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Put the result of `function(x, ...)` in the place of the entries of `x`."""
    tracked = writable(x) and (x._req or _requires(args) or _requires(kwargs.values()))
    source = x
    if tracked:  # what pullbacks read of the operand is the copy, which nobody changes
        source = make(x._data.copy())
        source._node, source._k, source._req = x._node, x._k, x._req
    new = function(source, *args, **kwargs)
    check_fits(x, new)
    if isinstance(x._data, Tracer) or isinstance(new._data, Tracer):
        rebind(x, new)
    elif tracked:
        replace(x, cast(new, x._data.dtype))
    else:
        np.copyto(x._data, new._data, casting="same_kind")
        x._counter[0] += 1
    return x


def rebind(x: Any, new: Any) -> None:
    """A change in place where entries are traced, which never change: the tensor holds other ones. Views of it would not notice."""
    if x._viewed or x._view is not None:
        raise InPlaceError(
            "a tensor that is a view, or that has views, cannot be changed in place inside of a transform",
            got={"tensor": repr(x), "at": user_line()},
            fix="write x = x + 1 instead of x += 1, or clone the tensor first",
        )
    new = cast(new, x._data.dtype)
    x._data = new._data
    x._counter[0] += 1
    if new._req:
        x._node, x._k, x._req = new._node, new._k, True


def replace(x: Any, new: Any) -> None:
    """Entries and history of a tensor become those of another one."""
    np.copyto(x._data, new._data)
    x._counter[0] += 1
    x._node, x._k, x._req = new._node, new._k, new._req
    if x._view is not None:
        _views.carry(x)


def in_place(function: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """Register the method that changes a tensor in place as `function` would: `add` gives `add_`."""

    def changing(self: Any, *args: Any, **kwargs: Any) -> Any:
        return changed(self, function, args, kwargs)

    changing.__name__ = names[0]
    changing.__doc__ = f"`{function.__name__}`, in place."
    return method(*names)(changing)


@method("to")
def to(self: Any, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, non_blocking: bool = False, **_: Any) -> Any:
    """This tensor in another dtype; itself if it has that already and `copy` is false."""
    for a in args:
        if isinstance(a, Tensor):
            dtype = a.dtype
        elif isinstance(a, bool):
            copy = a if len(args) > 2 else copy
        elif a is not None and not isinstance(a, str) and a.__class__.__name__ != "device":
            dtype = a
        elif isinstance(a, str) and a.split(":")[0] != "cpu":
            raise RuntimeError(f"fnad runs on the CPU; there is no device {a!r}")
    if dtype is None or as_numpy(dtype) == self._data.dtype:
        return self.clone() if copy else self
    return cast(self, as_numpy(dtype))
