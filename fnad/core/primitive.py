"""Primitives: an operation together with its rules.

| rule | asked by | receives | answers |
|---|---|---|---|
| `infer(*avals, **params)` | recording | shapes and dtypes | an `Aval` (a tuple of them if `multiple`) |
| `impl(*arrays, **params)` | evaluation | plain arrays | a plain array |
| `vjp(out, *args, **params)` | reverse mode | output, inputs: plain or tracers | one pullback (or `None`) per argument, or a `Joint` |
| `jvp(out, args, tangents, **params)` | forward mode | as above; a tangent `None` is zero | the output's tangent, or `None` |
| `batch(args, batched, **params)` | vmap | batch axis 0 where `batched` says so | the output with its batch axis at 0 |
| `lower(*avals, **params)` | the compiler | shapes and dtypes | how to compute it natively |

Arrays are positional; params are keyword-only, hashable and already normalised.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fnad._config import CHANGED
from fnad.core import dispatch
from fnad.core.aval import PYTHON_SCALARS
from fnad.core.finite import watch
from fnad.core.tracer import CAPTURING, Tracer
from fnad.errors import DTypeError, MissingRuleError, user_line

Pullback = Callable[[Any], Any]

REGISTRY: dict[str, Primitive] = {}


class Joint(NamedTuple):
    """A pullback that answers for all arguments at once: `g -> (cotangent or None, ...)`."""

    pull: Callable[[Any], Sequence[Any]]


def _absent(rule: str) -> Callable[..., Any]:
    def ask(self: Primitive, *args: Any, **params: Any) -> Any:
        raise self.missing(rule)

    return ask


class Primitive:
    """An operation with its rules; see the module's table.

    Args:
        name: Unique name, shown in graphs and errors.
        numpy: The NumPy callable(s) whose calls on tracers mean this primitive.
    """

    multiple = False
    """Several outputs: `impl` returns a tuple, rules receive and answer tuples."""
    constant = False
    """No output ever depends differentiably on an input (comparisons, argmax, floor)."""

    reads: frozenset[int] | None = None
    """Positions of the arguments whose contents the pullbacks read; None stands for all."""

    reads_output = True
    """Whether the pullbacks may read the contents of the output."""

    selective = False
    """`forward` is also told which arguments are differentiated, and its pullback receives None for outputs without a cotangent."""

    effect = False
    """It is called for what it does: it is neither left out nor merged with another one, also if nothing needs its result."""

    strong = False
    """The output has a dtype of its own even if all arguments are Python scalars (a cast)."""

    def __init__(self, name: str, *, numpy: Any = None, register: bool = True) -> None:
        self.name = name
        self.__name__ = name
        if register:
            if name in REGISTRY:
                raise ValueError(f"primitive {name} is declared twice")
            REGISTRY[name] = self
        for f in () if numpy is None else numpy if isinstance(numpy, tuple) else (numpy,):
            dispatch.ROWS[f] = self

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __call__(self, *args: Any, **params: Any) -> Any:
        top = None
        odd = False
        for a in args:
            if isinstance(a, Tracer):
                trace = a._trace
                if top is None or trace.level > top.level:
                    top = trace
            elif a.__class__ not in _PLAIN:
                odd = True
        if top is not None:
            inner = CAPTURING.get()
            if inner is not None and inner.level > top.level:
                top = inner
            return top.process(self, tuple(map(plain_operand, args)) if odd else args, params)
        out = self.impl(*args, **params)
        if CHANGED.get():
            watch(self, args, params, out)
        if args and args[0].__class__ in PYTHON_SCALARS and not self.multiple and not self.strong:
            return keep_weak(out, args)
        return out

    # The rules, with the signatures of the module's table. Declared as callables, for members narrow the parameters.
    infer: Callable[..., Any] = _absent("infer")
    impl: Callable[..., Any] = _absent("impl")
    vjp: Callable[..., Any] = _absent("vjp")
    jvp: Callable[..., Any] = _absent("jvp")
    batch: Callable[..., Any] = _absent("batch")
    lower: Callable[..., Any] = _absent("lower")

    def forward(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Sequence[Pullback | None] | Joint]:
        """Output and pullbacks; overridden where the forward pass itself prepares the backward one."""
        out = self(*args, **params)
        return out, self.vjp(out, *args, **params)

    def keeps(self, asked: Sequence[bool], count: int) -> tuple[tuple[int, ...], bool]:
        """Which of `count` arguments the pullbacks of the asked ones read, and whether they read the output."""
        return tuple(range(count) if self.reads is None else sorted(self.reads)), self.reads_output

    def push(self, args: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any]:
        """Output and its tangent; overridden where one computation gives both."""
        out = self(*args, **params)
        with np.errstate(all="ignore"):
            return out, self.jvp(out, args, tangents, **params)

    def holds_graph(self, params: dict[str, Any]) -> bool:
        """Whether the operation is made of recorded ones."""
        return any(hasattr(p, "equations") for v in params.values() for p in (v if isinstance(v, tuple) else (v,)))

    def examine(self, *args: Any, **params: Any) -> None:
        """Compute an operation that is made of others one by one, so that the one to blame for a nan or inf is found."""
        if self.holds_graph(params):
            self.impl(*args, **params)

    @classmethod
    def has_rule(cls, rule: str) -> bool:
        return getattr(cls, rule) is not getattr(Primitive, rule)

    def missing(self, rule: str) -> MissingRuleError:
        try:
            where = inspect.getsourcefile(type(self)) or "unknown"
        except TypeError:
            where = type(self).__module__
        return MissingRuleError(
            f"primitive {self.name} has no {rule} rule",
            got={"class": type(self).__qualname__, "file": where},
            fix=f"define {type(self).__name__}.{rule} there",
        )


_PLAIN = frozenset({np.ndarray, float, int, bool, complex, np.float64, np.float32, np.int64, np.bool_})


def plain_operand(a: Any) -> Any:
    """An operand next to a traced one: lists become arrays; classes with arithmetic of their own are refused."""
    if isinstance(a, Tracer | np.generic | bool | int | float | complex) or a.__class__ in (np.ndarray, np.memmap):
        return a
    if isinstance(a, list | tuple):
        return np.asarray(a)
    raise DTypeError(
        "an operand of a traced value must be an array or a number",
        got={"operand": f"{type(a).__module__}.{type(a).__qualname__}", "at": user_line()},
        fix="convert it first: x.to_numpy() (pandas), x.toarray() (sparse), np.asarray(x)",
    )


def keep_weak(out: Any, args: Sequence[Any]) -> Any:
    """The result of Python scalars alone stays a Python scalar, so that it does not decide the dtype of what follows.

    A truth value stays NumPy's: it decides no dtype, and `~` of Python's is an integer.
    """
    scalar = isinstance(out, np.generic | np.ndarray) and out.ndim == 0 and out.dtype.kind != "b"
    return out.item() if scalar and all(a.__class__ in PYTHON_SCALARS for a in args) else out
