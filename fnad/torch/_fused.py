"""Whole functions as one node: the function and its pullback are native programs.

Eager operations cost a few microseconds each, whatever their size. A layer or a loss is known as a whole, so `fnad.jit` compiles it and
its pullback when it is first called with some options and some dtypes; sizes may change. The pullback computes anew what it needs of the
forward pass, so a node keeps the arguments alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.core.graph import make_graph
from fnad.core.primitive import Joint, Primitive
from fnad.core.tracer import Tracer
from fnad.jit import jit
from fnad.torch import _views
from fnad.torch._call import run
from fnad.torch._mode import STATE
from fnad.torch._tape import Edge, Node
from fnad.torch._tensor import Tensor, make
from fnad.transforms.vjp import vjp


class _Slot:
    """Stands for a tensor among the arguments."""

    def __repr__(self) -> str:
        return "tensor"


SLOT = _Slot()


class Fused(Primitive):
    """A function of arrays with given options, compiled.

    Args:
        function: The function.
        args: Its positional arguments, with `SLOT` in place of arrays.
        kwargs: Its keyword arguments, likewise.
        asked: The numbers of the arrays that are differentiated.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: tuple[Any, ...], asked: tuple[int, ...]) -> None:
        super().__init__(function.__name__, register=False)

        def call(*arrays: Any) -> Any:
            given = iter(arrays)
            return function(*[next(given) if a is SLOT else a for a in args], **{k: next(given) if v is SLOT else v for k, v in kwargs})

        def pull(g: Any, *arrays: Any) -> Any:
            def of(*moving: Any) -> Any:
                full = list(arrays)
                for i, x in zip(asked, moving, strict=True):
                    full[i] = x
                return call(*full)

            return vjp(of, *[arrays[i] for i in asked])[1](g)

        self.call, self.pull, self.asked = call, pull, asked
        self.run_forward, self.run_backward = jit(call), jit(pull)
        self.read: tuple[int, ...] | None = None
        """Which arrays the pullback reads; known after the first call."""
        self.several = False
        """Whether the function returns several arrays, and is not run as one node."""

    def find_read(self, g: Any, values: Sequence[Any]) -> tuple[int, ...]:
        graph = make_graph(self.pull)(np.zeros(np.shape(g), g.dtype), *values)
        live = {id(x) for x in graph.outputs}
        for e in reversed(graph.equations):
            if any(id(x) in live for x in e.outputs):
                live.update(id(x) for x in e.inputs)
        self.read = tuple(k for k, x in enumerate(graph.inputs[1:]) if id(x) in live)
        return self.read

    def forward(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Joint]:
        """For derivatives of derivatives, where the arguments are traced: operation by operation."""

        def of(*moving: Any) -> Any:
            full = list(args)
            for i, x in zip(self.asked, moving, strict=True):
                full[i] = x
            return self.call(*full)

        out, pull = vjp(of, *[args[i] for i in self.asked])
        return out, Joint(lambda g: self.spread(pull(g), len(args)))

    def spread(self, answers: Sequence[Any], count: int) -> list[Any]:
        out: list[Any] = [None] * count
        for i, x in zip(self.asked, answers, strict=True):
            out[i] = x
        return out

    def answer(self, values: list[Any], g: Any) -> list[Any]:
        return self.spread(self.run_backward(g, *values), len(values))


_MOST = 1024
"""How many programs a function keeps."""


def fused(function: Callable[..., Any], fits: Callable[[list[Any]], bool] | None = None) -> Callable[..., Any]:
    """The function of tensors that a function of arrays is, as one node.

    Args:
        function: The function.
        fits: Whether arrays are small enough for a program that needs much memory; otherwise it runs operation by operation.
    """
    programs: dict[Any, Fused] = {}

    def find(statics: tuple[Any, ...], named: tuple[Any, ...], asked: tuple[int, ...]) -> Fused:
        # Equal options of different types (1 and True, 0.0 and -0.0) are different.
        key = statics, named, asked, tuple([_kind(a) for a in (*statics, *[v for _, v in named])])
        found = programs.get(key)
        if found is None:
            if len(programs) >= _MOST:
                programs.clear()
            found = programs[key] = Fused(function, statics, named, asked)
        return found

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        tensors: list[Any] = []
        edges: list[Edge] = []
        recording = STATE.recording

        def meet(a: Any) -> Any:
            if not isinstance(a, Tensor):
                return _static(a)
            if a._view is not None:
                _views.refresh(a)
            if isinstance(a._data, Tracer):
                raise _NotFused
            tensors.append(a)
            edges.append(((a, 0) if a._node is None else (a._node, a._k)) if a._req and recording else None)
            return SLOT

        try:
            statics = tuple([meet(a) for a in args])
            named = tuple([(k, meet(v)) for k, v in kwargs.items()]) if kwargs else ()
            asked = tuple([k for k, e in enumerate(edges) if e is not None])
            program = find(statics, named, asked)
        except (_NotFused, TypeError):  # TypeError: an option that is no key
            return run(function, args, kwargs)
        values = [t._data for t in tensors]
        out = program.run_forward(*values) if not program.several and (fits is None or fits(values)) else ()
        if out.__class__ is tuple:
            program.several = program.several or out != ()
            return run(function, args, kwargs)
        result = make(out if out.__class__ is np.ndarray else np.asarray(out))
        if asked:
            result._node, result._req = _node(program, values, tensors, edges, out), True
        return result

    return call


class _NotFused(Exception):
    """Arguments for which a function runs operation by operation."""


def _static(a: Any) -> Any:
    if a.__class__ is list:
        a = tuple(a)
    if a.__class__ is tuple and any(isinstance(x, Tensor) for x in a):
        raise _NotFused
    return a


def _node(program: Fused, values: list[Any], tensors: list[Any], edges: list[Edge], out: Any) -> Node:
    node = Node(program, _NONE, edges, Joint(functools.partial(program.answer, values)), out.dtype)
    read = program.read if program.read is not None else program.find_read(out, values)
    counters = [t._counter for t in tensors]
    node.guards = [(counters[k], counters[k][0]) for k in read]
    node.saved, node.keeps = (values, counters), True
    return node


def _kind(a: Any) -> Any:
    return repr(a) if a.__class__ is float and a == 0 else a.__class__


_NONE: dict[str, Any] = {}
