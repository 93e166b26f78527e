"""A linear chain y_i' = x_i y_(i-1) by the classical Runge-Kutta method: its last component by x."""

import numpy as np

import fnad


def primal(x, steps):
    h = 2.0 / steps

    def slope(y):
        return x * np.concatenate([np.ones(1), y[:-1]])

    def step(y, _):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return fnad.scan(step, np.zeros_like(x), None, length=steps)[0]


def prepare(input):
    return np.array(input["x"], float), input["s"]


FUNCTIONS = {
    "primal": fnad.jit(primal, static_argnums=1),
    "gradient": fnad.jit(fnad.grad(lambda x, steps: primal(x, steps)[-1]), static_argnums=1),
}
