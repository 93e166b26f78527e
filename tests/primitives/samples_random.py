"""Samples for the audit of random draws: keys, and parameters from both sides of every case distinction."""

from __future__ import annotations

import numpy as np

from .samples import Sample, samples

WORDS = np.array([0, 1, 2**32 - 1, 2**32, 2**63 + 5, 2**64 - 1], np.uint64)
KEY = np.array([1, 2**64 - 3], np.uint64)
KEYS = np.stack([KEY, KEY + np.uint64(1), KEY[::-1]])


@samples("high_product")
def _(rng):
    return [Sample((WORDS, WORDS[:, None])), Sample((WORDS[:0], WORDS[:1]))]


for number in range(4):

    @samples(f"philox_{number}")
    def _(rng):
        return [Sample((WORDS, WORDS[::-1], WORDS[:, None], np.uint64(1))), Sample((*WORDS[:4],))]


@samples("random_bits")
def _(rng):
    shapes = [(), (1,), (0,), (7,), (3, 4)]
    return [Sample((key,), {"shape": shape, "bits": bits}) for key in (KEY, KEYS) for shape in shapes for bits in (32, 64)]


@samples("split_key")
def _(rng):
    return [Sample((key,), {"count": count}) for key in (KEY, KEYS) for count in (0, 1, 5)]


@samples("fold_in_key")
def _(rng):
    return [Sample((KEY, np.uint64(3))), Sample((KEYS[:, None], WORDS)), Sample((KEY, WORDS[:0]))]


@samples("gamma_draws")  # a difference of draws does not keep their quantile, so tests of their own check the derivative
def _(rng):
    a = np.array([0.05, 0.7, 1.0, 2.5, 40.0])
    return [
        *(Sample((KEY, a), {"log": log}, fixed=(1,)) for log in (False, True)),
        Sample((KEYS, np.ones((3, 2))), {"log": False}, fixed=(1,)),
        Sample((KEY, np.ones((0,))), {"log": True}, fixed=(1,)),
    ]


@samples("gamma_slope")
def _(rng):
    a = np.array([0.05, 0.7, 1.0, 2.5, 40.0])
    return [Sample((a, np.array([0.1, 1.4, 3.0, 2.0, 41.0])), {"log": log}, fixed=(0, 1)) for log in (False, True)]


@samples("poisson_draws")
def _(rng):
    return [
        Sample((KEY, np.array([0.0, 0.5, 9.0, 11.0, 1e6, -1.0, np.nan]))),
        Sample((KEYS, np.full((3, 2), 4.0))),
        Sample((KEY, np.ones(0))),
    ]


@samples("binomial_draws")
def _(rng):
    n, p = np.array([0.0, 5.0, 100.0, 100.0, 1000.0, -1.0, 5.0]), np.array([0.5, 0.3, 0.02, 0.5, 0.9, 0.5, 2.0])
    return [Sample((KEY, n, p)), Sample((KEYS, np.full((3, 2), 40.0), np.full((3, 2), 0.5))), Sample((KEY, n, np.where(n > 5, 1.0, 0.0)))]


@samples("orthonormal_columns")
def _(rng):
    return [Sample((rng.normal(size=shape),), fixed=(0,)) for shape in ((3, 3), (2, 4, 2), (1, 1), (0, 3, 2))]
