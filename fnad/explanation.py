"""explain: what a compiled function does, stage by stage."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.compiler.groups import Group, aligned, groups, parts, quantity, table
from fnad.compiler.pipeline import Executable, Program
from fnad.compiler.program import Buffer, Host, stands_alone
from fnad.compiler.simplify import simplify
from fnad.core.graph import compare
from fnad.errors import UnsupportedError
from fnad.jit import recorded
from fnad.kernels.codegen.python_expr import plain_literal
from fnad.kernels.codegen.python_source import Printer
from fnad.kernels.expressions import find
from fnad.typing import Function

_HEADER = '''"""A function compiled by fnad, as numba source. Needs numpy, numba and (for np.dot under numba) scipy."""

import math

import numba
import numpy as np
'''
_KINDS = {"input": "argument", "output": "result", "temp": "temporary", "carry": "carry", "flag": "flag"}


def printed(program: Program) -> str:
    """A native part of a program as numba source."""
    schedule = program.schedule
    titles = [
        (f"{g.name}: {g.what}{f' ({g.line})' if g.line else ''}", part[0])
        for g, part in zip(groups(schedule.nodes), parts(schedule.nodes), strict=True)
    ]
    return Printer(program, schedule.calls, find, titles).run()


class Explanation:
    """The stages of one compilation; `print` shows them.

    Attributes:
        graph: What was recorded.
        simplified: The same with common subexpressions, constants and needless views gone.
        groups: The parts of the program, a list of named tuples `(name, kind, what, line, bytes, flops)`.
        hosts: The operations that are not compiled, also those that are called out of loops and branches; each has an `equation`.
        loops: The loop nests, with the buffers they use: what the key of the compiled program is made from.
        source: The loops as numba source.
    """

    def __init__(self, f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.graph, _ = recorded(f, args, kwargs)
        self.simplified = simplify(self.graph)
        self._executable = Executable(self.simplified)
        self.groups: list[Group] = groups(self._executable.schedule.nodes)
        self.hosts = [
            *(step for step in self._executable.steps if isinstance(step, Host)),
            *(c for c in self._executable.calls if stands_alone(c)),
        ]
        self.loops = "\n\n".join(self._executable.texts)
        self.source = "\n\n\n".join(printed(p) for p in self._executable.programs)

    def __str__(self) -> str:
        sections = [
            ("graph as recorded; simplification removes what is marked - and adds what is marked +", compare(self.graph, self.simplified)),
            ("groups", table(self.groups)),
            ("buffers", self._buffers()),
            ("on the host", self._on_host()),
            ("source", self.source),
        ]
        return "\n\n".join(f"== {title}\n{text}" for title, text in sections)

    __repr__ = __str__

    def _on_host(self) -> str:
        places = {True: "called out of a loop or branch", False: "between native parts"}
        calls = self._executable.calls
        return "\n".join(f"{h.equation.primitive.name}, {places[h in calls]}: {h.equation.line}" for h in self.hosts) or "nothing"

    def _buffers(self) -> str:
        """Which arrays the program works on."""
        e = self._executable
        used = {b for p in e.programs for b in p.roots} | {
            b.root for h in self.hosts for b in (*h.inputs, *h.outputs) if isinstance(b, Buffer)
        }
        rows = [("", "what", "type", "memory")]
        registers = 0
        for b in sorted(used, key=lambda b: int(b.name[1:])):
            registers += b.is_register
            if not b.is_register and b.kind != "flag":
                rows.append((b.name, self._role(b), f"{b.dtype}[{','.join(str(b.shape[a]) for a in b.axes)}]", quantity(b.bytes, "B")))
        total = sum(b.bytes for b in used if b.kind in ("input", "output"))
        return "\n".join(
            [
                aligned(rows, right=(3,)),
                f"{quantity(total, 'B')} of arguments and results, {quantity(e.work_bytes, 'B')} of workspace that temporaries share"
                + (f", {registers} scalars in registers" if registers else ""),
            ]
        )

    def _role(self, b: Buffer) -> str:
        if b.kind == "input" and b.position >= len(self.graph.inputs):
            return f"closed-over array {b.position - len(self.graph.inputs)}"
        return f"{_KINDS[b.kind]} {b.position}" if b.kind in ("input", "output") else _KINDS[b.kind]

    def save(self, path: str | pathlib.Path) -> None:
        """Write a module with a function `run(*leaves)` that computes the same numbers without fnad.

        It needs NumPy, SciPy and numba. Loops, scans and matrix products are part of it; closed-over arrays are written into it
        as they are now.

        Args:
            path: The file. `run` takes the leaves of the arguments in order, of the shapes that were explained, and returns the
                leaves of the result.

        Raises:
            UnsupportedError: part of the function runs on the host, where fnad itself computes it, or calls LAPACK.
        """
        e = self._executable
        if self.hosts or e.calls or len(e.programs) != 1:
            raise UnsupportedError(
                "a function can be saved if all of it is compiled",
                got={
                    f"{'on the host' if stands_alone(h) else 'by LAPACK'}, {h.equation.line}": h.equation.primitive.name
                    for h in (self.hosts or e.calls)
                }
                or {"program": "empty"},
                fix="save the parts before and after these operations, and call NumPy or SciPy between them",
            )
        program = e.programs[0]
        lines = []
        memory = [b for b in program.roots if not b.is_register]
        for b in memory:
            if b.kind == "input" and b.position >= len(self.graph.inputs):
                constant = np.asarray(e.constants[b.position - len(self.graph.inputs)])
                entries = ", ".join(map(plain_literal, constant.ravel().tolist()))
                lines.append(f"    {b.name} = np.array([{entries}], np.{b.dtype.name})")
            elif b.kind == "input":
                lines.append(f"    {b.name} = argument(leaves, {b.position}, {b.shape}, np.{b.dtype.name})")
            else:
                lines.append(f"    {b.name} = np.zeros({max(1, b.bytes // b.dtype.itemsize)}, np.{b.dtype.name})")
        results = ", ".join(f"{b.name}[:{int(np.prod(b.shape))}].reshape({b.shape})" for b in e.results)
        call = ", ".join([*(b.name for b in memory), "sizes", "literals"])
        sizes, literals = e.sizes.tolist(), e.literals.tolist()
        text = (
            f'{_HEADER}\n{self.source}\n\nprogram = numba.njit(error_model="numpy")(program)\n'
            f"sizes, literals = np.array({sizes}), np.array({literals}, float)\n{_ARGUMENT}\n\n"
            f"def run(*leaves):\n" + "\n".join(lines) + f"\n    program({call})\n    return [{results}]\n"
        )
        pathlib.Path(path).write_text(text, encoding="utf-8")


_ARGUMENT = '''

def argument(leaves, position, shape, dtype):
    """A leaf as the program takes it."""
    found = np.ascontiguousarray(leaves[position], dtype)
    if np.shape(leaves[position]) != shape:
        raise ValueError(f"leaf {position} must have the shape {shape}, not {np.shape(leaves[position])}")
    return found.reshape(-1)
'''


def explain(f: Function) -> Callable[..., Explanation]:
    """Show how `fnad.jit(f)` computes: graph, simplified graph, groups, memory, numba source.

    Args:
        f: A function of pytrees of arrays, or what `fnad.jit` made of one.

    Returns:
        A function of the same arguments that returns an `Explanation`: print it, read its attributes, or
        `save(path)` it as a module that runs without fnad.

    Raises:
        ConcretizationError: as `fnad.jit`.

    Example:
        >>> import numpy as np, fnad
        >>> stages = fnad.explain(lambda x: np.sum(np.tanh(x) ** 2))(np.ones(3))
        >>> print(stages.simplified)
        inputs    a:float64[3]
          b:float64[3] = tanh a
          c:float64[3] = power b 2
          d:float64[] = sum axis=(0,) c
        outputs   d
        >>> [(group.kind, group.what, group.bytes) for group in stages.groups]
        [('loop', 'tanh, power, sum', 32)]
    """
    return lambda *args, **kwargs: Explanation(f, args, kwargs)
