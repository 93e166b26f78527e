"""Equations in the words of the compiler, and the bodies of loops and branches that it can compile."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fnad.compiler.program import CODES
from fnad.compiler.simplify import is_uniform, simplified
from fnad.core.aval import Aval, aval_of
from fnad.core.graph import Equation, Graph, Literal, Var
from fnad.core.lowering import Branch, Repeat, Scalar, While
from fnad.errors import DTypeError, MissingRuleError
from fnad.kernels.codegen import expr as ex
from fnad.kernels.expressions import find


def lowering(e: Equation) -> Any:
    """The lowering of an equation; None where the primitive runs on the host."""
    avals = [*map(_aval, e.inputs)]
    if any(a.dtype not in CODES for a in (*avals, *(v.aval for v in e.outputs))):
        return None
    try:
        word = e.primitive.lower(*avals, **e.params)
    except MissingRuleError:
        return None
    if isinstance(word, Scalar) and not _expressible(word.name, word.operands):
        return None
    return word if not isinstance(word, Repeat | While | Branch) or not any(map(keeps, word.graphs)) else None


@functools.cache
def _expressible(name: str, operands: tuple[np.dtype[Any], ...]) -> bool:
    """Whether the function has an expression for operands of these dtypes."""
    build = find(name)
    if build is None or any(d not in CODES for d in operands):
        return False
    try:
        build(*(ex.const(1, CODES[d]) for d in operands))
    except DTypeError:
        return False
    return True


def keeps(body: Graph) -> bool:
    """Whether the body of a loop or branch keeps it on the host: it works on numbers that native code does not hold."""
    if "on host" not in body.derived:
        graph = simplified(body)
        values = [v.aval.dtype for v in graph.inputs] + [v.aval.dtype for e in graph.equations for v in e.outputs]
        body.derived["on host"] = any(d not in CODES for d in values) or any(not is_uniform(x) for _, x in graph.constants)
    return bool(body.derived["on host"])


def _aval(v: Var | Literal) -> Aval:
    return aval_of(v.value) if isinstance(v, Literal) else v.aval
