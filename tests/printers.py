"""Runs the readable source of a compiled program as plain Python, and compares it with what the native program computed."""

from __future__ import annotations

import functools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from fnad.compiler import host
from fnad.compiler.program import Branch, Gemm, Host, Loop, Store, While
from fnad.explanation import printed
from fnad.kernels.codegen.graph import ordered

PLAIN = SimpleNamespace(njit=lambda f: f)
TOLERANCE = {4: 2e-5, 8: 1e-11}


def work(nodes: Any) -> float:
    """Scalar operations that a program takes."""
    total = 0.0
    for node in nodes:
        if isinstance(node, Loop):
            total += node.extent * (1 + work(node.body))
        elif isinstance(node, Store):
            total += len(ordered([node.value])) + len(node.loads)
        elif isinstance(node, Gemm):
            total += 50 * node.batch + (work([node.after]) if node.after else 0)
        elif isinstance(node, While | Branch):
            total += sum(map(work, node.bodies)) * (100 if isinstance(node, While) else 1)
    return total


def run(executable: Any, arrays: Any) -> list[np.ndarray[Any, Any]]:
    """The results of a program, by its source; `arrays` are the inputs and closed-over arrays."""
    memory: dict[Any, np.ndarray[Any, Any]] = {}

    def flat(b: Any) -> np.ndarray[Any, Any]:
        root = b.root
        if root not in memory:
            if root.kind == "input":
                memory[root] = np.array(arrays[root.position], root.dtype).reshape(-1)
            else:
                memory[root] = np.zeros(max(1, root.bytes // root.dtype.itemsize), root.dtype)
        return memory[root]

    def whole(b: Any) -> np.ndarray[Any, Any]:
        return flat(b)[: math.prod(b.shape)].reshape(b.shape)

    programs = iter(executable.programs)
    with np.errstate(all="ignore"):
        for step in executable.steps:
            if isinstance(step, Host):
                host.run(step, whole)
            else:
                program = next(programs)
                names: dict[str, Any] = {"np": np, "math": math, "numba": PLAIN}
                names.update((f"{c.equation.primitive.name}_{c.number}", functools.partial(call, c)) for c in executable.calls)
                exec(printed(program), names)
                buffers = [flat(b) for b in program.roots if not b.is_register]
                names["program"](*buffers, executable.sizes, executable.literals)
    return [whole(b) for b in executable.results]


def call(node: Host, *memory: np.ndarray[Any, Any]) -> None:
    """An operation inside of a loop or branch, on its buffers from where they begin."""
    where = dict(zip(node.buffers, memory, strict=True))
    host.run(node, lambda b: where[b][: math.prod(b.shape)].reshape(b.shape))


def compare(executable: Any, arrays: Any, outs: Any) -> None:
    """Both printers must agree, up to the order of sums and the contraction of products."""
    for k, (mine, native) in enumerate(zip(run(executable, arrays), outs, strict=True)):
        native = np.asarray(native)
        assert (mine.dtype, mine.shape) == (native.dtype, native.shape)
        if mine.dtype.kind not in "fc":
            np.testing.assert_array_equal(mine, native, err_msg=describe(executable, k))
            continue
        rtol = TOLERANCE[mine.real.itemsize]
        scale = max(largest([native]), min(1, largest(arrays)))  # what sums may cancel from
        np.testing.assert_allclose(mine, native, rtol=rtol, atol=rtol * scale, err_msg=describe(executable, k))


def largest(arrays: Any) -> float:
    """The largest finite entry."""
    found = [np.abs(x[np.isfinite(x)]).max(initial=0) for x in map(np.asarray, arrays)]
    return float(max(found, default=0))


def describe(executable: Any, k: int) -> str:
    return f"result {k}: the source computes another value than the native program\n\n{executable.graph}\n\n" + "\n\n".join(
        executable.texts
    )
