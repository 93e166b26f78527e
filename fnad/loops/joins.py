"""What a name holds where control flow meets: equal structures whose leaves become one value each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fnad.loops.builder import Builder, const, is_array, is_scalar, is_tuple, same
from fnad.loops.ir import Array, Operand, Scalar, Type
from fnad.loops.source import Static


@dataclass(frozen=True)
class Undefined:
    """A name that no statement on this path has bound."""

    name: str


@dataclass(frozen=True)
class Conflict:
    """A name that holds things on different paths that cannot be one value; an error if it is read."""

    name: str
    first: str
    second: str


@dataclass(frozen=True)
class Leaf:
    """What is known of a leaf before it is there: its type; of an array the memory it may belong to, and sizes (None: not known)."""

    type: Type
    roots: frozenset[Any] = frozenset()
    sizes: tuple[Operand | None, ...] = ()


def describe(x: Any) -> str:
    """A value, for messages."""
    if is_tuple(x):
        return f"a tuple ({', '.join(map(describe, x))})"
    if isinstance(x, Static):
        return "None" if x.object is None else f"the object {getattr(x.object, '__name__', x.object)!s}"
    type = getattr(x, "type", None)
    if isinstance(type, Scalar):
        return f"a number ({type})"
    return f"an array ({type})" if isinstance(type, Array) else f"a {x.__class__.__name__}"


def rebuild(like: tuple[Any, ...], items: list[Any]) -> Any:
    """A tuple of the same kind (a namedtuple stays one)."""
    return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)


def outline(b: Builder, x: Any) -> Any:
    """The structure of a value, with `Leaf`s."""
    if is_tuple(x):
        return rebuild(x, [outline(b, item) for item in x])
    if is_scalar(x):
        return Leaf(x.type)
    return Leaf(x.type, b.roots[x], b.shape(x)) if is_array(x) else x


def unify(name: str, x: Any, y: Any) -> Any:
    """The outline that both fit into."""
    if isinstance(x, Conflict | Undefined) or isinstance(y, Conflict | Undefined):
        return x if isinstance(x, Conflict) else y if isinstance(y, Conflict) else _measured_later(y if isinstance(x, Undefined) else x)
    if is_tuple(x) and is_tuple(y) and len(x) == len(y) and type(x) is type(y):
        items = [unify(name, a, b) for a, b in zip(x, y, strict=True)]
        return next((i for i in items if isinstance(i, Conflict)), None) or rebuild(x, items)
    if isinstance(x, Leaf) and isinstance(y, Leaf):
        if x.type == y.type:
            return Leaf(x.type, x.roots | y.roots, tuple(a if same(a, c) else None for a, c in zip(x.sizes, y.sizes, strict=True)))
        if isinstance(x.type, Scalar) and isinstance(y.type, Scalar):
            return Leaf(Scalar(np.result_type(x.type.dtype, y.type.dtype)))
    elif not is_tuple(x) and not is_tuple(y) and same_static(x, y):
        return x
    return Conflict(name, describe(x), describe(y))


def _measured_later(x: Any) -> Any:
    """An outline without sizes: where one side is undefined, those of the other may not be known outside of it."""
    if is_tuple(x):
        return rebuild(x, [_measured_later(item) for item in x])
    return Leaf(x.type, x.roots, (None,) * len(x.sizes)) if isinstance(x, Leaf) else x


def same_static(x: Any, y: Any) -> bool:
    if isinstance(x, Static) and isinstance(y, Static):
        return x.object is y.object or (isinstance(x.object, str) and x.object == y.object)
    return x is y


def fresh(b: Builder, name: str, shape: Any) -> Any:
    """New values of an outline."""
    if is_tuple(shape):
        return rebuild(shape, [fresh(b, name, item) for item in shape])
    if not isinstance(shape, Leaf):
        return shape
    value = b.value(shape.type, name.strip("."))
    if isinstance(shape.type, Array):
        b.roots[value] = shape.roots
    return value


def measure(b: Builder, shape: Any, x: Any) -> None:
    """Emit the sizes of new arrays that the outline does not know."""
    for leaf, value in zip(types(shape), leaves(shape, x), strict=True):
        if leaf.sizes:
            b.measure(value, leaf.sizes)


def leaves(shape: Any, x: Any) -> list[Any]:
    """The parts of `x` in the places of the outline's leaves."""
    if isinstance(shape, Leaf):
        return [x]
    if not is_tuple(shape):
        return []
    items = x if is_tuple(x) else [x] * len(shape)  # an undefined tuple has undefined items
    return [leaf for part, item in zip(shape, items, strict=True) for leaf in leaves(part, item)]


def types(shape: Any) -> list[Leaf]:
    return leaves(shape, shape)


def adapt(b: Builder, leaf: Leaf, x: Any) -> Operand:
    """A leaf's value, of the leaf's type; what is undefined on this path gets a default that nobody reads."""
    if isinstance(x, Undefined | Conflict):
        if isinstance(leaf.type, Scalar):
            return const(0, leaf.type.dtype)
        return b.alloc([const(0)] * leaf.type.ndim, leaf.type.dtype)
    value: Operand = x
    if isinstance(leaf.type, Scalar):
        return b.cast(value, leaf.type.dtype)
    return value
