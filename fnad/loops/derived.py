"""Derivatives of loop functions as loop functions: `fnad.njit(fnad.grad(f))`, to be called inside other loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from fnad import _fork, _numba
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, ShapeError, describe_function
from fnad.loops import generated, ir
from fnad.loops.program import Mode, Program
from fnad.loops.spelling import dtype_name

_lock = _fork.lock(5)
SUPPORTED = ("grad", "value_and_grad", "jacfwd")


class Derivative:
    """The gradient of a loop function of numbers and arrays that returns a float, by reverse mode or (`jacfwd`) forward mode.

    Its text depends on the types of the arguments: `function_for` writes it. Loops that call it differentiate that text, so a
    second derivative is that of generated code.
    """

    def __init__(self, transformed: Callable[..., Any], function: Any, transform: str, argnums: int | Sequence[int]) -> None:
        self.__name__ = self.__qualname__ = f"{transform}_of_{function.__name__}"
        self.__module__ = function.__module__
        self.transformed, self.function, self.transform, self.argnums = transformed, function, transform, argnums
        self._made: dict[Any, FunctionType] = {}
        self._dispatcher: Any = None

    def __call__(self, *args: Any) -> Any:
        if any(isinstance(leaf, Tracer) for a in args for leaf in (a if isinstance(a, tuple) else (a,))):
            return self.transformed(*args)
        return self.dispatcher(*args)

    def __repr__(self) -> str:
        return f"<fnad.njit of {self.transformed!r}>"

    @property
    def dispatcher(self) -> Any:
        """The numba function that computes it, for arguments of any types."""
        with _lock:
            if self._dispatcher is None:
                self._dispatcher = _numba.by_types(self.function_for, _type, self.__name__)
            return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        return _numba.type_of(self.dispatcher)

    def function_for(self, key: tuple[Any, ...]) -> FunctionType:
        """A plain function of arguments of these types, in the part of Python that loop functions are written in."""
        found = self._made.get(key)
        return found if found is not None else self._made.setdefault(key, self._write(key))

    def _write(self, key: tuple[Any, ...]) -> FunctionType:
        program: Program = self.function._program(key)
        if len(program.results) != 1 or isinstance(program.results[0], ir.Array) or program.results[0].dtype.kind != "f":
            raise ShapeError(
                f"{self.transform}: a loop function whose derivative is called in loops returns one float",
                got={"function": describe_function(self.function.py_func), "returns": program.results},
            )
        chosen = [self.argnums] if isinstance(self.argnums, int) else [*self.argnums]
        if any(not -len(key) <= n < len(key) for n in chosen):
            raise ArgumentError(
                f"{self.transform}: argnums must name a positional argument", got={"argnums": self.argnums, "arguments": len(key)}
            )
        positions = [n % len(key) for n in chosen]
        writer = _Writer(program, key, positions)
        (writer.forward if self.transform == "jacfwd" else writer.reverse)()
        gradients = [writer.gradient(n) for n in positions]
        result = gradients[0] if isinstance(self.argnums, int) else f"({''.join(f'{g}, ' for g in gradients)})"
        writer.lines.append(f"    return {f'(value, {result})' if self.transform == 'value_and_grad' else result}")
        return generated.plain("\n".join([f"def {self.__name__}({writer.parameters}):", *writer.lines]) + "\n", self.__name__, writer.names)


class _Writer:
    """The text around generated adjoints and tangents: the user's arguments go in, gradients of their shapes come out."""

    def __init__(self, program: Program, key: tuple[Any, ...], positions: Sequence[int]) -> None:
        self.program, self.key = program, key
        self.parameters = ", ".join(f"a{n}" for n in range(len(key)))
        self.leaves = [(n, path, t) for n, kind in enumerate(key) for path, t in _leaves(kind, f"a{n}")]
        self.wanted = tuple(n in positions for n, _, _ in self.leaves)
        self.given = ", ".join(path for _, path, _ in self.leaves)
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        for (_, path, t), wanted in zip(self.leaves, self.wanted, strict=True):
            if wanted and t.dtype.kind != "f":
                raise ArgumentError(
                    "derivatives called in loops are by floats",
                    got={"function": program.fn.name, f"argument {path[1:]}": t},
                    fix="leave it out of argnums",
                )

    def reverse(self) -> None:
        self._function("adjoint", self.program, Mode(self.wanted, True))
        seed = f"{dtype_name(self.program.results[0].dtype)}(1.0)"
        self.lines += [f"    out = adjoint({self.given}, {seed})", "    value = out[0]"]
        for k, leaf in enumerate(self._wanted()):
            self.lines.append(f"    g{leaf} = out[{k + 1}]")

    def forward(self) -> None:
        """One tangent for each entry of the wanted leaves."""
        for k in self._wanted():
            _, path, t = self.leaves[k]
            dtype = dtype_name(t.dtype)
            tangent = self.program.tangent(tuple(j == k for j in range(len(self.leaves))))
            if isinstance(tangent.fn.returns[1], ir.Const):  # the leaf has no influence
                self.lines.append(f"    g{k} = {f'{dtype}(0.0)' if isinstance(t, ir.Scalar) else f'np.zeros({path}.shape, {dtype})'}")
                continue
            self._function(f"tangent{k}", tangent, None)
            if isinstance(t, ir.Scalar):
                self.lines.append(f"    g{k} = tangent{k}({self.given}, {dtype}(1.0))[1]")
                continue
            self.lines += [
                f"    g{k} = np.empty({path}.shape, {dtype})",
                f"    d{k} = np.zeros({path}.shape, {dtype})",
                f"    flat, unit = g{k}.reshape(-1), d{k}.reshape(-1)",
                "    for i in range(flat.size):",
                "        unit[i] = 1.0",
                f"        flat[i] = tangent{k}({self.given}, d{k})[1]",
                "        unit[i] = 0.0",
            ]

    def gradient(self, n: int) -> str:
        """The gradients of an argument's leaves, in the structure of the argument."""
        leaves = iter(k for k, (m, _, _) in enumerate(self.leaves) if m == n)

        def structure(t: Any) -> str:
            if isinstance(t, tuple) and not isinstance(t, ir.Scalar | ir.Array):
                if hasattr(t, "_fields"):
                    self.names[type(t).__name__] = type(t)
                    return f"{type(t).__name__}({', '.join(map(structure, t))})"
                return f"({''.join(f'{structure(x)}, ' for x in t)})"
            return f"g{next(leaves)}"

        return structure(self.key[n])

    def _wanted(self) -> list[int]:
        return [k for k, wanted in enumerate(self.wanted) if wanted]

    def _function(self, label: str, program: Program, mode: Mode | None) -> None:
        text, name, names = program.text(mode)
        names = {**names, **{value.name: array for value, array in program.fn.captured}}
        self.names[label] = _numba.kernel(generated.plain(text, name, names))


def _type(dtype: np.dtype[Any], rank: int | None) -> ir.Type:
    return ir.Scalar(dtype) if rank is None else ir.Array(dtype, rank)


def _leaves(kind: Any, path: str) -> list[tuple[str, Any]]:
    """The numbers and arrays in an argument, and how they are reached."""
    if isinstance(kind, ir.Scalar | ir.Array):
        return [(path, kind)]
    if isinstance(kind, tuple):
        return [leaf for k, t in enumerate(kind) for leaf in _leaves(t, f"{path}[{k}]")]
    return []
