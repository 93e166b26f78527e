"""Jacobians and Hessians: forward or reverse mode, vmapped over a basis."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad import tree
from fnad.core.aval import Aval, aval_of
from fnad.core.tracer import Tracer
from fnad.errors import DTypeError, TreeError
from fnad.transforms._call import Transformed, select, split_aux
from fnad.transforms.jvp import jvp
from fnad.transforms.vjp import grad, vjp
from fnad.transforms.vmap import vmap
from fnad.typing import Function, PyTree


def _partial(
    function: Function, options: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Function, tuple[Any, ...]]:
    """The function of the differentiated arguments alone, and those."""
    argnums, _, name = options
    numbers = select(argnums, args, name)

    def inner(*picked: Any) -> Any:
        call = list(args)
        for n, value in zip(numbers, picked, strict=True):
            call[n] = value
        return function(*call, **kwargs)

    return inner, tuple(args[n] for n in numbers)


def _basis(avals: list[Aval], name: str) -> list[Any]:
    """Unit vectors of the space of some leaves: for each leaf an array of them, with all of the space as first axis."""
    total = sum(a.size for a in avals)
    out, start = [], 0
    for a in avals:
        if a.dtype.kind == "c":
            raise DTypeError(
                f"{name}: complex values have no Jacobian here", got={"dtype": a.dtype}, fix="treat np.real and np.imag separately"
            )
        rows = np.zeros((total, a.size), a.dtype)
        rows[start : start + a.size] = np.eye(a.size, dtype=a.dtype)
        out.append(rows.reshape(total, *a.shape))
        start += a.size
    return out


def _check_outputs(avals: list[Aval], name: str) -> list[Aval]:
    for a in avals:
        if a.dtype.kind not in "fc":
            raise DTypeError(f"{name}: the function must return floating-point arrays", got={"output": a}, fix="return it as an aux value")
    return avals


def _pieces(stacked: Any, avals: list[Aval]) -> list[Any]:
    """Split the first axis of a result over the leaves whose basis it runs over: entry k has shape (*avals[k].shape, ...)."""
    out, start = [], 0
    for a in avals:
        out.append(np.reshape(stacked[start : start + a.size], (*a.shape, *np.shape(stacked)[1:])))
        start += a.size
    return out


def _finish(x: Any) -> Any:
    return x if isinstance(x, Tracer) else np.array(x, order="C")[()]


def _jacrev(function: Function, options: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    argnums, has_aux, name = options
    inner, picked = _partial(function, options, args, kwargs)
    out, pullback, *aux = vjp(inner, *picked, has_aux=has_aux)
    outs, out_spec = tree.flatten(out)
    avals = _check_outputs([aval_of(o) for o in outs], name)
    basis = tree.unflatten(out_spec, _basis(avals, name))
    grads = vmap(pullback, axis_size=sum(a.size for a in avals))(basis)
    leaves, spec = tree.flatten(grads)
    columns = [[_finish(p) for p in _pieces(leaf, avals)] for leaf in leaves]  # per input leaf, per output leaf
    per_output = [tree.unflatten(spec, [c[k] for c in columns]) for k in range(len(outs))]
    result = tree.unflatten(out_spec, [t if isinstance(argnums, tuple | list) else t[0] for t in per_output])
    return (result, aux[0]) if has_aux else result


def _jacfwd(function: Function, options: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    argnums, has_aux, name = options
    inner, picked = _partial(function, options, args, kwargs)
    leaves, spec = tree.flatten(picked)
    avals = [aval_of(x) for x in leaves]
    basis = tree.unflatten(spec, _basis(avals, name))
    aux: list[Any] = []

    def tangent(t: Any) -> Any:
        def run(*xs: Any) -> Any:
            out, extra = split_aux(inner(*xs), has_aux, name)
            return out, extra

        _, dy, extra = jvp(run, picked, t, has_aux=True)
        aux[:] = [extra]
        return dy

    rows = vmap(tangent, axis_size=sum(a.size for a in avals))(basis)
    outs, out_spec = tree.flatten(rows)
    _check_outputs([aval_of(o) for o in outs], name)
    per_output = []
    for o in outs:
        blocks = []
        for a, piece in zip(avals, _pieces(o, avals), strict=True):
            n, m = a.ndim, len(np.shape(piece))
            blocks.append(_finish(np.transpose(piece, (*range(n, m), *range(n)))))
        whole = tree.unflatten(spec, blocks)
        per_output.append(whole if isinstance(argnums, tuple | list) else whole[0])
    result = tree.unflatten(out_spec, per_output)
    return (result, aux[0]) if has_aux else result


def jacrev(f: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """The Jacobian by reverse mode: one pullback per output entry, all at once. Best with few outputs.

    Args:
        f: A function of pytrees of arrays that returns a pytree of real arrays.
        argnums: Position of the argument to differentiate, or a tuple of positions.
        has_aux: Whether `f` returns `(output, aux)`; the result is then `(jacobian, aux)`.

    Returns:
        A function of the same arguments. Each output leaf is replaced by a pytree like the differentiated argument (a
        tuple of them if `argnums` is a tuple), whose leaves have shape `(*output.shape, *input.shape)`.

    Raises:
        DTypeError, ArgumentError: as `grad`.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.jacrev(lambda x: x**2)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """
    return Transformed(_jacrev, f, (argnums, has_aux, "jacrev"))


def jacfwd(f: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """The Jacobian by forward mode: one tangent per input entry, all at once. Best with few inputs.

    Args:
        f: See `jacrev`.
        argnums: See `jacrev`.
        has_aux: See `jacrev`.

    Returns:
        As `jacrev`.

    Raises:
        DTypeError, ArgumentError: as `grad`.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.jacfwd(lambda x: np.stack([x[0] * x[1], x[0]]))(np.array([2.0, 3.0]))
        array([[3., 2.],
               [1., 0.]])
    """
    return Transformed(_jacfwd, f, (argnums, has_aux, "jacfwd"))


def hessian(f: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """The Hessian, forward over reverse: `jacfwd(jacrev(f))`.

    Args:
        f: A function of pytrees of arrays that returns a real scalar (or a pytree of arrays).
        argnums: Position of the argument to differentiate twice, or a tuple of positions.
        has_aux: Whether `f` returns `(output, aux)`; the result is then `(hessian, aux)`.

    Returns:
        A function of the same arguments. For one array argument of shape `s` and a scalar result: an array of shape
        `(*s, *s)`. For pytrees: a pytree like the argument whose leaves are replaced by pytrees like the argument.

    Raises:
        DTypeError, ArgumentError: as `grad`.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 3.0]))
        array([[6., 2.],
               [2., 0.]])
    """
    return jacfwd(jacrev(f, argnums, has_aux), argnums, has_aux)


def hvp(f: Function, primals: tuple[PyTree, ...], tangents: tuple[PyTree, ...]) -> PyTree:
    """The Hessian of a scalar function times a vector, without the Hessian: `jvp(grad(f), primals, tangents)[1]`.

    Args:
        f: A function that returns a real scalar.
        primals: A tuple of its arguments.
        tangents: The direction: a tuple of pytrees like the primals.

    Returns:
        A pytree like the first primal: the derivative of `grad(f)` (by the first argument) in that direction.

    Raises:
        TreeError, ShapeError, DTypeError: as `jvp` and `grad`.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
        array([6., 0.])
    """
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise TreeError(f"hvp: {what} must be a tuple with one entry per argument", got={what: type(given).__name__}, fix="write (x,)")
    return jvp(grad(f), primals, tangents)[1]
