"""`torch.func`: fnad's transforms, for functions of tensors; and the way between modules and pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fnad import tree
from fnad.core.tracer import Tracer
from fnad.torch._mode import no_grad
from fnad.torch._streams import drawing_from, unknown
from fnad.torch._tensor import Tensor, make
from fnad.transforms import jacobian as _jacobian
from fnad.transforms import jvp as _jvp
from fnad.transforms import vjp as _vjp
from fnad.transforms import vmap as _vmap


def _array(x: Any) -> Any:
    return x._data if isinstance(x, Tensor) else x


def _tensor(x: Any) -> Any:
    if isinstance(x, np.ndarray | Tracer):
        return make(x)
    return make(np.asarray(x)) if isinstance(x, np.generic) else x


def _arrays(t: Any) -> Any:
    return tree.map(_array, t)


def _tensors(t: Any) -> Any:
    return tree.map(_tensor, t)


def _of_arrays(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors as a function of arrays and tracers; nothing in it goes on the tape."""

    def g(*args: Any, **kwargs: Any) -> Any:
        with no_grad():
            return _arrays(f(*_tensors(args), **_tensors(kwargs)))

    return g


def _lifted(transform: Callable[..., Any], f: Callable[..., Any], *options: Any) -> Callable[..., Any]:
    def g(*args: Any, **kwargs: Any) -> Any:
        return _tensors(transform(_of_arrays(f), *options)(*_arrays(args), **_arrays(kwargs)))

    return g


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of a function of tensors that returns one number: `fnad.grad`.

    Example:
        >>> import fnad.torch as torch
        >>> torch.func.grad(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
        tensor([ 3., 12.])
    """
    return _lifted(_vjp.grad, func, argnums, has_aux)


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Gradient and value: `fnad.value_and_grad`, in PyTorch's order."""
    both = _lifted(_vjp.value_and_grad, func, argnums, has_aux)

    def g(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return g


def jacrev(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """The Jacobian by reverse mode: `fnad.jacrev`."""
    return _lifted(_jacobian.jacrev, func, argnums)


def jacfwd(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """The Jacobian by forward mode: `fnad.jacfwd`."""
    return _lifted(_jacobian.jacfwd, func, argnums)


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """The second derivatives: `fnad.hessian`."""
    return _lifted(_jacobian.hessian, func, argnums)


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """A function of one example as a function of a batch: `fnad.vmap`."""
    return _lifted(_vmap.vmap, func, in_dims, out_dims)


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function and its pullback: `fnad.vjp`."""
    out, pullback, *aux = _vjp.vjp(_of_arrays(func), *_arrays(primals), has_aux=has_aux)

    def pull(cotangents: Any) -> Any:
        return _tensors(pullback(_arrays(cotangents)))

    return (_tensors(out), pull, *map(_tensors, aux))


def jvp(func: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """The value of a function and its tangent: `fnad.jvp`."""
    return _tensors(_jvp.jvp(_of_arrays(func), _arrays(primals), _arrays(tangents)))


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Any = None) -> Any:
    """Call a module with other tensors in place of its parameters and buffers, for this call only.

    Args:
        module: The module.
        parameter_and_buffer_dicts: Tensors by dotted names; or several such dicts.
        args: Positional arguments: a tuple, or one that is none.
        kwargs: Keyword arguments.

    Raises:
        AttributeError: the module has no parameter or buffer of a name.

    Reference: `torch.func.functional_call` of PyTorch 2.13.
    """
    given = parameter_and_buffer_dicts
    dicts = [given] if isinstance(given, Mapping) else list(given)
    places: list[tuple[dict[str, Any], str, Any]] = []
    shared: dict[int, Any] = {}
    try:
        for name, value in ((k, v) for d in dicts for k, v in d.items()):
            path, _, last = name.rpartition(".")
            owner = module.get_submodule(path)
            group = owner._parameters if last in owner._parameters else owner._buffers
            if last not in group:
                raise AttributeError(f"{type(module).__name__} has no parameter or buffer {name!r}")
            shared[id(group[last])] = value
        for owner in module.modules():  # tied parameters stay tied
            for group in (owner._parameters, owner._buffers):
                for last, x in group.items():
                    if id(x) in shared:
                        places.append((group, last, x))
        for group, last, x in places:
            group[last] = shared[id(x)]
        positional = () if args is None else args if isinstance(args, tuple) else (args,)
        return module(*positional, **({} if kwargs is None else kwargs))
    finally:
        for group, last, x in places:
            group[last] = x


def pure(module: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A module as a pure function of its parameters, for fnad's transforms and `fnad.jit`.

    Args:
        module: The module. Its mode (training or not) counts at each call.

    Returns:
        `(apply, params)`: `params` is a dict of arrays (copies) by dotted names; `apply(params, *inputs)` takes and returns arrays, or
        tracers. With `buffers=` (a dict of arrays by name, such as `{n: b.numpy() for n, b in module.named_buffers()}`) it returns the
        output and the buffers after the call; without, what happens to buffers is forgotten. With `key=` (a key of `fnad.random`) all
        random numbers, such as those of dropout, come from it; a compiled function that draws needs one. `module.load_state_dict(params)`
        is the way back.

    Example:
        >>> import numpy as np, fnad
        >>> import fnad.torch as torch
        >>> apply, params = torch.pure(torch.nn.Linear(2, 1))
        >>> loss = lambda p, x: np.sum(apply(p, x) ** 2)
        >>> grads = fnad.jit(fnad.grad(loss))(params, np.ones((3, 2), np.float32))
        >>> sorted(grads), grads["weight"].shape
        (['bias', 'weight'], (1, 2))
    """
    params = {name: p._data.copy() for name, p in module.named_parameters()}

    def apply(params: Any, *inputs: Any, buffers: Any = None, key: Any = None, **kwargs: Any) -> Any:
        own = {name: b._data.copy() for name, b in module.named_buffers()} if buffers is None else buffers
        held = {name: make(x if isinstance(x, Tracer) else np.array(x)) for name, x in own.items()}
        compiled = any(map(unknown, tree.leaves((params, inputs, buffers, kwargs))))
        with no_grad(), drawing_from(key, compiled):
            out = _arrays(functional_call(module, [_tensors(dict(params)), held], _tensors(inputs), _tensors(kwargs)))
        return out if buffers is None else (out, {name: b._data for name, b in held.items()})

    return apply, params
