"""Samples for the audit of what neural networks are made of: windows, convolution, pooling, normalisation."""

from __future__ import annotations

import numpy as np

from .samples import TIES, Sample, cplx, real, samples, softmaxes

NO_PADDING = ((0, 0), (0, 0))
PLAIN = {"stride": (1, 1), "padding": NO_PADDING, "dilation": (1, 1)}
UNEVEN = {"stride": (2, 1), "padding": ((1, 0), (2, 1)), "dilation": (1, 2)}
SIZE = (4, 5)


@samples("iota")
def _(rng):
    numbers = np.dtype(np.int64)
    return [
        *(Sample((real(rng, 2, 3),), {"axis": axis, "dtype": numbers}) for axis in (0, 1)),
        Sample((np.arange(2),), {"axis": 0, "dtype": np.dtype(np.int32)}),
        Sample((real(rng, 0, 2),), {"axis": 0, "dtype": numbers}),
    ]


@samples("first_largest")
def _(rng):
    with_nan = np.array([[1.0, np.nan, 3.0, np.nan], [np.inf, -np.inf, np.inf, 0.0]])
    return [*softmaxes(rng), *(Sample((x,), {"axis": axis}, smooth=False) for x in (TIES, with_nan) for axis in ((1,), (0, 1)))]


@samples("standardize")
def _(rng):
    return [
        *(Sample((real(rng, 3, 4),), {"axis": axis, "eps": 0.1}) for axis in ((0,), (1,), (0, 1))),
        Sample((real(rng, 2, 3, 2),), {"axis": (1, 2), "eps": 0.01}),
        Sample((np.full((2, 3), 1.5),), {"axis": (1,), "eps": 0.5}),
        Sample((real(rng, 0, 3),), {"axis": (1,), "eps": 0.1}),
        Sample((real(rng, 3, 1),), {"axis": (1,), "eps": 0.1}),
    ]


@samples("unfold")
def _(rng):
    return [
        Sample((real(rng, 3, 4),), {"kernel": (2, 2), "stride": (1, 1), "dilation": (1, 1)}),
        Sample((real(rng, 2, 4, 4),), {"kernel": (2, 2), "stride": (2, 2), "dilation": (1, 1)}),
        Sample((real(rng, 1, 2, 5, 4),), {"kernel": (2, 2), "stride": (1, 2), "dilation": (3, 1)}),
        Sample((real(rng, 2, 2),), {"kernel": (2, 1), "stride": (3, 3), "dilation": (1, 1)}),
        Sample((cplx(rng, 2, 3),), {"kernel": (1, 2), "stride": (1, 1), "dilation": (1, 1)}),
        Sample((real(rng, 0, 3, 3),), {"kernel": (2, 2), "stride": (1, 1), "dilation": (1, 1)}),
    ]


@samples("fold")
def _(rng):
    return [
        Sample((real(rng, 2, 2, 2, 3),), {"size": (3, 4), "stride": (1, 1), "dilation": (1, 1)}),
        Sample((real(rng, 2, 2, 2, 2, 2),), {"size": (4, 4), "stride": (2, 2), "dilation": (1, 1)}),
        Sample((real(rng, 2, 2, 2, 2),), {"size": (5, 4), "stride": (2, 2), "dilation": (1, 1)}),
        Sample((real(rng, 2, 2, 2, 1),), {"size": (5, 4), "stride": (1, 2), "dilation": (3, 2)}),
        Sample((cplx(rng, 1, 2, 2, 2),), {"size": (2, 3), "stride": (1, 1), "dilation": (1, 1)}),
        Sample((real(rng, 0, 2, 2, 2, 2),), {"size": (3, 3), "stride": (1, 1), "dilation": (1, 1)}),
    ]


@samples("convolution")
def _(rng):
    return [
        Sample((real(rng, 2, 2, 3, 4), real(rng, 3, 2, 2, 2)), {**PLAIN, "groups": 1}),
        Sample((real(rng, 1, 2, *SIZE), real(rng, 2, 1, 2, 2)), {**UNEVEN, "groups": 2}),
        Sample((real(rng, 2, 2, 2, 3), real(rng, 3, 2, 1, 1)), {**PLAIN, "groups": 1}),
        Sample((cplx(rng, 1, 1, 2, 2), real(rng, 1, 1, 1, 2)), {**PLAIN, "groups": 1}),
        Sample((real(rng, 0, 2, 3, 3), real(rng, 1, 2, 2, 2)), {**PLAIN, "groups": 1}),
    ]


@samples("convolution_input")
def _(rng):
    return [
        Sample((real(rng, 2, 3, 2, 3), real(rng, 3, 2, 2, 2)), {**PLAIN, "groups": 1, "size": (3, 4)}),
        Sample((real(rng, 1, 2, 2, 6), real(rng, 2, 1, 2, 2)), {**UNEVEN, "groups": 2, "size": SIZE}),
        Sample((real(rng, 2, 3, 2, 3), real(rng, 3, 2, 1, 1)), {**PLAIN, "groups": 1, "size": (2, 3)}),
        Sample((cplx(rng, 1, 1, 2, 1), real(rng, 1, 1, 1, 2)), {**PLAIN, "groups": 1, "size": (2, 2)}),
        Sample((real(rng, 0, 1, 2, 2), real(rng, 1, 2, 2, 2)), {**PLAIN, "groups": 1, "size": (3, 3)}),
    ]


@samples("convolution_weight")
def _(rng):
    return [
        Sample((real(rng, 2, 2, 3, 4), real(rng, 2, 3, 2, 3)), {**PLAIN, "groups": 1, "kernel": (2, 2)}),
        Sample((real(rng, 1, 2, *SIZE), real(rng, 1, 2, 2, 6)), {**UNEVEN, "groups": 2, "kernel": (2, 2)}),
        Sample((real(rng, 2, 2, 2, 3), real(rng, 2, 3, 2, 3)), {**PLAIN, "groups": 1, "kernel": (1, 1)}),
        Sample((cplx(rng, 1, 1, 2, 2), real(rng, 1, 1, 2, 1)), {**PLAIN, "groups": 1, "kernel": (1, 2)}),
        Sample((real(rng, 0, 2, 3, 3), real(rng, 0, 1, 2, 2)), {**PLAIN, "groups": 1, "kernel": (2, 2)}),
    ]


def shuffled(rng, *shape):
    """Entries that differ by more than a difference's step."""
    return rng.permutation(np.linspace(-2.0, 2.0, int(np.prod(shape)))).reshape(shape)


@samples("max_pool")
def _(rng):
    return [
        Sample((shuffled(rng, 2, 4, 4),), {**PLAIN, "kernel": (2, 2), "stride": (2, 2)}),
        Sample((shuffled(rng, 4, 5),), {**UNEVEN, "kernel": (3, 2)}),
        Sample((shuffled(rng, 1, 2, 3, 3),), {**PLAIN, "kernel": (1, 2)}),
        Sample((np.array([[1.0, np.nan, 3.0], [-np.inf, -np.inf, np.inf]]),), {**PLAIN, "kernel": (1, 2)}, smooth=False),
        Sample((np.arange(12).reshape(3, 4),), {**PLAIN, "kernel": (2, 2)}),
        Sample((real(rng, 0, 3, 3),), {**PLAIN, "kernel": (2, 2)}),
    ]


WINNERS = np.array([[0, 3, 1], [2, 2, 0]], np.int32)


@samples("pool_take")
def _(rng):
    return [
        Sample((real(rng, 3, 4), WINNERS), {**PLAIN, "kernel": (2, 2)}),
        Sample((real(rng, 2, 4, 6), np.stack([WINNERS, WINNERS[::-1]])), {**PLAIN, "kernel": (2, 2), "stride": (2, 2)}),
        Sample((real(rng, 0, 3, 4), np.zeros((0, 2, 3), np.int32)), {**PLAIN, "kernel": (2, 2)}),
    ]


@samples("pool_put")
def _(rng):
    return [
        Sample((real(rng, 2, 3), WINNERS), {**PLAIN, "kernel": (2, 2), "size": (3, 4)}),
        Sample((real(rng, 2, 2, 3), np.stack([WINNERS, WINNERS[::-1]])), {**PLAIN, "kernel": (2, 2), "stride": (2, 2), "size": (4, 6)}),
        Sample((real(rng, 0, 2, 3), np.zeros((0, 2, 3), np.int32)), {**PLAIN, "kernel": (2, 2), "size": (3, 4)}),
    ]
