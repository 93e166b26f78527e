"""What the functions of this package need to know about float32 and float64, and how they write polynomials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fnad.errors import DTypeError
from fnad.kernels.codegen.expr import Expr, add, bitcast, const, fma, mad, mul, sub


class Format(NamedTuple):
    """A binary floating-point format and constants split for it."""

    integer: str
    """The integer dtype of the same size."""
    mantissa: int
    """Bits of the mantissa that are stored."""
    bias: int
    """The exponent field of 1.0."""
    round: float
    """1.5 * 2**mantissa: adding it rounds to an integer, which then stands in the low bits of the sum."""
    smallest: float
    """The smallest number with a full mantissa."""
    exp_range: tuple[float, float]
    """Outside, exp is 0 or inf."""


FORMATS = {
    "f32": Format("i32", 23, 127, 12582912.0, 2.0**-126, (-104.0, 89.0)),
    "f64": Format("i64", 52, 1023, 6755399441055744.0, 2.0**-1022, (-746.0, 710.0)),
}


def format_of(x: Expr) -> Format:
    """The format of a float expression.

    Raises:
        DTypeError: the expression is not of a float dtype.
    """
    if x.dtype not in FORMATS:
        raise DTypeError("mathematical functions take floats", got={"expression": x}, fix="convert it with cast")
    return FORMATS[x.dtype]


def horner(x: Expr, coefficients: Sequence[float]) -> Expr:
    """The polynomial with these coefficients, lowest power first."""
    out = const(coefficients[-1], x.dtype)
    for c in reversed(coefficients[:-1]):
        out = mad(out, x, c)
    return out


def bits(x: Expr) -> Expr:
    """The float's bits as a signed integer."""
    return bitcast(x, format_of(x).integer)


def from_bits(i: Expr) -> Expr:
    """The float with these bits."""
    return bitcast(i, "f32" if i.dtype == "i32" else "f64")


def two_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """The sum and its rounding error (Knuth)."""
    total = add(a, b, strict=True)
    part = sub(total, a, strict=True)
    return total, add(sub(a, sub(total, part, strict=True), strict=True), sub(b, part, strict=True), strict=True)


def quick_two_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """The sum and its rounding error, where |a| >= |b| or a = 0 (Dekker 1971)."""
    total = add(a, b, strict=True)
    return total, sub(b, sub(total, a, strict=True), strict=True)


def two_product(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """The product and its rounding error."""
    product = mul(a, b, strict=True)
    return product, fma(a, b, -product)


def times_constant(x: Expr, parts: Sequence[float]) -> tuple[Expr, Expr]:
    """x times a constant given in two parts, and what is missing from that product."""
    product = mul(x, parts[0], strict=True)
    return product, mad(x, parts[1], fma(x, parts[0], -product))
