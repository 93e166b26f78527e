"""Strategies for hypothesis: arrays, pytrees and random programs. The only file that imports hypothesis.

Entries come from a generator seeded by hypothesis, so arrays are ordinary (no ties, nothing huge) and examples small to
print; draw special values yourself where they matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

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
    x = _entries(rng, dtype, size, low, high)
    return _laid_out(x, draw(st.sampled_from(("C", "F", "reversed", "strided", "read-only")))) if layouts else x


def _entries(rng: np.random.Generator, dtype: np.dtype[Any], shape: Shape, low: float, high: float) -> np.ndarray[Any, Any]:
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), dtype)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(int(np.ceil(max(low, 0) if dtype.kind == "u" else low)), int(np.floor(high)) + 1, shape), dtype)
    x = rng.uniform(low, high, shape)
    return np.asarray(x + 1j * rng.uniform(low, high, shape) if dtype.kind == "c" else x, dtype)


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


@dataclass
class Program:
    """A random function of arrays, written in NumPy; printing it shows its source.

    `inputs` are shapes; `f(*arrays)` returns a dict of arrays. `smooth` says that it has no kinks, so that it equals its
    own central differences everywhere.
    """

    source: str
    inputs: tuple[Shape, ...]
    smooth: bool

    def __post_init__(self) -> None:
        names: dict[str, Any] = {"np": np}
        exec(compile(self.source, "<program>", "exec"), names)
        self.f: Callable[..., dict[str, Any]] = names["program"]

    def __call__(self, *args: Any) -> dict[str, Any]:
        return self.f(*args)

    def scalar(self, *args: Any) -> Any:
        """The sum of all outputs: a loss."""
        total: Any = 0.0
        for value in self.f(*args).values():
            total = total + np.sum(value)
        return total

    def draw_args(self, dtype: Any = np.float64, seed: int = 0) -> list[np.ndarray[Any, Any]]:
        rng = np.random.default_rng(seed)
        return [_entries(rng, np.dtype(dtype), shape, -1.5, 1.5) for shape in self.inputs]

    def __repr__(self) -> str:
        return f"inputs {self.inputs}\n{self.source}"


_SMOOTH = (
    "np.sin({0})", "np.cos({0})", "np.tanh({0})", "np.exp(-{0} * {0})", "np.log1p({0} * {0})", "np.sqrt(1.0 + {0} * {0})",
    "np.arctan({0})", "-{0}", "{0} ** 2", "{0} * 0.5 + 1", "1 / (1.5 + np.cos({0}))", "np.square({0})", "2.0 ** np.sin({0})",
)  # fmt: skip
_KINKED = ("np.abs({0})", "np.maximum({0}, 0.1)", "np.clip({0}, -0.7, 0.8)", "np.where({0} > 0.05, {0}, 0.3 * {0})")
_BINARY = ("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / (2.0 + {1} * {1})", "np.logaddexp({0}, {1})", "np.hypot({0}, {1} + 3.0)")
_REDUCTIONS = ("np.sum({0}, axis={1}, keepdims={2})", "np.mean({0}, axis={1}, keepdims={2})", "{0}.sum({1}, keepdims={2})")
_REDUCTIONS_KINKED = ("np.max({0}, axis={1}, keepdims={2})", "np.min({0}, axis={1}, keepdims={2})")


@st.composite
def programs(draw: st.DrawFn, max_steps: int = 8, smooth: bool | None = None, max_inputs: int = 3) -> Program:
    """Random compositions of NumPy functions: elementwise, broadcasting, reductions, products, reshaping, indexing, joining.

    Args:
        draw: Supplied by hypothesis.
        max_steps: Most operations in one program.
        smooth: Whether kinks (abs, max, where ...) are left out; None for either.
        max_inputs: Most arguments.
    """
    smooth = draw(st.booleans()) if smooth is None else smooth
    inputs = tuple(draw(st.lists(shapes(0, 3, 1, 3), min_size=1, max_size=max_inputs)))
    values: list[tuple[str, Shape]] = [(f"x{i}", s) for i, s in enumerate(inputs)]
    lines = []
    for i in range(draw(st.integers(1, max_steps))):
        step = draw(st.sampled_from(_STEPS))
        operands = [values[-1] if draw(st.integers(0, 2)) else draw(st.sampled_from(values)), draw(st.sampled_from(values))]
        code = step(draw, operands, smooth)
        found = np.shape(eval(code, {"np": np}, {name: np.full(shape, 0.5) for name, shape in values}))
        if int(np.prod(found)) <= 64:
            lines.append(f"    v{i} = {code}")
            values.append((f"v{i}", found))
    kept = [values[-1], *draw(st.lists(st.sampled_from(values), max_size=2))]
    result = ", ".join(f'"r{i}": {name}' for i, (name, _) in enumerate(kept))
    args = ", ".join(f"x{i}" for i in range(len(inputs)))
    return Program("\n".join([f"def program({args}):", *lines, f"    return {{{result}}}"]), inputs, smooth)


Operands = Sequence[tuple[str, Shape]]


def _unary(draw: st.DrawFn, operands: Operands, smooth: bool) -> str:
    return draw(st.sampled_from(_SMOOTH if smooth else _SMOOTH + _KINKED)).format(operands[0][0])


def _binary(draw: st.DrawFn, operands: Operands, smooth: bool) -> str:
    (a, shape_a), (b, shape_b) = operands[:2]
    if not _broadcast(shape_a, shape_b):
        b = f"np.sum({b})"
    code = draw(st.sampled_from(_BINARY if smooth else (*_BINARY, "np.minimum({0}, {1})", "np.where({0} > {1}, {0}, -{1})")))
    return code.format(a, b)


def _reduction(draw: st.DrawFn, operands: Operands, smooth: bool) -> str:
    name, shape = operands[0]
    axes = draw(st.lists(st.integers(-len(shape), len(shape) - 1), max_size=2)) if shape else []
    axis: Any = tuple({a % len(shape): a for a in axes}.values()) or None
    if axis is not None and len(axis) == 1 and draw(st.booleans()):
        axis = axis[0]
    code = draw(st.sampled_from(_REDUCTIONS if smooth else _REDUCTIONS + _REDUCTIONS_KINKED))
    return code.format(name, axis, draw(st.booleans()))


def _product(draw: st.DrawFn, operands: Operands, smooth: bool) -> str:
    (a, shape_a), (b, shape_b) = operands[:2]
    fits = shape_a and shape_b and shape_a[-1] == shape_b[-2 if len(shape_b) > 1 else 0] and _broadcast(shape_a[:-2], shape_b[:-2])
    if fits:
        return draw(st.sampled_from(("{0} @ {1}", "np.matmul({0}, {1})"))).format(a, b)
    if shape_a:
        return draw(st.sampled_from(("{0} @ np.swapaxes(np.atleast_2d({0}), -1, -2)", "np.tensordot({0}, {0}, axes={1})"))).format(
            a, len(shape_a)
        )
    return f"np.outer({a}, {b})"


def _shaping(draw: st.DrawFn, operands: Operands, smooth: bool) -> str:
    name, shape = operands[0]
    n = len(shape)
    choices = ["np.reshape({0}, -1)", "{0}.ravel()", "np.transpose({0})", "{0}[None]", "np.expand_dims({0}, -1)", "{0}.reshape({1})"]
    if n:
        choices += ["np.moveaxis({0}, 0, -1)", "np.squeeze({0}[:1], 0)", "np.broadcast_to({0}, (2, *{2}))", "{0}.T"]
    sides = tuple(draw(st.permutations(shape)))
    return draw(st.sampled_from(choices)).format(name, sides, shape)


def _indexing(draw: st.DrawFn, operands: Operands, smooth: bool) -> str:
    name, shape = operands[0]
    if not shape:
        return f"{name}[()]"
    last = shape[0] - 1
    choices = [
        "[0]", "[-1]", "[::-1]", "[..., 0]", f"[:{max(last, 1)}]", "[..., ::2]", f"[[0, {last}, 0]]", f"[np.array([{last}, 0])]",
    ]  # fmt: skip
    if len(shape) > 1:
        choices += ["[:, 0]", "[0, ..., None]", "[[0], [0]]", "[:, [0, 0]]"]
    return name + draw(st.sampled_from(choices))


def _joining(draw: st.DrawFn, operands: Operands, smooth: bool) -> str:
    (a, shape_a), (b, shape_b) = operands[:2]
    if shape_a == shape_b:
        axis = draw(st.integers(-len(shape_a) - 1, len(shape_a)))
        if draw(st.booleans()) and shape_a:
            return f"np.concatenate([{a}, {b}], axis={draw(st.integers(-len(shape_a), len(shape_a) - 1))})"
        return f"np.stack([{a}, {b}], axis={axis})"
    return f"np.concatenate([np.ravel({a}), np.ravel({b}), np.ones(1)])" if draw(st.booleans()) else f"np.tile({a}, 2)"


def _broadcast(a: Shape, b: Shape) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


_STEPS = (_unary, _unary, _binary, _binary, _reduction, _product, _shaping, _indexing, _joining)
