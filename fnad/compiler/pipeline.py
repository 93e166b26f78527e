"""A graph as a native program: planned, printed, keyed by its text, compiled once."""

from __future__ import annotations

import collections
import contextlib
import functools
import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fnad._blas import scipy_on_one_thread
from fnad._threads import threads
from fnad.compiler import host, workspaces
from fnad.compiler.groups import parts
from fnad.compiler.program import Buffer, Gemm, Host, Loop, Node, endless, stands_alone, straight, touched
from fnad.compiler.schedule import Schedule
from fnad.compiler.simplify import is_uniform
from fnad.compiler.simplify import simplify as simplify
from fnad.core.aval import Aval, aval_of
from fnad.core.graph import Graph, Var, evaluate_until
from fnad.errors import BoundsError, ShapeError
from fnad.kernels.codegen import expr as ex
from fnad.kernels.codegen.callback import OWNER, ended, register
from fnad.kernels.codegen.entry import ARRAY, NOTHING, SCALAR, TAKEN, Code, Input, Output, entry
from fnad.kernels.codegen.load import native
from fnad.kernels.codegen.load import step as run_step
from fnad.kernels.codegen.products import BY_BLAS
from fnad.kernels.codegen.text import describe

_ALIGN = 64
_BRIEF = 1 << 14  # bytes; while a program works on less it keeps Python's lock, for taking it again would take longer
_MANY = 24  # nodes from which what several use is in memory, so that one function can serve those that look alike
_STACK = 1 << 14  # bytes of workspace that are taken from the stack
asarray = np.asarray
_ZERO, _ONE = ex.const(0, "i64"), ex.const(1, "i64")
_UNUSED = np.empty(0)  # stands where a constant is written into the code


class Program:
    """What a native part of a schedule needs to be printed: nodes, addresses, names."""

    def __init__(self, schedule: Schedule, nodes: Sequence[Node], slots: dict[Buffer, int]) -> None:
        self.schedule, self.nodes, self._slots = schedule, nodes, slots
        self.name = ""
        self.touched = [{b.root for side in touched(n) for b in side} for n in nodes]
        self.roots = sorted(set().union(*self.touched), key=lambda b: int(b.name[1:]))
        self._variables: dict[Any, list[str]] = {}
        self._entries: dict[Buffer, Any] = {}
        for var in schedule.fuser.merged():
            self._variables.setdefault(schedule.fuser.canonical(var), []).append(var.attr)

    def slot(self, root: Buffer) -> int:
        return self._slots[root]

    def strides(self, buffer: Buffer) -> list[Any]:
        return strides(buffer, self.schedule)

    def offset(self, buffer: Buffer, index: Sequence[Any]) -> Any:
        """Where an entry lies in a buffer's memory, in entries; None is the beginning."""
        total = None
        for axis in buffer.axes:
            if buffer.shape[axis] == 1 or index[axis] is _ZERO:
                continue
            stride = self.strides(buffer)[axis]
            term = index[axis] if stride is _ONE else index[axis] * stride
            total = term if total is None else total + term
        if buffer.shift is not None:
            total = buffer.shift if total is None else total + buffer.shift
        return total

    def entries(self, buffer: Buffer) -> Any:
        """How many entries of a buffer are stored, as an expression."""
        if buffer not in self._entries:
            self._entries[buffer] = self.schedule.numbers.size(buffer.bytes // buffer.dtype.itemsize)
        return self._entries[buffer]

    def variables(self, loop: Loop) -> list[str]:
        """The names that a loop's counter goes by: its own, and those of the loops merged into it."""
        return [loop.var.attr, *self._variables.get(loop.var, ())]


def strides(buffer: Buffer, schedule: Schedule) -> list[Any]:
    """Steps in memory along each stored axis, as expressions; 1 along the last."""
    root = buffer.root
    if root is not buffer and (root.shape, root.axes) == (buffer.shape, buffer.axes):
        return strides(root, schedule)  # the same expressions, so that LLVM sees where both are accessed at the same place
    if buffer.strides is None:
        out: list[Any] = [None] * len(buffer.shape)
        step = 1
        for axis in reversed(buffer.axes):
            out[axis] = schedule.numbers.size(step)
            step *= buffer.shape[axis]
        buffer.strides = out
    return buffer.strides


class Executable:
    """A compiled graph. Call it with the inputs as C-contiguous arrays of the recorded shapes and dtypes."""

    def __init__(self, graph: Graph, donated: frozenset[int] = frozenset(), recorded: Graph | None = None, *, apart: bool = False) -> None:
        """`donated` are positions of inputs whose memory may be used; with `apart` each group is a native part of its own."""
        self.graph, self._recorded = graph, recorded or graph
        schedule = self.schedule = Schedule.of(graph, donated)
        cut = _native_parts(schedule.nodes, apart)
        self.work_bytes = plan(schedule, cut)
        slots: dict[Buffer, int] = {}
        for b in schedule.buffers:
            if b.kind == "input":
                slots[b] = b.position
        first = len(graph.inputs) + len(graph.constants)
        self.results = [b for b in schedule.buffers if b.kind == "output"]
        self.results.sort(key=lambda b: b.position)
        for k, b in enumerate(b for b in self.results if b.root is b):
            slots[b] = first + k
        self.slots = slots
        self.calls = [*host.calls(schedule.nodes)]
        for k, call in enumerate(self.calls):
            call.number = k
        self._owner = register(self) if self.calls else 0
        self._raised: dict[int, BaseException] = {}  # by workspace
        self.steps: list[Any] = []
        self.programs: list[Program] = []
        self.texts: list[str] = []
        for part in cut:
            self.steps.append(part[0] if stands_alone(part[0]) else self._native(part, slots))
        self.sizes = np.array(schedule.numbers.sizes or [0], np.int64)
        self.literals = np.array(schedule.numbers.literals or [0], np.float64)
        self.constants = tuple(_UNUSED if is_uniform(value) else value for _, value in graph.constants)
        self.given = frozenset(b.root.position for b in self.results if b.root is not b)
        """Positions of the inputs whose memory becomes that of results."""
        self._work: list[tuple[Any, int]] = []  # small workspaces that are not in use
        self._whole = not apart and len(self.steps) == 1 and not isinstance(self.steps[0], Host)
        self._blas = scipy_on_one_thread() if BY_BLAS and any("gemm" in text for text in self.texts) else None
        self._parallel = any(isinstance(n, Loop | Gemm) and n.parts is not None for n in straight(schedule.nodes))
        self._checked = any(schedule.flag in touched(n)[0] for n in schedule.nodes)
        in_python = (self._checked and self.given) or self._parallel or self._blas or self.calls
        self._simple = self._whole and self.work_bytes <= _STACK and not in_python
        held = [
            as_argument(x, v.aval) if x.ndim and x is not _UNUSED else x for (v, _), x in zip(graph.constants, self.constants, strict=True)
        ]
        self._held = tuple(held)
        self._copies = [(copy, x) for copy, x in zip(held, self.constants, strict=True) if x.size and not np.may_share_memory(copy, x)]
        self._enter = self._entry(self._held)
        run = self._enter if self._simple else self.call
        self.run = functools.partial(self._refresh, run) if self._copies else run
        """The outputs for C-contiguous inputs of the recorded shapes and dtypes; None if one (or a constant) is not."""

    def _native(self, nodes: list[Node], slots: dict[Buffer, int]) -> Any:
        program = Program(self.schedule, nodes, slots)
        text = describe(program)
        self.programs.append(program)
        self.texts.append(text)
        program.name = "f" + hashlib.sha256(text.encode()).hexdigest()[:24]
        self.schedule.numbers.closed = True  # the text has named them all
        try:
            return native(program.name, text, program)
        finally:
            self.schedule.numbers.closed = False

    def _entry(self, constants: tuple[Any, ...]) -> Callable[..., list[Any] | None]:
        """What checks the inputs, makes the results and, if there is nothing to do in Python meanwhile, computes them."""
        numbers = self.sizes.ctypes.data, self.literals.ctypes.data
        work = self.work_bytes + sum(b.bytes for b in self.schedule.buffers if b.kind in ("input", "output") and b.root is b)
        release = work > _BRIEF or endless(self.schedule.nodes)

        def output(b: Buffer) -> Output:
            scalar = self._whole and b.shape == ()
            return Output(b.shape, b.dtype, SCALAR if scalar else ARRAY) if b.root is b else Output((), b.dtype, TAKEN, b.root.position)

        return entry(
            [Input(v.aval.shape, v.aval.dtype, v.aval.weak, k in self.given) for k, v in enumerate(self.graph.inputs)],
            constants,
            [output(b) for b in self.results],
            Code(self.steps[0], *numbers, release, self.work_bytes * self._simple) if self._whole else NOTHING,
        )

    def _refresh(self, run: Callable[..., list[Any] | None], inputs: Sequence[Any]) -> list[Any] | None:
        """Run with the present entries of closed-over arrays that are no C-contiguous ones."""
        for copy, x in self._copies:
            if copy.shape != x.shape:
                return None
            copy[...] = x
        return run(inputs)

    def convert(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs for inputs and closed-over arrays of any layout, Python scalars included."""
        arrays = [as_argument(x, v.aval) for x, v in zip(inputs, self.graph.inputs, strict=True)]
        outs = self.run(arrays)
        if outs is None:
            arrays = [np.array(x) if k in self.given else x for k, x in enumerate(arrays)]
            constants = self._current()
            outs = self.call(arrays, self._entry(constants), constants)
        if outs is None:
            raise TypeError("arguments of a compiled function changed while it was called")
        return outs

    def _current(self) -> tuple[Any, ...]:
        """The closed-over arrays as the program takes them."""
        out = []
        for (var, _), x in zip(self.graph.constants, self.constants, strict=True):
            if x is not _UNUSED and x.shape != var.aval.shape:
                raise ShapeError(
                    "an array that a compiled function closes over has another shape than when the function was recorded",
                    got={"recorded": var.aval, "now": aval_of(x)},
                    fix="pass it as an argument, or make a new array and compile the function again",
                )
            out.append(x if x is _UNUSED else as_argument(x, var.aval))
        return tuple(out)

    def call(self, inputs: Sequence[Any], enter: Any = None, constants: tuple[Any, ...] | None = None) -> list[Any] | None:
        """What `run` does, with a workspace and whatever else has to be done in Python."""
        enter = enter or self._enter
        try:
            work, base = self._work.pop()
        except IndexError:
            work, base = self._workspace()
        if self._blas is None:
            outs: list[Any] | None = enter(inputs, base)
        else:
            with self._blas:
                outs = enter(inputs, base)
        if outs is None:
            self._keep(work, base)
            return None
        self._raise(base)
        if not self._whole:
            new = (x for x, b in zip(outs, self.results, strict=True) if b.root is b)
            self._run((*inputs, *(self._held if constants is None else constants), *new), work, base)
            outs = [x if x.ndim else x[()] for x in outs]
        if self._checked and work[base - work.ctypes.data]:
            return self._step_by_step(inputs)
        self._keep(work, base)  # only now may another thread take it
        return outs

    def _step_by_step(self, inputs: Sequence[Any]) -> list[Any]:
        """Compute what native code could not: an index is out of bounds, or an integer does not fit."""
        if self.given:  # they have been overwritten
            raise BoundsError(
                "an index is out of bounds for the axis that it indexes, or a Python integer too large (in a compiled function)"
            )
        outs, failed = evaluate_until(self._recorded, inputs, (IndexError, OverflowError))
        if failed is None:
            return [np.array(o, v.aval.dtype)[()] if isinstance(v, Var) else o for o, v in zip(outs, self._recorded.outputs, strict=True)]
        equation, error = failed
        if isinstance(error, OverflowError):
            raise OverflowError(f"{error} (in a compiled function, at {equation.line})") from error
        rule, got, fix = (error.rule, error.got, error.fix) if isinstance(error, BoundsError) else (str(error), {}, "")
        raise BoundsError(f"{rule} (in a compiled function)", got={**got, "at": equation.line}, fix=fix)

    def _run(self, arrays: tuple[Any, ...], work: Any, base: int) -> None:
        """Native parts and operations on the host in turn."""
        arrays = tuple(map(asarray, arrays))
        data = np.array([x.ctypes.data for x in arrays], np.int64)
        numbers = data.ctypes.data, self.sizes.ctypes.data, self.literals.ctypes.data
        with self._blas or contextlib.nullcontext():
            self._run_all(
                functools.partial(self._host, step, arrays, work, base)
                if isinstance(step, Host)
                else functools.partial(self._native_step, step, numbers, base)
                for step in self.steps
            )

    def _native_step(self, step: int, numbers: Sequence[int], base: int) -> None:
        run_step()(step, *numbers, base)
        self._raise(base)

    def _raise(self, base: int) -> None:
        """Go on with an error of a call out of native code."""
        if self.calls and ended(base):
            raise self._raised.pop(base, None) or KeyboardInterrupt("while an operation ran on the host")

    def _run_all(self, calls: Iterator[Callable[[], None]]) -> None:
        for call in calls:
            call()

    def _keep(self, work: Any, base: int) -> None:
        if self.work_bytes < workspaces.LARGE:
            self._work.append((work, base))
        else:
            workspaces.give_back(work, base)

    def _workspace(self) -> tuple[Any, int]:
        work, base = (workspaces.make if self.work_bytes < workspaces.LARGE else workspaces.take)(self.work_bytes)
        start = base - work.ctypes.data
        work[start : start + _ALIGN] = 0
        work[start + OWNER : start + OWNER + 8].view(np.int64)[0] = self._owner
        if self._parallel:
            work[start + 8 : start + 16].view(np.int64)[0] = threads()
        return work, base

    def _host(self, node: Host, arrays: tuple[Any, ...], work: Any, base: int) -> None:
        """Run a primitive that is not compiled on the buffers of the program."""
        start = base - work.ctypes.data

        def array(b: Any) -> Any:
            if b.root.kind in ("input", "output"):
                return arrays[self.slots[b.root]].reshape(b.shape)
            offset = start + b.root.place
            return work[offset : offset + b.bytes].view(b.dtype).reshape(b.shape)

        host.run(node, array)

    def answer(self, work: int, number: int, addresses: int) -> bool:
        """Run a call out of native code. An error is kept until the native part has returned."""
        try:
            host.run_at(self.calls[number], addresses)
        except BaseException as error:
            self._raised[work] = error
        return work not in self._raised


def as_argument(x: Any, aval: Aval) -> Any:
    """A leaf as the program takes it: an aligned C-contiguous array of native byte order; a Python scalar where one was recorded."""
    if aval.shape:
        made = np.require(np.asarray(x), aval.dtype, ["C", "A"])
        return made if made.dtype is np.dtype(aval.dtype) else made.view(aval.dtype)  # dtypes may be equal and not the same
    point = np.asarray(x, aval.dtype)
    return point.item() if aval.weak else point


def _native_parts(nodes: Sequence[Node], apart: bool) -> list[list[Node]]:
    """The native parts and the operations on the host, in order; the latter stand alone."""
    if apart:
        return [run for part in parts(nodes) for run in _native_parts(part, False)]
    return [list(run) for _, run in itertools.groupby(nodes, key=lambda node: node if stands_alone(node) else None)]


def _between_parts(cut: Sequence[Sequence[Node]]) -> set[Buffer]:
    """Buffers used by more than one part: they cannot be registers."""
    seen: dict[Buffer, int] = {}
    several = set()
    for number, part in enumerate(cut):
        for side in (side for node in part for side in touched(node)):
            several |= {b for b in side if seen.setdefault(b, number) != number}
    return several


def _aligned(n: int) -> int:
    """The next multiple of the alignment."""
    return -(-n // _ALIGN) * _ALIGN


def plan(schedule: Schedule, cut: Sequence[Sequence[Node]]) -> int:
    """Offsets of the temporaries in one workspace, reused after their last use; its size in bytes."""
    last: dict[Buffer, int] = {}
    first: dict[Buffer, int] = {}
    for k, node in enumerate(schedule.nodes):
        for side in touched(node):
            for b in side:
                first.setdefault(b, k)
                last[b] = k
    shared, copies = _parts(schedule, cut)
    if len(schedule.nodes) > _MANY:
        shared |= {b for b in first if first[b] != last[b]}
    temps = (b for b in first if b.kind in ("temp", "carry") and (b.axes or b in shared or b in copies))
    begins: dict[int, list[Buffer]] = {}
    for b in sorted(temps, key=lambda b: (first[b], int(b.name[1:]))):
        begins.setdefault(first[b], []).append(b)
    space = _Space()
    placed: set[Buffer] = set()
    ends: dict[int, list[tuple[int, int]]] = {}
    for k, node in enumerate(schedule.nodes):
        for b in begins.get(k, ()):
            own = _aligned(b.bytes)
            claimed = space.claim(own * (1 + copies.get(b, 0)))
            ends.setdefault(last[b], []).append(claimed)
            b.place = claimed[1]
            b.offset = schedule.numbers.size(b.place)
            if b in copies:
                b.spacing = schedule.numbers.size(own)
        for n in (n for n in straight([node]) if isinstance(n, Loop | Gemm) and n.parts is not None):
            for b in n.parts.private:
                if b.kind != "temp" and b not in placed:  # copies of an accumulator that is itself a result; one place for all loops
                    placed.add(b)
                    own = _aligned(b.bytes)
                    b.offset = schedule.numbers.size(space.claim(own * (1 + copies[b]))[1])
                    b.spacing = schedule.numbers.size(own)
        space.free += ends.get(k, ())
    return space.top


class _Space:
    """A workspace that grows as pieces of it are claimed; pieces that are free again are claimed first."""

    def __init__(self) -> None:
        self.free: list[tuple[int, int]] = []  # (size, offset)
        self.top = _ALIGN  # the flag comes first

    def claim(self, size: int) -> tuple[int, int]:
        fit = min((f for f in self.free if f[0] >= size), default=None)
        if fit is not None:
            self.free.remove(fit)
            return fit
        self.top += size
        return size, self.top - size


def _parts(schedule: Schedule, cut: Sequence[Sequence[Node]]) -> tuple[set[Buffer], dict[Buffer, int]]:
    """Temporaries that more than one thread or the host sees, and how many copies those of loops in parts need."""
    nodes = [*straight(schedule.nodes)]
    outside = [*(n for n in nodes if isinstance(n, Host)), *host.calls(schedule.nodes)]
    shared = {b for node in outside for side in touched(node) for b in side}
    shared |= {b.root for node in nodes if isinstance(node, Gemm) for b in (node.out, *node.inputs)}
    shared |= _between_parts(cut)
    copies: dict[Buffer, int] = {}
    uses = collections.Counter(b for node in nodes for b in set().union(*touched(node)))
    for node in nodes:
        if isinstance(node, Gemm) and node.after:  # its loops are a function of their own
            shared |= {b for side in touched(node.after) for b in side if b.kind == "temp" and uses[b] > 1}
        if isinstance(node, Loop | Gemm) and node.parts is not None:
            node.parts.size = schedule.numbers.size(node.parts.length)
            inside = {b for side in touched(node) for b in side}
            shared |= {b for b in inside if b.kind == "temp" and b not in node.parts.private}
            for b in node.parts.private:
                if node.parts.private[b] is not None or b.axes:
                    copies[b] = max(node.parts.count, copies.get(b, 0))
    return shared, copies
