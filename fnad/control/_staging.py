"""A user's function as a body: its arguments and results as flat leaves, their types, and what to say when they do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fnad import tree
from fnad.core.aval import Aval, aval_of, result_dtype
from fnad.core.tracer import Tracer, ValueTracer
from fnad.errors import ArgumentError, DTypeError, ShapeError, TreeError, describe_function
from fnad.primitives.shape import cast

_SCALARS = {bool, int, float, complex, np.bool_, np.int64, np.float32, np.float64}
_ONE = {"i": 1, "f": 1.0, "c": 1.0 + 0.0j}


def check_function(f: Any, name: str, what: str) -> None:
    if not callable(f):
        raise ArgumentError(f"{name}: {what} must be a function", got={what: type(f).__name__}, fix="pass the function itself")


def arrays(value: Any, name: str, what: str) -> tuple[list[Any], tree.Spec]:
    """The leaves of a pytree, all of which must be numeric arrays or scalars."""
    leaves, spec = tree.flatten(value)
    for i, x in enumerate(leaves):
        if x.__class__ in _SCALARS or (isinstance(x, Tracer | np.ndarray | np.generic) and x.dtype.kind in "biufc"):
            continue
        raise DTypeError(
            f"{name}: {what} must consist of numeric arrays and scalars",
            got={f"{what}{tree.paths(spec)[i]}": type(x).__name__},
            fix="let the function close over what is no array",
        )
    return leaves, spec


def concrete(x: Any) -> Any:
    """The plain value behind tracers of derivatives; the tracer that hides it otherwise."""
    while isinstance(x, ValueTracer):
        x = x.value
    return x


@dataclass(frozen=True)
class Carry:
    """The structure of what a loop carries, and how to name it in messages."""

    name: str
    spec: tree.Spec
    root: str = "carry"
    skip: str = ""  # the beginning of paths that is not the user's

    def path(self, path: str) -> str:
        return self.root + path.removeprefix(self.skip)

    def paths(self) -> list[str]:
        return [self.path(p) for p in tree.paths(self.spec)]

    def leaves(self, out: Any, f: Any) -> list[Any]:
        """The leaves of what the body returned as the next carry."""
        found, spec = arrays(out, self.name, f"the {self.root} that the body returns")
        if spec != self.spec:
            path, mine, theirs = tree.first_difference(self.spec, spec)
            raise TreeError(
                f"{self.name}: the body must return the {self.root} in the structure that it came in",
                got={f"{self.path(path)} going in": mine, "coming out": theirs, "body": describe_function(f)},
                fix="return the same containers with the same keys in each step",
            )
        return found

    def settled(self, avals: Sequence[Aval], outs: Sequence[Any], f: Any) -> list[Aval]:
        """The types of the carry after a step. Python scalars give way to the type that the body makes of them."""
        new, wrong = [], {}
        for k, (a, o) in enumerate(zip(avals, map(aval_of, outs), strict=True)):
            joined = o if a == o else join(a, o)
            if joined is None or not (joined == a or a.weak):
                wrong[self.paths()[k]] = f"{a} going in, {o} coming out"
                joined = a
            new.append(joined)
        if wrong:
            raise self.mismatch(wrong, avals, outs, f)
        return new

    def mismatch(self, wrong: dict[str, str], avals: Sequence[Aval], outs: Sequence[Any], f: Any) -> ShapeError | DTypeError:
        rule = f"{self.name}: each value of the {self.root} must keep its shape and dtype"
        got = {**wrong, "body": describe_function(f)}
        found = list(map(aval_of, outs))
        for a, o in zip(avals, found, strict=True):
            if a.shape != o.shape:
                keep = "" if a.shape == () else "return it in the shape that it came in, or "
                return ShapeError(rule, got=got, fix=f"{keep}begin with the shape that comes out, np.zeros({o.shape}, np.{o.dtype})")
        a, o = next((a, o) for a, o in zip(avals, found, strict=True) if join(a, o) != a)
        return DTypeError(
            rule, got=got, fix=f"begin with the dtype that comes out, init.astype(np.{o.dtype}), or return .astype(np.{a.dtype}) of it"
        )


def join(a: Aval, b: Aval) -> Aval | None:
    """The type of a value that is now one, now the other: equal types, or a Python scalar that gives way; otherwise None."""
    if a.shape != b.shape:
        return None
    if a.dtype == b.dtype:
        return Aval(a.shape, a.dtype, a.weak and b.weak)
    dtype = result_dtype(a, b)
    if a.weak and b.weak:
        return Aval(a.shape, dtype, True)
    if a.weak or b.weak:
        return Aval(a.shape, dtype)
    return None


def lift(x: Any, aval: Aval) -> Any:
    """A value as one of a type that it gives way to."""
    found = aval_of(x)
    if found == aval:
        return x
    if not aval.weak:
        return cast(x, dtype=aval.dtype)
    return x if found.dtype == aval.dtype else x * _ONE[aval.dtype.kind]


def fits(x: Any, aval: Aval) -> bool:
    """Whether a value is of a type; quick for plain ones."""
    if isinstance(x, np.ndarray | np.generic):
        return not aval.weak and x.dtype == aval.dtype and x.shape == aval.shape
    return aval_of(x) == aval


def take_leaves(xs: Sequence[Any], i: int) -> list[Any]:
    """Slices of the arrays of a loop for step `i`. Plain ones are copies, which the body may change as it likes."""
    return [np.array(x[i]) if x.__class__ is np.ndarray and x.ndim > 1 else x[i] for x in xs]


def own_leaves(leaves: Sequence[Any]) -> list[Any]:
    """Leaves that a body may change in place: plain arrays are copied."""
    return [np.array(x) if isinstance(x, np.ndarray) else x for x in leaves]
