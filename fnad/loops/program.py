"""A loop function for arguments of given types, with everything that is made of it: compiled once, kept for all calls."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fnad import _fork, _numba
from fnad.loops import generated, ir
from fnad.loops.printer import check_divisions, source
from fnad.loops.reverse_printer import adjoint
from fnad.loops.spelling import dtype_name
from fnad.loops.tangent import tangent

_lock = _fork.lock(1)
_building = _fork.lock(5)  # a program may be built where numba compiles a loop that calls a derivative
Level = tuple[bool, ...]


class Mode(NamedTuple):
    """Which function of a program is meant: the adjoint for `wanted` arguments, with the value if `value` says so."""

    wanted: tuple[bool, ...]
    value: bool


class Program:
    """The loop language's form of a function, and the compiled functions of flat leaves that were made of it.

    Args:
        build: Makes the `ir.Function`, when it is needed.
        options: Numba's options for the generated code, and `checkpoint`.
        primal: A source text that calls the user's own compiled function on flat leaves, and its names; without one the
            function itself is printed.

    A program is a parameter of primitives; it is equal to itself only.
    """

    def __init__(
        self,
        build: Callable[[], ir.Function],
        options: Mapping[str, Any],
        primal: Callable[[ir.Function], tuple[str, dict[str, Any]]] | None = None,
        origin: Program | None = None,
    ) -> None:
        self._build, self.options, self._primal = build, options, primal
        self.origin: Program = origin or self
        """The program of the user's function, of which this one was made."""
        self._made: dict[Any, Any] = {}

    @functools.cached_property
    def fn(self) -> ir.Function:
        with _building:
            built = self._build()
            if self.is_users and self.raises:
                check_divisions(built)
            return built

    @property
    def is_users(self) -> bool:
        """Whether its primal is the user's own function."""
        return self._primal is not None

    def __repr__(self) -> str:
        return self.fn.name

    # -- types ---------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def operands(self) -> tuple[ir.Type, ...]:
        return tuple(a.type for a in self.fn.args)

    @functools.cached_property
    def results(self) -> tuple[ir.Type, ...]:
        return tuple(r.type for r in self.fn.returns)

    @functools.cached_property
    def floats(self) -> tuple[int, ...]:
        """The positions of the results that have derivatives."""
        return tuple(k for k, t in enumerate(self.results) if t.dtype.kind in "fc")

    def types(self, mode: Mode | None) -> tuple[tuple[ir.Type, ...], tuple[ir.Type, ...]]:
        """The types of the operands and of the results."""
        found: tuple[tuple[ir.Type, ...], tuple[ir.Type, ...]] | None = self._made.get(("types", mode))
        if found is None:
            found = self._made[("types", mode)] = self._takes(mode), self._gives(mode)
        return found

    def _takes(self, mode: Mode | None) -> tuple[ir.Type, ...]:
        """Of an adjoint, also a cotangent for every float result."""
        return self.operands if mode is None else (*self.operands, *(self.results[k] for k in self.floats))

    def _gives(self, mode: Mode | None) -> tuple[ir.Type, ...]:
        """Of an adjoint, the gradients of the wanted arguments, after the value if it is asked for."""
        if mode is None:
            return self.results
        wanted = tuple(t for t, w in zip(self.operands, mode.wanted, strict=True) if w)
        return (*self.results, *wanted) if mode.value else wanted

    @property
    def raises(self) -> bool:
        """Whether the user's function raises where a number is divided by zero; generated code goes on with an infinity."""
        return bool(self.options.get("error_model", "python") == "python")

    @property
    def _snapshots(self) -> int:
        """Of `checkpoint=`: -1 for none, 0 for as many as the square root of a loop's length, or their number."""
        option = self.options.get("checkpoint", False)
        return -1 if option in (None, False) else 0 if option is True else int(option)

    @functools.cached_property
    def is_loss(self) -> bool:
        """Whether the only result is a float, which the adjoint can give as well."""
        return len(self.results) == len(self.floats) == 1 and isinstance(self.results[0], ir.Scalar)

    # -- programs made of it -------------------------------------------------------------------------------------------

    def tangent(self, active: tuple[bool, ...]) -> Program:
        """The program that also takes a tangent per active argument and gives one per float result."""
        return self._derived(("tangent", active), lambda: tangent(self.fn, active))

    def keeping(self, kept: tuple[bool, ...]) -> Program:
        """The program that gives some of the results only."""
        if all(kept):
            return self

        def build() -> ir.Function:
            returns = [r for r, k in zip(self.fn.returns, kept, strict=True) if k]
            return dataclasses.replace(self.fn, returns=returns, template=tuple(range(len(returns))))

        return self._derived(("keeping", kept), build)

    def _derived(self, key: Any, build: Callable[[], ir.Function]) -> Program:
        with _building:
            if key not in self._made:
                self._made[key] = Program(build, self.options, origin=self.origin)
            made: Program = self._made[key]
            return made

    # -- compiled functions --------------------------------------------------------------------------------------------

    def text(self, mode: Mode | None) -> tuple[str, str, dict[str, Any]]:
        """The source of the primal or the adjoint, the function's name there, and the names it needs."""
        if mode is not None:
            text, names = adjoint(self.fn, mode.wanted, mode.value, self._snapshots)
            return text, f"{self.fn.name}_adjoint", names
        if self._primal is not None:
            text, names = self._primal(self.fn)
            return text, "primal", names
        text, names = source(self.fn)
        return text, self.fn.name, names

    def compiled(self, mode: Mode | None, levels: tuple[Level, ...] = ()) -> Any:
        """The numba function of flat leaves that returns the flat tuple of results, mapped over batch axes if there are `levels`.

        Each level says which operands have its axis, the outermost level first; all results have all axes. No argument is changed.
        """
        key = mode, levels
        found = self._made.get(key)
        if found is None:
            with _lock:
                found = self._made.get(key)
                if found is None:
                    found = self._made[key] = self._compile(mode, levels)
        return found

    def looks_back(self, mode: Mode | None) -> bool:
        """Whether results that are not finite may mean that the user's function would have raised."""
        return self.raises and (mode.value if mode is not None else not self.is_users)

    def values(self, mode: Mode | None) -> tuple[int, ...]:
        """The positions of the results that are floats."""
        return tuple(k for k, t in enumerate(self.types(mode)[1]) if t.dtype.kind == "f")

    def address(self, mode: Mode | None, levels: tuple[Level, ...] = ()) -> int:
        """Where the compiled function lies for native code: see `core.lowering.Native`."""
        key = "native", mode, levels
        found = self._made.get(key)
        if found is None:
            with _lock:
                found = self._made.get(key)
                if found is None:
                    one = self.compiled(mode, levels)
                    takes, gives = self.types(mode)
                    ranks = [t.ndim if isinstance(t, ir.Array) else 0 for t in takes]
                    ranks = [n + sum(level[k] for level in levels) for k, n in enumerate(ranks)]
                    outs = [(t.ndim if isinstance(t, ir.Array) else 0) + len(levels) for t in gives]
                    checked = self.values(mode) if self.looks_back(mode) else ()
                    text = behind_addresses(ranks, outs, [t.dtype for t in (*takes, *gives)], checked)
                    names = {"one": one, "carray": _numba.as_array()}
                    options = {k: v for k, v in self.numba_options(text).items() if k != "nogil"}
                    found = self._made[key] = generated.load(text, "native", names, options, _numba.c_function)
        return int(found.address)

    def _compile(self, mode: Mode | None, levels: tuple[Level, ...]) -> Any:
        if levels:
            inner = self.compiled(mode, levels[1:])
            text = over_batch(levels, self.types(mode)[1])
            return generated.load(text, "batch", {"one": inner}, self.numba_options(text))
        text, name, names = self.text(mode)
        for value, array in self.fn.captured if mode is not None or self._primal is None else ():
            names = {**names, value.name: array}
        return generated.load(text, name, names, self.numba_options(text))

    def numba_options(self, text: str) -> dict[str, Any]:
        """Numba's options for a generated text: NumPy's answers to division by zero, as all derivatives of fnad have."""
        chosen = {k: v for k, v in self.options.items() if k in ("fastmath", "cache", "boundscheck")}
        if "prange(" in text and self.options.get("parallel"):
            chosen["parallel"] = self.options["parallel"]
        return {**chosen, "nogil": not self.is_parallel, "error_model": "numpy"}

    @property
    def is_parallel(self) -> bool:
        """Whether it may run on numba's threads: not all of numba's thread pools can be entered by two threads at once."""
        return bool(self.options.get("parallel"))


def behind_addresses(operands: Sequence[int], results: Sequence[int], dtypes: Sequence[np.dtype[Any]], checked: Sequence[int]) -> str:
    """Source of `native(table, sizes)`, which calls `one` on arrays of these ranks at the addresses in a table.

    It answers 0 if all went well, 1 after an error or if one of the results to be `checked` has an entry that is not finite.
    """
    lines = ["def native(table, sizes):", "    try:"]
    used = 0

    def place(k: int, rank: int) -> str:
        nonlocal used
        shape = "".join(f"sizes[{used + i}], " for i in range(rank)) or "1, "
        used += rank
        return f"carray(table[{k}], ({shape}), {dtype_name(dtypes[k])})"

    for k, rank in enumerate(operands):
        lines.append(f"        x{k} = {place(k, rank)}{'' if rank else '[0]'}")
    lines.append(f"        out = one({', '.join(f'x{k}' for k in range(len(operands)))})")
    for k, rank in enumerate(results):
        lines.append(f"        y{k} = {place(len(operands) + k, rank)}")
        if rank:
            lines += [f"        if out[{k}].shape != y{k}.shape:", "            return 1"]
        lines.append(f"        y{k}[{'...' if rank else '0'}] = out[{k}]")
        if k in checked:
            lines += [f"        if not np.isfinite(out[{k}]{'.sum()' if rank else ''}):", "            return 1"]
    return "\n".join([*lines, "    except Exception:", "        return 1", "    return 0"]) + "\n"


def over_batch(levels: tuple[Level, ...], results: Sequence[ir.Type]) -> str:
    """Source of `batch(size, *operands)`, which calls `one` for every entry of the outermost level and stacks what it returns."""
    mapped, deeper = levels[0], len(levels) - 1
    names = [f"x{k}" for k in range(len(mapped))]
    entry = ", ".join(f"{n}[k]" if m else n for n, m in zip(names, mapped, strict=True))
    outs = [f"y{k}" for k in range(len(results))]
    sized = next(n for n, m in zip(names, mapped, strict=True) if m)
    lines = [f"def batch({', '.join(names)}):", f"    n = {sized}.shape[0]", "    k = 0", f"    first = one({entry})"]
    for k, (out, type) in enumerate(zip(outs, results, strict=True)):
        scalar = isinstance(type, ir.Scalar) and not deeper
        shape = "(n,)" if scalar else f"(n,) + first[{k}].shape"
        lines.append(f"    {out} = np.empty({shape}, {dtype_name(type.dtype)})")
        lines.append(f"    {out}[0] = first[{k}]")
    lines += ["    for k in range(1, n):", f"        entry = one({entry})"]
    for k, (out, type) in enumerate(zip(outs, results, strict=True)):
        if isinstance(type, ir.Array):
            lines += [f"        if entry[{k}].shape != first[{k}].shape:", f"            raise ValueError({_UNEQUAL!r})"]
        lines.append(f"        {out}[k] = entry[{k}]")
    lines.append(f"    return ({', '.join(outs)},)")
    return "\n".join(lines) + "\n"


_UNEQUAL = "under vmap, the results of a loop function must have the same shape for all examples"
