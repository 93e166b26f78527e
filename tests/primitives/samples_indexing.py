"""Samples of indexing, joining and sorting primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from .samples import Sample, cplx, real, samples

MATRIX = np.array([[0, -1], [2, 0]])
VECTOR = np.array([1, 0, 1])
COLUMN = np.array([[0], [2]])


@samples("static_index")
def _(rng):
    return [
        Sample((real(rng, 4),), {"index": (2,)}),
        Sample((real(rng, 4),), {"index": ((3, None, -2),)}),
        Sample((real(rng, 2, 3),), {"index": (1,)}),
        Sample((real(rng, 2, 3),), {"index": ((0, 2, 1), None, 2)}),
        Sample((real(rng, 2, 3),), {"index": (1, 2)}),
        Sample((real(rng),), {"index": ()}),
        Sample((real(rng),), {"index": (None,)}),
        Sample((cplx(rng, 3),), {"index": ((0, 2, 1),)}),
        Sample((real(rng, 0, 2),), {"index": ((0, 0, 1), 1)}),
        Sample((np.arange(4),), {"index": (1,)}),
    ]


@samples("static_spread")
def _(rng):
    return [
        Sample((real(rng),), {"shape": (4,), "index": (2,)}),
        Sample((real(rng, 2),), {"shape": (4,), "index": ((3, None, -2),)}),
        Sample((real(rng, 3),), {"shape": (2, 3), "index": (1,)}),
        Sample((real(rng, 2, 1),), {"shape": (2, 3), "index": ((0, 2, 1), None, 2)}),
        Sample((real(rng),), {"shape": (), "index": ()}),
        Sample((cplx(rng, 2),), {"shape": (3,), "index": ((0, 2, 1),)}),
        Sample((real(rng, 0),), {"shape": (3,), "index": ((0, 0, 1),)}),
    ]


@samples("static_set")
def _(rng):
    return [
        Sample((real(rng, 4), real(rng)), {"index": (2,)}),
        Sample((real(rng, 4), real(rng, 2)), {"index": ((3, None, -2),)}),
        Sample((real(rng, 2, 3), real(rng, 3)), {"index": (1,)}),
        Sample((real(rng, 2, 3), real(rng, 2, 1)), {"index": ((0, 2, 1), None, 2)}),
        Sample((real(rng), real(rng)), {"index": ()}),
        Sample((cplx(rng, 3), cplx(rng, 2)), {"index": ((0, 2, 1),)}),
        Sample((real(rng, 3), real(rng, 0)), {"index": ((0, 0, 1),)}),
    ]


@samples("gather")
def _(rng):
    return [
        Sample((real(rng, 3), MATRIX), {"axis": 0}),
        Sample((real(rng, 3), 2), {"axis": 0}),
        Sample((real(rng, 2, 3), MATRIX), {"axis": 1}),
        Sample((real(rng, 2, 3, 2), VECTOR, COLUMN), {"axis": 0}),
        Sample((real(rng, 2, 3, 2), COLUMN, VECTOR), {"axis": 1}),
        Sample((real(rng, 2, 3), 1, np.array(2)), {"axis": 0}),
        Sample((cplx(rng, 3), VECTOR), {"axis": 0}),
        Sample((real(rng, 3, 0), VECTOR), {"axis": 0}),
        Sample((real(rng, 3), np.zeros(0, int)), {"axis": 0}),
        Sample((np.arange(3), VECTOR), {"axis": 0}),
    ]


@samples("scatter_add")
def _(rng):
    return [
        Sample((real(rng, 2, 2), MATRIX), {"axis": 0, "shape": (3,)}),
        Sample((real(rng), 2), {"axis": 0, "shape": (3,)}),
        Sample((real(rng, 2, 2, 2), MATRIX), {"axis": 1, "shape": (2, 3)}),
        Sample((real(rng, 2, 3, 2), VECTOR, COLUMN), {"axis": 0, "shape": (2, 3, 2)}),
        Sample((real(rng, 2, 2, 3), COLUMN, VECTOR), {"axis": 1, "shape": (2, 3, 2)}),
        Sample((cplx(rng, 3), VECTOR), {"axis": 0, "shape": (3,)}),
        Sample((real(rng, 3, 0), VECTOR), {"axis": 0, "shape": (3, 0)}),
        Sample((real(rng, 0), np.zeros(0, int)), {"axis": 0, "shape": (3,)}),
    ]


def _updates(rng, **params: Any) -> list[Sample]:
    return [
        Sample((real(rng, 3), real(rng, 2, 2), MATRIX), {"axis": 0, **params}),
        Sample((real(rng, 3), real(rng), 2), {"axis": 0, **params}),
        Sample((real(rng, 2, 3), real(rng, 2, 2, 2), MATRIX), {"axis": 1, **params}),
        Sample((real(rng, 2, 3, 2), real(rng, 2, 3, 2), VECTOR, COLUMN), {"axis": 0, **params}),
        Sample((real(rng, 2, 3, 2), real(rng, 2, 2, 3), COLUMN, VECTOR), {"axis": 1, **params}),
        Sample((real(rng, 3, 0), real(rng, 3, 0), VECTOR), {"axis": 0, **params}),
        Sample((real(rng, 3), real(rng, 0), np.zeros(0, int)), {"axis": 0, **params}),
    ]


@samples("add_at")
def _(rng):
    return [*_updates(rng), Sample((cplx(rng, 3), cplx(rng, 3), VECTOR), {"axis": 0})]


@samples("set_at")
def _(rng):
    return [*_updates(rng), Sample((cplx(rng, 3), cplx(rng, 3), VECTOR), {"axis": 0})]


@samples("extreme_at")
def _(rng):
    tie = np.array([1.0, 2.0, 0.0]), np.array([2.0, 2.0, 0.0]), VECTOR
    return [
        *_updates(rng, larger=True),
        *_updates(rng, larger=False),
        Sample(tie, {"axis": 0, "larger": True}, smooth=False),
        Sample(tie, {"axis": 0, "larger": False}, smooth=False),
    ]


@samples("concatenate")
def _(rng):
    return [
        Sample((real(rng, 3), real(rng, 2)), {"axis": 0}),
        Sample((real(rng, 2, 3), real(rng, 2, 1), real(rng, 2, 0)), {"axis": 1}),
        Sample((cplx(rng, 2), real(rng, 1)), {"axis": 0}),
        Sample((real(rng, 2),), {"axis": 0}),
        Sample((real(rng, 2), np.arange(2)), {"axis": 0}),
    ]


@samples("stack")
def _(rng):
    return [
        Sample((real(rng, 3), real(rng, 3)), {"axis": 0}),
        Sample((real(rng), real(rng), 1.5), {"axis": 0}),
        Sample((real(rng, 2, 3), real(rng, 2, 3)), {"axis": 1}),
        Sample((cplx(rng, 2), real(rng, 2)), {"axis": 1}),
        Sample((real(rng, 0), real(rng, 0)), {"axis": 0}),
    ]


@samples("argsort")
def _(rng):
    return [
        Sample((real(rng, 4),), {"axis": 0}),
        Sample((real(rng, 2, 3),), {"axis": 0}),
        Sample((real(rng, 2, 3),), {"axis": 1}),
        Sample((np.array([1, 0, 1]),), {"axis": 0}),
        Sample((np.array([True, False, True]),), {"axis": 0}),
        Sample((real(rng, 0),), {"axis": 0}),
        Sample((real(rng, 2, 100),), {"axis": 1}),
        Sample((real(rng, 2, 0),), {"axis": 0}),
        Sample((np.array([[2.0, np.nan, -np.inf, 1.0, np.nan, 2.0, np.inf, 1.0]]),), {"axis": 1}, smooth=False),
        Sample((real(rng, 600).round(1),), {"axis": 0}, smooth=False),
        Sample((cplx(rng, 3),), {"axis": 0}),
    ]


@samples("argpartition")
def _(rng):
    return [
        Sample((real(rng, 4),), {"axis": 0, "kth": (1,)}),
        Sample((real(rng, 2, 3),), {"axis": 1, "kth": (0, 2)}),
        Sample((np.array([3, 1, 2]),), {"axis": 0, "kth": (1,)}),
    ]


@samples("lexsort")
def _(rng):
    return [
        Sample((np.array([1, 0, 1]), real(rng, 3)), {"axis": 0}),
        Sample((real(rng, 2, 3), real(rng, 2, 3)), {"axis": 1}),
        Sample((np.array([3, 1, 2]), np.array([1, 1, 0])), {"axis": 0}),
    ]


@samples("searchsorted")
def _(rng):
    rising = np.sort(real(rng, 4))
    return [
        Sample((rising, real(rng, 3)), {"side": "left"}),
        Sample((rising, real(rng)), {"side": "right"}),
        Sample((rising, real(rng, 2, 2)), {"side": "right"}),
        Sample((rising, np.array([1, 0, -1])), {"side": "left"}),
        Sample((np.array([0.0, 1.0, 1.0, 1.0, 2.0]), np.array([1.0, np.nan, -1.0, 2.0, 3.0])), {"side": "left"}, smooth=False),
        Sample((np.array([0.0, 1.0, 1.0, np.nan]), np.array([1.0, np.nan, -1.0, 2.0, 3.0])), {"side": "right"}, smooth=False),
        Sample((real(rng, 0), real(rng, 3)), {"side": "left"}),
        Sample((np.sort(cplx(rng, 3)), cplx(rng, 3)), {"side": "right"}),
    ]
