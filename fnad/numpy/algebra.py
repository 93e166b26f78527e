"""Products of vectors, matrices and tensors, all on one primitive: the batched matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.core.aval import shape_of
from fnad.core.dispatch import implements
from fnad.primitives import linalg as prims


@implements(np.matmul)
def matmul(a: Any, b: Any) -> Any:
    na, nb = len(shape_of(a)), len(shape_of(b))
    if na >= 2 and nb >= 2:
        return prims.matmul(a, b)
    if na == 0 or nb == 0:
        raise ValueError("matmul: operands must have at least one axis; use * for scalars")
    if na == 1 and nb == 1:
        return np.reshape(prims.matmul(a[None, :], b[:, None]), ())
    if na == 1:
        return np.squeeze(prims.matmul(a[None, :], b), axis=-2)
    return np.squeeze(prims.matmul(a, b[:, None]), axis=-1)
