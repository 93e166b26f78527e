"""Samples of the primitives of linear algebra beyond the matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np

from .samples import Sample, cplx, real, samples


def regular(rng: np.random.Generator, *shape: int) -> Any:
    return real(rng, *shape) + 3.0 * np.eye(shape[-1])


def low_rank(rng: np.random.Generator, n: int, rank: int) -> Any:
    return real(rng, n, rank) @ real(rng, rank, n)


def made_symmetric(x: Any) -> tuple[Any]:
    return (0.5 * (x + np.swapaxes(x, -1, -2)),)


def made_positive(x: Any) -> tuple[Any]:
    return (np.matmul(x, np.swapaxes(x, -1, -2)) + np.eye(x.shape[-1], dtype=x.dtype),)


@samples("inv")
def _(rng):
    return [
        Sample((regular(rng, 3, 3),)),
        Sample((regular(rng, 2, 2, 2),)),
        Sample((regular(rng, 1, 1),)),
        Sample((cplx(rng, 2, 2) + 3.0 * np.eye(2),)),
        Sample((real(rng, 0, 0),)),
    ]


@samples("regular_inv")
def _(rng):
    return [Sample((regular(rng, 3, 3),)), Sample((regular(rng, 2, 1, 1),))]


@samples("solve")
def _(rng):
    return [
        Sample((regular(rng, 3, 3), real(rng, 3, 2))),
        Sample((regular(rng, 3, 3), real(rng, 2, 3, 1))),
        Sample((regular(rng, 2, 2, 2), real(rng, 2, 3))),
        Sample((regular(rng, 2, 1, 2, 2), real(rng, 3, 2, 1))),
        Sample((regular(rng, 1, 1), real(rng, 1, 1))),
        Sample((cplx(rng, 2, 2) + 3.0 * np.eye(2), cplx(rng, 2, 1))),
        Sample((regular(rng, 2, 2), cplx(rng, 2, 1))),
        Sample((real(rng, 0, 0), real(rng, 0, 2))),
    ]


@samples("det")
def _(rng):
    return [
        Sample((real(rng, 3, 3),)),
        Sample((real(rng, 2, 2, 2),)),
        Sample((real(rng, 1, 1),)),
        Sample((real(rng, 0, 0),)),
        Sample((cplx(rng, 3, 3),)),
        *(Sample((low_rank(rng, n, rank),)) for n in (2, 3, 4) for rank in range(n)),
        Sample((np.ones((3, 3)),)),
        Sample((np.stack([np.eye(2), np.zeros((2, 2))]),)),
        Sample((cplx(rng, 3, 1) @ cplx(rng, 1, 3),)),
    ]


@samples("cofactors")
def _(rng):
    return [
        Sample((regular(rng, 3, 3),)),
        Sample((regular(rng, 2, 2, 2),)),
        Sample((real(rng, 1, 1),), order=1),
        Sample((cplx(rng, 3, 3) + 3.0 * np.eye(3),)),
        Sample((low_rank(rng, 3, 2),), order=1),
        Sample((low_rank(rng, 4, 2),), order=1),
        Sample((np.zeros((2, 2)),), order=1),
    ]


@samples("cofactors_slope")
def _(rng):
    return [
        Sample((regular(rng, 3, 3), real(rng, 3, 3))),
        Sample((regular(rng, 2, 2, 2), real(rng, 2, 2))),
        Sample((cplx(rng, 3, 3) + 3.0 * np.eye(3), cplx(rng, 3, 3)), order=1),
    ]


@samples("slogdet")
def _(rng):
    return [
        Sample((regular(rng, 3, 3),)),
        Sample((regular(rng, 2, 2, 2),)),
        Sample((np.array([[0.0, 1.0], [1.0, 0.5]]),)),
        Sample((np.array([[-2.0]]),)),
    ]


@samples("cholesky")
def _(rng):
    return [Sample((x,), through=made_positive) for x in (real(rng, 3, 3), real(rng, 2, 2, 2), real(rng, 1, 1), real(rng, 0, 0))]


@samples("eigh")
def _(rng):
    spread = np.diag([0.0, 3.0, 7.0])
    return [
        Sample((real(rng, 3, 3) + spread,), through=made_symmetric),
        Sample((real(rng, 2, 3, 3) + spread,), through=made_symmetric),
        Sample((real(rng, 1, 1),), through=made_symmetric),
        Sample((real(rng, 0, 0),), through=made_symmetric),
    ]


@samples("svd")
def _(rng):
    return [
        *(Sample((real(rng, *shape),)) for shape in ((3, 3), (4, 2), (2, 3), (2, 3, 2), (1, 1), (3, 1))),
        Sample((real(rng, 0, 2),)),
        Sample((real(rng, 0, 2, 2),)),
    ]


@samples("qr")
def _(rng):
    return [*(Sample((real(rng, *shape),)) for shape in ((3, 3), (4, 2), (2, 3, 2), (1, 1), (3, 0))), Sample((real(rng, 0, 3, 2),))]


@samples("pinv")
def _(rng):
    return [
        *(Sample((real(rng, *shape),), {"cutoff": 1e-6}) for shape in ((3, 3), (4, 2), (2, 3, 2), (1, 1))),
        Sample((real(rng, 4, 2),), {"cutoff": 1e-6}, through=lambda x: (x @ x.T,)),
    ]


@samples("eig")
def _(rng):
    spread = np.diag([0.0, 3.0, 7.0])
    return [
        Sample((real(rng, 3, 3) * 0.5 + spread,)),
        Sample((np.array([[1.0, -2.0, 0.1], [1.5, 1.2, 0.3], [0.2, 0.1, 4.0]]),)),
        Sample((real(rng, 2, 3, 3) * 0.5 + spread,)),
        Sample((cplx(rng, 3, 3) * 0.5 + spread,)),
        Sample((real(rng, 1, 1),)),
        Sample((real(rng, 0, 0),)),
    ]


@samples("triangular_solve")
def _(rng):
    lower, upper, unit = ({"lower": low, "unit": one} for low, one in ((True, False), (False, False), (True, True)))
    return [
        Sample((regular(rng, 3, 3), real(rng, 3, 2)), lower),
        Sample((regular(rng, 3, 3), real(rng, 2, 3, 1)), upper),
        Sample((regular(rng, 3, 3), real(rng, 3, 2)), unit),
        Sample((regular(rng, 3, 3), real(rng, 3, 1)), {"lower": False, "unit": True}),
        Sample((regular(rng, 2, 2, 2), real(rng, 2, 3)), unit),
        Sample((regular(rng, 1, 1), real(rng, 1, 1)), lower),
        Sample((cplx(rng, 2, 2) + 3.0 * np.eye(2), cplx(rng, 2, 1)), upper),
        Sample((regular(rng, 2, 2), cplx(rng, 2, 1)), lower),
        Sample((real(rng, 0, 0), real(rng, 0, 2)), lower),
    ]


@samples("lu")
def _(rng):
    return [
        Sample((real(rng, 3, 3),)),
        Sample((np.array([[1.0, 2.0, 0.5], [4.0, 1.0, 0.2], [3.0, 6.0, 1.0]]),)),
        Sample((regular(rng, 2, 2, 2),)),
        Sample((regular(rng, 1, 1),)),
        Sample((cplx(rng, 2, 2),)),
        Sample((real(rng, 0, 0),)),
    ]


@samples("permutation")
def _(rng):
    return [Sample((np.array([2, 2, 2, 3], np.int32),)), Sample((np.array([[1, 1], [0, 1]], np.int32),)), Sample((np.zeros(0, np.int32),))]


@samples("expm")
def _(rng):
    return [
        Sample((real(rng, 3, 3),)),
        Sample((real(rng, 2, 2, 2),)),
        Sample((real(rng, 1, 1),)),
        Sample((np.zeros((2, 2)),)),
        Sample((np.array([[0.0, 1.0], [0.0, 0.0]]),)),
        Sample((cplx(rng, 2, 2),)),
        Sample((real(rng, 0, 0),)),
    ]
