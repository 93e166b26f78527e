"""Strategies for hypothesis: arrays, pytrees and random programs. The only file that imports hypothesis.

Entries come from a generator seeded by hypothesis, so arrays are ordinary (no ties, nothing huge) and examples small to
print; draw special values yourself where they matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from fnad.testing.programs import Program, entries, random_program
from fnad.typing import PyTree, Shape


def shapes(min_dims: int = 0, max_dims: int = 3, min_side: int = 0, max_side: int = 4) -> st.SearchStrategy[Shape]:
    """Shapes of arrays."""
    return st.lists(st.integers(min_side, max_side), min_size=min_dims, max_size=max_dims).map(tuple)


@st.composite
def arrays(
    draw: st.DrawFn,
    dtype: Any = np.float64,
    shape: Shape | st.SearchStrategy[Shape] | None = None,
    low: float = -2.0,
    high: float = 2.0,
    layouts: bool = False,
) -> np.ndarray[Any, Any]:
    """Arrays with entries drawn evenly from a range.

    Args:
        draw: Supplied by hypothesis.
        dtype: A dtype, or a strategy for one.
        shape: A shape, a strategy for one, or None for any of up to three axes.
        low: Smallest entry.
        high: Largest entry.
        layouts: Whether some of the arrays are transposed, reversed, strided or read-only.

    Example:
        >>> from hypothesis import given
        >>> @given(arrays(np.float32, (2, 3)))
        ... def test(x):
        ...     assert x.shape == (2, 3)
    """
    dtype = np.dtype(draw(dtype) if isinstance(dtype, st.SearchStrategy) else dtype)
    size = draw(shapes() if shape is None else shape) if shape is None or isinstance(shape, st.SearchStrategy) else shape
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = entries(rng, dtype, size, low, high)
    return _laid_out(x, draw(st.sampled_from(("C", "F", "reversed", "strided", "read-only")))) if layouts else x


def _laid_out(x: np.ndarray[Any, Any], layout: str) -> np.ndarray[Any, Any]:
    if layout == "F":
        return np.asfortranarray(x)
    if layout == "reversed" and x.ndim:
        return x[::-1].copy()[::-1]
    if layout == "strided" and x.ndim:
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    if layout == "read-only":
        x.flags.writeable = False
    return x


@st.composite
def broadcastable(draw: st.DrawFn, n: int, max_dims: int = 3, max_side: int = 4) -> tuple[Shape, ...]:
    """`n` shapes that broadcast together: each drops leading axes of a common shape and sets some of the others to 1."""
    full = draw(shapes(0, max_dims, 0, max_side))
    out = []
    for _ in range(n):
        kept = full[draw(st.integers(0, len(full))) :]
        out.append(tuple(1 if draw(st.booleans()) else side for side in kept))
    return tuple(out)


def pytrees(leaves: st.SearchStrategy[Any], max_leaves: int = 5) -> st.SearchStrategy[PyTree]:
    """Nested dicts, lists, tuples and Nones with the given leaves, of which there is at least one."""

    def nodes(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        some = st.lists(children | st.none(), min_size=0, max_size=2)
        return st.builds(lambda first, rest: [first, *rest], children, some).flatmap(
            lambda kids: st.sampled_from([list(kids), tuple(kids), {f"k{i}": kid for i, kid in enumerate(kids)}])
        )

    return st.recursive(leaves, nodes, max_leaves=max_leaves)


def programs(max_steps: int = 8, smooth: bool | None = None, max_inputs: int = 3) -> st.SearchStrategy[Program]:
    """Random compositions of NumPy functions; see `fnad.testing.programs.Program`. They shrink by losing their last steps.

    Args:
        max_steps: Most operations in one program.
        smooth: Whether kinks (abs, max, where ...) are left out; None for either.
        max_inputs: Most arguments.
    """
    kinds = st.booleans() if smooth is None else st.just(smooth)
    return st.builds(random_program, st.integers(0, 2**32 - 1), st.sampled_from(range(1, max_steps + 1)), kinds, st.just(max_inputs))
