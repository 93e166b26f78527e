"""The strategies draw what they say."""

from __future__ import annotations

import numpy as np
from hypothesis import find, given
from hypothesis import strategies as st

import fnad
from fnad.testing.strategies import arrays, broadcastable, programs, pytrees, shapes


@given(arrays(np.float32, (2, 3), low=-1.0, high=5.0))
def test_arrays_of_a_dtype_and_shape(x):
    assert x.dtype == np.float32
    assert x.shape == (2, 3)
    assert np.all((x >= -1) & (x <= 5))
    assert x.flags.c_contiguous
    assert x.flags.writeable


@given(arrays(st.sampled_from([bool, np.int32, np.uint8, np.float16, np.complex64]), shapes(1, 2)))
def test_arrays_of_drawn_dtypes_and_shapes(x):
    assert x.dtype in (bool, np.int32, np.uint8, np.float16, np.complex64)
    assert x.ndim in (1, 2)


def test_arrays_of_any_shape_and_layout():
    for condition in (
        lambda x: x.ndim == 3,
        lambda x: x.size == 0,
        lambda x: x.ndim == 0,
        lambda x: x.ndim == 2 and x.flags.f_contiguous and not x.flags.c_contiguous,
        lambda x: any(s < 0 for s in x.strides),
        lambda x: not x.flags.writeable,
        lambda x: x.ndim > 0 and x.size > 1 and x.strides[-1] == 16,
    ):
        find(arrays(layouts=True), condition)


@given(shapes(1, 2, 3, 4))
def test_shapes(shape):
    assert len(shape) in (1, 2)
    assert all(side in (3, 4) for side in shape)


@given(broadcastable(3))
def test_broadcastable_shapes(three):
    assert len(three) == 3
    np.broadcast_shapes(*three)


def test_broadcastable_shapes_differ():
    find(broadcastable(2), lambda pair: len(pair[0]) != len(pair[1]) and 0 not in pair[0])
    find(broadcastable(2), lambda pair: pair[0] != pair[1] and len(pair[0]) == len(pair[1]))


@given(pytrees(arrays(shape=(2,))))
def test_pytrees(tree):
    leaves = fnad.tree.leaves(tree)
    assert leaves
    assert all(isinstance(leaf, np.ndarray) for leaf in leaves)


def test_pytrees_are_nested_in_all_ways():
    leaf = st.just(np.ones(1))
    for condition in (
        lambda t: isinstance(t, np.ndarray),
        lambda t: isinstance(t, dict) and any(isinstance(v, tuple) for v in t.values()),
        lambda t: isinstance(t, list) and None in [x for x in t if x is None],
    ):
        find(pytrees(leaf), condition)


@given(programs())
def test_programs_run_on_their_inputs(program):
    args = program.draw_args()
    assert tuple(a.shape for a in args) == program.inputs
    out = program(*args)
    assert all(0 < np.size(v) <= 64 for v in out.values())
    assert np.isfinite(program.scalar(*args))


def test_programs_cover_the_vocabulary():
    for part in ("np.var(", "@", "np.pad(", "at(", ".add(", "np.einsum(", "np.concatenate(", "np.linalg.inv(", "np.sort(", "np.select("):
        find(programs(), lambda p, part=part: part in p.source)


@given(programs(smooth=True))
def test_smooth_programs_have_no_kinks(program):
    assert not any(part in program.source for part in ("np.sort(", "np.abs(", "np.select(", "np.max(", "np.where("))
