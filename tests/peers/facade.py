"""The same module, or function, of PyTorch and of the facade, on the same numbers."""

from __future__ import annotations

import numpy as np
import torch

import fnad.torch as ours

from ..torch.layer_cases import backward, leaves, tensors

TOLERANCE = {"float32": 3e-5, "float64": 1e-11}


def same(got, want, tolerance, what):
    """Numbers, shapes and dtypes."""
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want), what
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        assert str(g.dtype) == str(w.dtype), (what, k)
        assert tuple(g.shape) == tuple(w.shape), (what, k)
        g, w = g.detach().numpy(), w.detach().numpy()
        np.testing.assert_allclose(g, w, tolerance, tolerance, err_msg=f"{what} {k}")


def gradients(inputs):
    return [x.grad for x in leaves(inputs) if x.requires_grad]


def same_gradients(got, want, tolerance, what):
    got, want = gradients(got), gradients(want)
    assert [g is None for g in got] == [w is None for w in want], what
    same([g for g in got if g is not None], [w for w in want if w is not None], tolerance, what)


def agree(function, *inputs, dtype="float64", tolerance=None):
    """`function(library, *inputs)` has the same value and gradients in both libraries."""
    tolerance = tolerance or TOLERANCE[dtype]
    found = {}
    for library in (torch, ours):
        arguments = tensors(library, list(inputs), dtype)
        out = function(library, *arguments)
        backward(library, out)
        found[library] = out, arguments
    same(found[ours][0], found[torch][0], tolerance, "value")
    same_gradients(found[ours][1], found[torch][1], tolerance, "gradient")


def modules_agree(make, *inputs, dtype="float64", tolerance=None, call=None, shown=True):
    """`make(library)` prints alike, has the same names in its state, and computes the same with the same parameters: values, gradients
    of inputs and parameters, buffers after the call, values in evaluation mode."""
    tolerance = tolerance or TOLERANCE[dtype]
    theirs, mine = make(torch), make(ours)
    if shown:
        assert repr(mine) == repr(theirs)
    theirs, mine = theirs.to(getattr(torch, dtype)), mine.to(getattr(ours, dtype))
    assert list(mine.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in mine.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert [n for n, _ in mine.named_modules()] == [n for n, _ in theirs.named_modules()]
    mine.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    call = call or (lambda library, module, *x: module(*x))
    found = {}
    for library, module in ((torch, theirs), (ours, mine)):
        arguments = tensors(library, list(inputs), dtype)
        out = call(library, module, *arguments)
        backward(library, out)
        buffers = [b.detach().clone() for b in module.buffers()]
        module.eval()
        with library.no_grad():
            later = call(library, module, *tensors(library, list(inputs), dtype, grad=False))
        found[library] = out, arguments, list(module.parameters()), buffers, later
    for k, what in ((0, "value"), (3, "buffer"), (4, "value in evaluation")):
        same(found[ours][k], found[torch][k], tolerance, what)
    for k, what in ((1, "gradient of input"), (2, "gradient of parameter")):
        same_gradients(found[ours][k], found[torch][k], tolerance, what)
