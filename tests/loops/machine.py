"""Runs an `ir.Function` directly, one operation after the other, and checks that it is well formed."""

from __future__ import annotations

import math
import operator

import numpy as np

from fnad.loops.ir import BOOL, INT, Array, Const, For, If, Op, Scalar, Value

SIMPLE = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "floordiv": operator.floordiv,
    "mod": operator.mod, "pow": operator.pow, "neg": operator.neg, "pos": operator.pos, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne, "not": np.logical_not, "and": np.logical_and,
    "or": np.logical_or, "bitand": operator.and_, "bitor": operator.or_, "bitxor": operator.xor, "shl": operator.lshift,
    "shr": operator.rshift, "invert": operator.invert,
}  # fmt: skip
FUNCTIONS = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "atan2": np.arctan2, "erf": math.erf, "erfc": math.erfc, "gamma": math.gamma, "lgamma": math.lgamma,
}  # fmt: skip


class Raised(Exception):
    """The operation `raise` was reached."""


class Interpreter:
    def __init__(self, function):
        self.values = {}
        self.function = function

    def get(self, x):
        if x is None:
            return None
        return x.type.dtype.type(x.value) if isinstance(x, Const) else self.values[x]

    def many(self, operands):
        return [self.get(x) for x in operands]

    def run(self, block):
        for item in block.items:
            if isinstance(item, Op):
                self.op(item)
            elif isinstance(item, If):
                self.run_if(item)
            elif isinstance(item, For):
                self.run_for(item)
            else:
                self.run_while(item)

    def set(self, names, values):
        self.values.update(zip(names, values, strict=True))

    def run_if(self, item):
        chosen, yields = (item.then, item.then_yields) if self.get(item.condition) else (item.orelse, item.else_yields)
        self.run(chosen)
        self.set(item.results, self.many(yields))

    def run_for(self, item):
        carried, count = self.many(item.inits), 0
        for i in range(*map(int, self.many((item.lo, item.hi, item.step)))):
            self.values[item.iv] = np.int64(i)
            self.set(item.params, carried)
            self.run(item.body)
            carried, count = self.many(item.yields), count + 1
            if item.stop is not None and self.get(item.stop):
                break
        self.set(item.results, carried)
        if item.count is not None:
            self.values[item.count] = np.int64(count)

    def run_while(self, item):
        carried, count = self.many(item.inits), 0
        while True:
            self.set(item.params, carried)
            self.run(item.head)
            if not self.get(item.condition):
                break
            self.run(item.body)
            carried, count = self.many(item.yields), count + 1
            if item.stop is not None and self.get(item.stop):
                break
        self.set(item.results, carried)
        self.values[item.count] = np.int64(count)

    def op(self, op):
        args = self.many(op.args)
        result = self.apply(op, args)
        if op.out is not None:
            self.values[op.out] = op.out.type.dtype.type(result) if isinstance(op.out.type, Scalar) else result

    def apply(self, op, args):
        kind, attrs = op.kind, op.attrs
        if kind in SIMPLE:
            if op.out.type.dtype.kind != "b" and kind not in ("pow", "shl", "shr"):
                args = [op.out.type.dtype.type(a) for a in args]
            return SIMPLE[kind](*args)
        if kind == "cast":
            return args[0]
        if kind == "select":
            return args[1] if args[0] else args[2]
        if kind == "raise":
            raise Raised(attrs["text"])
        if kind == "opaque":
            return attrs["function"](*args)
        method = getattr(self, "apply_" + kind, None)
        if method is not None:
            return method(op, args)
        return (FUNCTIONS.get(kind) or getattr(np, kind))(*args)

    def apply_alloc(self, op, args):
        fill = op.attrs["fill"]
        return np.full([int(a) for a in args], 12345 if fill is None else fill, dtype=op.out.type.dtype)

    def apply_copy(self, op, args):
        return np.array(args[0], order="C")

    def apply_load(self, op, args):
        return args[0][tuple(args[1:])]

    def apply_store(self, op, args):
        args[0][tuple(args[1:-1])] = args[-1]

    def apply_view(self, op, args):
        bounds = iter(args[1:])
        index = [next(bounds) if letter == "i" else slice(next(bounds), next(bounds), next(bounds)) for letter in op.attrs["axes"]]
        return args[0][tuple(index)]

    def apply_transpose(self, op, args):
        return args[0].transpose(op.attrs["axes"])

    def apply_reshape(self, op, args):
        return args[0].reshape([int(a) for a in args[1:]])

    def apply_dim(self, op, args):
        return args[0].shape[op.attrs["axis"]]

    def apply_dot(self, op, args):
        return args[0] @ args[1]


def flatten(x):
    return [leaf for item in x for leaf in flatten(item)] if isinstance(x, tuple) else [] if x is None else [x]


def unflatten(template, leaves):
    if isinstance(template, tuple):
        items = [unflatten(t, leaves) for t in template]
        return type(template)(*items) if hasattr(template, "_fields") else tuple(items)
    return None if template is None else leaves[template]


def interpret(function, *args):
    """The result of a function for actual arguments (arrays that it writes are changed)."""
    machine = Interpreter(function)
    leaves = flatten(args)
    assert len(leaves) == len(function.args)
    for value, leaf in zip(function.args, leaves, strict=True):
        machine.values[value] = leaf if isinstance(value.type, Array) else value.type.dtype.type(leaf)
    machine.values.update(dict(function.captured))
    machine.run(function.body)
    return unflatten(function.template, machine.many(function.returns))


def verify(function):
    """Every value is defined once and before its uses; types agree."""
    seen = set()

    def define(value, where):
        assert value not in where, f"{value} is defined twice"
        assert value.name not in seen, f"two values are called {value.name}"
        assert value.name.isidentifier()
        seen.add(value.name)
        where.add(value)

    def use(x, where, type=None):
        if x is None:
            return
        assert isinstance(x, Const) or x in where, f"{x} is not defined here"
        assert type is None or x.type == type, f"{x} should be of the type {type}"

    def check(block, where):
        for item in block.items:
            if isinstance(item, Op):
                check_op(item, use, where)
                if item.out is not None:
                    define(item.out, where)
            else:
                check_region(item, where)

    def check_region(item, where):
        if isinstance(item, If):
            use(item.condition, where, BOOL)
            for block, yields in ((item.then, item.then_yields), (item.orelse, item.else_yields)):
                inner = set(where)
                check(block, inner)
                for x, result in zip(yields, item.results, strict=True):
                    use(x, inner, result.type)
        else:
            inner = set(where)
            for x, param in zip(item.inits, item.params, strict=True):
                use(x, where, param.type)
                define(param, inner)
            if isinstance(item, For):
                for bound in (item.lo, item.hi, item.step):
                    use(bound, where, INT)
                define(item.iv, inner)
            else:
                check(item.head, inner)
                use(item.condition, inner, BOOL)
                define(item.count, where)
            check(item.body, inner)
            use(item.stop, inner, BOOL)
            for x, param, result in zip(item.yields, item.params, item.results, strict=True):
                use(x, inner, param.type)
                assert result.type == param.type
            if isinstance(item, For):
                assert (item.count is None) == (item.stop is None)
                if item.count is not None:
                    define(item.count, where)
        for result in item.results:
            define(result, where)

    top = set()
    for value in [*function.args, *(value for value, _ in function.captured)]:
        define(value, top)
    check(function.body, top)
    for x in function.returns:
        use(x, top)
    assert function.written <= set(function.args)


def check_op(op, use, where):
    for x in op.args:
        use(x, where)
    kind = op.kind
    if kind in ("load", "store", "view", "alloc"):
        indices = op.args[1:-1] if kind == "store" else op.args if kind == "alloc" else op.args[1:]
        assert all(x is None or x.type.dtype.kind in "iu" for x in indices), kind
    if kind in ("load", "store"):
        array = op.args[0].type
        assert isinstance(array, Array)
        assert len(op.args) - 1 - (kind == "store") == array.ndim
        value = op.args[-1].type if kind == "store" else op.out.type
        assert value == Scalar(array.dtype)
    if kind == "alloc":
        assert len(op.args) == op.out.type.ndim
    if kind == "select":
        use(op.args[0], where, BOOL)
        assert op.args[1].type == op.args[2].type == op.out.type
    if kind in ("not", "and", "or"):
        for x in op.args:
            use(x, where, BOOL)


def ir_type(x):
    """The type of an argument."""
    if isinstance(x, tuple):
        return type(x)(*map(ir_type, x)) if hasattr(x, "_fields") else tuple(map(ir_type, x))
    array = np.asarray(x)
    return Array(array.dtype, array.ndim) if isinstance(x, np.ndarray) else Scalar(array.dtype)


__all__ = ["Raised", "Value", "interpret", "ir_type", "verify"]
