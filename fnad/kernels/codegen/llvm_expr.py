"""Scalar expressions printed as LLVM IR into an existing IRBuilder. Import it only where something is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from llvmlite import ir

from fnad.kernels.codegen.expr import BITS, FLOATS, SIGNED, Expr
from fnad.kernels.codegen.graph import ordered, table_name
from fnad.kernels.codegen.numpy_expr import WIDE

TYPES: dict[str, ir.Type] = {name: ir.IntType(1 if name == "bool" else bits) for name, bits in BITS.items()}
TYPES["f32"], TYPES["f64"] = ir.FloatType(), ir.DoubleType()
"""The LLVM type of each dtype; a bool is an i1 here, whatever it is in memory."""

_CONTRACT = ("contract",)


def emit(builder: ir.IRBuilder, module: ir.Module, exprs: Sequence[Expr], env: Mapping[str, ir.Value]) -> list[ir.Value]:
    """Append the computation of the expressions at the builder's place; every node is computed once.

    Args:
        builder: Where to append. No blocks are made.
        module: Where intrinsics, C functions and tables are declared.
        exprs: What to compute.
        env: The value of each variable by its name, of type `TYPES[dtype]`.

    Returns:
        The value of each expression.
    """
    printer = _Printer(builder, module, env)
    values: dict[Expr, ir.Value] = {}
    for node in ordered(exprs):
        values[node] = printer.value(node, [values[arg] for arg in node.args])
    return [values[e] for e in exprs]


class _Printer:
    """Prints one node at a time."""

    def __init__(self, builder: ir.IRBuilder, module: ir.Module, env: Mapping[str, ir.Value]) -> None:
        self.builder, self.module, self.env = builder, module, env

    def value(self, node: Expr, args: list[ir.Value]) -> ir.Value:
        op, builder = node.op, self.builder
        dtype = node.args[0].dtype if node.args else node.dtype
        real = dtype in FLOATS
        if op in _COMPARISONS:
            return self.compare(op, dtype, *args)
        if op in _FLAGGED:
            if real:
                return getattr(builder, "f" + op)(*args, flags=() if node.attr == "strict" else _CONTRACT)
            return getattr(builder, op)(*args)
        if op in _INTRINSICS:
            return self.intrinsic(_INTRINSICS[op], *args)
        if op in _BUILDER:
            return getattr(builder, _BUILDER[op])(*args)
        method: Callable[..., ir.Value] = getattr(self, "_" + op)
        return method(node, *args)

    def intrinsic(self, name: str, *args: ir.Value) -> ir.Value:
        kind = args[0].type
        return self.builder.call(self.function(f"llvm.{name}.{kind.intrinsic_name}", kind, [a.type for a in args]), args)

    def function(self, name: str, result: ir.Type, args: Sequence[ir.Type]) -> ir.Function:
        found = self.module.globals.get(name)
        return found if found is not None else ir.Function(self.module, ir.FunctionType(result, args), name)

    def compare(self, op: str, dtype: str, a: ir.Value, b: ir.Value) -> ir.Value:
        sign = _COMPARISONS[op]
        if dtype in FLOATS:
            return (self.builder.fcmp_unordered if op == "ne" else self.builder.fcmp_ordered)(sign, a, b)
        return (self.builder.icmp_signed if dtype in SIGNED else self.builder.icmp_unsigned)(sign, a, b)

    def _var(self, node: Expr) -> ir.Value:
        return self.env[node.attr]

    def _const(self, node: Expr) -> ir.Value:
        return ir.Constant(TYPES[node.dtype], int(node.attr) if node.dtype == "bool" else node.attr)

    def _table(self, node: Expr, index: ir.Value) -> ir.Value:
        kind = ir.ArrayType(TYPES[node.dtype], len(node.attr))
        name = "fnad." + table_name(node)
        array = self.module.globals.get(name)
        if array is None:
            array = ir.GlobalVariable(self.module, kind, name)
            array.linkage, array.global_constant, array.unnamed_addr = "private", True, True
            array.initializer = ir.Constant(kind, [ir.Constant(kind.element, v) for v in node.attr])
        if node.args[0].dtype not in SIGNED and BITS[node.args[0].dtype] < 64:
            index = self.builder.zext(index, ir.IntType(64))
        return self.builder.load(self.builder.gep(array, [ir.Constant(ir.IntType(64), 0), index], inbounds=True))

    def _call(self, node: Expr, *args: ir.Value) -> ir.Value:
        return self.builder.call(self.function(node.attr, TYPES[node.dtype], [a.type for a in args]), args)

    def _neg(self, node: Expr, a: ir.Value) -> ir.Value:
        return self.builder.fneg(a) if node.dtype in FLOATS else self.builder.neg(a)

    def _min(self, node: Expr, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.select(self.compare("lt", node.dtype, a, b), a, b)

    def _max(self, node: Expr, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.select(self.compare("gt", node.dtype, a, b), a, b)

    def _shl(self, node: Expr, a: ir.Value, b: ir.Value) -> ir.Value:
        return self._shift(node, self.builder.shl, a, b, ir.Constant(a.type, 0))

    def _shr(self, node: Expr, a: ir.Value, b: ir.Value) -> ir.Value:
        if node.dtype not in SIGNED:
            return self._shift(node, self.builder.lshr, a, b, ir.Constant(a.type, 0))
        far = self.builder.ashr(a, ir.Constant(a.type, BITS[node.dtype] - 1))
        return self._shift(node, self.builder.ashr, a, b, far)

    def _shift(self, node: Expr, shift: Callable[..., ir.Value], a: ir.Value, b: ir.Value, far: ir.Value) -> ir.Value:
        """LLVM gives no meaning to a shift by the number of bits or more."""
        amount, bits = node.args[1], BITS[node.dtype]
        if amount.op == "const" and 0 <= amount.attr < bits:
            return shift(a, b)
        return self.builder.select(self.builder.icmp_unsigned("<", b, ir.Constant(b.type, bits)), shift(a, b), far)

    def _floordiv(self, node: Expr, a: ir.Value, b: ir.Value) -> ir.Value:
        return self._divide(node, a, b)[0]

    def _mod(self, node: Expr, a: ir.Value, b: ir.Value) -> ir.Value:
        return self._divide(node, a, b)[1]

    def _divide(self, node: Expr, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The floor of the quotient, and the remainder; divisors for which the machine would trap are replaced."""
        builder, zero, one = self.builder, ir.Constant(a.type, 0), ir.Constant(a.type, 1)
        by_zero = builder.icmp_unsigned("==", b, zero)
        if node.dtype not in SIGNED:
            divisor = builder.select(by_zero, one, b)
            quotient, rest = builder.udiv(a, divisor), builder.urem(a, divisor)
            return builder.select(by_zero, zero, quotient), rest
        negation = builder.icmp_unsigned("==", b, ir.Constant(a.type, -1))
        divisor = builder.select(builder.or_(by_zero, negation), one, b)
        quotient, rest = builder.sdiv(a, divisor), builder.srem(a, divisor)
        opposite = builder.icmp_signed("<", builder.xor(rest, divisor), zero)
        lower = builder.and_(builder.icmp_unsigned("!=", rest, zero), opposite)
        quotient = builder.select(lower, builder.sub(quotient, one), quotient)
        rest = builder.select(lower, builder.add(rest, divisor), rest)
        quotient = builder.select(negation, builder.neg(a), quotient)
        return builder.select(by_zero, zero, quotient), rest

    def _mulhi(self, node: Expr, a: ir.Value, b: ir.Value) -> ir.Value:
        wide = ir.IntType(2 * BITS[node.dtype])
        product = self.builder.mul(self.builder.zext(a, wide), self.builder.zext(b, wide))
        return self.builder.trunc(self.builder.lshr(product, ir.Constant(wide, BITS[node.dtype])), a.type)

    def _cast(self, node: Expr, a: ir.Value) -> ir.Value:
        source, target, builder = node.args[0].dtype, node.dtype, self.builder
        kind = TYPES[target]
        if source in FLOATS:
            if target in FLOATS:
                return builder.fpext(a, kind) if target == "f64" else builder.fptrunc(a, kind)
            return self._to_integer(a, target)
        if target in FLOATS:
            return builder.sitofp(a, kind) if source in SIGNED else builder.uitofp(a, kind)
        if target == "bool":
            return builder.icmp_unsigned("!=", a, ir.Constant(a.type, 0))
        return self._resized(a, source, target)

    def _resized(self, a: ir.Value, source: str, target: str) -> ir.Value:
        have, want = a.type.width, BITS[target]
        if have == want:
            return a
        if have > want:
            return self.builder.trunc(a, TYPES[target])
        return (self.builder.sext if source in SIGNED else self.builder.zext)(a, TYPES[target])

    def _to_integer(self, a: ir.Value, target: str) -> ir.Value:
        builder = self.builder
        if target == "bool":
            return builder.fcmp_unordered("!=", a, ir.Constant(a.type, 0.0))
        if target == "u64":
            large = builder.fcmp_ordered(">=", a, ir.Constant(a.type, 2.0**63))
            low = self._to_signed(builder.select(large, builder.fsub(a, ir.Constant(a.type, 2.0**63)), a), "i64")
            return builder.xor(low, builder.shl(builder.zext(large, ir.IntType(64)), ir.Constant(ir.IntType(64), 63)))
        return self._resized(self._to_signed(a, WIDE[target]), WIDE[target], target)

    def _to_signed(self, a: ir.Value, target: str) -> ir.Value:
        """LLVM gives no meaning to the conversion of a number that does not fit."""
        kind, limit = TYPES[target], 2.0 ** (BITS[target] - 1)
        fits = self.builder.fcmp_ordered("<", self.intrinsic("fabs", a), ir.Constant(a.type, limit))
        return self.builder.select(fits, self.builder.fptosi(a, kind), ir.Constant(kind, -int(limit)))

    def _bitcast(self, node: Expr, a: ir.Value) -> ir.Value:
        return self.builder.bitcast(a, TYPES[node.dtype])


_FLAGGED = ("add", "sub", "mul")
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_BUILDER = {"div": "fdiv", "and": "and_", "or": "or_", "xor": "xor", "not": "not_", "select": "select", "rare": "select"}
_INTRINSICS = {
    "mad": "fmuladd",
    "fma": "fma",
    "abs": "fabs",
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "rint",
    "copysign": "copysign",
    "minimum": "minimum",
    "maximum": "maximum",
}
