"""explain: what a compiled function does, stage by stage."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.compiler.pipeline import Executable
from fnad.compiler.program import Host
from fnad.compiler.simplify import simplify
from fnad.core.graph import make_graph
from fnad.errors import UnsupportedError
from fnad.jit import Jitted
from fnad.kernels.codegen.python_source import Printer
from fnad.typing import Function

_HEADER = '''"""A function compiled by fnad, as numba source. Needs numpy and numba (and scipy, which numba's np.dot uses)."""

import math

import numba
import numpy as np
'''


class Explanation:
    """The stages of one compilation; `print` shows them all.

    Attributes:
        graph: What was recorded.
        simplified: The same with common subexpressions, constants and needless views gone.
        hosts: The operations that are not compiled; each has an `equation`.
        loops: The loop nests, with the buffers they use: what the key of the compiled program is made from.
        source: The loops as numba source.
    """

    def __init__(self, f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if isinstance(f, Jitted):
            f, _, (args, kwargs) = f.split(args, kwargs)
        self.graph = make_graph(f)(*args, **kwargs)
        self.simplified = simplify(self.graph)
        self._executable = Executable(self.simplified)
        self.hosts = [step for step in self._executable.steps if isinstance(step, Host)]
        self.loops = "\n\n".join(self._executable.texts)
        self.source = "\n\n".join(Printer(p).run() for p in self._executable.programs)

    def __str__(self) -> str:
        e = self._executable
        memory = sum(b.bytes for b in e.schedule.buffers if b.kind in ("input", "output") and b.root is b)
        host = ", ".join(h.equation.primitive.name for h in self.hosts)
        parts = [
            ("graph", str(self.graph)),
            ("simplified", str(self.simplified)),
            ("loops", self.loops),
            ("memory", f"{memory} bytes of arguments and results, {e.work_bytes} bytes of workspace"),
            ("runs on the host, between native parts", host or "nothing"),
            ("source", self.source),
        ]
        return "\n\n".join(f"== {title}\n{text}" for title, text in parts)

    __repr__ = __str__

    def save(self, path: str | pathlib.Path) -> None:
        """Write a module with a function `run(*leaves)` that computes the same numbers without fnad.

        Args:
            path: The file. `run` takes the leaves of the arguments in order and returns the leaves of the result.

        Raises:
            UnsupportedError: part of the function runs on the host.
        """
        e = self._executable
        if self.hosts or len(e.programs) != 1:
            raise UnsupportedError(
                "a function can be saved if all of it is compiled",
                got={"runs on the host": ", ".join(h.equation.primitive.name for h in self.hosts) or "everything"},
            )
        program = e.programs[0]
        lines = []
        memory = [b for b in program.roots if not b.is_register]
        for b in memory:
            if b.kind == "input" and b.position >= len(self.graph.inputs):
                constant = np.asarray(e.constants[b.position - len(self.graph.inputs)])
                lines.append(f"    {b.name} = np.array({constant.ravel().tolist()}, np.{b.dtype.name})")
            elif b.kind == "input":
                lines.append(f"    {b.name} = np.ascontiguousarray(leaves[{b.position}], np.{b.dtype.name}).reshape(-1)")
            else:
                lines.append(f"    {b.name} = np.zeros({max(1, b.bytes // b.dtype.itemsize)}, np.{b.dtype.name})")
        results = ", ".join(f"{b.name}[:{int(np.prod(b.shape))}].reshape({b.shape})" for b in e.results)
        call = ", ".join([*(b.name for b in memory), "sizes", "literals"])
        sizes, literals = e.sizes.tolist(), e.literals.tolist()
        text = (
            f'{_HEADER}\n{self.source}\n\nprogram = numba.njit(error_model="numpy")(program)\n'
            f"sizes, literals = np.array({sizes}), np.array({literals}, float)\n\n\n"
            f"def run(*leaves):\n" + "\n".join(lines) + f"\n    program({call})\n    return [{results}]\n"
        )
        pathlib.Path(path).write_text(text, encoding="utf-8")


def explain(f: Function) -> Callable[..., Explanation]:
    """Show how `fnad.jit(f)` computes: graph, simplified graph, loops, memory, numba source.

    Args:
        f: A function of pytrees of arrays, or what `fnad.jit` made of one.

    Returns:
        A function of the same arguments that returns an `Explanation`: print it, read its attributes, or
        `save(path)` it as a module that runs without fnad.

    Raises:
        ConcretizationError: as `fnad.jit`.

    Example:
        >>> import numpy as np, fnad
        >>> print(fnad.explain(lambda x: np.sum(np.tanh(x) ** 2))(np.ones(3)).simplified)
        inputs    a:float64[3]
          b:float64[3] = tanh a
          c:float64[3] = power b 2
          d:float64[] = sum axis=(0,) c
        outputs   d
    """
    return lambda *args, **kwargs: Explanation(f, args, kwargs)
