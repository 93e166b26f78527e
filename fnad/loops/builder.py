"""Emission: appends operations to the block at hand, folds constants, shares sizes and integer arithmetic, and knows shapes and roots."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from fnad.errors import DTypeError, FnadError, UnsupportedError
from fnad.loops.emit import Names
from fnad.loops.ir import BOOL, INT, Array, Block, Const, For, If, Item, Op, Operand, Scalar, Type, Value, While
from fnad.loops.source import Source, error_at

Root = tuple[Any, ...]
"""What an array's memory belongs to: (`argument`, number), (`captured`, ...) or (`new`, the place of its allocation)."""

FOLDED: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "floordiv": operator.floordiv,
    "mod": operator.mod, "neg": operator.neg, "pos": operator.pos, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "eq": operator.eq, "ne": operator.ne, "not": operator.not_, "and": lambda a, b: a and b,
    "or": lambda a, b: a or b, "bitand": operator.and_, "bitor": operator.or_, "bitxor": operator.xor, "shl": operator.lshift,
    "shr": operator.rshift, "invert": operator.invert,
}  # fmt: skip
_NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "floordiv": 1, "and": True, "or": False}
SHARED = frozenset(FOLDED) | {"cast", "select"}
"""Kinds that are computed once where their operands and result are integers or booleans."""


class NotNumeric(Exception):
    """Something else than a number or an array (of a given rank) was met where one is needed; it becomes an error of the user's line."""

    def __init__(self, found: Any, needed: str = "a number or an array") -> None:
        super().__init__(found)
        self.found, self.needed = found, needed


def dtype_of(operand: Operand) -> np.dtype[Any]:
    if not isinstance(operand, Value | Const):
        raise NotNumeric(operand)
    return operand.type.dtype


def same(x: Operand | None, y: Operand | None) -> bool:
    """Whether two integers are known to be equal (and not both unknown)."""
    return x is not None and (x is y or (isinstance(x, Const) and isinstance(y, Const) and x.value == y.value))


def is_array(x: Any) -> bool:
    return isinstance(x, Value) and isinstance(x.type, Array)


def is_scalar(x: Any) -> bool:
    return isinstance(x, Const) or (isinstance(x, Value) and isinstance(x.type, Scalar))


class Items(tuple[Any, ...]):
    """A list display: like a tuple where it may stand, but no index and no result."""

    __slots__ = ()


def is_tuple(x: Any) -> bool:
    """Whether something is a tuple of the user's program."""
    return isinstance(x, tuple) and not isinstance(x, Const)


def const(value: Any, dtype: Any = None) -> Const:
    """A constant: of the type of a Python number, or of a given dtype."""
    if dtype is None:
        dtype = np.dtype({bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}[type(value)])
    kind = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[np.dtype(dtype).kind]
    return Const(kind(value), Scalar(np.dtype(dtype)))


class Builder:
    """Builds one `ir.Function`. `source` and `node` say where in the user's text it is."""

    def __init__(self) -> None:
        self.block = Block()
        self.file = ""  # the one that lines are counted in
        self.source: Source | None = None
        self.node: ast.AST | None = None
        self.calls: list[Any] = []
        self.captured: dict[int, tuple[Value, np.ndarray[Any, Any]]] = {}
        self.roots: dict[Value, frozenset[Root]] = {}
        self.shapes: dict[Value, list[Operand]] = {}
        self.positive: set[Value] = set()
        self.makers: dict[Value, Op] = {}
        self._known: list[dict[Any, Value]] = [{}]
        self._names = Names()
        self._unnamed: set[Value] = set()

    def fail(self, rule: str, *, fix: str = "", got: dict[str, Any] | None = None, kind: type[FnadError] = UnsupportedError) -> NoReturn:
        """Raise an error that points at the expression at hand."""
        source = self.source
        raise error_at(source.file if source else "", source.name if source else "", self.node, rule, got=got, fix=fix, kind=kind)

    @contextmanager
    def at(self, node: ast.AST | None) -> Iterator[None]:
        """Errors point at `node` meanwhile."""
        outer, self.node = self.node, node
        yield
        self.node = outer

    @property
    def line(self) -> int:
        """Where the expression at hand is, or the call that leads to it out of the function's file."""
        outside = (call for function, _, call in self.calls if function.__code__.co_filename != self.file)
        return getattr(next(outside, self.node), "lineno", 0)

    def value(self, type: Type, name: str = "t") -> Value:
        made = Value(self._names.fresh(name), type, self.line)
        if name == "t":
            self._unnamed.add(made)
        return made

    def rename(self, x: Value, name: str) -> None:
        """Give the user's name to a value that has none."""
        if x in self._unnamed and name != "t":
            self._unnamed.remove(x)
            x.name = self._names.fresh(name)

    def emit(self, kind: str, args: Sequence[Operand | None], type: Type | None = None, name: str = "t", **attrs: Any) -> Value:
        """Append an operation; where there is no `type`, it has no result (and what is returned is of no use)."""
        out = self.value(type if type is not None else INT, name)
        op = Op(kind, tuple(args), None if type is None else out, attrs, self.line)
        self.block.items.append(op)
        if type is not None:
            self.makers[out] = op
        return out

    def scalar(self, kind: str, *args: Operand, dtype: Any = None) -> Operand:
        """An operation on scalars, folded if its operands are constants and the result is exact."""
        type = BOOL if dtype is None else Scalar(np.dtype(dtype))
        folded = self._fold(kind, args, type)
        if folded is not None:
            return folded
        if kind not in SHARED or type.dtype.kind not in "biu" or any(dtype_of(a).kind not in "biu" for a in args):
            return self.emit(kind, args, type)
        return self._shared((kind, type, *map(self._key, args)), lambda: self.emit(kind, args, type))

    def _shared(self, key: Any, make: Callable[[], Value]) -> Value:
        for known in reversed(self._known):
            if key in known:
                return known[key]
        out = self._known[-1][key] = make()
        return out

    @staticmethod
    def _key(operand: Operand | None) -> Any:
        return (operand.value, operand.type) if isinstance(operand, Const) else operand

    def _fold(self, kind: str, args: Sequence[Operand], type: Scalar) -> Operand | None:
        if all(isinstance(a, Const) for a in args) and kind in FOLDED:
            values = [a.value for a in args]  # type: ignore[union-attr]
            single = type.dtype.kind in "fc" and type.dtype.itemsize != (8 if type.dtype.kind == "f" else 16)
            if single and kind not in ("neg", "pos"):
                return None
            try:
                return const(FOLDED[kind](*values), type.dtype)
            except (ArithmeticError, TypeError, ValueError):
                return None
        return self._identity(kind, args, type) if type.dtype.kind in "biu" or kind == "select" else None

    @staticmethod
    def _identity(kind: str, args: Sequence[Operand], type: Scalar) -> Operand | None:
        """`x + 0`, `x * 1`, `x and True` and the like, of integers and booleans."""
        if kind == "select" and isinstance(args[0], Const):
            return args[1] if args[0].value else args[2]
        if kind == "select" and same(args[1], args[2]):
            return args[1]
        if len(args) != 2:
            return None
        for x, y, swapped in ((args[0], args[1], False), (args[1], args[0], True)):
            if isinstance(y, Const) and x.type == type and not (swapped and kind in ("sub", "floordiv")):
                if kind in _NEUTRAL and y.value == _NEUTRAL[kind]:
                    return x
                if kind in ("and", "or"):
                    return y
        return None

    def all(self, *conditions: Operand) -> Operand:
        """Conditions, all of them."""
        found: Operand = const(True)
        for condition in conditions:
            found = self.scalar("and", found, condition)
        return found

    def cast(self, x: Operand, dtype: Any) -> Operand:
        dtype = np.dtype(dtype)
        if dtype_of(x) == dtype:
            return x
        if dtype_of(x).kind == "c" and dtype.kind != "c":
            self.fail("A complex number cannot become a real one", fix="take its .real", kind=DTypeError)
        if isinstance(x, Const):
            finite = not isinstance(x.value, float) or np.isfinite(x.value)
            if dtype.kind in "fcb" or finite:
                return const(np.array(x.value).astype(dtype).item(), dtype)
        return self.scalar("cast", x, dtype=dtype)

    def truth(self, x: Operand) -> Operand:
        """The number as a bool."""
        if dtype_of(x).kind == "b":
            return x
        return const(bool(x.value)) if isinstance(x, Const) else self.scalar("ne", x, const(0, dtype_of(x)))

    # arrays

    def dim(self, x: Value, axis: int) -> Operand:
        """The size of an axis."""
        return self.shapes[x][axis]

    def measure(self, x: Value, known: Sequence[Operand | None] = ()) -> None:
        """Note the sizes of an array; emit those that are not known."""
        rank = x.type.ndim  # type: ignore[union-attr]
        sizes = list(known) or [None] * rank
        self.shapes[x] = [self.emit("dim", (x,), INT, "n", axis=k) if size is None else size for k, size in enumerate(sizes)]

    def shape(self, x: Value) -> tuple[Operand, ...]:
        return tuple(self.shapes[x])

    def alloc(self, sizes: Sequence[Operand], dtype: Any, fill: Any = None, name: str = "t") -> Value:
        out = self.emit("alloc", sizes, Array(np.dtype(dtype), len(sizes)), name, fill=fill)
        self.shapes[out] = list(sizes)
        self.roots[out] = self.new_root()
        return out

    def copy(self, x: Value, name: str = "t") -> Value:
        out = self.emit("copy", (x,), x.type, name)
        self.shapes[out] = list(self.shape(x))
        self.roots[out] = self.new_root()
        return out

    def new_root(self) -> frozenset[Root]:
        """The place of an allocation: the same one where a loop body is built again."""
        place = (getattr(self.node, "lineno", 0), getattr(self.node, "col_offset", 0))
        return frozenset({("new", place, tuple(id(call[-1]) for call in self.calls))})

    def view(self, x: Value, axes: str, bounds: Sequence[Operand | None]) -> Value:
        """A view; `axes` and `bounds` as in `ir.Op`."""
        assert isinstance(x.type, Array)
        key = ("view", x, axes, *map(self._key, bounds))
        return self._shared(key, lambda: self._new_view(x, axes, bounds))

    def _new_view(self, x: Value, axes: str, bounds: Sequence[Operand | None]) -> Value:
        out = self.emit("view", (x, *bounds), Array(dtype_of(x), axes.count("s")), axes=axes)
        sizes: list[Operand | None] = []
        at = 0
        for axis, letter in enumerate(axes):
            if letter == "s":
                start, stop, step = bounds[at : at + 3]
                sizes.append(self._slice_size(self.dim(x, axis), start, stop) if step is None else None)
            at += 1 if letter == "i" else 3
        self.measure(out, sizes)
        return self._same_memory(out, x)

    def _slice_size(self, size: Operand, start: Operand | None, stop: Operand | None) -> Operand | None:
        """The size of `a[start:stop]`, where it is simple: then slices that are equally long are known to be."""
        ends = [b.value if isinstance(b, Const) else b for b in (start, stop)]
        if isinstance(size, Const) and not any(isinstance(end, Value) for end in ends):
            return const(len(range(*slice(*ends).indices(size.value))))
        base, offset = self.affine(size)
        first = 0 if start is None else start.value if isinstance(start, Const) else -1
        if stop is None:
            left = 0
        elif isinstance(stop, Const):
            left = -stop.value
        else:
            other, shift = self.affine(stop)
            left = offset - shift if other is base else -1
            left = left if left <= 2 else -1  # a computed bound below 0 would count from the end
        if first < 0 or left < 0 or (stop is not None and left == 0 and isinstance(stop, Const)):
            return None
        if not first + left:
            return size
        rest = self.scalar("sub", size, const(first + left), dtype=np.int64)
        return self.scalar("select", self.scalar("gt", rest, const(0)), rest, const(0), dtype=np.int64)

    def affine(self, x: Operand) -> tuple[Value | None, int]:
        """An integer as a value plus a constant."""
        if isinstance(x, Const):
            return None, x.value
        maker = self.makers.get(x)
        if maker is not None and maker.kind in ("add", "sub") and x.type == INT:
            first, second = maker.args
            if isinstance(second, Const) and isinstance(first, Value):
                base, offset = self.affine(first)
                return base, offset + (second.value if maker.kind == "add" else -second.value)
        return x, 0

    def is_positive(self, x: Operand | None) -> bool:
        """Whether an integer is known to be 0 or more."""
        if isinstance(x, Const):
            return bool(x.value >= 0)
        maker = None if x is None else self.makers.get(x)
        if maker is None:
            return x in self.positive
        if maker.kind in ("add", "mul", "floordiv"):
            return all(map(self.is_positive, maker.args))
        return maker.kind == "dim" or (maker.kind == "mod" and self.is_positive(maker.args[1]))

    def transpose(self, x: Value, axes: tuple[int, ...]) -> Value:
        out = self._shared(("transpose", x, axes), lambda: self.emit("transpose", (x,), x.type, axes=axes))
        self.measure(out, [self.dim(x, k) for k in axes])
        return self._same_memory(out, x)

    def field(self, x: Value, name: str) -> Value:
        """A view of one field of an array of records."""
        known: Mapping[str, Any] = dtype_of(x).fields or {}
        if name not in known:
            self.fail(f"The records have no field {name}", got={"fields": ", ".join(known) or "none"})
        dtype = known[name][0]
        if dtype.kind not in "biufc":
            self.fail(f"The field {name} is not a number", got={"type": dtype}, fix="use one field for each number", kind=DTypeError)
        rank = x.type.ndim  # type: ignore[union-attr]
        out = self._shared(("field", x, name), lambda: self.emit("field", (x,), Array(dtype, rank), name, field=name))
        self.measure(out, self.shape(x))
        return self._same_memory(out, x)

    def is_contiguous(self, x: Value) -> bool:
        """Whether an array is not known to have gaps, or another order than C."""
        maker = self.makers.get(x)
        if maker is None or maker.kind not in ("view", "transpose", "field"):
            return True
        base = maker.args[0]
        if maker.kind != "view" or not isinstance(base, Value) or not self.is_contiguous(base):
            return maker.kind == "transpose" and x.type.ndim == 1  # type: ignore[union-attr]
        bounds = list(maker.args[1:])
        parts = [[bounds.pop(0) for _ in range(1 if letter == "i" else 3)] for letter in maker.attrs["axes"]]
        while parts and len(parts[0]) == 1:
            parts.pop(0)
        steps = [part[2] for part in parts[:1] if len(part) == 3]
        return not any(steps) and all(part == [None, None, None] for part in parts[1:])

    def reshape(self, x: Value, sizes: Sequence[Operand]) -> Value:
        out = self.emit("reshape", (x, *sizes), Array(dtype_of(x), len(sizes)))
        self.shapes[out] = list(sizes)
        return self._same_memory(out, x)

    def _same_memory(self, out: Value, x: Value) -> Value:
        self.roots[out] = self.roots[x]
        return out

    def may_alias(self, x: Value, y: Value) -> bool:
        return not self.roots[x].isdisjoint(self.roots[y])

    def load(self, x: Value, indices: Sequence[Operand]) -> Operand:
        x, indices = self._through_view(x, indices)
        return self.emit("load", (x, *indices), Scalar(dtype_of(x)))

    def store(self, x: Value, indices: Sequence[Operand], value: Operand) -> None:
        if any(root[0] == "captured" for root in self.roots[x]):
            self.fail(
                "An array that the function closes over is a constant and cannot be written", fix="pass it as an argument, or copy it first"
            )
        x, indices = self._through_view(x, indices)
        self.emit("store", (x, *indices, self.cast(value, dtype_of(x))))

    def _through_view(self, x: Value, indices: Sequence[Operand]) -> tuple[Value, list[Operand]]:
        """An element of a row is an element of the matrix: one access instead of a view and an access."""
        maker = self.makers.get(x)
        if maker is not None and maker.kind == "view":
            bounds, left, merged = list(maker.args[1:]), list(indices), list[Operand]()
            for letter in maker.attrs["axes"]:
                start = bounds.pop(0)
                if letter == "i":
                    assert start is not None
                    merged.append(start)
                    continue
                stop, step, index = bounds.pop(0), bounds.pop(0), left.pop(0)
                if step is not None or not (start is stop is None or (self.is_positive(start or const(0)) and self.is_positive(index))):
                    return x, list(indices)
                merged.append(index if start is None else self.scalar("add", index, start, dtype=np.int64))
            base = maker.args[0]
            assert isinstance(base, Value)
            return self._through_view(base, merged)
        if maker is not None and maker.kind == "transpose":
            base, order = maker.args[0], maker.attrs["axes"]
            assert isinstance(base, Value)
            return self._through_view(base, [indices[order.index(k)] for k in range(len(order))])
        return x, list(indices)

    # regions

    @contextmanager
    def inside(self, block: Block) -> Iterator[Block]:
        """Emit into `block` for a while."""
        outer, self.block = self.block, block
        self._known.append({})
        try:
            yield block
        finally:
            self.block = outer
            self._known.pop()

    def add(self, item: Item) -> None:
        self.block.items.append(item)

    def when(self, condition: Operand, then: Callable[[], Any]) -> None:
        """`if condition: then()`, where nothing is rebound."""
        if isinstance(condition, Const):
            if condition.value:
                then()
            return
        with self.inside(Block()) as block:
            then()
        self.add(If(condition, block, Block(), line=self.line))

    def loop(
        self,
        size: Operand,
        body: Callable[[Value, list[Operand]], Sequence[Operand]],
        inits: Sequence[Operand] = (),
        lo: Operand | None = None,
    ) -> list[Operand]:
        """`for i in range(lo, size)` with carried scalars of fixed types; returns their last versions."""
        iv = self.value(INT, "i")
        self.positive.add(iv)
        params = [self.value(x.type, "acc") for x in inits]
        with self.inside(Block()) as block:
            yields = list(body(iv, list(params)))
        results = [self.value(p.type, "acc") for p in params]
        self.add(For(iv, const(0) if lo is None else lo, size, const(1), block, params, list(inits), yields, results, line=self.line))
        return list(results)

    def repeat(
        self, head: Callable[[list[Operand]], Operand], body: Callable[[list[Operand]], list[Operand]], inits: Sequence[Operand]
    ) -> list[Operand]:
        """`while head(versions): versions = body(versions)`, of scalars; returns the last versions."""
        params = [self.value(x.type, "acc") for x in inits]
        with self.inside(Block()) as first:
            condition = head(list(params))
        with self.inside(Block()) as block:
            yields = body(list(params))
        results = [self.value(p.type, "acc") for p in params]
        self.add(While(first, condition, block, params, list(inits), yields, results, self.value(INT, "count"), line=self.line))
        return list(results)

    def nest(
        self, sizes: Sequence[Operand], body: Callable[[list[Operand], list[Operand]], Sequence[Operand]], inits: Sequence[Operand] = ()
    ) -> list[Operand]:
        """A loop over every index of a shape, in C order."""
        if not sizes:
            return list(body([], list(inits)))

        def outer(i: Value, carried: list[Operand]) -> Sequence[Operand]:
            return self.nest(sizes[1:], lambda rest, inner: body([i, *rest], inner), carried)

        return self.loop(sizes[0], outer, inits)
