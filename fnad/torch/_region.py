"""A call of a function of tensors as one program: arguments and what the function reaches go in, results and what it changes come out.

The function runs once, on tensors whose arrays are traced; its backward passes and optimizer steps run on the tape as ever, and are
recorded. If results can be differentiated, their pullback is recorded as well, and the recording is cut in two: what costs more to
compute again than to keep is a further result of the first part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fnad import tree
from fnad.compiler.simplify import simplify
from fnad.control._bodies import trim
from fnad.control._reverse import is_cheap
from fnad.core.aval import Aval, aval_of
from fnad.core.graph import Equation, Graph, Var, evaluate, record
from fnad.core.primitive import Joint, Primitive
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, ConcretizationError, TracerConversionError, describe_function
from fnad.jit import compile_graph
from fnad.torch._backward import Walk, dense
from fnad.torch._mode import STATE
from fnad.torch._random import draw_key
from fnad.torch._state import State
from fnad.torch._streams import drawing_from
from fnad.torch._tape import Node
from fnad.torch._tensor import Tensor, make
from fnad.transforms.vjp import vjp

_KEY = Aval((2,), np.dtype(np.uint64))
_WEAK = Aval((), np.dtype(np.float64), True)
_FIELDS = ("_data", "_node", "_k", "_req", "_grad", "_view", "_viewed")


class Region:
    """One function, for arguments and a state of one kind.

    Args:
        function: The function.
        args: Its arguments.
        kwargs: Likewise, by name.
        state: What it reaches.
    """

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any, state: State) -> None:
        self.function, self.state = function, state
        leaves, self.spec = tree.flatten((args, kwargs))
        self.given = [x for x in leaves if isinstance(x, Tensor)]
        self.statics = [_SLOT if isinstance(x, Tensor) else x for x in leaves]
        self.given_grads = [x._grad for x in self.given]
        self.kinds = [_kind(x) for x in self.given]
        self.recording = STATE.recording
        self.owners = [t for t in state.tensors if t._grad is not None]
        self.absent = [t for t in state.tensors if t._grad is None]
        self.requires = [t._req for t in state.tensors]
        tensors = [*state.tensors, *[t._grad for t in self.owners]]
        self.numbers = [(group, name) for o in state.optimizers for group in o.param_groups for name in o.traced(group)]
        self.counts = [len(group[name]) if group[name].__class__ is tuple else 0 for group, name in self.numbers]
        self._record(tensors)

    # -- is it still the same? -------------------------------------------------------------------------------------------

    def arguments(self, args: Any, kwargs: Any) -> list[Any] | None:
        """The tensors among the arguments of a call, if it is one of this kind."""
        leaves, spec = tree.flatten((args, kwargs))
        if len(leaves) != len(self.statics) or spec != self.spec:
            return None
        given = []
        for x, old in zip(leaves, self.statics, strict=True):
            if old is _SLOT:
                if not isinstance(x, Tensor):
                    return None
                given.append(x)
            elif x is not old and not (x.__class__ is old.__class__ and _equal(x, old)):
                return None
        return given if [_kind(x) for x in given] == self.kinds else None

    def current(self) -> bool:
        """Whether what the function reaches is of the kind that was recorded; contents and numbers of optimizers may differ."""
        return (
            STATE.recording == self.recording
            and all(t._grad is not None for t in self.owners)
            and all(t._grad is None for t in self.absent)
            and [t._req for t in self.state.tensors] == self.requires
            and self.state.unchanged()
            and [len(g[n]) if g[n].__class__ is tuple else 0 for g, n in self.numbers] == self.counts
        )

    # -- recording -------------------------------------------------------------------------------------------------------

    def _record(self, tensors: list[Any]) -> None:
        all_tensors = [*tensors, *self.given]
        if len({id(t) for t in all_tensors}) != len(all_tensors):
            raise _refused(self.function, "a tensor is passed twice, or both passed and reached in another way", "pass it once")
        avals = self.avals = [aval_of(t._data) for t in all_tensors]
        counts = [max(1, n) for n in self.counts]
        out: dict[str, Any] = {}

        def flat(*given: Any) -> list[Any]:
            traced, numbers = given[: len(all_tensors)], list(given[len(all_tensors) : -1])
            settings = []
            for (group, name), n, count in zip(self.numbers, self.counts, counts, strict=True):
                values, numbers = numbers[:count], numbers[count:]
                settings.append((group, name, tuple(values) if n else values[0]))
            with _replaced(all_tensors, traced, settings), drawing_from(given[-1], True):
                return self._run(all_tensors, traced, out)

        try:
            graph = record(flat, [*avals, *[_WEAK] * sum(counts), _KEY], self.function)
        except (ConcretizationError, TracerConversionError) as error:
            self.state.restore()
            raise ConcretizationError(
                f"torch.compile: {error.rule}",
                got=error.got,
                fix="return the tensor and look at it after the call; torch.where chooses between tensors; what has to look at values "
                "cannot be compiled",
            ) from error
        except BaseException:
            self.state.restore()
            raise
        self.effect, self.made = self.state.changed()
        if self.effect:
            self.state.restore()
            return
        self.changed, self.spec_out, self.results, self.fresh = out["changed"], out["spec"], out["results"], out["fresh"]
        self._check_memory(all_tensors)
        self.draws = any(graph.inputs[-1] in e.inputs for e in graph.equations)
        self._build(graph, out)

    def _run(self, tensors: list[Any], traced: Sequence[Any], out: dict[str, Any]) -> list[Any]:
        """Call the function; its results as arrays: what is changed, new gradients, results, and the pullback of these."""
        given = iter(self.given)
        args, kwargs = tree.unflatten(self.spec, [next(given) if x is _SLOT else x for x in self.statics])
        result = self.function(*args, **kwargs)
        leaves, out["spec"] = tree.flatten(result)
        place = {id(t): k for k, t in enumerate(tensors)}
        out["results"] = [(_SLOT if isinstance(x, Tensor) else x, place.get(id(x))) for x in leaves]
        if any(isinstance(x, Tracer) for x in leaves):
            raise _refused(self.function, "it returns a number that is traced", "return the tensor")
        out["changed"] = [k for k, (t, x) in enumerate(zip(tensors, traced, strict=True)) if t._data is not x]
        lost = [(t, False) for t in self.owners if t._grad is None]
        made = [(t, True) for t in (*self.owners, *self.absent) if t._grad is not None and id(t._grad) not in place]
        if any(t._grad is not g for t, g in zip(self.given, self.given_grads, strict=True)):
            raise _refused(self.function, "it adds to the .grad of an argument", "let the function reach the tensor, as it does a module")
        out["fresh"] = [*lost, *made]
        fresh = [t._grad._data for t, there in out["fresh"] if there]
        tensors_out = [x for x in leaves if isinstance(x, Tensor)]
        values = [*[tensors[k]._data for k in out["changed"]], *fresh, *[x._data for x in tensors_out]]
        out["pulled"], pulled = self._pull(tensors, traced, tensors_out, out)
        return [*values, *pulled]

    def _pull(self, tensors: list[Any], traced: Sequence[Any], outs: list[Any], out: dict[str, Any]) -> tuple[list[int], list[Any]]:
        """The cotangents of the tensors that require gradients, as results; those of the function's results are made here."""
        out["g"], out["asked"] = [], []
        asked = [k for k, x in enumerate(outs) if x._req and x._node is not None and STATE.recording and _is_alive(x._node)]
        if not asked:
            return [], []
        walk = Walk(True, False, None)
        before, STATE.recording = STATE.recording, False
        try:
            for k in asked:
                g = traced[0]._trace.new(Aval(outs[k]._data.shape, outs[k]._data.dtype)) if traced else None
                out["g"].append(g)
                walk.seed(outs[k]._node, outs[k]._k, g)
            walk.run()
        finally:
            STATE.recording = before
        found = {i: dense(g) for i, (_, g) in walk.leaves.items()}
        if not found.keys() <= {id(t) for t in tensors}:
            raise unseen(self.function)
        moving = [k for k, t in enumerate(tensors) if id(t) in found]
        out["asked"] = asked
        return moving, [found[id(tensors[k])] for k in moving]

    def _check_memory(self, tensors: list[Any]) -> None:
        written = {id(_root(tensors[k]._data)) for k in self.changed}
        roots = [id(_root(t._data)) for t in tensors if isinstance(t._data, np.ndarray)]
        if any(roots.count(r) > 1 for r in written):
            raise _refused(self.function, "it changes a tensor that shares its memory with another one", "use one of them inside")

    # -- programs --------------------------------------------------------------------------------------------------------

    def _build(self, graph: Graph, out: dict[str, Any]) -> None:
        self.pulled, self.asked = out["pulled"], out["asked"]
        self.copied: list[int] = []
        self.node: Differentiable | None = None
        first, later = len(graph.outputs) - len(self.pulled), tuple(g.variable for g in out["g"])
        joint = simplify(Graph((*graph.inputs, *later), graph.constants, graph.equations, graph.outputs))
        inputs = joint.inputs[: len(graph.inputs)]
        kept, behind = _cut(joint, later, joint.outputs[first:])
        saved = [v for v in kept if v not in inputs]
        forward = trim(Graph(inputs, joint.constants, joint.equations, (*joint.outputs[:first], *saved)))
        used = {v for e in forward.equations for v in e.inputs} | set(forward.outputs)
        self.taken = [k for k, v in enumerate(inputs) if v in used]
        forward = Graph(tuple(inputs[k] for k in self.taken), forward.constants, forward.equations, forward.outputs)
        self.read = [k for k, v in enumerate(inputs) if v in kept]
        self.copied = [k for k in self.changed if k in self.read]
        donated = frozenset(i for i, k in enumerate(self.taken) if k in self.changed and k not in self.read)
        self.program = compile_graph(forward, donated)
        if self.pulled:
            read = tuple(inputs[k] for k in self.read)
            backward = Graph((*read, *saved, *later), joint.constants, behind, joint.outputs[first:])
            whole = trim(Graph(graph.inputs, graph.constants, graph.equations, graph.outputs[:first]))
            self.node = Differentiable(describe_function(self.function), self, whole, backward)

    def run(self, given: Sequence[Any]) -> Any:
        """Run the program and do what the function would have done."""
        tensors = [*self.state.tensors, *[t._grad for t in self.owners], *given]
        numbers = [x for group, name in self.numbers for x in (group[name] if group[name].__class__ is tuple else (group[name],))]
        arrays = [*[t._data for t in tensors], *numbers, draw_key() if self.draws else _NO_KEY]
        taken = [arrays[k] for k in self.taken]
        outs = self.program.run(taken)
        if outs is None:
            if [aval_of(t._data) for t in tensors] != self.avals:
                return MISFIT
            outs = self.program.convert(taken)
        for k in self.copied:
            arrays[k] = np.array(arrays[k])
        found = iter(outs)
        for k in self.changed:
            t, x = tensors[k], next(found)
            if x is not t._data:
                np.copyto(t._data, x)
            t._counter[0] += 1
        for t, there in self.fresh:
            t._grad = make(_array(next(found))) if there else None
        leaves = []
        for x, place in self.results:
            value = _array(next(found)) if x is _SLOT else x
            leaves.append(tensors[place] if place is not None else make(value) if x is _SLOT else x)
        if self.node is not None:
            self.node.attach([x for x, (kind, _) in zip(leaves, self.results, strict=True) if kind is _SLOT], tensors, arrays, [*found])
        return tree.unflatten(self.spec_out, leaves)


class Differentiable(Primitive):
    """The operation that a compiled function is on the tape."""

    multiple = True

    def __init__(self, name: str, region: Region, graph: Graph, backward: Graph) -> None:
        super().__init__(name, register=False)
        self.region, self.graph, self.backward = region, graph, backward
        self._program: Any = None

    def attach(self, outs: list[Any], tensors: list[Any], arrays: list[Any], saved: list[Any]) -> None:
        """Put the results on the tape."""
        region = self.region
        asked = [outs[k] for k in region.asked]
        edges: list[Any] = [None] * len(arrays)
        for k in region.pulled:
            t = tensors[k]
            edges[k] = (t if t._node is None else t._node, t._k)
        node = Node(self, {}, edges, None, [aval_of(x._data) for x in asked])
        held = [arrays[k] for k in region.read]
        node.pulls = Joint(lambda g: self.pull([*held, *saved, *g], len(arrays)))
        counters = [tensors[k]._counter if k < len(tensors) else None for k in range(len(arrays))]
        node.guards = [(counters[k], counters[k][0]) for k in region.read if counters[k] is not None]  # type: ignore[index]
        node.saved, node.keeps = (arrays, counters), True
        for k, x in enumerate(asked):
            x._node, x._k, x._req = node, k, True

    def pull(self, arrays: list[Any], count: int) -> list[Any]:
        if self._program is None:
            self._program = compile_graph(self.backward, frozenset())
        found = self._program.run(arrays)
        answers: list[Any] = [None] * count
        for k, g in zip(self.region.pulled, self._program.convert(arrays) if found is None else found, strict=True):
            answers[k] = g
        return answers

    def forward(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Joint]:
        """For derivatives of derivatives, where the arguments are traced: operation by operation."""
        region = self.region

        def of(*moving: Any) -> Any:
            full = list(args)
            for k, x in zip(region.pulled, moving, strict=True):
                full[k] = x
            results = evaluate(self.graph, full)[-sum(x is _SLOT for x, _ in region.results) :]
            return tuple(results[k] for k in region.asked)

        out, pull = vjp(of, *[args[k] for k in region.pulled])

        def spread(g: Any) -> list[Any]:
            answers: list[Any] = [None] * len(args)
            for k, x in zip(region.pulled, pull(tuple(g)), strict=True):
                answers[k] = x
            return answers

        return out, Joint(spread)


def _cut(joint: Graph, later: Sequence[Var], wanted: Sequence[Any]) -> tuple[list[Var], tuple[Equation, ...]]:
    """The values that the way back takes from the way forth, and the equations of the way back."""
    behind = set(later)
    for e in joint.equations:
        if any(isinstance(v, Var) and v in behind for v in e.inputs):
            behind.update(e.outputs)
    outer = {*joint.inputs, *(v for v, _ in joint.constants)}
    needed = {v for v in wanted if isinstance(v, Var)}
    kept: dict[Var, None] = {v: None for v in needed if v in joint.inputs and v not in later}
    equations: list[Equation] = []
    for e in reversed(joint.equations):
        hit = [o for o in e.outputs if o in needed]
        if not hit:
            continue
        if e.outputs[0] not in behind and not is_cheap(e):
            kept.update(dict.fromkeys(hit))
            continue
        equations.append(e)
        for v in e.inputs:
            if isinstance(v, Var):
                needed.add(v)
                if v in outer and v in joint.inputs and v not in later:
                    kept[v] = None
    return list(kept), tuple(reversed(equations))


@contextmanager
def _replaced(tensors: Sequence[Any], traced: Sequence[Any], settings: list[Any]) -> Iterator[None]:
    """Inside, tensors hold traced arrays and are leaves, and groups hold traced numbers."""
    before = [[getattr(t, f) for f in _FIELDS] for t in tensors]
    counters = [(t, t._counter) for t in tensors]
    numbers = [(group, name, group[name]) for group, name, _ in settings]
    try:
        for t, x in zip(tensors, traced, strict=True):
            t._data, t._node, t._k, t._view, t._viewed, t._counter = x, None, 0, None, False, [0]
        for group, name, value in settings:
            group[name] = value
        STATE.known = frozenset(map(id, tensors))
        yield
    finally:
        STATE.known = None
        for t, values in zip(tensors, before, strict=True):
            for f, value in zip(_FIELDS, values, strict=True):
                setattr(t, f, value)
        for t, counter in counters:
            t._counter = counter
        for group, name, value in numbers:
            group[name] = value


class _Slot:
    """Stands for a tensor among the leaves."""

    def __repr__(self) -> str:
        return "tensor"


_SLOT = _Slot()
_NO_KEY = np.zeros(2, np.uint64)


def _kind(t: Any) -> Any:
    return t._data.shape, t._data.dtype, t._req


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:  # a class of the user's
        return False


def _array(x: Any) -> Any:
    return x if x.__class__ is np.ndarray else np.asarray(x)


def _root(a: Any) -> Any:
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a


def _is_alive(node: Any) -> bool:
    """Whether no backward pass has let go of what the node, or one that it depends on, keeps."""
    stack, seen = [node], set()
    while stack:
        n = stack.pop()
        if n.__class__ is Node and id(n) not in seen:
            seen.add(id(n))
            if n.pulls is None:
                return False
            stack.extend(e[0] for e in n.edges if e is not None)
    return True


class _Misfit:
    """What a region answers whose tensors have other shapes or dtypes than when it was recorded."""


MISFIT = _Misfit()


def refuse_effect(region: Region) -> ArgumentError:
    what = f"it changes {region.effect}, which a compiled call would not do again"
    return _refused(region.function, what, "change it outside of the function; tensors may be changed in place")


def unseen(function: Any) -> ArgumentError:
    what = "it reaches a tensor that requires gradients in a way that is not seen"
    return _refused(function, what, "hold it in a module, in a variable that the function names, or pass it as an argument")


def _refused(function: Any, what: str, fix: str) -> ArgumentError:
    return ArgumentError(f"torch.compile: {what}", got={"function": describe_function(function)}, fix=fix)
