"""The skeleton of the optimizers that treat each leaf by itself: an optimizer is a formula, its numbers, and its state.

    def formula(n, g, p, *arrays):      # one leaf: (update, *new arrays), plain NumPy
    def numbers(t, o):                  # what is the same for all its entries, from the step (counted from 1) and the options

The skeleton walks the leaves, skips gradients that are None, turns signs, adds weight decay, asks schedules, computes the
numbers once for all leaves that have the same step, in float64, and casts them to the dtype of each leaf.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from fnad import tree
from fnad.core.aval import Aval, aval_of, shape_of
from fnad.core.graph import record
from fnad.errors import ArgumentError, DTypeError, ShapeError, TreeError
from fnad.jit import compile_graph
from fnad.optim.base import Optimizer, as_array, cast, check_like, check_state, is_none, is_traced, is_zero, missing_leaf, number, own
from fnad.transforms.vmap import vmap
from fnad.typing import Array, PyTree

KERNEL_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
KERNEL_SIZE = 2048
"""From how many entries on a leaf of plain numbers is updated by a compiled program, in one pass over memory. NumPy does as well below."""

Start = Any
"""What an array of the state begins with: a number; "params" for a copy of the parameters; None if there is no such array."""


@dataclass(frozen=True)
class Rule:
    """An optimizer that treats each leaf by itself. Everything in it can be pickled."""

    name: str
    state: Any
    """The NamedTuple of the state: `step`, then the names of `arrays` and `scalars`."""
    formula: Callable[..., Any]
    """`formula(n, g, p, *arrays) -> (update, *new arrays)`: `n` holds numbers and flags, `g` has its sign and its L2 decay.

    An array that the state does not have is None, and so is its new value; the last ones may be left out if they stay.
    """
    numbers: Callable[[Any, Any], Mapping[str, Any]]
    """`numbers(t, o)`: one step's numbers; `o` holds the options, with the values of schedules, and the old `scalars`."""
    options: Mapping[str, Any]
    arrays: Mapping[str, Start]
    scalars: Mapping[str, Any] = field(default_factory=dict)
    """Numbers that each leaf carries from step to step: float64, shape (); their new values are among `numbers`."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """What the formula may branch on: hashable, never traced."""
    maximize: bool = False
    decay: str = "l2"
    """How the option `weight_decay` acts: "l2" before the formula, "decoupled" behind it, "own" if the formula sees to it."""
    reads_params: bool = False
    elementwise: bool = True
    """Whether entries do not see each other, so that a leaf may be flattened."""
    shapes: Mapping[str, Callable[[tuple[int, ...]], tuple[int, ...] | None]] = field(default_factory=dict)
    """For arrays that are not shaped like the parameter: their shape, or None if a leaf of this shape has none."""
    accepts: Callable[[tuple[int, ...]], None] | None = None
    """Raises if a leaf of this shape cannot be optimized."""

    def whole_leaves(self, shapes: Mapping[str, Any] | None = None) -> Rule:
        """The rule for a formula that reads the parameters and sees a leaf as a whole, in its shape; with the shapes of arrays."""
        return replace(self, reads_params=True, elementwise=False, shapes=shapes or {})

    @property
    def decays(self) -> bool:
        return not is_zero(self.options.get("weight_decay", 0))

    @functools.cached_property
    def fields(self) -> list[str]:
        """The fields of the state that are in use."""
        return [f for f in self.state._fields if self.arrays.get(f, 0) is not None]

    @property
    def needs_params(self) -> bool:
        return self.reads_params or self.decays

    def init(self, params: PyTree) -> Any:
        """The state before the first step."""
        leaves, spec = tree.flatten(params)
        for p, path in zip(leaves, tree.paths(spec), strict=True):
            if aval_of(p).dtype.kind not in "biufc":
                raise DTypeError(
                    "parameters are arrays of numbers", got={f"params{path}": aval_of(p).dtype}, fix="keep other leaves out of params"
                )
            if self.accepts is not None:
                self.accepts(shape_of(p))

        def every(make: Callable[[Any], Any]) -> PyTree:
            return tree.unflatten(spec, [make(p) for p in leaves])

        fields = {
            name: None if start is None else every(functools.partial(self._start, name, start)) for name, start in self.arrays.items()
        }
        numbers = {name: tree.map(lambda p, x=x: number(x), params) for name, x in self.scalars.items()}
        return self.state(step=every(lambda p: np.zeros((), np.int64)), **fields, **numbers)

    def _start(self, name: str, start: Start, p: Any) -> Any:
        aval = aval_of(p)
        shape = self.shapes[name](aval.shape) if name in self.shapes else aval.shape
        if shape is None:
            return None
        if isinstance(start, str):
            return p if is_traced(p) else np.array(p)
        return np.ones(shape, aval.dtype) * cast(start, aval.dtype) if is_traced(start) else np.full(shape, start, aval.dtype)

    def update(self, grads: PyTree, state: Any, params: PyTree = None, **extra: Any) -> tuple[PyTree, Any]:
        """The step to add to params, and the state after it."""
        self._check(state, params)
        like = f"state.{state._fields[1]}" if params is None else "params"
        leaves, spec = tree.flatten(state[1] if params is None else params, is_none)
        used = self.fields
        given = {"grads": grads, **{f"state.{f}": getattr(state, f) for f in used}}
        columns = {name: tree.flatten_as(spec, entry, name, like, is_none) for name, entry in given.items()}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        for i, (p, row) in enumerate(zip(leaves, rows, strict=True)):
            self._check_leaf(p, row, like, i, spec)
        active = [i for i, row in enumerate(rows) if row["grads"] is not None]
        moved = self.step(
            [rows[i]["grads"] for i in active], [leaves[i] for i in active], {f: [rows[i][f"state.{f}"] for i in active] for f in used}
        )
        updates: list[Any] = [None] * len(leaves)
        new = {f: [own(row[f"state.{f}"]) if row["grads"] is None else None for row in rows] for f in used}
        for k, i in enumerate(active):
            updates[i] = moved[0][k]
            for f in used:
                new[f][i] = moved[1][f][k]
        return tree.unflatten(spec, updates), state._replace(**{f: tree.unflatten(spec, column) for f, column in new.items()})

    def step(self, grads: list[Any], params: list[Any], state: Mapping[str, list[Any]]) -> tuple[list[Any], dict[str, list[Any]]]:
        """One step of leaves that are known to fit and all have a gradient: their updates, and the new state.

        Args:
            grads: One array per leaf.
            params: Likewise; they need only have the shapes where the rule does not read them.
            state: The fields of the state that are in use, each with an entry per leaf.
        """
        absent = [None] * len(grads)
        columns = [state.get(name, absent) for name in self.arrays]
        updates: list[Any] = []
        new: dict[str, list[Any]] = {f: [] for f in state}
        with np.errstate(all="ignore"):
            found = self.step_numbers(state["step"], [state[name] for name in self.scalars], params)
            for n, g, p, old, *arrays in zip(found, grads, params, state["step"], *columns, strict=True):
                u, *rest = self._leaf(self.body, n, g, p, arrays)
                updates.append(u)
                new["step"].append(number(old + 1, np.int64))
                for name in self.scalars:
                    new[name].append(number(n.values[name]))
                for name, x in zip(self.arrays, rest, strict=True):
                    if name in new:
                        new[name].append(x)
        return updates, new

    @functools.cached_property
    def body(self) -> _Body:
        return _Body(self.formula, tuple(self.flags.items()), self.maximize, self.decay if self.decays else "", self.needs_params)

    # -- what may be wrong ---------------------------------------------------------------------------------------------

    def _check(self, state: Any, params: PyTree) -> None:
        check_state(self.name, state, self.state)
        for name, start in self.arrays.items():
            if name not in self.shapes and (start is None) != (getattr(state, name) is None):
                raise TreeError(
                    f"{name} is part of the state of {self.name} only with some options",
                    got={"options": dict(self.flags), f"state.{name}": "None" if start is not None else "a tree"},
                    fix="start with opt.init(params)",
                )
        if params is None and self.needs_params:
            why = "" if self.reads_params else " with weight_decay"
            raise ArgumentError(f"{self.name}{why} reads the parameters", fix="call opt.update(grads, state, params)")

    def _check_leaf(self, p: Any, row: dict[str, Any], like: str, i: int, spec: tree.Spec) -> None:
        for name, x in row.items():
            short = name.removeprefix("state.")
            shape = self.shapes[short](shape_of(p)) if short in self.shapes and p is not None else ()
            if (x is None) != (p is None or shape is None) and (name != "grads" or p is None):
                raise missing_leaf(name, like, x, p, i, spec)
            if x is None or row["grads"] is None:
                continue
            if short == "step" or short in self.scalars:
                if shape_of(x) != ():
                    raise ShapeError(f"{name} is one number per leaf", got={f"{name}{tree.paths(spec)[i]}": aval_of(x)})
            elif short in self.shapes:
                check_like(x, Aval(shape or (), aval_of(p).dtype), name, like, i, spec)
            else:
                check_like(x, p, name, like, i, spec)

    # -- numbers -------------------------------------------------------------------------------------------------------

    def step_numbers(self, steps: list[Any], scalars: list[list[Any]], params: list[Any]) -> list[_Numbers]:
        """The numbers of each leaf; leaves with the same step share theirs."""
        if not any(is_traced(x) for column in (steps, *scalars) for x in column):
            known: dict[Any, _Numbers] = {}
            out = []
            for row in zip(steps, *scalars, strict=True):
                key = tuple(x.item() if isinstance(x, np.ndarray | np.generic) else x for x in row)
                if key not in known:
                    step, *rest = key
                    known[key] = _Numbers(self._at(np.int64(step), map(np.float64, rest)), self.flags)
                out.append(known[key])
            return out
        if len(steps) == 1:
            return [_Numbers(self._at(steps[0], [column[0] for column in scalars]), self.flags)]
        return self._numbers_in_one_vector(steps, scalars, {n for p in params for n in (*shape_of(p), aval_of(p).size)})

    def _numbers_in_one_vector(self, steps: list[Any], scalars: list[list[Any]], lengths: set[int]) -> list[_Numbers]:
        """Traced steps are stacked, so that a compiled program holds the powers of the bias corrections once, not once per leaf.

        The vector is as long as no axis of a leaf is: a compiler that fuses loops of equal length must not take it for one of them.
        """
        more = next(n for n in itertools.count() if len(steps) + n not in lengths)
        fixed: dict[str, Any] = {}

        def moving(step: Any, *rest: Any) -> dict[str, Any]:
            found = self._at(step, rest)
            fixed.update({name: x for name, x in found.items() if not is_traced(x)})
            return {name: x for name, x in found.items() if is_traced(x)}

        vectors = vmap(moving)(*[np.stack([*column, *column[-1:] * more]) for column in (steps, *scalars)])
        return [_Numbers({**fixed, **{name: v[i] for name, v in vectors.items()}}, self.flags) for i in range(len(steps))]

    def _at(self, step: Any, scalars: Any) -> dict[str, Any]:
        """One step's numbers, not yet rounded to the dtype of a leaf."""
        options = {name: x(step) if callable(x) else x for name, x in self.options.items()}
        o = SimpleNamespace(**options, **dict(zip(self.scalars, scalars, strict=True)))
        found = dict(self.numbers(step + 1, o))
        if self.decays and self.decay != "own":
            found["weight_decay"] = o.lr * o.weight_decay if self.decay == "decoupled" else o.weight_decay
        return found

    # -- one leaf ------------------------------------------------------------------------------------------------------

    def _leaf(self, body: _Body, n: _Numbers, g: Array, p: Array, arrays: list[Any]) -> list[Array]:
        """Update and new arrays of one leaf."""
        plain = p.__class__ is g.__class__ is np.ndarray
        dtype = p.dtype if plain else aval_of(p).dtype
        operands = [g, p if body.params else None, *arrays]
        large = plain and g.size >= KERNEL_SIZE and dtype in KERNEL_DTYPES
        if large and not n.traced and not any(is_traced(x) for x in operands):
            new = self._compiled(body, n, dtype, operands)
        else:
            given = {id(x) for x in operands}
            new = [as_array(x) for x in body(n.cast(dtype), *operands)]
            new = [own(x) if id(x) in given else x for x in new]
        return new + [own(x) for x in arrays[len(new) - 1 :]]

    def _compiled(self, body: _Body, n: _Numbers, dtype: np.dtype[Any], operands: list[Any]) -> list[Array | None]:
        shape = np.shape(operands[0])
        arrays = [None if x is None else np.ascontiguousarray(x, dtype) for x in operands]
        if self.elementwise:
            arrays = [None if x is None else x.reshape(-1) for x in arrays]
        program, there = _program(body, n.names, dtype, tuple(None if x is None else x.shape for x in arrays))
        found = iter(program.convert([n.vector, *(x for x in arrays if x is not None)]))
        new = [next(found) if t else None for t in there]
        return [x if x is None else x.reshape(shape) for x in new] if self.elementwise else new


class _Numbers:
    """The numbers of one leaf: as they were computed, in the dtype of the leaf, and as one vector."""

    def __init__(self, values: dict[str, Any], flags: Mapping[str, Any]) -> None:
        self.values, self._flags = values, flags
        self.names = tuple(values)
        self.traced = any(is_traced(x) for x in values.values())
        self._cast: dict[np.dtype[Any], SimpleNamespace] = {}
        self._vector: Any = None

    def cast(self, dtype: np.dtype[Any]) -> SimpleNamespace:
        if dtype not in self._cast:
            self._cast[dtype] = SimpleNamespace(**{name: cast(x, dtype) for name, x in self.values.items()}, **self._flags)
        return self._cast[dtype]

    @property
    def vector(self) -> np.ndarray[Any, Any]:
        if self._vector is None:
            for x in self.values.values():
                cast(x, np.dtype(np.float64))  # each is one number
            self._vector = np.array(list(self.values.values()), np.float64)
        return self._vector


@dataclass(frozen=True)
class _Body:
    """What is done to one leaf: sign, decay, formula. It depends on no number, so that programs can be shared."""

    formula: Callable[..., Any]
    flags: tuple[tuple[str, Any], ...]
    maximize: bool
    decay: str
    params: bool

    def __call__(self, n: Any, g: Array, p: Array | None, *arrays: Array | None) -> list[Any]:
        d = -g if self.maximize else g
        if self.decay == "l2":
            d = d + n.weight_decay * p
        u, *new = self.formula(n, d, p, *arrays)
        if self.decay == "decoupled":
            u = u - n.weight_decay * p
        return [u, *new]


@functools.lru_cache(maxsize=4096)
def _program(body: _Body, names: tuple[str, ...], dtype: np.dtype[Any], shapes: tuple[Any, ...]) -> tuple[Any, list[bool]]:
    """The native program of one leaf, and which results it has. Another size makes another entry here, but no other machine code."""
    there: list[bool] = []

    def flat(vector: Any, *operands: Any) -> list[Any]:
        numbers = {name: vector[i].astype(dtype) for i, name in enumerate(names)}
        given = iter(operands)
        found = body(SimpleNamespace(**numbers, **dict(body.flags)), *(None if shape is None else next(given) for shape in shapes))
        there[:] = [x is not None for x in found]
        return [x for x in found if x is not None]

    avals = [Aval((len(names),), np.dtype(np.float64)), *(Aval(shape, dtype) for shape in shapes if shape is not None)]
    return compile_graph(record(flat, avals, body.formula), frozenset()), there


def optimizer(rule: Rule) -> Optimizer:
    """The pair of functions."""
    return Optimizer(rule.init, rule.update)


def rule_of(optimizer: Optimizer) -> Rule:
    """The rule of an optimizer that treats each leaf by itself."""
    rule = getattr(optimizer.update, "__self__", None)
    if not isinstance(rule, Rule):
        raise ArgumentError(
            "the optimizer must treat each leaf by itself", got={"update": optimizer.update}, fix="use it as init and update"
        )
    return rule
