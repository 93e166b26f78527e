"""Samples of primitives behind single NumPy functions."""

from __future__ import annotations

import numpy as np

from .samples import Sample, cplx, real, samples


@samples("convolve")
def _(rng):
    return [
        Sample((real(rng, 5), real(rng, 3)), {"mode": "full"}),
        Sample((real(rng, 2), real(rng, 4)), {"mode": "full"}),
        Sample((real(rng, 5), real(rng, 3)), {"mode": "valid"}),
        Sample((real(rng, 3), real(rng, 3)), {"mode": "valid"}),
        Sample((real(rng, 1), real(rng, 1)), {"mode": "full"}),
        Sample((real(rng, 2, 1, 4), real(rng, 3, 2)), {"mode": "full"}),
        Sample((real(rng, 2, 2), real(rng, 5)), {"mode": "full"}),
        Sample((real(rng, 4), real(rng, 2, 2)), {"mode": "valid"}),
        Sample((cplx(rng, 3), cplx(rng, 2)), {"mode": "full"}),
        Sample((cplx(rng, 3), real(rng, 2)), {"mode": "valid"}),
        Sample((np.arange(3), np.arange(2)), {"mode": "full"}),
        Sample((real(rng, 0, 3), real(rng, 2)), {"mode": "full"}),
    ]
