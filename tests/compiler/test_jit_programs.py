"""Random programs: compiled equals eager, in value and gradient, f32 and f64, whatever the layout of the arguments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad.testing.compare import assert_trees_close
from fnad.testing.strategies import programs

few = settings(derandomize=True, deadline=None, max_examples=40)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@few
@given(program=programs(), seed=st.integers(0, 3), flipped=st.booleans())
def test_value_and_gradient(dtype, program, seed, flipped):
    args = program.draw_args(dtype, seed)
    if flipped:
        args = [np.asarray(a[..., ::-1]) if a.ndim else a for a in args]
    every = tuple(range(len(args)))
    tolerance = {} if dtype == np.float64 else {"rtol": 2e-4, "atol": 2e-4}
    with np.errstate(all="ignore"):
        assert_trees_close(fnad.jit(program)(*args), program(*args), **tolerance)
        both = fnad.value_and_grad(program.scalar, every)
        assert_trees_close(fnad.jit(both)(*args), both(*args), **tolerance)
