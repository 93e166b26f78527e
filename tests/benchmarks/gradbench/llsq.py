"""Least squares: a polynomial against the sign function on equidistant points."""

import numpy as np

import fnad


def primal(x, n):
    t = -1 + 2 * np.arange(n) / (n - 1)

    def term(carry, coefficient):
        residual, power = carry
        return (residual - coefficient * power, power * t), None

    (residual, _), _ = fnad.scan(term, (np.sign(t), np.ones(n)), x)
    return 0.5 * np.sum(residual**2)


def prepare(input):
    return np.array(input["x"], float), input["n"]


FUNCTIONS = {"primal": fnad.jit(primal, static_argnums=1), "gradient": fnad.jit(fnad.grad(primal), static_argnums=1)}
