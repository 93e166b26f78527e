"""The square of a number, and its derivative."""

import fnad


def square(x):
    return x * x


prepare = lambda x: (float(x),)
FUNCTIONS = {"square": fnad.jit(square), "double": fnad.jit(fnad.grad(square))}
