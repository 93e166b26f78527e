"""The printed source computes what the loop language says, as plain Python and under numba, and is pleasant to read."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from hypothesis import given, settings

from fnad.loops import generated
from fnad.loops.frontend import build
from fnad.loops.printer import raising, source
from fnad.loops.tangent import tangent
from tests.loops.functions import CASES
from tests.loops.machine import flatten, interpret, ir_type
from tests.loops.programs import loop_programs
from tests.loops.test_frontend import same


def printed(fn):
    text, names = source(fn)
    names = names | {v.name: a for v, a in fn.captured}
    return generated.plain(text, fn.name, names), text


def run(function, args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return function(*args)


def flat_interpret(fn, args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return tuple(flatten((interpret(fn, *copy.deepcopy(args)),)))


@pytest.mark.parametrize("name", CASES)
def test_as_python(name):
    f, args = CASES[name]
    fn = build(f, [ir_type(a) for a in args])
    leaves = flatten(args)
    kept = copy.deepcopy(leaves)
    assert same(run(printed(fn)[0], leaves), flat_interpret(fn, args))
    assert same(tuple(leaves), tuple(kept)), "an argument was changed"


@settings(max_examples=60)
@given(loop_programs())
def test_random_programs_as_python(program):
    fn = build(program.function(), [ir_type(a) for a in program.args])
    assert same(run(printed(fn)[0], program.copies()), flat_interpret(fn, program.args))


@settings(max_examples=40)
@given(loop_programs())
def test_tangents_of_random_programs_as_python(program):
    fn = build(program.function(), [ir_type(a) for a in program.args])
    active = tuple(a.type.dtype.kind == "f" for a in fn.args)
    moved = tangent(fn, active)
    args = (*program.args, *(np.ones_like(a)[()] for a, wanted in zip(program.args, active, strict=True) if wanted))
    assert same(run(printed(moved)[0], copy.deepcopy(args)), flat_interpret(moved, args))


@settings(max_examples=8)
@given(loop_programs())
def test_random_programs_under_numba(program):
    import numba

    fn = build(program.function(), [ir_type(a) for a in program.args])
    function = numba.njit(error_model="numpy")(printed(fn)[0])
    assert same(function(*program.copies()), flat_interpret(fn, program.args))


def heat(u0, alpha, steps):
    u = u0.copy()
    new = np.empty_like(u)
    for _ in range(steps):
        for i in range(1, u.size - 1):
            new[i] = u[i] + alpha * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        new[0] = 0.0
        if alpha > 0.5:
            new[-1] = 1.0
        elif alpha < 0.1:
            new[-1] -= 1.0
        else:
            new[-1] = u[-1]
        u, new = new, u
    return u


def test_it_is_readable():
    """Versions of a name are one variable, numbers used once have none, branches stay branches, the user's lines are quoted once."""
    fn = build(heat, [ir_type(np.ones(3)), ir_type(0.1), ir_type(3)])
    text = printed(fn)[1]
    first = heat.__code__.co_firstlineno
    assert f"# {first + 5}: new[i] = u[i] + alpha * (u[i - 1] - 2.0 * u[i] + u[i + 1])\n" in text
    assert text.count(f"# {first + 5}:") == 1
    code = "\n".join(line for line in text.splitlines() if "#" not in line)
    assert "elif" in code
    assert " if not " not in code
    assert code.count(" = ") < 12
    assert "-=" in code


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("raise ValueError('too large')", True),
        ("raise ZeroDivisionError", True),
        ("raise MyError('x')", False),
        ("raise ValueError(f'{x}')", False),
        ("raise", False),
    ],
)
def test_raise(text, kept):
    assert (raising(text) == text) is kept
    compile(raising(text), "here", "exec")
