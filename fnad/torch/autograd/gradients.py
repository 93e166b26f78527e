"""Gradients by the tape, hooks of tensors, and operations of one's own."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import aval_of
from fnad.core.tracer import Tracer
from fnad.errors import UnsupportedError
from fnad.torch import _views
from fnad.torch._mode import STATE, no_grad
from fnad.torch._passes import as_tuple, gradients
from fnad.torch._passes import backward as pass_back
from fnad.torch._tape import Node, Own, TapeTracer
from fnad.torch._tensor import Tensor, make, method


def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Add to the `.grad` of every leaf the gradient of the sum of `tensors`, each weighted by its `grad_tensors`.

    Args:
        tensors: A tensor or a sequence of them.
        grad_tensors: Weights of the same shapes; None stands for 1 and needs a tensor of one entry.
        retain_graph: Whether the graph can be used again; `create_graph` if it is left out.
        create_graph: Whether the gradients can be differentiated in turn.
        inputs: The only leaves to add to.

    Raises:
        RuntimeError: a tensor requires no gradients, the graph has been used already, or something it needs was changed in place.

    Reference: `torch.autograd.backward` of PyTorch 2.13.
    """
    tensors = as_tuple(tensors)
    grads = (None,) * len(tensors) if grad_tensors is None else as_tuple(grad_tensors)
    if inputs is None:
        pass_back(tensors, grads, retain_graph, create_graph)
        return
    leaves = as_tuple(inputs)
    for x, g in zip(leaves, grad(tensors, leaves, grads, retain_graph, create_graph, allow_unused=True), strict=True):
        if g is not None:
            x._grad = g if x._grad is None else x._grad + g


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the sum of `outputs` by `inputs`, which need not be leaves; no `.grad` changes.

    Args:
        outputs: A tensor or a sequence of them.
        inputs: What to differentiate by, likewise.
        grad_outputs: Weights of the outputs; None stands for 1.
        retain_graph: See `backward`.
        create_graph: See `backward`.
        only_inputs: Must be True.
        allow_unused: Whether an input that the outputs do not depend on gets None; otherwise it is an error.
        is_grads_batched: Must be False.
        materialize_grads: Whether it gets zeros.

    Returns:
        A tuple with a tensor per input.

    Example:
        >>> import fnad.torch as torch
        >>> x = torch.tensor(2.0, requires_grad=True)
        >>> (g,) = torch.autograd.grad(x**3, x, create_graph=True)
        >>> g, torch.autograd.grad(g, x)
        (tensor(12., grad_fn=<MulBackward0>), (tensor(12.),))

    Reference: `torch.autograd.grad` of PyTorch 2.13.
    """
    if not only_inputs or is_grads_batched:
        raise UnsupportedError("fnad.torch: autograd.grad has no batches of gradients", fix="torch.func.vmap over torch.func.vjp")
    outputs, inputs = as_tuple(outputs), as_tuple(inputs)
    grads = (None,) * len(outputs) if grad_outputs is None else as_tuple(grad_outputs)
    places = []
    for x in inputs:
        if x._view is not None:
            _views.refresh(x)
        if not x._req:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        places.append((x if x._node is None else x._node, x._k))
    found, run = gradients(outputs, grads, retain_graph, create_graph, places)
    results: list[Any] = []
    for x, g in zip(inputs, found, strict=True):
        if g is None and materialize_grads:
            g = np.zeros(x._data.shape, x._data.dtype)
        elif g is None and not allow_unused:
            raise RuntimeError(
                "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the "
                "desired behavior."
            )
        if g is None:
            results.append(None)
        elif g.__class__ is TapeTracer:
            results.append(run.leave(g))
        else:
            results.append(make(g if isinstance(g, Tracer) else np.array(g, order="C")))
    return tuple(results)


@method("backward")
def _backward(self: Any, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
    """Add to the `.grad` of every leaf that this tensor was computed from: see `torch.autograd.backward`."""
    if gradient is not None and not isinstance(gradient, Tensor):
        gradient = make(np.asarray(gradient, self._data.dtype))
    if inputs is None:
        pass_back((self,), (gradient,), retain_graph, create_graph)
    else:
        backward(self, gradient, retain_graph, create_graph, inputs)


_keys = itertools.count()


class RemovableHandle:
    """`handle.remove()` takes a hook away."""

    def __init__(self, hooks: dict[Any, Any], key: Any) -> None:
        self.hooks, self.key = hooks, key

    def remove(self) -> None:
        self.hooks.pop(self.key, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


@method()
def register_hook(self: Any, hook: Any) -> RemovableHandle:
    """`hook(gradient)` is called when this tensor's gradient is known; what it returns, if not None, takes its place."""
    if not self._req:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    key = next(_keys)
    if self._node is None:
        self._hooks = {} if self._hooks is None else self._hooks
        self._hooks[key] = hook
        return RemovableHandle(self._hooks, key)
    node = self._node
    node.hooks = {} if node.hooks is None else node.hooks
    node.hooks[key] = self._k, hook
    return RemovableHandle(node.hooks, key)


@method()
def register_post_accumulate_grad_hook(self: Any, hook: Any) -> RemovableHandle:
    """`hook(tensor)` is called when something has been added to the `.grad` of this leaf."""
    if self._node is not None or not self._req:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    self._after = {} if self._after is None else self._after
    key = next(_keys)
    self._after[key] = hook
    return RemovableHandle(self._after, key)


@method()
def retain_grad(self: Any) -> None:
    """Let `backward()` leave this tensor's gradient in `.grad`, though it is no leaf."""
    if not self._req:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if self._node is None or self._retained is not None:
        return
    me = weakref.ref(self)

    def keep(g: Any) -> None:
        x = me()
        if x is not None:
            new = g if g._req else make(np.array(g._data))
            x._grad = new if x._grad is None else x._grad + new

    self._retained = self.register_hook(keep)


@method()
def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
    """Begin, or stop, to record what is done with this leaf."""
    self.requires_grad = requires_grad
    return self


@method()
def detach_(self: Any) -> Any:
    """Take this tensor from the tape."""
    if self._view is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    self._node, self._k, self._req = None, 0, False
    return self


class Context:
    """What `forward` leaves for `backward`."""

    def __init__(self) -> None:
        self.saved: list[tuple[Any, int]] = []
        self.needs_input_grad: tuple[bool, ...] = ()
        self._not_differentiable: tuple[Any, ...] = ()
        self._materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved = [(t, 0 if t is None else t._counter[0]) for t in tensors]

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        for t, version in self.saved:
            if t is not None and t._counter[0] != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: a tensor saved "
                    f"with save_for_backward is at version {t._counter[0]}; expected version {version} instead."
                )
        return tuple(t for t, _ in self.saved)

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self._not_differentiable = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        raise UnsupportedError("fnad.torch: a Function cannot change its arguments in place (mark_dirty)", fix="return new tensors")

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` is given zeros, or None, for outputs to which no gradient comes."""
        self._materialize = value


class Function:
    """An operation with a derivative of one's own: static methods `forward(ctx, ...)` and `backward(ctx, *grads)`, called by `apply`.

    With `create_graph` the operations of its `backward` are recorded.

    Reference: `torch.autograd.Function` of PyTorch 2.13.
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function.")

    setup_context: Any = None

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call `forward`, and leave a node on the tape."""
        ctx = Context()
        tensors = [(k, a) for k, a in enumerate(args) if isinstance(a, Tensor)]
        for _, a in tensors:
            if a._view is not None:
                _views.refresh(a)
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a._req for a in args)
        with no_grad():
            out = cls.forward(ctx, *args, **kwargs) if cls.setup_context is None else cls.forward(*args, **kwargs)
            if cls.setup_context is not None:
                cls.setup_context(ctx, args, out)
        outs = out if isinstance(out, tuple) else (out,)
        if not STATE.recording or not any(ctx.needs_input_grad):
            return out
        edges: list[Any] = [((a, 0) if a._node is None else (a._node, a._k)) if isinstance(a, Tensor) and a._req else None for a in args]
        avals = [aval_of(o._data) for o in outs]
        node = Node(Own(cls.__name__, ctx._materialize), {}, edges, functools.partial(_answer, cls, ctx, len(args)), avals)
        node.keeps = True
        fresh = []
        for k, o in enumerate(outs):
            given = any(o is a for a in args)  # an argument itself: what is changed in it later would not be noticed
            t = make(o._data.copy()) if given else make(o._data, o._counter)
            if not any(o is n for n in ctx._not_differentiable):
                t._node, t._k, t._req = node, k, True
            fresh.append(t)
        return tuple(fresh) if isinstance(out, tuple) else fresh[0]


def _answer(cls: Any, ctx: Context, count: int, run: Any, g: Sequence[Any]) -> list[Any]:
    """The cotangents of the arguments; recorded, if the walk is."""
    answers = cls.backward(ctx, *[None if x is None else run.leave(x) for x in g])
    answers = answers if isinstance(answers, tuple) else (answers,)
    if len(answers) < count:
        raise RuntimeError(
            f"function {cls.__name__}Backward returned an incorrect number of gradients (expected {count}, got {len(answers)})"
        )
    return [a if a is None else a._data if run.call is None else run.call.enter(a) for a in answers]


def Variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
    """The tensor itself, as a leaf: what `Variable` means since PyTorch 0.4."""
    return make(data._data, data._counter).requires_grad_(requires_grad) if isinstance(data, Tensor) else data
