"""Python functions as operations of a program: `pure_callback`, and what `fnad.debug` is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad import tree
from fnad.control._bodies import Flags
from fnad.control._staging import arrays, check_function
from fnad.core.aval import Aval, aval_of, shape_of
from fnad.core.graph import current_recording
from fnad.core.primitive import Primitive
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError, describe_function, user_line
from fnad.transforms._opaque import batch_size
from fnad.transforms.vmap import spread
from fnad.typing import PyTree

_METHODS = ("sequential", "expand_dims", "broadcast_all")


class Callback(Primitive):
    """A function of flat arrays, called by the program that it is part of.

    Params:
        function: `(*arrays) -> arrays`.
        outputs: The types of its results.
        user: The user's function, for messages.
        vmap_method: How it is called for a batch.
    """

    multiple = True

    def infer(self, *avals: Aval, outputs: tuple[Aval, ...], **_: Any) -> tuple[Aval, ...]:
        return outputs

    def impl(self, *args: Any, function: Callable[..., Any], outputs: tuple[Aval, ...], user: Any, **_: Any) -> tuple[Any, ...]:
        found = [np.asarray(x) for x in function(*args)]
        for k, (x, want) in enumerate(zip(found, outputs, strict=True)):
            if x.shape != want.shape or x.dtype != want.dtype:
                error = ShapeError if x.shape != want.shape else DTypeError
                got = {"promised": want, "returned": aval_of(x), "result": k, "function": describe_function(user)}
                raise error("pure_callback: the function must return what result_shape_dtypes says", got=got)
        return tuple(x[()] for x in found)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], **params: Any) -> tuple[Any, ...]:
        method, size = params["vmap_method"], batch_size(args, batched)
        if method is None:
            raise UnsupportedError(
                "pure_callback under vmap must be told how to call the function for a batch",
                got={"function": describe_function(params["user"]), "at": user_line()},
                fix='vmap_method="sequential" calls it for each example, "broadcast_all" or "expand_dims" once with arrays of all examples',
            )
        outputs = tuple(Aval((size, *a.shape), a.dtype) for a in params["outputs"])
        if method == "sequential":
            function = Each(params["function"], tuple(batched), size)
        else:
            function = params["function"]
            alone = 1 if method == "expand_dims" else size
            args = [a if b else spread(a, alone) for a, b in zip(args, batched, strict=True)]
        return self(*args, **{**params, "function": function, "outputs": outputs})


class Pure(Callback):
    """One that has no derivative: it says so when it is asked."""

    def forward(self, args: Sequence[Any], params: dict[str, Any]) -> Any:
        raise self._refused(params)

    def push(self, args: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Any:
        raise self._refused(params)

    def _refused(self, params: dict[str, Any]) -> UnsupportedError:
        return UnsupportedError(
            "pure_callback: what a Python function does with plain arrays cannot be differentiated",
            got={"function": describe_function(params["user"]), "at": user_line()},
            fix="state the derivative with fnad.custom_vjp or fnad.custom_jvp around it, or pass fnad.stop_gradient(x)",
        )


class Effect(Callback):
    """One that is called for what it does. It gives a number that nobody needs, and no transform leaves it out."""

    constant = True
    effect = True

    def __call__(self, *args: Any, **params: Any) -> Any:
        recording = None if any(isinstance(x, Tracer) for x in args) else current_recording()
        return super().__call__(*args, **params) if recording is None else recording.process(self, args, params)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], **params: Any) -> tuple[Any, ...]:
        return super().batch(args, batched, **{**params, "vmap_method": "sequential"})


class Each:
    """A function called for each example of a batch in turn; results are stacked."""

    def __init__(self, function: Callable[..., Any], batched: Flags, size: int) -> None:
        self.function, self.batched, self.size = function, batched, size

    def __call__(self, *args: Any) -> list[Any]:
        rows = [self.function(*(a[i] if b else a for a, b in zip(args, self.batched, strict=True))) for i in range(self.size)]
        return [np.stack(column) for column in zip(*rows, strict=True)]


pure = Pure("pure_callback", register=False)
effect = Effect("callback", register=False)
_TOKEN = (Aval((), np.dtype(np.int64)),)


def run_effect(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Call a function of pytrees with the values of arguments, now or whenever the program being recorded runs."""
    leaves, spec = tree.flatten((args, kwargs))
    moving = [k for k, x in enumerate(leaves) if isinstance(x, Tracer | np.ndarray | np.generic | int | float | complex)]
    fixed = [None if k in moving else x for k, x in enumerate(leaves)]

    def call(*values: Any) -> list[Any]:
        given = list(fixed)
        for k, x in zip(moving, values, strict=True):
            given[k] = np.array(x)[()] if isinstance(x, np.ndarray) else x  # the program's memory is used again
        args, kwargs = tree.unflatten(spec, given)
        function(*args, **kwargs)
        return [np.int64(0)]

    effect(*(leaves[k] for k in moving), function=call, outputs=_TOKEN, user=function, vmap_method=None)


def pure_callback(
    callback: Callable[..., Any], result_shape_dtypes: PyTree, *args: PyTree, vmap_method: str | None = None, **kwargs: PyTree
) -> Any:
    """Call a Python function of plain arrays from a compiled function.

    What is recorded once and compiled may so use code that only works on values: a simulator, a table on disk, SciPy's functions
    that are no ufuncs. Each call out of native code costs some microseconds, and holds Python's lock.

    Args:
        callback: A function of pytrees of arrays. It must depend on its arguments alone and do nothing but return a result: it may be
            called more or less often than it stands there.
        result_shape_dtypes: A pytree like its result, of arrays or anything else with `shape` and `dtype`.
        args: Its arguments.
        vmap_method: How `vmap` calls it: "sequential", once for each example; "broadcast_all", once with arrays that all have the batch
            axis in front; "expand_dims", the same, but of size 1 where an argument is the same for all examples. Without it `vmap`
            raises.
        kwargs: Its arguments by name.

    Returns:
        The result, of the promised shapes and dtypes. Semantics as `jax.pure_callback` (JAX 0.10).

    Raises:
        ShapeError, DTypeError: (when it runs) the result is not what was promised.
        UnsupportedError: it is differentiated, or batched without `vmap_method`. `fnad.custom_vjp` states a derivative.

    Example:
        >>> import math, numpy as np, fnad
        >>> f = fnad.jit(lambda x: 2 * fnad.pure_callback(lambda x: np.float64(math.erf(x)), np.float64(0), x))
        >>> f(0.5)
        np.float64(1.040999755...)
    """
    check_function(callback, "pure_callback", "the callback")
    if vmap_method is not None and vmap_method not in _METHODS:
        got = {"vmap_method": repr(vmap_method)}
        raise ArgumentError(f"pure_callback: vmap_method must be one of {', '.join(map(repr, _METHODS))}", got=got)
    leaves, spec = arrays((args, kwargs), "pure_callback", "the arguments")
    wanted, out_spec = tree.flatten(result_shape_dtypes)
    bare = [x for x in wanted if not (hasattr(x, "shape") and hasattr(x, "dtype"))]
    if bare:
        fix = "np.float64(0) stands for a scalar, np.empty(shape, dtype) for an array"
        raise ArgumentError(
            "pure_callback: result_shape_dtypes must have a shape and a dtype at each leaf", got={"leaf": repr(bare[0])}, fix=fix
        )
    outputs = tuple(Aval(tuple(shape_of(x)), np.dtype(x.dtype)) for x in wanted)

    def call(*values: Any) -> list[Any]:
        args, kwargs = tree.unflatten(spec, values)
        return tree.flatten_as(out_spec, callback(*args, **kwargs), "the result of the callback", "result_shape_dtypes")

    outs = pure(*leaves, function=call, outputs=outputs, user=callback, vmap_method=vmap_method)
    return tree.unflatten(out_spec, outs)
