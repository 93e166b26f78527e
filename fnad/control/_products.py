"""Sums of matrix products over the steps of a loop, taken out of it: one large product costs less than many small ones.

The cotangent of a weight matrix is such a sum: of what went into it, transposed, times the cotangent of what came out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fnad.core.aval import shape_of
from fnad.core.graph import Equation, Graph, Literal, Var
from fnad.primitives.arithmetic import add
from fnad.primitives.products import Matmul


class Product(NamedTuple):
    """The sum over steps of `left.T @ right`, which belongs to the sum number `total`; `inner` is the axis between them.

    `primitive` is the kind of product: which zeros win over entries that are not finite.
    """

    total: int
    primitive: Matmul
    inner: int
    left: Var
    right: Var

    def of(self, left: Any, right: Any) -> Any:
        """The sum, for the values of all steps."""
        sides = zip((left, right), (self.left, self.right), strict=True)
        left, right = (np.reshape(x, (shape_of(x)[0] * self.inner, v.aval.size // self.inner)) for x, v in sides)
        return self.primitive(np.transpose(left), right)


class Apart(NamedTuple):
    """A body whose products are taken out. `stays` says which sums are still carried; `extra` are its further results."""

    graph: Graph
    stays: list[bool]
    products: list[Product]
    extra: list[Var]


def take_products(graph: Graph, so_far: Sequence[Var], steps: set[Var]) -> Apart:
    """Take products out of a body whose first outputs are sums, `so_far` plus something. `steps` are its inputs per step."""
    maker = {o: e for e in graph.equations for o in e.outputs}
    outputs, equations = list(graph.outputs), list(graph.equations)
    stays, products = [True] * len(so_far), list[Product]()
    for i, acc in enumerate(so_far):
        e = maker.get(outputs[i])  # type: ignore[arg-type]
        if e is None or e.primitive is not add or acc not in e.inputs:
            continue
        terms = _terms(e.inputs[1] if e.inputs[0] is acc else e.inputs[0], maker)
        found = [_factors(t, maker) for t in terms]
        products += [Product(i, *f) for f in found if f is not None]
        rest = [t for t, f in zip(terms, found, strict=True) if f is None]
        stays[i] = bool(rest)
        if rest and len(rest) < len(terms):
            total: Var | Literal = acc
            for t in rest:
                new = Var(acc.aval, -1)
                equations.append(Equation(add, (total, t), {}, (new,), e.where))
                total = new
            outputs[i] = total
    extra = list(dict.fromkeys(v for p in products for v in (p.left, p.right) if v not in steps))
    inputs = tuple(v for v in graph.inputs if v not in so_far or stays[so_far.index(v)])
    outputs = [v for i, v in enumerate(outputs) if i >= len(so_far) or stays[i]]
    return Apart(Graph(inputs, (), tuple(equations), (*outputs, *extra)), stays, products, extra)


def _terms(v: Var | Literal, maker: dict[Var, Equation]) -> list[Var | Literal]:
    """The terms of a sum."""
    e = maker.get(v) if isinstance(v, Var) else None
    if e is None or e.primitive is not add or any(not isinstance(t, Var) or t.aval != v.aval for t in e.inputs):  # type: ignore[union-attr]
        return [v]
    return [t for side in e.inputs for t in _terms(side, maker)]


def _factors(v: Var | Literal, maker: dict[Var, Equation]) -> tuple[Matmul, int, Var, Var] | None:
    """`(primitive, inner, left, right)` if a value is `left.T @ right` of matrices, and small enough to be kept for all steps."""
    e = maker.get(v) if isinstance(v, Var) else None
    if e is None or not isinstance(e.primitive, Matmul):
        return None
    a, b = e.inputs
    if not isinstance(a, Var) or not isinstance(b, Var) or a.aval.ndim != 2 or b.aval.ndim != 2 or a.aval.dtype != b.aval.dtype:
        return None
    (m, k), n = a.aval.shape, b.aval.shape[1]
    if not k or k * (m + n) > 4 * m * n:
        return None
    if k == 1:
        return e.primitive, k, _origin(a, maker), _origin(b, maker)
    turned = maker.get(a)
    if turned is None or turned.primitive.name != "transpose" or not isinstance(turned.inputs[0], Var):
        return None
    return e.primitive, k, _origin(turned.inputs[0], maker), _origin(b, maker)


def _origin(v: Var, maker: dict[Var, Equation]) -> Var:
    """What has the same entries in the same order, under another shape."""
    e = maker.get(v)
    source = None if e is None or e.primitive.name not in ("reshape", "static_index") else e.inputs[0]
    if not isinstance(source, Var) or source.aval.size != v.aval.size:
        return v
    assert e is not None
    index = e.params.get("index", ())
    return _origin(source, maker) if all(i.__class__ is not tuple or i[2] == 1 for i in index) else v
