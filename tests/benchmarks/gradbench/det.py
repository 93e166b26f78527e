"""The determinant by expansion along the first row, again and again."""

import functools

import numpy as np

import fnad

# Columns are a number with four bits for each: the first column in the lowest ones.


@fnad.njit
def one(a, columns, factor):
    return factor * a[a.shape[0] - 1, columns]


@fnad.njit
def two(a, columns, factor):
    row, j, k = a.shape[0] - 2, columns & 15, columns >> 4
    return factor * (a[row, j] * a[row + 1, k] - a[row, k] * a[row + 1, j])


@functools.cache
def expansion(size):
    """A function of a matrix: the determinant of its last `size` rows and of some columns, times a factor."""
    if size <= 2:
        return (one, two)[size - 1]
    minor = expansion(size - 1)

    @fnad.njit
    def determinant(a, columns, factor):
        row = a.shape[0] - size
        total = 0.0
        for j in range(size):
            column = columns >> 4 * j
            others = columns & ((1 << 4 * j) - 1) | column >> 4 << 4 * j
            total += minor(a, others, factor * (1 - 2 * (j & 1)) * a[row, column & 15])
        return total

    return determinant


@functools.cache
def functions(size):
    """The determinant of matrices of a size, and its gradient."""
    of_part = expansion(size)
    columns = sum(k << 4 * k for k in range(size))

    def determinant(a):
        return of_part(a, columns, 1.0)

    return fnad.jit(determinant), fnad.jit(fnad.grad(determinant))


def prepare(input):
    size = input["ell"]
    return np.array(input["A"], float).reshape(size, size), *functions(size)


def answer(name, result, args):
    return result.reshape(-1) if name == "gradient" else result


FUNCTIONS = {"primal": lambda a, value, slope: value(a), "gradient": lambda a, value, slope: slope(a)}
