"""One function under everything: value and type as plain NumPy gives them, derivatives, vmap, recording, single precision."""

from __future__ import annotations

from typing import Any

import numpy as np

import fnad
from fnad import tree
from fnad.core.aval import aval_of
from fnad.core.graph import evaluate, flat_function, record
from fnad.testing import check_grads, check_vmap


def same(got: Any, want: Any) -> None:
    """Equal structure, shapes, dtypes, entries, and NumPy scalars where NumPy gives them."""
    got_leaves, got_spec = tree.flatten(got)
    want_leaves, want_spec = tree.flatten(want)
    assert got_spec == want_spec
    for g, w in zip(got_leaves, want_leaves, strict=True):
        w = w[()] if isinstance(w, np.ndarray) and w.ndim == 0 else w
        assert type(g) is type(w), (type(g), type(w))
        assert np.shape(g) == np.shape(w)
        assert aval_of(g).dtype == aval_of(w).dtype
        np.testing.assert_array_equal(g, w)


def agrees(f: Any, *args: Any, order: int = 2, rounds: bool = False, vmap: bool = True) -> None:
    """`rounds`: the traced function may round differently than NumPy's."""
    compare = (lambda g, w: tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), g, w)) if rounds else same
    compare(fnad.vjp(f, *args)[0], f(*args))
    check_grads(f, args, order)
    if vmap:
        stacked = tree.map(lambda x: np.stack([x, 0.5 * x + 1.0, -x]), args)
        check_vmap(f, stacked)
        single_row = tree.map(lambda x: x[:1], stacked)
        check_vmap(lambda *a: fnad.vjp(lambda *b: tree.leaves(f(*b)), *a)[1]([np.ones_like(o) for o in tree.leaves(f(*a))]), single_row)
    leaves, spec = tree.flatten((args, {}))
    recorded = evaluate(record(flat_function(f, spec)[0], [aval_of(x) for x in leaves]), leaves)
    compare([x[()] if np.ndim(x) == 0 else x for x in map(np.asarray, recorded)], [np.asarray(x)[()] for x in tree.leaves(f(*args))])
    narrow = tree.map(lambda x: np.asarray(x, np.float32) if x.dtype == np.float64 else x, args)
    out, pull = fnad.vjp(f, *narrow)
    assert [aval_of(o).dtype for o in tree.leaves(out)] == [aval_of(o).dtype for o in tree.leaves(f(*narrow))]
    grads = pull(tree.map(lambda o: np.ones_like(o), out))
    assert [aval_of(g).dtype for g in tree.leaves(grads)] == [x.dtype for x in tree.leaves(narrow)]
