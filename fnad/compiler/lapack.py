"""Operations that native code computes by LAPACK, without Python unless they fail."""

from __future__ import annotations

import math
from typing import Any

from fnad.compiler.program import CODES, Numbers
from fnad.core.aval import Aval
from fnad.core.graph import Equation, Literal

_NAMES = frozenset({"solve", "inv", "cholesky"})


def kernel(e: Equation, numbers: Numbers) -> tuple[str, tuple[Any, ...]] | None:
    """The name of the native function of an equation, and its sizes as expressions; None if there is no such function."""
    name = e.primitive.name
    if name not in _NAMES or any(isinstance(v, Literal) for v in e.inputs):
        return None
    avals: list[Aval] = [v.aval for v in (*e.inputs, *e.outputs)]  # type: ignore[union-attr]
    code = CODES.get(avals[0].dtype)
    if code not in ("f32", "f64") or any(a.dtype != avals[0].dtype for a in avals):
        return None
    a, out = avals[0], avals[-1]
    lead = out.shape[:-2]
    if any(x.ndim > 2 and x.shape[:-2] != lead for x in avals):
        return None  # stacks that are stretched against each other
    n = a.shape[-1]
    b = avals[1] if name == "solve" else None
    m = b.shape[-1] if b is not None else 0
    steps = n * n if a.ndim > 2 else 0, n * m if b is not None and b.ndim > 2 else 0
    return f"{name}_{code}", tuple(numbers.size(k) for k in (math.prod(lead), n, m, *steps))
