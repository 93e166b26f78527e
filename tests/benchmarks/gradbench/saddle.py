"""A saddle point: descent on what another descent finds, each by derivatives of its function."""

import fnad
from tests.benchmarks.gradbench.descent import MODES, argmin


@fnad.njit
def height(q, p):
    return p[0] * p[0] + p[1] * p[1] - (q[0] * q[0] + q[1] * q[1])


@fnad.njit
def depth(q, p):
    return -height(q, p)


def search(outer, inner):
    """Both descents, with one mode for the derivative of the outer function and one for that of the inner."""
    inner_slope = fnad.njit(inner(depth))

    @fnad.njit
    def top(p, start):
        return height(argmin(depth, inner_slope, start, p), p)

    outer_slope = fnad.njit(outer(top))

    @fnad.njit
    def saddle(start):
        p = argmin(top, outer_slope, start, start)
        q = argmin(depth, inner_slope, start, p)
        return p, q

    return saddle


def prepare(input):
    return (tuple(input["start"]),)


def answer(name, result, args):
    p, q = result
    return [*p, *q]


FUNCTIONS = {a + b: search(MODES[a], MODES[b]) for a in MODES for b in MODES}
