"""The gradient descent that two of the problems are about: its steps are prescribed, since they decide where it stops."""

import math

import fnad

MODES = {"r": fnad.grad, "f": fnad.jacfwd}


@fnad.njit
def moved(x, eta, slope):
    return (x[0] - eta * slope[0], x[1] - eta * slope[1])


@fnad.njit
def norm(x):
    return math.sqrt(x[0] * x[0] + x[1] * x[1])


@fnad.njit
def argmin(f, gradient, start, *others):
    """The pair of numbers x where f(x, *others) is smallest, from x = start."""
    x, eta, i = start, 1e-5, 0
    value, slope = f(x, *others), gradient(x, *others)
    while norm(slope) > 1e-5:
        if i == 10:
            eta, i = 2.0 * eta, 0
            continue
        next = moved(x, eta, slope)
        if norm(moved(x, 1.0, next)) <= 1e-5:
            break
        there = f(next, *others)
        if there < value:
            x, value, slope, i = next, there, gradient(next, *others), i + 1
        else:
            eta, i = eta / 2.0, 0
    return x
