"""Random programs: functions of arrays, written in NumPy, that print as their source."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fnad.numpy.at import at
from fnad.typing import Shape


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
        names: dict[str, Any] = {"np": np, "at": at}
        path = f"<program {hash(self.source):x}>"
        linecache.cache[path] = (len(self.source), None, self.source.splitlines(True), path)  # so that tracebacks show its lines
        exec(compile(self.source, path, "exec"), names)
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
        return [entries(rng, np.dtype(dtype), shape, -1.5, 1.5) for shape in self.inputs]

    def __repr__(self) -> str:
        return f"inputs {self.inputs}\n{self.source}"


_SMOOTH = (
    "np.sin({0})", "np.cos({0})", "np.tanh({0})", "np.exp(-{0} * {0})", "np.log1p({0} * {0})", "np.sqrt(1.0 + {0} * {0})",
    "np.arctan({0})", "-{0}", "{0} ** 2", "{0} * 0.5 + 1", "1 / (1.5 + np.cos({0}))", "np.square({0})", "2.0 ** np.sin({0})",
    "np.cbrt(1.0 + {0} * {0})", "np.expm1(0.3 * {0})", "np.arcsinh({0})", "np.reciprocal(2.0 + np.sin({0}))", "np.sinc({0})",
    "np.cumsum({0})", "np.cumprod(np.cos({0}))", "np.logaddexp(0, {0})", "np.nan_to_num({0})", "np.linalg.norm({0} + 3.0)",
)  # fmt: skip
_KINKED = (
    "np.abs({0})", "np.maximum({0}, 0.1)", "np.clip({0}, -0.7, 0.8)", "np.where({0} > 0.05, {0}, 0.3 * {0})", "np.fmin({0}, 0.2)",
    "np.sign({0}) * {0}", "np.floor({0}) + {0}", "np.remainder({0}, 0.7)", "np.sum({0}, where={0} > 0)", "np.max({0}, initial=0.1)",
    "np.select([{0} > 0.5, {0} > 0], [{0}, {0} ** 2], 0.0)",
)  # fmt: skip
_BINARY = (
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / (2.0 + {1} * {1})", "np.logaddexp({0}, {1})", "np.hypot({0}, {1} + 3.0)",
    "np.arctan2({0}, 3.0 + {1} * {1})", "(1.5 + np.tanh({0})) ** np.tanh({1})",
)  # fmt: skip
_BINARY_KINKED = ("np.minimum({0}, {1})", "np.where({0} > {1}, {0}, -{1})", "np.fmax({0}, {1})")
_REDUCTIONS = (
    "np.sum({0}, axis={1}, keepdims={2})",
    "np.mean({0}, axis={1}, keepdims={2})", "{0}.sum({1}, keepdims={2})",
    "np.var({0}, axis={1}, keepdims={2})", "np.prod(np.cos({0}), axis={1}, keepdims={2})",
    "np.sqrt(1.0 + np.var({0}, axis={1}, keepdims={2}))",
)  # fmt: skip
_REDUCTIONS_KINKED = ("np.max({0}, axis={1}, keepdims={2})", "np.min({0}, axis={1}, keepdims={2})")


def random_program(seed: int, steps: int, smooth: bool, max_inputs: int = 3) -> Program:
    """A program of some steps: elementwise, broadcasting, reductions, products, reshaping, indexing, joining.

    With one more step, the same seed gives the same program continued.

    Args:
        seed: Which program.
        steps: Number of operations; those that would make a large or an empty array are left out.
        smooth: Whether kinks are left out.
        max_inputs: Most arguments.
    """
    rng = random.Random(seed)
    inputs = tuple(tuple(rng.randint(1, 3) for _ in range(rng.randint(0, 3))) for _ in range(rng.randint(1, max_inputs)))
    values: list[tuple[str, Shape]] = [(f"x{i}", shape) for i, shape in enumerate(inputs)]
    lines = []
    for i in range(steps):
        operands = [values[-1] if rng.random() < 0.7 else rng.choice(values), rng.choice(values)]
        code = rng.choice(_STEPS)(rng, operands, smooth)
        found = np.shape(eval(code, {"np": np, "at": at}, {name: np.full(shape, 0.5) for name, shape in values}))
        if 0 < int(np.prod(found)) <= 64:
            lines.append(f"    v{i} = {code}")
            values.append((f"v{i}", found))
    kept = [values[-1], *rng.sample(values, rng.randint(0, min(2, len(values))))]
    result = ", ".join(f'"r{i}": {name}' for i, (name, _) in enumerate(kept))
    args = ", ".join(f"x{i}" for i in range(len(inputs)))
    return Program("\n".join([f"def program({args}):", *lines, f"    return {{{result}}}"]), inputs, smooth)


Operands = Sequence[tuple[str, Shape]]


def _unary(rng: random.Random, operands: Operands, smooth: bool) -> str:
    return rng.choice(_SMOOTH if smooth else _SMOOTH + _KINKED).format(operands[0][0])


def _binary(rng: random.Random, operands: Operands, smooth: bool) -> str:
    (a, shape_a), (b, shape_b) = operands[:2]
    if not _broadcast(shape_a, shape_b):
        b = f"np.sum({b})"
    return rng.choice(_BINARY if smooth else _BINARY + _BINARY_KINKED).format(a, b)


def _reduction(rng: random.Random, operands: Operands, smooth: bool) -> str:
    name, shape = operands[0]
    picked = rng.sample(range(len(shape)), rng.randint(0, min(2, len(shape))))
    axis: Any = tuple(a - rng.choice((0, len(shape))) for a in picked) or None
    if axis is not None and len(axis) == 1 and rng.random() < 0.5:
        axis = axis[0]
    code = rng.choice(_REDUCTIONS if smooth else _REDUCTIONS + _REDUCTIONS_KINKED)
    return code.format(name, axis, rng.random() < 0.5)


def _product(rng: random.Random, operands: Operands, smooth: bool) -> str:
    (a, shape_a), (b, shape_b) = operands[:2]
    choices = ["np.outer({0}, {1})", "np.einsum('...,...->...', {0}, {0})"]
    if shape_a and shape_b and shape_a[-1] == shape_b[-2 if len(shape_b) > 1 else 0]:
        choices += ["np.dot({0}, {1})"]
        if _broadcast(shape_a[:-2], shape_b[:-2]):
            choices += ["{0} @ {1}", "np.matmul({0}, {1})"]
    if shape_a:
        axes = f", axes={len(shape_a)})"
        choices += ["{0} @ np.swapaxes(np.atleast_2d({0}), -1, -2)", "np.tensordot({0}, {0}" + axes, "np.inner({0}, {0})"]
        choices += ["np.einsum('...i,...i->...', {0}, {0})", "np.vecdot({0}, {0})"]
    if len(shape_a) > 1 and shape_a[-1] == shape_a[-2]:
        regular = f"3.0 * np.eye({shape_a[-1]}) + 0.3 * np.tanh({{0}})"
        choices += [
            "np.einsum('...ii', {0})",
            f"np.linalg.inv({regular})",
            f"np.linalg.det({regular})",
            f"np.linalg.solve({regular}, {{0}})",
        ]
    return rng.choice(choices).format(a, b)


def _shaping(rng: random.Random, operands: Operands, smooth: bool) -> str:
    name, shape = operands[0]
    choices = ["np.reshape({0}, -1)", "{0}.ravel()", "np.transpose({0})", "{0}[None]", "np.expand_dims({0}, -1)", "{0}.reshape({1})"]
    if shape:
        choices += ["np.moveaxis({0}, 0, -1)", "np.squeeze({0}[:1], 0)", "np.broadcast_to({0}, (2, *{2}))", "{0}.T", "np.flip({0}, 0)"]
        choices += ["np.roll({0}, 1)", "np.repeat({0}, 2, axis=-1)", "np.pad({0}, 1)", "np.diff({0}, axis=0)", "np.diag({0}.ravel())"]
    if len(shape) > 1:
        choices += ["np.swapaxes({0}, 0, 1)", "np.tril({0})", "np.triu({0}, 1)", "np.trace({0})", "np.diagonal({0})", "np.rot90({0})"]
    sides = tuple(rng.sample(shape, len(shape)))
    return rng.choice(choices).format(name, sides, shape)


def _indexing(rng: random.Random, operands: Operands, smooth: bool) -> str:
    name, shape = operands[0]
    if not shape or 0 in shape:
        return f"{name}[()]" if not shape else f"{name}[..., None]"
    last = shape[0] - 1
    mask = [i % 2 == 0 for i in range(shape[0])]
    choices = [
        "{0}[0]", "{0}[-1]", "{0}[::-1]", "{0}[..., 0]", f"{{0}}[:{max(last, 1)}]", "{0}[..., ::2]", f"{{0}}[[0, {last}, 0]]",
        f"{{0}}[np.array([{last}, 0])]", f"{{0}}[np.array({mask})]", f"np.take({{0}}, [0, {last}], axis=0)", "at({0})[0].set(0.5)",
        f"at({{0}})[[0, {last}]].add({{0}}[0])", "at({0})[..., 0].multiply(2.0)", f"np.split({{0}}, [{last}])[1]",
    ]  # fmt: skip
    if len(shape) > 1:
        choices += ["{0}[:, 0]", "{0}[0, ..., None]", "{0}[[0], [0]]", "{0}[:, [0, 0]]", "np.stack(list({0}))"]
    if not smooth:
        choices += ["np.sort({0}, axis=0)", "np.take_along_axis({0}, np.argsort({0}, axis=-1), axis=-1)"]
    return rng.choice(choices).format(name)


def _joining(rng: random.Random, operands: Operands, smooth: bool) -> str:
    (a, shape_a), (b, shape_b) = operands[:2]
    choices = ["np.concatenate([np.ravel({0}), np.ravel({1}), np.ones(1)])", "np.tile({0}, 2)", "np.append({0}, {1})"]
    if shape_a == shape_b:
        axis = rng.randint(-len(shape_a) - 1, len(shape_a))
        choices += [f"np.stack([{{0}}, {{1}}], axis={axis})", "np.vstack([{0}, {1}])", "np.hstack([{0}, {1}])"]
        if shape_a:
            choices.append(f"np.concatenate([{{0}}, {{1}}], axis={rng.randint(-len(shape_a), len(shape_a) - 1)})")
    return rng.choice(choices).format(a, b)


def _broadcast(a: Shape, b: Shape) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


_Step = Callable[[random.Random, Operands, bool], str]
_STEPS: tuple[_Step, ...] = (_unary, _unary, _binary, _binary, _reduction, _product, _shaping, _indexing, _joining)


def entries(rng: np.random.Generator, dtype: np.dtype[Any], shape: Shape, low: float, high: float) -> np.ndarray[Any, Any]:
    """An array of a dtype with entries drawn evenly from a range."""
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), dtype)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(int(np.ceil(max(low, 0) if dtype.kind == "u" else low)), int(np.floor(high)) + 1, shape), dtype)
    x = rng.uniform(low, high, shape)
    return np.asarray(x + 1j * rng.uniform(low, high, shape) if dtype.kind == "c" else x, dtype)
