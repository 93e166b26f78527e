"""The shapes of a loop function's results, from the shapes of its arguments and the integers that are known.

The function is run on what is known of its values: of an array the sizes of its axes, of an integer its value; None stands for
what is not known. Where ways meet, what they agree on stays known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fnad.errors import ConcretizationError
from fnad.loops.ir import Array, Block, Const, For, Function, If, Item, Op, Operand, Scalar, Value, While

Shape = tuple[int | None, ...]
Known = dict[Value, Any]


def result_shapes(fn: Function, shapes: Sequence[tuple[int, ...]], numbers: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    """The shape of each result.

    Args:
        fn: The function.
        shapes: The shapes of its arguments.
        numbers: The values of those arguments that are integers and known, None for the others.

    Raises:
        ConcretizationError: a result's size depends on values that are not known.
    """
    if all(isinstance(r.type, Scalar) for r in fn.returns):
        return ((),) * len(fn.returns)
    known: Known = {}
    for a, shape, number in zip(fn.args, shapes, numbers, strict=True):
        known[a] = shape if isinstance(a.type, Array) else number
    known.update((v, array.shape) for v, array in fn.captured)
    _block(fn.body, known)
    found = []
    for k, r in enumerate(fn.returns):
        shape = () if isinstance(r.type, Scalar) else _read(known, r)
        if shape is None or None in shape:
            raise ConcretizationError(
                "the shape of a loop function's result depends on values, which are not known while a function is recorded",
                got={"function": fn.name, f"result {k}": f"{r.type.dtype}[{', '.join('?' if n is None else str(n) for n in shape or ())}]"},
                fix="pass the numbers that decide it as static arguments (static_argnames of fnad.jit), or take them from shapes",
            )
        found.append(shape)
    return tuple(found)


def _read(known: Known, x: Operand | None) -> Any:
    return None if x is None else x.value if isinstance(x, Const) else known.get(x)


def _join(x: Any, y: Any) -> Any:
    if isinstance(x, tuple) and isinstance(y, tuple):
        return tuple(a if a == b else None for a, b in zip(x, y, strict=True))
    return x if x == y else None


def _block(block: Block, known: Known) -> None:
    for item in block.items:
        if isinstance(item, Op):
            if item.out is not None:
                known[item.out] = _op(item, known)
        elif isinstance(item, If):
            _if(item, known)
        else:
            _loop(item, known)


def _if(item: If, known: Known) -> None:
    condition = _read(known, item.condition)
    ways = [(item.then, item.then_yields), (item.orelse, item.else_yields)]
    if condition is not None:
        ways = [ways[0 if condition else 1]]
    elif any(_leaves(block) for block, _ in ways):
        ways = [way for way in ways if not _leaves(way[0])] or ways
    ends = []
    for block, yields in ways:
        _block(block, known)
        ends.append([_read(known, y) for y in yields])
    for k, r in enumerate(item.results):
        known[r] = ends[0][k] if len(ends) == 1 else _join(ends[0][k], ends[1][k])


def _leaves(block: Block) -> bool:
    return any(isinstance(x, Op) and x.kind == "raise" for x in block.items)


def _loop(item: For | While, known: Known) -> None:
    versions = [_read(known, i) for i in item.inits]
    once = isinstance(item, For) and len(_range(item, known) or ()) > 0
    if isinstance(item, For) and _range(item, known) == range(0):
        known.update(zip(item.results, versions, strict=True))
        return
    while True:
        known.update(zip(item.params, versions, strict=True))
        if isinstance(item, While):
            _block(item.head, known)
        else:
            known[item.iv] = None
        _block(item.body, known)
        ends = [_read(known, y) for y in item.yields]
        joined = [_join(v, e) for v, e in zip(versions, ends, strict=True)]
        if joined == versions:
            break
        versions = joined
    known.update(zip(item.results, ends if once else versions, strict=True))
    if item.count is not None:
        known[item.count] = None


def _range(item: Item, known: Known) -> range | None:
    assert isinstance(item, For)
    bounds = [_read(known, x) for x in (item.lo, item.hi, item.step)]
    if None in bounds or bounds[2] == 0:
        return None
    found = range(*bounds)
    return found if len(found) else range(0)


_NUMBERS: Mapping[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "mod": operator.mod,
    "pow": operator.pow, "neg": operator.neg, "pos": operator.pos, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "eq": operator.eq, "ne": operator.ne, "not": operator.not_, "bitand": operator.and_, "bitor": operator.or_,
    "bitxor": operator.xor, "shl": operator.lshift, "shr": operator.rshift, "invert": operator.invert, "abs": abs,
    "maximum": max, "minimum": min, "fmax": max, "fmin": min,
}  # fmt: skip


def _op(op: Op, known: Known) -> Any:
    """What is known of an operation's result."""
    assert op.out is not None
    args = [_read(known, a) for a in op.args]
    if isinstance(op.out.type, Array):
        return _array(op, args)
    if op.kind == "dim":
        return args[0][op.attrs["axis"]]
    if op.out.type.dtype.kind not in "iub":
        return None
    if op.kind in ("and", "or") and None in args:
        return (args.count(op.kind == "or") or None) and op.kind == "or"
    if op.kind == "select":
        return _join(args[1], args[2]) if args[0] is None else args[1 if args[0] else 2]
    if None in args or any(a is not None and a.type.dtype.kind not in "iub" for a in op.args):
        return None
    if op.kind == "cast":
        return bool(args[0]) if op.out.type.dtype.kind == "b" else int(args[0])
    if op.kind in ("and", "or"):
        return all(args) if op.kind == "and" else any(args)
    if op.kind not in _NUMBERS:
        return None
    try:
        found = _NUMBERS[op.kind](*args)
    except (ArithmeticError, ValueError):
        return None
    return found if isinstance(found, int) else None


def _array(op: Op, args: list[Any]) -> Shape:
    assert op.out is not None
    assert isinstance(op.out.type, Array)
    unknown: Shape = (None,) * op.out.type.ndim
    if op.kind == "alloc":
        return tuple(args)
    if op.kind == "reshape":
        return tuple(args[1:])
    if op.kind == "copy":
        return tuple(args[0])
    if op.kind == "transpose":
        return tuple(args[0][k] for k in op.attrs["axes"])
    if op.kind == "dot":
        return (*args[0][:-1], *(args[1][1:] if len(args[1]) > 1 else ()))
    return _view(op, args) if op.kind == "view" else unknown


def _view(op: Op, args: list[Any]) -> Shape:
    shape, rest = [], 1
    for n, letter in zip(args[0], op.attrs["axes"], strict=True):
        if letter == "i":
            rest += 1
            continue
        bounds = args[rest : rest + 3]
        missing = any(b is None and a is not None for b, a in zip(bounds, op.args[rest : rest + 3], strict=True))
        if all(a is None for a in op.args[rest : rest + 3]):
            shape.append(n)
        elif missing or n is None:
            shape.append(None)
        else:
            shape.append(len(range(*slice(*bounds).indices(n))))
        rest += 3
    return tuple(shape)
