"""Emitting operations of the loop language, with the identities that keep derivative code short."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.loops.ir import BOOL, INT, Array, Block, Const, Op, Operand, Scalar, Type, Value


class Names:
    """Names that are unique in a function: `fresh("s")` answers s, s_1, s_2 ..."""

    def __init__(self, taken: Any = ()) -> None:
        self._taken = set(taken)
        self._count: dict[str, int] = {}

    def fresh(self, name: str) -> str:
        new, count = name, self._count.get(name, 0)
        while new in self._taken:
            count += 1
            new = f"{name}_{count}"
        self._count[name] = count
        self._taken.add(new)
        return new


def joined(*operands: Operand) -> Scalar:
    """The type of arithmetic on numbers: the widest float among them, if there is one; integers do not widen it."""
    dtypes = [o.type.dtype for o in operands]
    inexact = [d for d in dtypes if d.kind in "fc"]
    literal = [o for o in operands if isinstance(o, Const)]
    if inexact and literal:
        inexact = [o.type.dtype for o in operands if o not in literal and o.type.dtype.kind in "fc"] or inexact
    return Scalar(np.result_type(*(inexact or dtypes)))


class Builder:
    """Appends to `block`; every method answers the new operation's value."""

    def __init__(self, names: Names, block: Block | None = None) -> None:
        self.names, self.block, self.line = names, Block() if block is None else block, 0
        self._inverse: dict[Value, Operand] = {}

    def op(self, kind: str, *args: Operand | None, type: Type | None = None, name: str = "t", **attrs: Any) -> Value:
        out = Value(self.names.fresh(name), type or joined(*(a for a in args if a is not None)), self.line)
        self.block.items.append(Op(kind, args, out, attrs, self.line))
        return out

    def do(self, kind: str, *args: Operand | None, **attrs: Any) -> None:
        self.block.items.append(Op(kind, args, None, attrs, self.line))

    @staticmethod
    def const(value: float, like: Operand | Scalar) -> Const:
        dtype = like.dtype if isinstance(like, Scalar) else like.type.dtype
        return Const(value, Scalar(dtype if dtype.kind in "fc" else np.dtype(np.float64)))

    @staticmethod
    def integer(value: int) -> Const:
        return Const(value, INT)

    def neg(self, x: Operand) -> Operand:
        return Const(-x.value, x.type) if isinstance(x, Const) else self.op("neg", x)

    def add(self, x: Operand, y: Operand) -> Operand:
        if isinstance(x, Const) and isinstance(y, Const):
            return Const(x.value + y.value, joined(x, y))
        return y if is_number(x, 0) else x if is_number(y, 0) else self.op("add", x, y)

    def sub(self, x: Operand, y: Operand) -> Operand:
        if isinstance(x, Const) and isinstance(y, Const):
            return Const(x.value - y.value, joined(x, y))
        return x if is_number(y, 0) else self.neg(y) if is_number(x, 0) else self.op("sub", x, y)

    def mul(self, x: Operand, y: Operand) -> Operand:
        if isinstance(x, Const) and isinstance(y, Const):
            return Const(x.value * y.value, joined(x, y))
        for one, other in ((x, y), (y, x)):
            if is_number(one, 1) and other.type.dtype.kind in "fc":
                return other
            if is_number(one, -1) and other.type.dtype.kind in "fc":
                return self.neg(other)
        for one, other in ((x, y), (y, x)):
            made = self._inverse.get(one) if isinstance(one, Value) else None
            if made is not None and other.type == made.type:
                return self.div(other, made)
        return self.op("mul", x, y)

    def inverse(self, x: Operand) -> Operand:
        """1 / x; a product with it becomes a quotient."""
        out = self.div(self.const(1.0, x), x)
        if isinstance(out, Value):
            self._inverse[out] = x
        return out

    def div(self, x: Operand, y: Operand) -> Operand:
        if is_number(y, 1) and x.type.dtype.kind in "fc":
            return x
        type = joined(x, y)
        return self.op("div", x, y, type=type if type.dtype.kind in "fc" else Scalar(np.dtype(np.float64)))

    def pow(self, x: Operand, y: Operand) -> Operand:
        return self.const(1.0, x) if is_number(y, 0) else x if is_number(y, 1) else self.op("pow", x, y)

    def compare(self, kind: str, x: Operand, y: Operand) -> Value:
        return self.op(kind, x, y, type=BOOL, name="c")

    def select(self, condition: Operand, x: Operand, y: Operand) -> Operand:
        return self.op("select", condition, x, y, type=joined(x, y))

    def unless_lost(self, product: Operand, factor: Operand) -> Operand:
        """A product with `factor`: zero where the factor is zero and the other one is infinite or nan.

        Elsewhere it is the product, at zero as well, so that it can be differentiated by its factor.
        """
        zero = self.const(0.0, product)
        lost = self.op("and", self.compare("eq", factor, self.const(0.0, factor)), self.compare("ne", product, product), type=BOOL)
        return self.select(lost, zero, product)

    def call(self, name: str, *args: Operand) -> Value:
        type = joined(*args)
        return self.op(name, *args, type=type if type.dtype.kind in "fc" else Scalar(np.dtype(np.float64)))

    def cast(self, x: Operand, type: Scalar) -> Operand:
        if x.type == type:
            return x
        return Const(x.value, type) if isinstance(x, Const) and type.dtype.kind in "fc" else self.op("cast", x, type=type)

    def load(self, array: Operand, *index: Operand) -> Value:
        return self.op("load", array, *index, type=Scalar(array.type.dtype))

    def store(self, array: Operand, index: tuple[Operand, ...], value: Operand) -> None:
        self.do("store", array, *index, value)

    def dim(self, array: Operand, axis: int) -> Value:
        return self.op("dim", array, type=INT, name="n", axis=axis)

    def like(self, array: Value, name: str) -> Value:
        """A new array of zeros with the shape of `array`."""
        assert isinstance(array.type, Array)
        sizes = [self.dim(array, axis) for axis in range(array.type.ndim)]
        return self.op("alloc", *sizes, type=array.type, name=name, fill=0.0)


def is_number(x: Operand, value: float) -> bool:
    return isinstance(x, Const) and not isinstance(x.value, bool) and x.value == value
