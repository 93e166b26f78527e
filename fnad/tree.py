"""Pytrees: the only file that imports optree.

`None` is an empty node, dict keys are sorted, dataclasses are nodes (fields declared with
`metadata={"static": True}` are part of the structure). Everything lives in optree's namespace "fnad".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import optree

from fnad import _fork
from fnad import _template as template
from fnad.errors import DTypeError, ShapeError, TreeError
from fnad.typing import PyTree

NAMESPACE = "fnad"
Spec = optree.PyTreeSpec

_lock = _fork.lock(5)
_registered: set[type] = set()
_LEAF_TYPES: set[type] = {np.ndarray, float, int, bool, complex, np.float64, np.float32, np.int64, np.bool_}


def flatten(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Spec]:
    """The leaves of a pytree in order, and its structure.

    >>> flatten({"b": 2.0, "a": (1.0, None)})[0]
    [1.0, 2.0]
    """
    leaves, spec = optree.tree_flatten(tree, is_leaf=is_leaf, namespace=NAMESPACE)
    for leaf in leaves:
        cls = leaf.__class__
        if cls not in _LEAF_TYPES and is_node(cls) and not (is_leaf and is_leaf(leaf)):
            _register_dataclass(cls)
            return flatten(tree, is_leaf)
    return leaves, spec


def is_node(cls: type) -> bool:
    """Whether instances of a class that optree took for a leaf are dataclass nodes."""
    return dataclasses.is_dataclass(cls) and not getattr(cls, "__fnad_leaf__", False)


def unflatten(spec: Spec, leaves: Iterable[Any]) -> PyTree:
    """The pytree of structure `spec` with the given leaves."""
    return optree.tree_unflatten(spec, leaves)


def flattener(spec: Spec) -> Callable[[Any], Any]:
    """A function from trees of this structure to their leaves, without a look at what the leaves are.

    It raises ValueError for another structure (another order of keys is one), unless only what stands where a leaf should be differs.
    """
    made = template.flattener(spec.unflatten, spec.num_leaves)
    if made is not None:
        return made
    text = identity(spec)

    def careful(tree: PyTree) -> list[Any]:
        found, structure = flatten(tree)
        if structure != spec or identity(structure) != text:
            raise ValueError("another structure")
        return found

    return careful


def identity(spec: Spec) -> str:
    """What tells structures apart that are equal: kinds of dicts, the order of their keys, and static values such as 2, 2.0 and True."""
    text = str(spec)
    if "{" not in text:
        return text
    orders: list[str] = []

    def note(node: Any) -> Any:
        if isinstance(node, dict):
            orders.append(str([*node]))
        return node

    spec.traverse([None] * spec.num_leaves, note)
    return " ".join((text, *orders))


def unflattener(spec: Spec) -> Callable[[Any], Any]:
    """A function from leaves to the tree of this structure."""
    return template.unflattener(spec.unflatten, spec.num_leaves) or spec.unflatten


def leaves(tree: PyTree) -> list[Any]:
    """The leaves of a pytree in order."""
    return flatten(tree)[0]


def structure(tree: PyTree) -> Spec:
    """The structure of a pytree; structures compare with `==`."""
    return flatten(tree)[1]


def map(f: Callable[..., Any], tree: PyTree, *rest: PyTree) -> PyTree:
    """Apply `f` to corresponding leaves of trees of one structure.

    Raises:
        TreeError: a tree in `rest` differs in structure; the message names the first differing path.

    >>> map(lambda a, b: a + b, {"w": 1.0}, {"w": 2.0})
    {'w': 3.0}
    """
    first, spec = flatten(tree)
    columns = [first]
    for i, other in enumerate(rest):
        columns.append(flatten_as(spec, other, f"tree {i + 1}", "tree 0"))
    return unflatten(spec, [f(*row) for row in zip(*columns, strict=True)])


def flatten_as(spec: Spec, tree: PyTree, what: str, like: str, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of `tree`, which must have the structure `spec`; `what` and `like` name them in errors."""
    found, other = flatten(tree, is_leaf)
    if other != spec:
        path, mine, theirs = first_difference(spec, other)
        raise TreeError(
            f"{what} must have the same pytree structure as {like}",
            got={f"{like} at {path or 'the root'}": mine, f"{what} there": theirs},
            fix=f"build {what} with fnad.tree.map over {like}",
        )
    return found


def spread_prefix(
    prefix: PyTree, full: PyTree, spec: Spec, what: str, like: str, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any]:
    """The leaves of a pytree that may have a leaf where `full`, of structure `spec`, has a node: one for each leaf of `full`."""
    try:
        return optree.broadcast_prefix(prefix, full, is_leaf=is_leaf, namespace=NAMESPACE)
    except ValueError:
        return flatten_as(spec, prefix, what, like, is_leaf)  # which says where they differ


def flatten_prefix(prefix: PyTree, spec: Spec, what: str) -> list[Any]:
    """Broadcast a prefix tree (of non-None-sensitive leaves such as vmap's axes) to one entry per leaf of `spec`."""
    full = unflatten(spec, range(spec.num_leaves))
    out: list[Any] = [None] * spec.num_leaves

    def fill(p: Any, sub: Any, path: str) -> None:
        if p is None or isinstance(p, int):
            for i in leaves(sub):
                out[i] = p
            return
        kids, sub_kids = _children(p), _children(sub)
        if kids is None or sub_kids is None or [k for k, _ in kids] != [k for k, _ in sub_kids] or type(p) is not type(sub):
            raise TreeError(
                f"{what} must be an int, None, or a pytree whose structure is a prefix of the values'",
                got={f"{what}{path}": repr(p), "values there": structure(sub)},
                fix=f"give one entry per argument, e.g. {what}=(0, None)",
            )
        for (key, kid), (_, sub_kid) in zip(kids, sub_kids, strict=True):
            fill(kid, sub_kid, path + key)

    fill(prefix, full, "")
    return out


def paths(spec: Spec) -> list[str]:
    """One printable key path per leaf, such as `['layer'][0]`."""
    return [accessor.codify("") for accessor in spec.accessors()]


def argument_paths(spec: Spec, names: Sequence[str]) -> list[str]:
    """One printable path per leaf of an (args, kwargs), such as `params['w'][0]`, given the names of the positional arguments."""
    out = []
    for accessor in spec.accessors():
        which, key = accessor[0].entry, accessor[1].entry
        out.append(accessor[2:].codify(key if which else names[key]))
    return out


def first_difference(a: Spec, b: Spec) -> tuple[str, str, str]:
    """Where two structures differ first: path, and what stands there in each."""
    return _difference(unflatten(a, [_LEAF] * a.num_leaves), unflatten(b, [_LEAF] * b.num_leaves), "")


class _Leaf:
    def __repr__(self) -> str:
        return "a leaf"


_LEAF = _Leaf()


def _difference(a: Any, b: Any, path: str) -> tuple[str, str, str]:
    kids_a, kids_b = _children(a), _children(b)
    if kids_a is None or kids_b is None or type(a) is not type(b):
        return path, _summary(a), _summary(b)
    keys_a, keys_b = [k for k, _ in kids_a], [k for k, _ in kids_b]
    if keys_a != keys_b:
        return path, _summary(a), _summary(b)
    for (key, kid_a), (_, kid_b) in zip(kids_a, kids_b, strict=True):
        if structure(kid_a) != structure(kid_b):
            return _difference(kid_a, kid_b, path + key)
    return path, _summary(a), _summary(b)


def _children(tree: Any) -> list[tuple[str, Any]] | None:
    if tree is None or tree is _LEAF:
        return None
    kids, spec = optree.tree_flatten(tree, is_leaf=lambda t: t is not tree, none_is_leaf=True, namespace=NAMESPACE)
    if spec.num_nodes == 1 and spec.num_leaves == 1:
        return None
    return list(zip(paths(spec), kids, strict=True))


def _summary(tree: Any) -> str:
    kids = _children(tree)
    if kids is None:
        return repr(tree)
    return f"{type(tree).__name__} with entries {', '.join(k for k, _ in kids) or 'none'}"


def _register_dataclass(cls: type) -> None:
    """Make a dataclass a pytree node: fields marked static are structure, all others children."""
    with _lock:
        if cls in _registered:
            return
        fields = dataclasses.fields(cls)
        dynamic = [f.name for f in fields if not f.metadata.get("static", False)]
        static = [f.name for f in fields if f.metadata.get("static", False)]

        def flatten_node(obj: Any) -> tuple[Any, ...]:
            fixed = tuple(getattr(obj, name) for name in static)
            for name, x in zip(static, fixed, strict=True):
                if hasattr(x, "__array_function__"):
                    raise DTypeError(
                        "a static field of a dataclass is part of the structure: something that can be hashed and compared, no array",
                        got={f"field {name} of {cls.__name__}": type(x).__name__},
                        fix='leave out metadata={"static": True}; or hold a tuple of numbers there',
                    )
            return tuple(getattr(obj, name) for name in dynamic), fixed, tuple(dynamic)

        def unflatten_node(aux: Any, children: Any) -> Any:
            # __init__ is passed over: it may convert or validate, and leaves can be tracers or placeholders.
            obj: Any = object.__new__(cls)
            for name, value in (*zip(dynamic, children, strict=True), *zip(static, aux, strict=True)):
                object.__setattr__(obj, name, value)
            return obj

        optree.register_pytree_node(cls, flatten_node, unflatten_node, path_entry_type=optree.GetAttrEntry, namespace=NAMESPACE)
        _registered.add(cls)


def register(cls: type, flatten: Callable[[Any], tuple[Iterable[Any], Any]], unflatten: Callable[[Any, Any], Any]) -> None:
    """Make a class of yours a pytree node.

    Args:
        cls: The class.
        flatten: `obj -> (children, aux)`; `aux` must be hashable and comparable.
        unflatten: `(aux, children) -> obj`; must accept any objects as children.
    """
    optree.register_pytree_node(cls, flatten, unflatten, namespace=NAMESPACE)


def ravel_pytree(tree: PyTree) -> tuple[Any, Callable[[Any], PyTree]]:
    """The entries of all leaves as one vector, and the way back.

    Args:
        tree: A pytree of arrays and scalars, traced or not.

    Returns:
        A pair `(vector, unravel)`. The vector, of the dtype that the leaves promote to, holds the leaves in order, each in C order;
        `unravel(vector)` is a pytree like `tree`, with its shapes and dtypes. Both can be differentiated and compiled. Semantics as
        `jax.flatten_util.ravel_pytree` (JAX 0.10).

    Raises:
        ShapeError: (by `unravel`) the vector has another length.

    >>> vector, unravel = ravel_pytree({"w": np.ones((2, 2)), "b": 3.0})
    >>> vector
    array([3., 1., 1., 1., 1.])
    >>> unravel(2 * vector)["w"]
    array([[2., 2.],
           [2., 2.]])
    """
    found, spec = flatten(tree)
    arrays = [x if hasattr(x, "dtype") else np.asarray(x) for x in found]
    sizes = [math.prod(x.shape) for x in arrays]
    kinds = [(x.shape, x.dtype) for x in arrays]
    dtype = np.result_type(*(d for _, d in kinds)) if arrays else np.dtype(float)
    vector = np.concatenate([np.ravel(x).astype(dtype) for x in arrays]) if arrays else np.empty(0)

    def unravel(vector: Any) -> PyTree:
        if np.shape(vector) != (sum(sizes),):
            raise ShapeError(
                "unravel takes a vector as long as that of ravel_pytree", got={"shape": np.shape(vector), "expected": (sum(sizes),)}
            )
        out, begin = [], 0
        for n, (shape, kind) in zip(sizes, kinds, strict=True):
            part = np.reshape(vector[begin : begin + n], shape)
            whole = kind.kind in "iub" and part.dtype.kind in "fc"
            part = np.real(part) if part.dtype.kind == "c" and kind.kind != "c" else part
            out.append((np.rint(part) if whole and kind.kind != "b" else part).astype(kind)[() if shape == () else ...])
            begin += n
        return unflatten(spec, out)

    return vector, unravel
