"""Every primitive, compiled, against itself run eagerly: values, types and gradients on the samples of the audit."""

from __future__ import annotations

import numpy as np
import pytest

import fnad
from fnad.core.primitive import REGISTRY
from fnad.testing.compare import assert_trees_close

from ..primitives.test_every_primitive import NAMES, samples_of


def cases(name):
    """Samples of one primitive as one function of all their arguments, so that they compile together."""
    samples = samples_of(name)
    sizes = [len(s.args) for s in samples]
    starts = np.cumsum([0, *sizes])

    def every(*args):
        outs = []
        for s, a, b in zip(samples, starts, starts[1:], strict=False):
            mine = s.through(*args[a:b]) if s.through else args[a:b]
            outs.append(REGISTRY[name](*mine, **s.params))
        return outs

    return every, [x for s in samples for x in s.args]


@pytest.mark.parametrize("name", NAMES)
def test_compiled_value(name):
    every, args = cases(name)
    with np.errstate(all="ignore"):
        want = every(*args)
        got = fnad.jit(every)(*args)
    for g, w in zip(fnad.tree.leaves(got), fnad.tree.leaves(want), strict=True):
        assert g.dtype == np.asarray(w).dtype
        assert np.shape(g) == np.shape(w)
    assert_trees_close(got, want)


@pytest.mark.parametrize("name", [n for n in NAMES if not REGISTRY[n].constant])
def test_compiled_gradient(name):
    every, args = cases(name)
    floats = [i for i, a in enumerate(args) if np.asarray(a).dtype.kind == "f"]

    def loss(*xs):
        full = list(args)
        for i, x in zip(floats, xs, strict=True):
            full[i] = x
        outs = [o for o in fnad.tree.leaves(every(*full)) if o.dtype.kind == "f"]
        return sum((np.sum(np.sin(o)) for o in outs), np.float64(0.0))

    if not floats:
        return
    gradient = fnad.grad(loss, argnums=tuple(range(len(floats))))
    xs = [args[i] for i in floats]
    with np.errstate(all="ignore"):
        try:
            want = gradient(*xs)
        except fnad.errors.UnsupportedError:
            pytest.skip("no gradient")
        assert_trees_close(fnad.jit(gradient)(*xs), want)
