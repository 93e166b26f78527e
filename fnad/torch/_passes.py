"""Backward passes from some tensors: run as a program where the tape looks like one before, walked where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.torch import _views
from fnad.torch._backward import Walk, dense
from fnad.torch._compiled import attempt
from fnad.torch._mode import STATE
from fnad.torch._tensor import Tensor


def start(x: Any, g: Any, create: bool) -> Any:
    """What the cotangent of an output begins with."""
    data = x._data
    if g is None:
        if data.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if data.dtype.kind == "c":
            raise RuntimeError("grad can be implicitly created only for real scalar outputs but got " + repr(x.dtype))
        return np.ones(data.shape, data.dtype)
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if g._data.shape != data.shape:
        raise RuntimeError(f"Mismatch in shape: grad_output[0] has a shape of {g.shape} and output[0] has a shape of {x.shape}.")
    return g


def backward(outputs: Sequence[Any], grads: Sequence[Any], retain: bool | None, create: bool) -> None:
    """Add to the `.grad` of all leaves."""
    _pass(outputs, grads, create if retain is None else retain, create, None)


def gradients(
    outputs: Sequence[Any], grads: Sequence[Any], retain: bool | None, create: bool, wanted: Sequence[tuple[Any, int]]
) -> tuple[list[Any], Walk]:
    """The cotangents of what is wanted, None where there is none; and the walk that they belong to."""
    return _pass(outputs, grads, create if retain is None else retain, create, wanted)


def _pass(outputs: Sequence[Any], grads: Sequence[Any], retain: bool, create: bool, wanted: Any) -> tuple[list[Any], Walk]:
    run = Walk(retain, create, wanted)
    recording, STATE.recording = STATE.recording, create
    try:
        targets, seeds = [], []
        for i, (x, g) in enumerate(zip(outputs, grads, strict=True)):
            if x._view is not None:
                _views.refresh(x)
            if not x._req:
                raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
            g = start(x, g, create)
            if isinstance(g, Tensor):
                g = g._data if run.call is None else run.call.enter(g)
            targets.append((x if x._node is None else x._node, x._k))
            seeds.append(g)
        found = None if create else attempt(targets, seeds, retain, wanted)
        if found is None:
            return _walk(run, targets, seeds, wanted), run
        if wanted is None:
            for leaf, g in found:
                run.accumulate(leaf, g)
            return [], run
        return [g if g is None or not isinstance(t, Tensor) else run.hooked(t, g) for g, (t, _) in zip(found, wanted, strict=True)], run
    finally:
        STATE.recording = recording


def _walk(run: Walk, targets: list[tuple[Any, int]], seeds: list[Any], wanted: Any) -> list[Any]:
    for (target, k), g in zip(targets, seeds, strict=True):
        run.seed(target, k, g)
    run.run()
    run.finish()
    return [] if wanted is None else [dense(run.found.get((id(t), k))) for t, k in wanted]


def as_tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if x is None or isinstance(x, Tensor) else tuple(x)
