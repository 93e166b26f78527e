"""The logarithm of a sum of exponentials."""

import numpy as np

import fnad


def logsumexp(x):
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


def prepare(input):
    return (np.array(input["x"], float),)


FUNCTIONS = {"primal": fnad.jit(logsumexp), "gradient": fnad.jit(fnad.grad(logsumexp))}
