"""The front end: what it builds, run by the direct interpreter, is what Python computes."""

import copy
import warnings

import numpy as np
import pytest
from hypothesis import given, settings

from fnad.loops.frontend import build
from tests.loops.functions import CASES
from tests.loops.machine import flatten, interpret, ir_type, verify
from tests.loops.programs import loop_programs


def same(got, want):
    """Equal structure, shapes and values."""
    if isinstance(want, tuple):
        return type(got) is type(want) and len(got) == len(want) and all(map(same, got, want))
    if want is None:
        return got is None
    got, want = np.asarray(got), np.asarray(want)
    tol = 1e-5 if np.float32 in (got.dtype, want.dtype) else 1e-12
    return got.shape == want.shape and np.allclose(got, want, rtol=tol, atol=tol, equal_nan=True)


@pytest.mark.parametrize("name", CASES)
def test_it_computes_what_python_computes(name):
    f, args = CASES[name]
    built = build(f, [ir_type(a) for a in args])
    verify(built)
    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of numbers that are not finite, in branches too
        got, want = interpret(built, *mine), f(*theirs)
    assert same(got, want), (got, want)
    assert same(tuple(flatten(mine)), tuple(flatten(theirs)))
    changed = {value for value, a, b in zip(built.args, flatten(args), flatten(theirs), strict=True) if not np.array_equal(a, b)}
    assert changed <= built.written


@settings(max_examples=60, deadline=None)
@given(loop_programs())
def test_random_programs_compute_what_python_computes(program):
    f = program.function()
    built = build(f, [ir_type(a) for a in program.args])
    verify(built)
    mine, theirs = program.copies(), program.copies()
    got, want = interpret(built, *mine), f(*theirs)
    assert same(got, want), (got, want)
    assert same(mine, theirs)
    changed = {value for value, a, b in zip(built.args, program.args, theirs, strict=True) if not np.array_equal(a, b)}
    assert changed <= built.written
