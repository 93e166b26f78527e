"""stop_gradient."""

from __future__ import annotations

from fnad import tree
from fnad.core.tracer import Tracer
from fnad.primitives import shape as prims
from fnad.typing import PyTree


def stop_gradient(x: PyTree) -> PyTree:
    """The same values, as constants of differentiation.

    Args:
        x: A pytree.

    Returns:
        The pytree with every leaf cut off from `grad`, `vjp` and `jvp`: under these it holds plain arrays, which
        may go where a traced value may not (`float`, `print`, `math.sin`).

    Example:
        >>> import numpy as np, fnad
        >>> fnad.grad(lambda x: x * fnad.stop_gradient(x))(3.0)
        np.float64(3.0)
    """
    return tree.map(lambda leaf: prims.stop(leaf) if isinstance(leaf, Tracer) else leaf, x)
