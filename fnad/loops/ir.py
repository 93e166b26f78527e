"""The small language between the user's loop function and its derivatives: typed, structured, single assignment.

A `Function` is a tree of blocks. Every scalar and every array *binding* is a `Value` that is defined once; what changes
in place is the contents of arrays, by `store`. Where Python would rebind a name in a loop or a branch, the region lists
the name's versions: `params` (the version at the start of an iteration), `yields` (at its end), `results` (after the
region). Tuples, functions, shapes and strings do not exist here: the front end has taken them apart, calls of other loop
functions are inlined, `continue` and early `return` are branches, and whole-array expressions are loops.

| kind | args | out |
|---|---|---|
| `add sub mul div floordiv mod pow neg pos` | scalars | a scalar of the type `out.type` (operands are converted to it) |
| `lt le gt ge eq ne`, `not and or`, `bitand bitor bitxor shl shr invert` | scalars | bool or integer |
| `cast` | a scalar | the scalar as `out.type` |
| `select` | bool, x, y | x where true, else y: both are evaluated |
| a name of `fnad.loops.scalars.FUNCTIONS` (`sin exp hypot ...`) | scalars | a scalar |
| `alloc` | sizes | a new array of the type `out.type`; attrs `fill` = None (contents undefined) or a number |
| `copy` | an array | a new C-contiguous array with the same contents |
| `load` | array, one index per axis | the element |
| `store` | array, one index per axis, value | - |
| `view` | array, bounds ... | a view; attrs `axes`: a letter per axis of the array, see below |
| `transpose` | an array | a view; attrs `axes` = the permutation |
| `reshape` | an array, sizes | a view of a contiguous array |
| `dim` | an array | the size (int64) of its axis attrs `axis` |
| `trips` | lo, hi, step | the number of iterations of `range(lo, hi, step)` |
| `dot` | two arrays of rank 1 or 2 | NumPy's `a @ b`: a scalar for two vectors, else a new array |
| `opaque` | scalars and arrays | a scalar; attrs `function`: a compiled function with a registered derivative |
| `raise` | - | -; attrs `text`: the statement as the user wrote it |

An axis of a `view` is `i` (one integer operand) or `s` (three operands: start, stop, step; `None` where the user left it out).
Indices may be negative, as in Python. Regions are `For`, `While` and `If`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np


class Scalar(NamedTuple):
    """The type of a number: a NumPy dtype (bool, an integer, a float or a complex one)."""

    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return str(self.dtype)


class Array(NamedTuple):
    """The type of an array: its dtype and rank. Shapes and strides are known at run time only."""

    dtype: np.dtype[Any]
    ndim: int

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(':' * self.ndim)}]"


Type = Scalar | Array

INT = Scalar(np.dtype(np.int64))
BOOL = Scalar(np.dtype(np.bool_))
FLOAT = Scalar(np.dtype(np.float64))


class Value:
    """A scalar or an array binding, defined once. `name` is unique in its function and a valid Python name."""

    __slots__ = ("line", "name", "type")

    def __init__(self, name: str, type: Type, line: int = 0) -> None:
        self.name, self.type, self.line = name, type, line

    def __repr__(self) -> str:
        return f"{self.name}:{self.type}"


class Const(NamedTuple):
    """A number known when the function is built; `value` is a Python bool, int, float or complex."""

    value: Any
    type: Scalar


Operand = Value | Const


@dataclass(eq=False, slots=True)
class Op:
    """One operation of the table above; `line` is the user's line (counted in the file), 0 where there is none."""

    kind: str
    args: tuple[Operand | None, ...]
    out: Value | None = None
    attrs: dict[str, Any] = field(default_factory=dict)
    line: int = 0


@dataclass(eq=False, slots=True)
class Block:
    """A list of statements, executed one after the other."""

    items: list[Item] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class For:
    """`for iv in range(lo, hi, step)`, with the versions of what the body rebinds.

    `stop` is a bool that the body computes: where it is true at the end of an iteration, the loop ends (`break`);
    then `count` is the number of iterations that ran. `parallel` says that the iterations are independent (`prange`).
    """

    iv: Value
    lo: Operand
    hi: Operand
    step: Operand
    body: Block
    params: list[Value] = field(default_factory=list)
    inits: list[Operand] = field(default_factory=list)
    yields: list[Operand] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    stop: Operand | None = None
    count: Value | None = None
    parallel: bool = False
    line: int = 0


@dataclass(eq=False, slots=True)
class While:
    """`head` computes `condition` from the params at the start of each iteration; where it is false the loop ends.

    The results are the params' versions at that moment, or the yields of an iteration that ended with `stop`.
    `count` is the number of times the body ran.
    """

    head: Block
    condition: Operand
    body: Block
    params: list[Value]
    inits: list[Operand]
    yields: list[Operand]
    results: list[Value]
    count: Value
    stop: Operand | None = None
    line: int = 0


@dataclass(eq=False, slots=True)
class If:
    """One of two blocks; `results` are the versions after it."""

    condition: Operand
    then: Block
    orelse: Block
    then_yields: list[Operand] = field(default_factory=list)
    else_yields: list[Operand] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    line: int = 0


Item = Op | For | While | If


@dataclass(eq=False, slots=True)
class Function:
    """A loop function for arguments of given types.

    Attributes:
        args: The leaves of the arguments, from left to right (a tuple argument has several).
        returns: The leaves of the result, from left to right.
        captured: Arrays of the enclosing scopes, frozen as numba freezes them: the values that stand for them in the body.
        written: Those of `args` whose contents the function may change.
        template: The result's structure: `0, 1, ...` in the place of the leaves, in tuples and namedtuples.
        source: The user's file and the name of the function, for comments and errors.
    """

    name: str
    args: list[Value]
    body: Block
    returns: list[Operand]
    template: Any
    written: frozenset[Value] = frozenset()
    source: tuple[str, str] = ("", "")
    captured: list[tuple[Value, np.ndarray[Any, Any]]] = field(default_factory=list)


def blocks(item: Item) -> tuple[Block, ...]:
    """The blocks inside an item, in the order in which they run."""
    if isinstance(item, For):
        return (item.body,)
    if isinstance(item, While):
        return (item.head, item.body)
    return (item.then, item.orelse) if isinstance(item, If) else ()


def walk(block: Block) -> Iterator[Item]:
    """Every item of a block and of the blocks inside it, in the order of the text."""
    for item in block.items:
        yield item
        for inner in blocks(item):
            yield from walk(inner)


def defined(item: Item) -> list[Value]:
    """What an item itself defines for the block that it stands in."""
    if isinstance(item, Op):
        return [] if item.out is None else [item.out]
    count = getattr(item, "count", None)
    return [*item.results, *([] if count is None else [count])]
